//! Errors of the management API as RFC 9457 problem details. Store errors become statuses here
//! and nowhere else; their inner text goes to the log, not to the caller.

use crate::domain::FieldError;
use crate::store::{StoreError, StoreErrorKind};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

/// An error as the caller sees it.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    status: StatusCode,
    detail: String,
    /// What is wrong with which field.
    errors: Vec<FieldError>,
}

impl Problem {
    /// 400: what is wrong with the input, and what is allowed.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, detail: detail.into(), errors: Vec::new() }
    }

    /// 400: every field that is refused.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let detail = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Self { status: StatusCode::BAD_REQUEST, detail, errors }
    }

    /// 400: what is refused as a whole, and every field that is the reason.
    pub fn refused(detail: impl Into<String>, errors: Vec<FieldError>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, detail: detail.into(), errors }
    }

    /// 401
    pub fn unauthorised() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            detail: "send `Authorization: Bearer <token>`; the node's log names the file that holds it".to_owned(),
            errors: Vec::new(),
        }
    }

    /// 404
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, detail: detail.into(), errors: Vec::new() }
    }

    /// 409
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::CONFLICT, detail: detail.into(), errors: Vec::new() }
    }

    /// 413
    pub fn too_large(limit: usize) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            detail: format!("the body is larger than {limit} bytes"),
            errors: Vec::new(),
        }
    }

    /// 408
    pub fn too_slow() -> Self {
        Self {
            status: StatusCode::REQUEST_TIMEOUT,
            detail: "the body did not arrive in time".to_owned(),
            errors: Vec::new(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match error.kind() {
            StoreErrorKind::Unavailable | StoreErrorKind::Contention | StoreErrorKind::ReadOnly => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            StoreErrorKind::Duplicate | StoreErrorKind::Conflict | StoreErrorKind::Outdated => StatusCode::CONFLICT,
            StoreErrorKind::NotFound => StatusCode::NOT_FOUND,
            StoreErrorKind::Invalid => StatusCode::BAD_REQUEST,
            StoreErrorKind::Other => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let detail = match error.kind() {
            StoreErrorKind::Duplicate => format!("{}: the name is already taken", error.action()),
            StoreErrorKind::Conflict
            | StoreErrorKind::Outdated
            | StoreErrorKind::NotFound
            | StoreErrorKind::Invalid => error.to_string(),
            StoreErrorKind::ReadOnly => "the database is read-only; make it writable".to_owned(),
            StoreErrorKind::Unavailable | StoreErrorKind::Contention => {
                "the database cannot be reached right now; try again".to_owned()
            }
            StoreErrorKind::Other => "internal fault; the node's log says more".to_owned(),
        };
        if status.is_server_error() {
            tracing::error!(%error, "management request failed");
        }
        Self { status, detail, errors: error.field().cloned().into_iter().collect() }
    }
}

impl From<FieldError> for Problem {
    fn from(error: FieldError) -> Self {
        Self::fields(vec![error])
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status).content_type("application/problem+json").json(json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "errors": self.errors,
        }))
    }
}
