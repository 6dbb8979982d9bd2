//! Errors of the management API as RFC 9457 problem details. Store errors become statuses here
//! and nowhere else; their inner text goes to the log, not to the caller.

use crate::auth::Denied;
use crate::domain::refusal::Coded;
use crate::domain::{FieldError, FieldRefusal, Permission};
use crate::store::{StoreError, StoreErrorKind};
use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// What `type` says of a problem that has no page of its own.
const BLANK: &str = "about:blank";

/// What `type` says when another password must be chosen first.
const MUST_CHANGE: &str = "urn:carillon:password-change-required";

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// Kind of problem; `about:blank` when the status says it all.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// What went wrong, and how to mend it.
    detail: String,
    /// What is wrong with which field.
    errors: Vec<FieldDocument>,
}

/// Why a field is refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FieldError)]
pub struct FieldDocument {
    /// Name of the field as it was given, with the place in a list: `excluded_days[3]`.
    field: String,
    /// The entry of a task file that the field belongs to: `tenant/app/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// What is wrong; docs/errors.md lists the codes.
    code: FieldCode,
    /// What the message is filled with, by name: text or numbers.
    params: Map<String, Value>,
    /// What is wrong and what is allowed, for people.
    message: String,
}

impl From<&FieldError> for FieldDocument {
    fn from(error: &FieldError) -> Self {
        Self {
            field: error.field.clone(),
            entry: error.entry.clone(),
            code: FieldCode(error.refusal.code()),
            params: error.refusal.params(),
            message: error.message(),
        }
    }
}

/// A code of [`FieldRefusal`].
#[derive(Debug, Serialize)]
pub struct FieldCode(&'static str);

impl PartialSchema for FieldCode {
    fn schema() -> RefOr<Schema> {
        let codes = FieldRefusal::LIST.iter().map(|entry| entry.code);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).into()
    }
}

impl ToSchema for FieldCode {}

/// An error as the caller sees it.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    /// What is wrong with which field.
    errors: Vec<FieldError>,
    /// A header that goes with the status.
    header: Option<Box<(header::HeaderName, String)>>,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, kind: BLANK, detail: detail.into(), errors: Vec::new(), header: None }
    }

    /// 400: what is wrong with the input, and what is allowed.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 400: every field that is refused.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let detail = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Self::refused(detail, errors)
    }

    /// 400: what is refused as a whole, and every field that is the reason.
    pub fn refused(detail: impl Into<String>, errors: Vec<FieldError>) -> Self {
        Self { errors, ..Self::invalid(detail) }
    }

    /// 401
    pub fn unauthorised() -> Self {
        Self {
            header: Some(Box::new((header::WWW_AUTHENTICATE, "Bearer".to_owned()))),
            ..Self::new(StatusCode::UNAUTHORIZED, Denied::Unknown.to_string())
        }
    }

    /// 403: the permission is held nowhere.
    pub fn forbidden(permission: Permission) -> Self {
        let detail =
            format!("this needs the permission `{}`; an admin can grant a role that has it", permission.as_str());
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 403: what is asked for goes beyond what the caller holds.
    pub fn beyond(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 403: nothing else goes before.
    pub fn must_change_password() -> Self {
        let detail = "choose another password first (PUT /api/v1/account/password)";
        Self { kind: MUST_CHANGE, ..Self::new(StatusCode::FORBIDDEN, detail) }
    }

    /// 403: a request with a cookie that does not show where it comes from.
    pub fn forged(header: &str) -> Self {
        let detail = format!("send the session's token in the header {header}; GET /api/v1/session tells it");
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 404
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 405
    pub fn wrong_method(allowed: &[Method]) -> Self {
        let allowed = allowed.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let detail = format!("this path has only {allowed}");
        Self { header: Some(Box::new((header::ALLOW, allowed))), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    /// 409
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 413
    pub fn too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {limit} bytes"))
    }

    /// 415
    pub fn no_json() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the body as `content-type: application/json`")
    }

    /// 408
    pub fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
    }

    /// 429
    pub fn too_many(wait: Duration) -> Self {
        let seconds = wait.as_secs() + 1;
        Self {
            header: Some(Box::new((header::RETRY_AFTER, seconds.to_string()))),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, format!("too many requests; wait {seconds} s"))
        }
    }

    /// 429: as much of it goes on as may.
    pub fn no_room(wait: Duration, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::too_many(wait) }
    }

    /// 503: what is needed outside does not answer.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// 500: a fault of ours.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "management request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal fault; the node's log says more")
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unknown => Self::unauthorised(),
            Denied::WrongPassword => Self { detail: denied.to_string(), ..Self::unauthorised() },
            Denied::NoAccount(_) => Self::beyond(denied.to_string()),
            Denied::TooMany(wait) => Self { detail: denied.to_string(), ..Self::too_many(wait) },
            Denied::Store(error) => error.into(),
            Denied::Password(_) | Denied::Random(_) => Self::internal(denied),
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
        Self { errors: error.field().cloned().into_iter().collect(), ..Self::new(status, detail) }
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
        let mut answer = HttpResponse::build(self.status);
        if [StatusCode::REQUEST_TIMEOUT, StatusCode::PAYLOAD_TOO_LARGE].contains(&self.status) {
            // The rest of the body is not waited for.
            answer.force_close();
        }
        if let Some((name, value)) = self.header.as_deref() {
            answer.insert_header((name.clone(), value.as_str()));
        }
        answer.content_type("application/problem+json").json(ProblemDocument {
            kind: self.kind,
            title: self.status.canonical_reason().unwrap_or("error"),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            errors: self.errors.iter().map(Into::into).collect(),
        })
    }
}
