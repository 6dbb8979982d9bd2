//! Signing in by single sign-on: to the provider, and back. A browser that shows a page learns of failures on the
//! console's sign-in page, other clients by a problem document.

use super::account::own_note;
use super::client_address::client_address;
use super::console::Console;
use super::input::Query;
use super::needs::Needs;
use super::operation::{Operation, get};
use super::pending_sign_in::{Failure, PendingSignIn, is_here, refused};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::{Api, account};
use crate::auth::{Pending, Provider, SignOnContext};
use crate::domain::Action;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Between the two steps: state, nonce, verifier and return path.
const PENDING: PendingSignIn =
    PendingSignIn { cookie: "carillon_sign_on", path: "/api/v1/login/oidc", place_of_return_path: 3 };

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
    let kept = PENDING.keep(api, [&state, &nonce, &verifier, return_to]);
    Ok(HttpResponse::SeeOther().cookie(kept).insert_header((header::LOCATION, url)).finish())
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
    let [state, nonce, verifier, return_to] = PENDING.kept(request, state.as_deref())?;
    let pending = Pending { state, nonce, verifier };
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
    let note = own_note(api, &account::caller(&user, address), Action::FinishSingleSignOn);
    PENDING.end(api, request, (address, return_to), user, note).await
}

/// The provider's error goes to the log: it may contain confidential details.
fn unreachable(error: &anyhow::Error) -> Failure {
    tracing::error!(error = format!("{error:#}"), "single sign-on failed");
    Failure::new("provider", RequestRefusal::SignOnAway.into())
}
