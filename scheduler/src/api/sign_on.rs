//! Signing in by single sign-on: to the provider, and back. A browser that shows a page learns of failures on the
//! console's sign-in page, other clients by a problem document.

use super::account::{cookie, own_note};
use super::client_address::client_address;
use super::console::Console;
use super::input::Query;
use super::needs::Needs;
use super::operation::{Operation, get};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::{Api, account};
use crate::auth::{Denied, LoginContext, Pending, Provider, SignOnContext};
use crate::domain::Action;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use carillon_protocol::sign::matches;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

/// What the browser keeps between the two steps: state, nonce, verifier and return path.
const PENDING_COOKIE: &str = "carillon_sign_on";

/// Path of both steps; the cookie goes nowhere else.
const PENDING_PATH: &str = "/api/v1/login/oidc";

/// Time for both steps.
const PENDING_MAX: Duration = Duration::minutes(10);

/// Longest return path, characters.
const RETURN_CHARS_MAX: usize = 500;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Needs::Nothing;
    vec![
        get("/login", "list_logins", Nothing, "The ways to sign in").answers::<Logins>(200, "The ways").to(list),
        get("/login/oidc", "begin_single_sign_on", Nothing, "Go to the provider of single sign-on")
            .says(
                "For browsers: redirects to the provider, which redirects back. If that is impossible, a page request \
                 (`Sec-Fetch-Mode: navigate`, or `Accept` with `text/html`) is redirected to the console's \
                 `/sign-in?error=<word>`, as described for the second step.",
            )
            .query::<BeginQuery>()
            .answers_nothing_as(303, "The provider's address")
            .to(begin),
        get("/login/oidc/callback", Action::FinishSingleSignOn, Nothing, "Return from the provider of single sign-on")
            .says(
                "Starts a session as `sign_in` does, for the user that the provider names, and redirects to where they \
                 came from. On failure, a page request is redirected to the console's `/sign-in?error=<word>`: \
                 `expired` (this browser did not start the sign-in, or started it more than ten minutes ago), `state` \
                 (it has started another sign-in since), `refused` (the provider refused to sign the user in), \
                 `not_allowed` (none of their groups is granted anything, or the account is disabled or another \
                 user's), `provider` (the provider does not work; the node's log says why), `too_many` (too many \
                 attempts; wait), `unavailable` (the node or its database). Other clients get a problem document.",
            )
            .query::<Callback>()
            .answers_nothing_as(303, "The page to go on with; the session is in the cookie")
            .to(finish),
    ]
}

/// The available ways to sign in.
#[derive(Serialize, ToSchema)]
struct Logins {
    /// With name and password (`POST /login`).
    password: bool,
    /// Name of the single sign-on (`GET /login/oidc`); null when there is none.
    single_sign_on: Option<String>,
    /// Other clusters whose people sign in here without a password (`GET /login/cluster`).
    clusters: Vec<String>,
}

async fn list(api: web::Data<Api>) -> HttpResponse {
    let single_sign_on = api.provider.as_ref().map(|provider| provider.settings().name.clone());
    HttpResponse::Ok().json(Logins { password: true, single_sign_on, clusters: api.clusters.that_sign_in() })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct BeginQuery {
    /// Where to go afterwards: a path of this node; its start page when absent.
    #[param(pattern = "^/", max_length = 500)]
    return_to: Option<String>,
}

/// Providers may add further parameters, which are ignored.
#[derive(Deserialize, IntoParams)]
struct Callback {
    /// Authorization code, exchanged for the identity.
    code: Option<String>,
    /// The state that was sent.
    state: Option<String>,
    /// Issuer of the response (RFC 9207).
    iss: Option<String>,
    /// Error code, when there is no authorization code.
    error: Option<String>,
    /// The error in words.
    error_description: Option<String>,
}

/// Why a user is not signed in: the word in `/sign-in?error=…` (the OpenAPI document lists them; pages know them),
/// and the problem for other clients.
pub struct Failure {
    word: &'static str,
    problem: Problem,
}

impl Failure {
    /// Of a word and a problem.
    pub fn new(word: &'static str, problem: Problem) -> Self {
        Self { word, problem }
    }

    /// A redirect for a browser that shows a page, if there is a console; otherwise the problem.
    pub fn answer(self, console: &Console, request: &HttpRequest, address: &str) -> HttpResponse {
        let Self { word, problem } = self;
        if !console.is_there() || !shows_a_page(request) {
            return problem.error_response();
        }
        if word != TOO_MANY {
            tracing::info!(address, word, detail = %problem, "single sign-on failed");
        }
        HttpResponse::SeeOther().insert_header((header::LOCATION, format!("/sign-in?error={word}"))).finish()
    }
}

const TOO_MANY: &str = "too_many";

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        let word = match denied {
            Denied::TooMany(_) => TOO_MANY,
            Denied::Unknown | Denied::Expired(_) | Denied::WrongPassword | Denied::NoAccount(_) => "not_allowed",
            Denied::Store(_) | Denied::Password(_) | Denied::Random(_) => "unavailable",
        };
        Self::new(word, denied.into())
    }
}

/// Why nobody is signed in, in words.
pub fn refused(detail: &str) -> Problem {
    RequestRefusal::SignOnRefused { detail: detail.to_owned() }.into()
}

/// Whether the browser will show the response as a page.
fn shows_a_page(request: &HttpRequest) -> bool {
    let says = |name: &str, words: &str| {
        request.headers().get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(words))
    };
    says("sec-fetch-mode", "navigate") || says(header::ACCEPT.as_str(), "text/html")
}

fn provider(api: &Api) -> Result<&Provider, Failure> {
    let nothing = || RequestRefusal::NoSignOn.into();
    api.provider.as_ref().ok_or_else(|| Failure::new("provider", nothing()))
}

async fn begin(
    api: web::Data<Api>,
    console: web::Data<Console>,
    request: HttpRequest,
    query: Query<BeginQuery>,
) -> Result<HttpResponse, Problem> {
    let return_to = query.0.return_to.unwrap_or_else(|| "/".to_owned());
    if api.provider.is_some() && !is_here(&return_to) {
        return Err(RequestRefusal::WrongReturnPath.into());
    }
    let address = client_address(&api, &request);
    let begun = to_provider(&api, &address, &return_to).await;
    Ok(begun.unwrap_or_else(|failure| failure.answer(&console, &request, &address)))
}

async fn to_provider(api: &Api, address: &str, return_to: &str) -> Result<HttpResponse, Failure> {
    let provider = provider(api)?;
    api.authenticator.admit_sign_on(address)?;
    let (url, pending) = provider.begin().await.map_err(|error| unreachable(&error))?;
    let Pending { state, nonce, verifier } = pending;
    // Cookies are read unescaped.
    let return_to: String = form_urlencoded::byte_serialize(return_to.as_bytes()).collect();
    let kept = pending_cookie(api, format!("{state}~{nonce}~{verifier}~{return_to}"), PENDING_MAX);
    Ok(HttpResponse::SeeOther().cookie(kept).insert_header((header::LOCATION, url)).finish())
}

/// Whether a path stays on this node: browsers take `//` and `/\` for another host.
pub fn is_here(path: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._?=&%#+:@!".contains(c);
    path.starts_with('/')
        && !path.starts_with("//")
        && path.chars().count() <= RETURN_CHARS_MAX
        && path.chars().all(allowed)
}

fn pending_cookie(api: &Api, value: String, age: Duration) -> Cookie<'static> {
    Cookie::build(PENDING_COOKIE, value)
        .path(PENDING_PATH)
        .http_only(true)
        // The provider's page leads back here.
        .same_site(SameSite::Lax)
        .secure(api.secure_cookie)
        .max_age(age)
        .finish()
}

async fn finish(
    api: web::Data<Api>,
    console: web::Data<Console>,
    request: HttpRequest,
    query: Result<Query<Callback>, Problem>,
) -> HttpResponse {
    let address = client_address(&api, &request);
    let finished = from_provider(&api, &request, &address, query).await;
    finished.unwrap_or_else(|failure| failure.answer(&console, &request, &address))
}

async fn from_provider(
    api: &Api,
    request: &HttpRequest,
    address: &str,
    query: Result<Query<Callback>, Problem>,
) -> Result<HttpResponse, Failure> {
    let provider = provider(api)?;
    api.authenticator.admit_sign_on(address)?;
    let unusable = |problem| Failure::new("provider", problem);
    let Callback { code, state, iss, error, error_description } = query.map_err(unusable)?.0;
    let (pending, return_to) = pending_of(request, state.as_deref())?;
    if let Some(error) = error {
        let why = error_description.unwrap_or_default();
        tracing::warn!(address, error, why, "single sign-on refused by the provider");
        let detail = format!("the provider refused to sign you in: {error} {why}").trim_end().to_owned();
        return Err(Failure::new("refused", RequestRefusal::SignOnRefused { detail }.into()));
    }
    if iss.is_some_and(|issuer| issuer != provider.settings().issuer) {
        return Err(unusable(refused("the answer comes from another provider")));
    }
    let code = code.ok_or_else(|| unusable(RequestRefusal::SignOnWithoutCode.into()))?;
    let identity = provider.finish(code, pending).await.map_err(|error| unreachable(&error))?;
    let now = api.engine.clock.now_ms();
    let next_id = || api.engine.ids.next(now);
    let occasion = SignOnContext { address, now, next_id: &next_id };
    let user = match api.authenticator.by_identity(&identity, provider.settings(), &occasion).await {
        Ok(user) => user,
        Err(denied) => {
            tracing::warn!(subject = identity.subject, name = identity.name, address, %denied, "sign-in refused");
            return Err(denied.into());
        }
    };
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let visit = LoginContext { address, agent, number: next_id() };
    let note = own_note(api, &account::caller(&user, address), Action::FinishSingleSignOn);
    let signed_in = api.authenticator.begin(user, &visit, note, now).await?;
    Ok(HttpResponse::SeeOther()
        .cookie(cookie(api, signed_in.token))
        .cookie(pending_cookie(api, String::new(), Duration::ZERO))
        .insert_header((header::LOCATION, return_to))
        .finish())
}

/// What this browser was sent to the provider with. An answer to another browser's request is refused, so
/// that no one is signed in as someone else without noticing.
fn pending_of(request: &HttpRequest, state: Option<&str>) -> Result<(Pending, String), Failure> {
    let gone = |word| {
        let detail = "this browser did not start this sign-in, or started it more than ten minutes ago; begin again";
        move || Failure::new(word, refused(detail))
    };
    let kept = request.cookie(PENDING_COOKIE).ok_or_else(gone("expired"))?;
    let another = gone("state");
    let parts: Vec<&str> = kept.value().splitn(4, '~').collect();
    let [sent, nonce, verifier, return_to] = parts[..] else { return Err(another()) };
    if sent.is_empty() || !matches(sent, state.unwrap_or_default()) || !is_here(return_to) {
        return Err(another());
    }
    let pending = Pending { state: sent.to_owned(), nonce: nonce.to_owned(), verifier: verifier.to_owned() };
    Ok((pending, return_to.to_owned()))
}

/// The provider's error goes to the log: it may contain confidential details.
fn unreachable(error: &anyhow::Error) -> Failure {
    tracing::error!(error = format!("{error:#}"), "single sign-on failed");
    Failure::new("provider", RequestRefusal::SignOnAway.into())
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn the_way_back_leads_nowhere_else() {
        for path in ["/", "/tasks", "/tasks?tenant=retail&name=a%20b#log"] {
            assert!(is_here(path), "{path}");
        }
        let long = format!("/{}", "a".repeat(500));
        for path in ["", "tasks", "//evil.example", "/\\evil.example", "https://evil.example", "/a~b", "/a\r\nb", &long]
        {
            assert!(!is_here(path), "{path}");
        }
    }
}
