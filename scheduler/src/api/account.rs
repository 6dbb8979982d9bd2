//! One's own account: signing in and out, the password, sessions, tokens.

use super::client_address::client_address;
use super::guard::SESSION_COOKIE;
use super::input::{AfterQuery, BeforeQuery, Page, Query, limit, parse_id, parse_optional_id};
use super::needs::Needs;
use super::operation::{Operation, delete, get, post, put};
use super::people::{find_by_id, me, row_of, target};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::tokens::{CreatedToken, NewTokenInput, TokenOutput, create_token, page_of};
use super::words::CallerKind;
use super::{Api, body};
use crate::auth::{Caller, LoginContext, SignedIn, check_password, csrf_of};
use crate::domain::access::{AccessScope, PERMISSIONS, PLATFORM};
use crate::domain::audit::{Actor, AuditNote, Target};
use crate::domain::{Action, FieldError, FieldRefusal, Refusal, TenantId, UserId};
use crate::store::{SessionView, UserRow, UserView};
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Needs::{Anybody, Nothing, Session};
    vec![
        post("/login", Action::SignIn, Nothing, "Sign in with name and password")
            .says("Starts a new session; its token is in the cookie and, for programs, in the response.")
            .body::<Credentials>()
            .answers::<LoggedIn>(200, "The session")
            .to(sign_in),
        post("/logout", Action::SignOut, Anybody, "End this session").answers_nothing("Ended").to(sign_out),
        get("/session", "show_session", Anybody, "The caller, and the permissions they hold where")
            .answers::<Me>(200, "The caller")
            .to(show),
        put("/account/password", Action::ChangePassword, Anybody, "Change the caller's password; other sessions end")
            .body::<PasswordChange>()
            .answers_nothing("Changed")
            .to(change_password),
        get("/account/sessions", "list_sessions", Session, "My sessions, newest first")
            .query::<BeforeQuery>()
            .answers_page::<SessionOutput>("A page of sessions")
            .to(list_sessions),
        delete("/account/sessions/{id}", Action::EndSession, Session, "End one of the caller's sessions")
            .answers_nothing("Ended")
            .to(end_session),
        get("/account/tokens", "list_my_tokens", Session, "My API tokens, by id")
            .query::<AfterQuery>()
            .answers_page::<TokenOutput>("A page of tokens")
            .to(list_tokens),
        post("/account/tokens", Action::CreateMyToken, Session, "Create an API token; it is shown only once")
            .body::<NewTokenInput>()
            .answers::<CreatedToken>(201, "The token")
            .to(create_token),
        delete("/account/tokens/{id}", Action::RevokeMyToken, Session, "Revoke one of the caller's API tokens")
            .answers_nothing("Revoked")
            .to(revoke_token),
    ]
}

/// Credentials for a login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Credentials {
    /// Name to sign in with.
    #[schema(max_length = 64)]
    name: String,
    /// Password.
    #[schema(max_length = 256)]
    password: String,
}

/// A session that was started.
#[derive(Serialize, ToSchema)]
struct LoggedIn {
    /// The session's token, the same as in the cookie; `Authorization: Bearer` accepts it, too.
    token: String,
    /// Value of `X-CSRF-Token` for requests that use the cookie and change something.
    csrf: String,
    /// When it ends unless it is used, epoch ms.
    expires_at: i64,
    /// Whether the user must choose a new password before anything else.
    must_change_password: bool,
}

async fn sign_in(api: web::Data<Api>, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let Credentials { name, password } = body::json(payload).await?;
    let user = known_user(&api, &request, &name, &password).await?;
    Ok(answer(&api, begin_session(&api, &request, user).await?))
}

/// The user with that name and password; who is refused is written down.
pub async fn known_user(api: &Api, request: &HttpRequest, name: &str, password: &str) -> Result<UserView, Problem> {
    let address = client_address(api, request);
    api.authenticator.by_password(name, password, &address).await.map_err(|denied| {
        let name: String = name.chars().take(64).collect();
        tracing::warn!(name, address, %denied, "sign-in refused");
        denied.into()
    })
}

/// Starts a session for a user who has shown their password.
pub async fn begin_session(api: &Api, request: &HttpRequest, user: UserView) -> Result<SignedIn, Problem> {
    let now = api.engine.clock.now_ms();
    let address = client_address(api, request);
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let visit = LoginContext { address: &address, agent, number: api.engine.ids.next(now) };
    let note = own_note(api, &caller(&user, &address), Action::SignIn);
    Ok(api.authenticator.begin(user, &visit, note, now).await?)
}

/// A user who has just signed in.
pub fn caller(user: &UserView, address: &str) -> Caller {
    Caller {
        actor: Actor { kind: "user", id: user.id, name: user.name.clone(), address: address.to_owned() },
        access: user.access(),
        home_id: user.tenant_id,
        session: None,
        must_change: user.must_change,
        csrf: None,
    }
}

fn answer(api: &Api, signed_in: SignedIn) -> HttpResponse {
    let SignedIn { token, user, expires_at } = signed_in;
    let csrf = csrf_of(&token);
    let cookie = cookie(api, token.clone());
    let must_change_password = user.must_change;
    HttpResponse::Ok().cookie(cookie).json(LoggedIn { token, csrf, expires_at, must_change_password })
}

/// `Lax`: a user who follows a link from an email into the console is signed in there.
pub fn cookie(api: &Api, token: String) -> Cookie<'static> {
    Cookie::build(SESSION_COOKIE, token)
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(api.secure_cookie)
        .finish()
}

async fn sign_out(api: web::Data<Api>, caller: Caller) -> Result<HttpResponse, Problem> {
    end_own_session(&api, &caller).await?;
    let mut gone = cookie(&api, String::new());
    gone.set_max_age(Duration::ZERO);
    Ok(HttpResponse::NoContent().cookie(gone).finish())
}

/// Ends the session that the caller has signed in with.
pub async fn end_own_session(api: &Api, caller: &Caller) -> Result<(), Problem> {
    let Some(session) = &caller.session else {
        return Err(Refusal::NoSession.into());
    };
    if let Some(number) = api.store.session_number(caller.actor.id, session).await? {
        let store = api.store.noting(vec![own_note(api, caller, Action::SignOut)]);
        store.end_sessions(caller.actor.id, Some(number)).await?;
    }
    Ok(())
}

/// The audit note of a user's change to their own account.
pub fn own_note(api: &Api, caller: &Caller, action: Action) -> AuditNote {
    let Actor { id, name, .. } = &caller.actor;
    let target = Target { kind: "user", id: id.to_string(), name: name.clone() };
    api.note(caller, action, caller.home_id, target, (None, None))
}

/// Permissions held in one tenant or on the platform.
#[derive(Serialize, ToSchema)]
struct Held {
    /// Tenant's id; null means the whole platform.
    tenant_id: Option<String>,
    /// Tenant's name.
    tenant: Option<String>,
    /// Only in these apps (ids); empty means all.
    apps: Vec<String>,
    /// Permissions held there.
    permissions: Vec<&'static str>,
}

/// The caller.
#[derive(Serialize, ToSchema)]
struct Me {
    /// `user`, `token` or `setting`.
    #[schema(value_type = CallerKind)]
    kind: &'static str,
    /// User's id; null for the configured token.
    user_id: Option<String>,
    /// Name.
    name: String,
    /// Display name.
    display_name: String,
    /// Whether the user must choose a new password before anything else.
    must_change_password: bool,
    /// Value of `X-CSRF-Token` for requests that use the cookie and change something; null for tokens.
    csrf: Option<String>,
    /// Permissions by tenant and app.
    access: Vec<Held>,
    /// All permissions that exist.
    permissions: Vec<PermissionOutput>,
}

/// A permission.
#[derive(Serialize, ToSchema)]
#[schema(as = Permission)]
struct PermissionOutput {
    /// Its name.
    name: &'static str,
    /// What it allows.
    description: &'static str,
}

async fn show(api: web::Data<Api>, caller: Caller) -> Result<HttpResponse, Problem> {
    // Anyone who holds a permission in a tenant may know its name; without it no page could show where they are.
    let ids: BTreeSet<TenantId> = caller.access.grants().iter().map(|grant| grant.tenant_id).collect();
    let tenants = api.store.tenant_names(&ids.into_iter().collect::<Vec<_>>()).await?;
    let access = caller
        .access
        .grants()
        .iter()
        .map(|grant| Held {
            tenant_id: (grant.tenant_id != PLATFORM).then(|| grant.tenant_id.to_string()),
            tenant: tenants.get(&grant.tenant_id).cloned(),
            apps: grant.apps.iter().map(ToString::to_string).collect(),
            permissions: grant.permissions.words(),
        })
        .collect();
    let user = match caller.actor.id {
        UserId::NONE => None,
        id => find_by_id(&api, &AccessScope::All, id).await?,
    };
    let permissions =
        PERMISSIONS.iter().map(|(_, name, _, description)| PermissionOutput { name, description }).collect();
    Ok(HttpResponse::Ok().json(Me {
        kind: caller.actor.kind,
        user_id: user.as_ref().map(|user| user.id.to_string()),
        display_name: user.map(|user| user.display_name).unwrap_or_default(),
        name: caller.actor.name,
        must_change_password: caller.must_change,
        csrf: caller.csrf,
        access,
        permissions,
    }))
}

/// A password change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PasswordChange {
    /// The current password.
    #[schema(max_length = 256)]
    current: String,
    /// The new password.
    #[schema(min_length = 12, max_length = 256)]
    new: String,
}

async fn change_password(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let PasswordChange { current, new } = body::json(payload).await?;
    let user = me(&api, &caller).await?;
    // A token is for programs; someone who finds one must not be able to take over the account.
    let Some(session) = &caller.session else {
        return Err(RequestRefusal::SessionNeeded.into());
    };
    check_password(&new, &user.name).map_err(|refusal| FieldError::new("new", refusal))?;
    if !api.authenticator.is_password_of(&user, &current).await? {
        return Err(FieldError::new("current", FieldRefusal::NotThePassword).into());
    }
    if current == new {
        return Err(FieldError::new("new", FieldRefusal::SamePassword).into());
    }
    let password_hash = api.authenticator.passwords.hash(&new).await.map_err(Problem::internal)?;
    let row = UserRow { password_hash, must_change: false, ..row_of(&user) };
    let note = api.note(&caller, Action::ChangePassword, user.tenant_id, target(&user), (None, None));
    api.store.noting(vec![note]).update_user(&row, user.revision, session, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A session.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
struct SessionOutput {
    /// Id.
    id: String,
    /// Whether it is the session of this request.
    current: bool,
    /// Epoch ms.
    created_at: i64,
    /// Epoch ms, to the minute.
    used_at: i64,
    /// When it ends unless it is used, epoch ms.
    expires_at: i64,
    /// Client address at the login.
    address: String,
    /// User agent at the login.
    agent: String,
}

async fn list_sessions(
    api: web::Data<Api>,
    caller: Caller,
    query: Query<BeforeQuery>,
) -> Result<HttpResponse, Problem> {
    let BeforeQuery { before, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let before = parse_optional_id("before", before.as_ref())?;
    let sessions = api.store.sessions_of(caller.actor.id, api.engine.clock.now_ms(), before, limit).await?;
    let output = |session: SessionView| SessionOutput {
        id: session.number.to_string(),
        current: caller.session.as_ref() == Some(&session.hash),
        created_at: session.created_at,
        used_at: session.used_at,
        expires_at: session.expires_at,
        address: session.address,
        agent: session.agent,
    };
    let items = sessions.into_iter().map(output).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |session: &SessionOutput| session.id.clone())))
}

async fn end_session(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let number = parse_id("id", &id)?;
    let store = api.store.noting(vec![own_note(&api, &caller, Action::EndSession)]);
    if number <= 0 || store.end_sessions(caller.actor.id, Some(number)).await? == 0 {
        return Err(Refusal::not_found("session", number).into());
    }
    Ok(HttpResponse::NoContent().finish())
}

async fn list_tokens(api: web::Data<Api>, caller: Caller, query: Query<AfterQuery>) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let user = me(&api, &caller).await?;
    let tokens = api.store.list_tokens(&AccessScope::All, Some(user.id), after, limit).await?;
    Ok(HttpResponse::Ok().json(page_of(tokens, limit)))
}

async fn revoke_token(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let user = me(&api, &caller).await?;
    let id = parse_id("id", &id)?;
    let note = api.note(&caller, Action::RevokeMyToken, user.tenant_id, super::tokens::target(id, ""), (None, None));
    api.store.noting(vec![note]).revoke_token(user.id, id, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::NoContent().finish())
}
