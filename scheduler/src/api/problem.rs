//! Errors of the management API as RFC 9457 problem details. Store errors become statuses here
//! and nowhere else; their inner text goes to the log, not to the caller.

use super::refusal::RequestRefusal;
use crate::auth::Denied;
use crate::domain::instant::utc_words;
use crate::domain::refusal::{Coded, Entry};
use crate::domain::{FieldError, FieldRefusal, Permission, Refusal};
use crate::store::{CHANGE_BEGIN_MAX, StoreError, StoreErrorKind};
use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Page that explains the codes; `type` adds the code.
const PAGE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/errors.md#");

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// Link to the explanation of the code.
    #[serde(rename = "type")]
    kind: String,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// Why, for programs; docs/errors.md lists the codes.
    code: ProblemCode,
    /// Parameters of `detail`, by name: text or numbers.
    params: Map<String, Value>,
    /// What went wrong and how to fix it, for people.
    detail: String,
    /// What is wrong with which field.
    errors: Vec<FieldDocument>,
}

/// Why a field is refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FieldError)]
pub struct FieldDocument {
    /// Name of the field as sent, with the index in a list: `excluded_days[3]`.
    field: String,
    /// The entry of a task file that the field belongs to: `tenant/app/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// What is wrong; docs/errors.md lists the codes.
    code: FieldCode,
    /// Parameters of the message, by name: text or numbers.
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

/// A code of [`RequestRefusal`] or [`Refusal`].
#[derive(Debug, Serialize)]
pub struct ProblemCode(&'static str);

impl PartialSchema for FieldCode {
    fn schema() -> RefOr<Schema> {
        codes(FieldRefusal::LIST.iter())
    }
}

impl PartialSchema for ProblemCode {
    fn schema() -> RefOr<Schema> {
        codes(RequestRefusal::LIST.iter().chain(Refusal::LIST))
    }
}

impl ToSchema for FieldCode {}

impl ToSchema for ProblemCode {}

/// An enum of codes; `x-params` has the parameters of each.
fn codes<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> RefOr<Schema> {
    let params = entries.clone().map(|entry| {
        let params = entry.params.iter().map(|(name, kind)| ((*name).to_owned(), Value::from(*kind)));
        (entry.code.to_owned(), Value::Object(params.collect()))
    });
    let params = ExtensionsBuilder::new().add("x-params", Value::Object(params.collect())).build();
    let codes = entries.map(|entry| entry.code);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).extensions(Some(params)).into()
}

/// An error as the caller sees it.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    params: Map<String, Value>,
    detail: String,
    /// What is wrong with which field.
    errors: Vec<FieldError>,
    /// A header that goes with the status.
    header: Option<Box<(header::HeaderName, String)>>,
}

impl Problem {
    fn of(refusal: &impl Coded) -> Self {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (code, params, detail) = (refusal.code(), refusal.params(), refusal.to_string());
        Self { status, code, params, detail, errors: Vec::new(), header: None }
    }

    /// 400: every field that is refused.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let fields = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Self::from(RequestRefusal::InvalidFields { fields }).naming(errors)
    }

    /// Adds the fields that are the reason.
    pub fn naming(self, errors: Vec<FieldError>) -> Self {
        Self { errors, ..self }
    }

    fn with_header(self, name: header::HeaderName, value: impl Into<String>) -> Self {
        Self { header: Some(Box::new((name, value.into()))), ..self }
    }

    /// Adds when to try again.
    pub fn retry_after(self, wait: Duration) -> Self {
        self.with_header(header::RETRY_AFTER, seconds(wait).to_string())
    }

    /// 401
    pub fn unauthorised() -> Self {
        RequestRefusal::Unauthenticated.into()
    }

    /// 403: the permission is held nowhere.
    pub fn forbidden(permission: Permission) -> Self {
        RequestRefusal::PermissionMissing { permission: permission.as_str().to_owned() }.into()
    }

    /// 405
    pub fn wrong_method(allowed: &[Method]) -> Self {
        let allowed = allowed.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        Self::from(RequestRefusal::WrongMethod { allowed: allowed.clone() }).with_header(header::ALLOW, allowed)
    }

    /// 429
    pub fn too_many(wait: Duration) -> Self {
        Self::from(RequestRefusal::TooManyRequests { seconds: seconds(wait) }).retry_after(wait)
    }

    /// 500: an internal error.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "management request failed");
        RequestRefusal::Internal.into()
    }
}

fn seconds(wait: Duration) -> i64 {
    wait.as_secs() as i64 + 1
}

impl From<RequestRefusal> for Problem {
    fn from(refusal: RequestRefusal) -> Self {
        let problem = Self::of(&refusal);
        if problem.status == StatusCode::UNAUTHORIZED {
            return problem.with_header(header::WWW_AUTHENTICATE, "Bearer");
        }
        problem
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::of(&refusal)
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unknown => RequestRefusal::Unauthenticated.into(),
            Denied::Expired(at) => RequestRefusal::TokenExpired { expired_at: utc_words(at) }.into(),
            Denied::WrongPassword => RequestRefusal::WrongPassword.into(),
            Denied::NoAccount(detail) => RequestRefusal::NoAccount { detail }.into(),
            Denied::TooMany(wait) => {
                Self::from(RequestRefusal::TooManySignIns { seconds: seconds(wait) }).retry_after(wait)
            }
            Denied::Store(error) => error.into(),
            Denied::Password(_) | Denied::Random(_) => Self::internal(denied),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if let Some(refusal) = error.refusal() {
            return refusal.clone().into();
        }
        if let Some(field) = error.field() {
            return field.clone().into();
        }
        let refusal = match error.kind() {
            StoreErrorKind::NotFound => return Refusal::not_found(error.action(), error.detail()).into(),
            StoreErrorKind::Duplicate | StoreErrorKind::Conflict => {
                return Refusal::Conflict { detail: error.to_string() }.into();
            }
            StoreErrorKind::Outdated => return Refusal::Outdated.into(),
            StoreErrorKind::Invalid => return RequestRefusal::NulInText.into(),
            StoreErrorKind::ReadOnly => RequestRefusal::DatabaseReadOnly,
            StoreErrorKind::TooLate => RequestRefusal::ChangeTooLate { seconds: CHANGE_BEGIN_MAX.as_secs() as i64 },
            StoreErrorKind::Unavailable | StoreErrorKind::Contention => RequestRefusal::DatabaseAway,
            StoreErrorKind::Other => RequestRefusal::Internal,
        };
        tracing::error!(%error, "management request failed");
        refusal.into()
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
            kind: format!("{PAGE}{}", self.code),
            title: self.status.canonical_reason().unwrap_or("error"),
            status: self.status.as_u16(),
            code: ProblemCode(self.code),
            params: self.params.clone(),
            detail: self.detail.clone(),
            errors: self.errors.iter().map(Into::into).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
