//! Signing in here by being signed in at another cluster (`clusters.signs_in`), as with a provider of single sign-on: this cluster
//! sends the browser there with a challenge, that one sends it back with a code for one use within seconds, and this one asks it,
//! over the link that it watches it by, whose code that is. Nothing that the browser carries says who it is.

use super::account::caller;
use super::client_address::client_address;
use super::console::Console;
use super::guard;
use super::input::Query;
use super::needs::Needs;
use super::operation::{Operation, get, post};
use super::pending_sign_in::{Failure, PendingSignIn, is_here, refused};
use super::people::target;
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::{Api, body};
use crate::auth::{Caller, Denied, hash_of, new_secret};
use crate::domain::access::{PLATFORM, is_user_name};
use crate::domain::audit::Target;
use crate::domain::{AccessScope, Action, AppId, Permission};
use crate::store::{SignInCode, UserFilter, UserView};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use carillon_protocol::sign::matches;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use utoipa::{IntoParams, ToSchema};

/// Path of the steps here.
const PENDING_PATH: &str = "/api/v1/login/cluster";

/// Between the steps: state, verifier, return path and the other cluster.
const PENDING: PendingSignIn =
    PendingSignIn { cookie: "carillon_cluster_sign_in", path: PENDING_PATH, place_of_return_path: 2 };

/// Path of the step at the other cluster.
const ELSEWHERE_PATH: &str = "/api/v1/login/elsewhere";

/// A code is good for so long, ms: the browser and this cluster need it at once.
const CODE_MS: i64 = 30_000;

/// What codes begin with.
const CODE_PREFIX: &str = "cc_";

/// Longest state and code, characters.
const WORD_CHARS_MAX: usize = 200;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Needs::Nothing;
    vec![
        get("/login/cluster", "begin_cluster_sign_in", Nothing, "Go to another cluster to sign in here")
            .says(
                "For browsers: redirects to the cluster of that name, if its people sign in here (setting `clusters.signs_in`); it redirects \
                 back. If that is impossible, a page request is redirected to the console's `/sign-in?error=<word>`, as with \
                 `begin_single_sign_on`.",
            )
            .query::<BeginQuery>()
            .answers_nothing_as(303, "The other cluster's address")
            .to(begin),
        get("/login/elsewhere", Action::SignInElsewhere, Nothing, "Vouch for the caller at another cluster")
            .says(
                "For browsers, sent by another cluster of the setting `clusters`, to which they are redirected: with a code for one use within \
                 30 s, if they have a session here and the permission `clusters.read` on the platform; else with `error=refused`.",
            )
            .query::<ElsewhereQuery>()
            .answers_nothing_as(303, "The other cluster's address")
            .to(vouch),
        post("/clusters/sign-ins", Action::RedeemSignIn, Permission::ClustersRead, "Ask whose code it is, and use it up")
            .says("For other clusters, with what hashes to the challenge that the code was asked for with.")
            .body::<Redemption>()
            .answers::<Vouched>(200, "Whose code it is")
            .to(redeem),
        get("/login/cluster/callback", Action::FinishClusterSignIn, Nothing, "Return from another cluster")
            .says(
                "Starts a session as `sign_in` does, for the account of the name that the user has there, and redirects to where they came \
                 from. Both accounts must be of the same user of a provider of single sign-on, or both of none. On failure as \
                 `finish_single_sign_on`, where the provider is the other cluster.",
            )
            .query::<Callback>()
            .answers_nothing_as(303, "The page to go on with; the session is in the cookie")
            .to(finish),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct BeginQuery {
    /// Name of the other cluster.
    from: String,
    /// Where to go afterwards: a path of this node; its start page when absent.
    #[param(pattern = "^/", max_length = 500)]
    return_to: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ElsewhereQuery {
    /// Name of the cluster that asks.
    to: String,
    /// What it is sent back.
    #[param(max_length = 200)]
    state: String,
    /// SHA-256, in lower-case hex, of what it will show.
    #[param(pattern = "^[0-9a-f]{64}$")]
    challenge: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct Callback {
    /// The code, exchanged for the name.
    code: Option<String>,
    /// The state that was sent.
    state: Option<String>,
    /// `refused`, when there is no code.
    error: Option<String>,
}

/// A code, and what it was asked for with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Redemption {
    /// The code.
    #[schema(max_length = 200)]
    code: String,
    /// What hashes to the challenge.
    #[schema(max_length = 200)]
    verifier: String,
}

/// Whose code it is.
#[derive(Serialize, ToSchema)]
struct Vouched {
    /// Name to sign in with.
    name: String,
    /// Issuer and subject of their single sign-on; empty: none.
    subject: String,
}

async fn begin(
    api: web::Data<Api>,
    console: web::Data<Console>,
    request: HttpRequest,
    query: Query<BeginQuery>,
) -> Result<HttpResponse, Problem> {
    let BeginQuery { from, return_to } = query.0;
    let return_to = return_to.unwrap_or_else(|| "/".to_owned());
    if !is_here(&return_to) {
        return Err(RequestRefusal::WrongReturnPath.into());
    }
    let address = client_address(&api, &request);
    let begun = to_other(&api, &address, &from, &return_to);
    Ok(begun.unwrap_or_else(|failure| failure.answer(&console, &request, &address)))
}

fn to_other(api: &Api, address: &str, from: &str, return_to: &str) -> Result<HttpResponse, Failure> {
    api.authenticator.admit_sign_on(address)?;
    let random = || new_secret("").map_err(|error| Failure::from(Denied::Random(error)));
    let (state, verifier) = (random()?, random()?);
    let query = [("to", api.cluster_name.as_str()), ("state", &state), ("challenge", &hash_of(&verifier))];
    let url = api.clusters.page(from, true, ELSEWHERE_PATH, &query);
    let url = url.ok_or_else(|| Failure::new("provider", unknown(from)))?;
    Ok(to_page(&url).cookie(PENDING.keep(api, [&state, &verifier, return_to, from])).finish())
}

fn to_page(url: &Url) -> actix_web::HttpResponseBuilder {
    let mut answer = HttpResponse::SeeOther();
    answer.insert_header((header::LOCATION, url.as_str()));
    answer
}

fn unknown(cluster: &str) -> Problem {
    RequestRefusal::NoClusterSignIn { cluster: cluster.chars().take(64).collect() }.into()
}

/// At the cluster where somebody is signed in.
async fn vouch(
    api: web::Data<Api>,
    request: HttpRequest,
    query: Query<ElsewhereQuery>,
) -> Result<HttpResponse, Problem> {
    let ElsewhereQuery { to, state, challenge } = query.0;
    let address = client_address(&api, &request);
    api.authenticator.admit_sign_on(&address)?;
    let is_hash = challenge.len() == 64 && challenge.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash || state.len() > WORD_CHARS_MAX {
        return Err(refused("state or challenge are not what another cluster sends"));
    }
    let answer = match code_for(&api, &request, &address, (&to, &challenge)).await? {
        Some(code) => ("code", code),
        None => ("error", "refused".to_owned()),
    };
    let query = [("state", state.as_str()), (answer.0, &answer.1)];
    let url = api.clusters.page(&to, false, &format!("{PENDING_PATH}/callback"), &query);
    Ok(to_page(&url.ok_or_else(|| unknown(&to))?).finish())
}

/// A code for who sends the request; none for nobody, and for who may not.
async fn code_for(
    api: &Api,
    request: &HttpRequest,
    address: &str,
    (to, challenge): (&str, &str),
) -> Result<Option<String>, Problem> {
    if api.clusters.page(to, false, "/", &[]).is_none() {
        return Err(unknown(to));
    }
    let Some(caller) = signed_in(api, request, address).await? else { return Ok(None) };
    let code = new_secret(CODE_PREFIX).map_err(Denied::Random)?;
    let now = api.engine.clock.now_ms();
    let kept = SignInCode {
        hash: hash_of(&code),
        user_id: caller.actor.id,
        cluster: to.to_owned(),
        challenge: challenge.to_owned(),
        expires_at: now + CODE_MS,
    };
    let about = Target { kind: "user", id: caller.actor.id.to_string(), name: caller.actor.name.clone() };
    let after = json!({ "cluster": to }).to_string();
    let note = api.note(&caller, Action::SignInElsewhere, caller.home_id, about, (None, Some(after)));
    api.store.noting(vec![note]).put_sign_in_code(&kept, now).await?;
    Ok(Some(code))
}

/// Who has a session in this browser, and may go on to other clusters.
async fn signed_in(api: &Api, request: &HttpRequest, address: &str) -> Result<Option<Caller>, Problem> {
    let Some((secret, true)) = guard::shown(request) else { return Ok(None) };
    let now = api.engine.clock.now_ms();
    let caller = match api.authenticator.identify(&secret, true, address, now).await {
        Ok(caller) => caller,
        Err(Denied::Unknown | Denied::Expired(_)) => return Ok(None),
        Err(denied) => return Err(denied.into()),
    };
    guard::admit(api, &caller)?;
    // Of the platform: who may create accounts in a tenant could name one as they like.
    let may = caller.access.holds(Permission::ClustersRead, PLATFORM, AppId::NONE) && !caller.must_change;
    Ok(Some(caller).filter(|_| may))
}

/// At the cluster where somebody is signed in: the other one asks who.
async fn redeem(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let Redemption { code, verifier } = body::json(payload).await?;
    let unknown = || refused("the code is unknown, was used, or is older than 30 s; begin again");
    let found = api.store.sign_in_code(&hash_of(&code), api.engine.clock.now_ms()).await?;
    let (kept, user) = found.ok_or_else(unknown)?;
    if !matches(&kept.challenge, &hash_of(&verifier)) {
        api.store.use_sign_in_code(&kept.hash).await?;
        tracing::warn!(
            user = user.name,
            cluster = kept.cluster,
            "a code to sign in was shown without what it was asked for with"
        );
        return Err(unknown());
    }
    let after = json!({ "cluster": kept.cluster }).to_string();
    let note = api.note(&caller, Action::RedeemSignIn, user.tenant_id, target(&user), (None, Some(after)));
    if !api.store.noting(vec![note]).use_sign_in_code(&kept.hash).await? {
        return Err(unknown());
    }
    Ok(HttpResponse::Ok().json(Vouched { name: user.name, subject: user.subject }))
}

async fn finish(
    api: web::Data<Api>,
    console: web::Data<Console>,
    request: HttpRequest,
    query: Result<Query<Callback>, Problem>,
) -> HttpResponse {
    let address = client_address(&api, &request);
    let finished = from_other(&api, &request, &address, query).await;
    finished.unwrap_or_else(|failure| failure.answer(&console, &request, &address))
}

async fn from_other(
    api: &Api,
    request: &HttpRequest,
    address: &str,
    query: Result<Query<Callback>, Problem>,
) -> Result<HttpResponse, Failure> {
    api.authenticator.admit_sign_on(address)?;
    let Callback { code, state, error } = query.map_err(|problem| Failure::new("provider", problem))?.0;
    let [_, verifier, return_to, from] = PENDING.kept(request, state.as_deref())?;
    let denied = || {
        let detail =
            format!("cluster {from} did not sign you in: sign in there first, as a user who may see other clusters");
        Failure::new("refused", refused(&detail))
    };
    let code = code.filter(|code| error.is_none() && code.len() <= WORD_CHARS_MAX).ok_or_else(denied)?;
    let vouched = api.clusters.redeem(&from, &code, &verifier).await.map_err(|error| {
        tracing::error!(cluster = from, error = format!("{error:#}"), "a cluster does not say who signs in");
        Failure::new("provider", RequestRefusal::SignOnAway.into())
    })?;
    let user = account(api, &vouched.name, &vouched.subject).await.inspect_err(|_| {
        let name: String = vouched.name.chars().take(64).collect();
        tracing::warn!(name, cluster = from, address, "sign-in refused: no such account, or another user's");
    })?;
    let change = (None, Some(json!({ "cluster": from }).to_string()));
    let who = caller(&user, address);
    let note = api.note(&who, Action::FinishClusterSignIn, user.tenant_id, target(&user), change);
    PENDING.end(api, request, (address, return_to), user, note).await
}

/// The account here of a user of another cluster: of the same name, and the same or no user of a provider of single sign-on.
async fn account(api: &Api, name: &str, subject: &str) -> Result<UserView, Failure> {
    let no = |detail: &str| Failure::new("not_allowed", RequestRefusal::NoAccount { detail: detail.to_owned() }.into());
    if !is_user_name(name) {
        return Err(no("the other cluster names no user"));
    }
    let filter = UserFilter { name: Some(name.to_owned()), limit: 1, ..UserFilter::default() };
    let found = api.store.list_users(&AccessScope::All, &filter).await.map_err(Denied::from)?;
    let user = found.into_iter().next().filter(|user| !user.disabled);
    let user = user.ok_or_else(|| no("you have no account here, or it is disabled"))?;
    if user.subject != subject {
        return Err(no("the account of your name here belongs to another user of single sign-on, or to none"));
    }
    Ok(user)
}
