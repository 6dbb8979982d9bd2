//! The guard of every operation: rate, identity, forged requests, permission, in this order. Without
//! a permission a caller learns nothing, not even what exists.

use super::Api;
use super::client_address::client_address;
use super::needs::Needs;
use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::auth::{Caller, Denied, Recheck};
use actix_web::body::MessageBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, HttpResponse, ResponseError, web};
use carillon_protocol::sign::matches;
use std::future::{Ready, ready};

/// The cookie that carries a session's token.
pub const SESSION_COOKIE: &str = "carillon_session";

/// The header that a page sends to show that it has read the node's answers.
pub const CSRF_HEADER: &str = "x-csrf-token";

/// What the guard of an operation checks.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    /// The guarded operation.
    pub id: &'static str,
    /// What its callers must have.
    pub needs: Needs,
    /// Whether it reads a body.
    pub has_body: bool,
}

/// Lets a request pass to its handler, or answers why not.
pub async fn pass(
    guarded: Guard,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    match check(guarded, request.request()).await {
        // Returned as a response: an error would bypass the middleware that adds headers.
        Err(problem) => Ok(request.into_response(problem.error_response()).map_into_right_body()),
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.call(request).await.map(ServiceResponse::map_into_left_body)
        }
    }
}

/// The caller, if they may call this operation.
pub async fn check(guarded: Guard, request: &HttpRequest) -> Result<Option<Caller>, Problem> {
    let Guard { id, needs, has_body } = guarded;
    let api = api_of(request)?;
    let address = client_address(api, request);
    api.rates.addresses.admit_address(&address).map_err(Problem::too_many)?;
    if has_body && !is_json(request.headers()) {
        return Err(RequestRefusal::NoJson.into());
    }
    if needs == Needs::Nothing {
        refuse_foreign(request)?;
        return Ok(None);
    }
    let caller = identify(api, request, &address).await?;
    admit(api, &caller)?;
    refuse_forged(&caller, request)?;
    let is_token = caller.session.is_none();
    if needs == Needs::Session && is_token {
        return Err(RequestRefusal::SessionNeeded.into());
    }
    // A user who must change their password needs a session to do so.
    if caller.must_change && (is_token || needs != Needs::Anybody) {
        return Err(RequestRefusal::PasswordChangeRequired.into());
    }
    match needs {
        Needs::Permission(permission) if caller.access.access_scope(permission).is_none() => {
            tracing::debug!(actor = caller.actor.name, operation = id, "permission missing");
            Err(Problem::forbidden(permission))
        }
        _ => Ok(Some(caller)),
    }
}

/// Refuses callers who ask too much.
pub fn admit(api: &Api, caller: &Caller) -> Result<(), Problem> {
    let name = format!("{}:{}", caller.actor.kind, caller.actor.name);
    api.rates.callers.admit(&name).map_err(Problem::too_many)
}

/// The caller that the request's token or cookie identifies.
pub async fn identify(api: &Api, request: &HttpRequest, address: &str) -> Result<Caller, Problem> {
    let now = api.engine.clock.now_ms();
    let (secret, is_cookie) = shown(request).ok_or_else(Problem::unauthorised)?;
    Ok(api.authenticator.identify(&secret, is_cookie, address, now).await?)
}

/// The token that a request carries, and whether it came as a cookie; nothing when it carries none.
pub fn shown(request: &HttpRequest) -> Option<(String, bool)> {
    let bearer = text(request.headers(), header::AUTHORIZATION.as_str()).and_then(|text| text.strip_prefix("Bearer "));
    match bearer {
        Some(secret) => Some((secret.trim().to_owned(), false)),
        None => request.cookie(SESSION_COOKIE).map(|cookie| (cookie.value().to_owned(), true)),
    }
}

/// Whether the caller's credentials still grant the same access; assumed while the database is unavailable.
pub fn recheck(api: &web::Data<Api>, request: &HttpRequest, caller: Caller) -> Result<Recheck, Problem> {
    let (secret, is_cookie) = shown(request).ok_or_else(Problem::unauthorised)?;
    let api = api.clone();
    Ok(Box::new(move || {
        let (api, secret, caller) = (api.clone(), secret.clone(), caller.clone());
        Box::pin(async move {
            let now = api.engine.clock.now_ms();
            match api.authenticator.look_again(&secret, is_cookie, &caller.actor.address, now).await {
                Ok(again) => again.access == caller.access && !again.must_change,
                Err(Denied::Store(error)) => {
                    tracing::debug!(%error, "permissions of a listener could not be read");
                    true
                }
                Err(_) => false,
            }
        })
    }))
}

/// A browser sends its cookie with requests of any page: a request that changes something must prove that
/// its page has read the node's responses, which pages of other sites cannot.
fn refuse_forged(caller: &Caller, request: &HttpRequest) -> Result<(), Problem> {
    let Some(csrf) = &caller.csrf else { return Ok(()) };
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(());
    }
    refuse_foreign(request)?;
    let given = text(request.headers(), CSRF_HEADER).unwrap_or_default();
    if matches(csrf, given) {
        return Ok(());
    }
    Err(RequestRefusal::Forged { header: CSRF_HEADER.to_owned() }.into())
}

/// A browser tells when the requesting page belongs to another site; such a page may neither change
/// anything nor sign anyone in.
pub fn refuse_foreign(request: &HttpRequest) -> Result<(), Problem> {
    let site = text(request.headers(), "sec-fetch-site").unwrap_or("none");
    let only_looks = [Method::GET, Method::HEAD].contains(request.method());
    if only_looks || ["same-origin", "none"].contains(&site) {
        return Ok(());
    }
    Err(RequestRefusal::ForeignSite.into())
}

/// A page of another site can make a browser send text, a form, or a body without a type, but not JSON.
fn is_json(headers: &HeaderMap) -> bool {
    match text(headers, header::CONTENT_TYPE.as_str()) {
        None => !headers.contains_key(header::CONTENT_TYPE) && is_empty(headers),
        Some(kind) => {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            ["application/json", "application/merge-patch+json"].iter().any(|json| kind.eq_ignore_ascii_case(json))
        }
    }
}

/// Whether no body is announced.
fn is_empty(headers: &HeaderMap) -> bool {
    let length = text(headers, header::CONTENT_LENGTH.as_str()).unwrap_or("0");
    length == "0" && !headers.contains_key(header::TRANSFER_ENCODING)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn api_of(request: &HttpRequest) -> Result<&Api, Problem> {
    let api = request.app_data::<web::Data<Api>>();
    api.map(|api| &***api).ok_or_else(|| Problem::internal("the node is not ready"))
}

/// The path exists, the method does not; the OpenAPI document tells everyone as much.
pub async fn wrong_method(allowed: Vec<Method>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let api = api_of(&request)?;
    api.rates.addresses.admit_address(&client_address(api, &request)).map_err(Problem::too_many)?;
    Err(Problem::wrong_method(&allowed))
}

impl FromRequest for Caller {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(request.extensions().get::<Self>().cloned().ok_or_else(Problem::unauthorised))
    }
}
