//! Users, and what they are granted. Nobody gives or takes what he does not hold himself, or
//! manages somebody who may do more than he.

use super::account::row_of;
use super::input::{
    Page, Query, etag, if_match, limit, parse_id, parse_optional_id, refuse_stale, refuse_wrong_search,
};
use super::operation::{Operation, delete, get, post, put};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::roles::find_role;
use super::{Api, body};
use crate::auth::{Caller, check_password, random_password};
use crate::domain::access::{Grant, PLATFORM, is_user_name};
use crate::domain::audit::Target;
use crate::domain::{AccessScope, Action, FieldError, FieldRefusal, Permission, Refusal};
use crate::store::{AppFilter, GrantView, NewGrant, UserFilter, UserRow, UserView};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Longest name for people, characters.
const DISPLAY_NAME_CHARS_MAX: usize = 100;

/// Apps of one grant at most.
const APPS_MAX: usize = 100;

/// What can be done.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/users", "list_users", P::UsersRead, "Users of one's tenants, and who is granted something there; by id")
            .query::<UserQuery>()
            .answers_page::<User>("A page of users")
            .to(list),
        post("/users", Action::CreateUser, P::UsersCreate, "Create a user, who may do nothing yet")
            .says("Without a password one is made up and shown in this answer only; it must be changed at the first login.")
            .body::<NewUser>()
            .answers::<CreatedUser>(201, "The user")
            .to(create),
        get("/users/{id}", "show_user", P::UsersRead, "A user").answers::<User>(200, "The user").to(show),
        put("/users/{id}", Action::EditUser, P::UsersEdit, "Name or disable a user; disabled, his sessions end")
            .says("Fields that are not named stay as they are.")
            .if_match()
            .body::<UserInput>()
            .answers::<User>(200, "The user")
            .to(edit),
        delete("/users/{id}", Action::DeleteUser, P::UsersDelete, "Delete a user with his sessions and tokens")
            .answers_nothing("He is gone")
            .to(remove),
        post("/users/{id}/password", Action::ResetPassword, P::UsersEdit, "Give a user a new password, which he must change")
            .answers::<CreatedUser>(200, "The user and the password, shown once")
            .to(reset_password),
        delete("/users/{id}/sessions", Action::EndUserSessions, P::UsersEdit, "End all sessions of a user")
            .answers_nothing("They have ended")
            .to(end_sessions),
        post("/users/{id}/grants", Action::CreateGrant, P::GrantsCreate, "Grant a role to a user, in a tenant or on the platform")
            .body::<GrantInput>()
            .answers::<User>(201, "The user")
            .to(create_grant),
        delete("/users/{id}/grants/{grant}", Action::DeleteGrant, P::GrantsDelete, "Take a role from a user")
            .answers_nothing("It is taken")
            .to(delete_grant),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct UserQuery {
    /// Only of this name.
    name: Option<String>,
    /// Only those whose name or name for people has this in it, whatever the case; 1 to 100 characters.
    #[param(min_length = 1, max_length = 100)]
    search: Option<String>,
    /// `next` of the page before.
    after: Option<String>,
    /// Items in the page, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// A user to be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewUser {
    /// Name to sign in with, for good: 1 to 64 characters out of a-z A-Z 0-9 - _ . @, a letter or digit first.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@-]*$")]
    name: String,
    /// Name for people.
    #[serde(default)]
    #[schema(max_length = 100)]
    display_name: String,
    /// Name of the tenant whose admins manage the account; the platform's do when absent.
    #[serde(default)]
    tenant: Option<String>,
    /// First password, at least 12 characters; made up when absent.
    #[serde(default)]
    password: Option<String>,
}

/// What can be said of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UserInput {
    /// Name for people.
    #[schema(max_length = 100)]
    display_name: Option<String>,
    /// Cannot sign in.
    disabled: Option<bool>,
}

/// A role to grant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GrantInput {
    /// Role's id.
    role: String,
    /// Name of the tenant where it holds; on the whole platform when absent.
    #[serde(default)]
    tenant: Option<String>,
    /// Only in these apps (ids) of the tenant; none are all.
    #[serde(default)]
    #[schema(max_items = 100)]
    apps: Vec<String>,
}

/// A role that a user has.
#[derive(Serialize, ToSchema)]
#[schema(as = Grant)]
struct GrantOutput {
    /// Id.
    id: String,
    /// Role's id.
    role_id: String,
    /// Role's name.
    role: String,
    /// Tenant where it holds (id); null is the whole platform.
    tenant_id: Option<String>,
    /// Only in these apps (ids); none are all.
    apps: Vec<String>,
    /// It follows from a group of single sign-on, and goes with it.
    from_group: bool,
}

/// A user.
#[derive(Serialize, ToSchema)]
struct User {
    /// Id.
    id: String,
    /// Name to sign in with.
    name: String,
    /// Name for people.
    display_name: String,
    /// Tenant whose admins manage the account (id); null is the platform.
    tenant_id: Option<String>,
    /// Cannot sign in.
    disabled: bool,
    /// Must choose another password before anything else.
    must_change_password: bool,
    /// Signs in with a password, and not only by single sign-on.
    has_password: bool,
    /// Issuer and subject, of whom signs in by single sign-on; null of others.
    subject: Option<String>,
    /// Grows with every change.
    revision: i64,
    /// Epoch ms.
    created_at: i64,
    /// Epoch ms.
    updated_at: i64,
    /// Epoch ms.
    last_login_at: Option<i64>,
    /// What he is granted.
    grants: Vec<GrantOutput>,
}

/// A user with a password that was made up, this once.
#[derive(Serialize, ToSchema)]
struct CreatedUser {
    #[serde(flatten)]
    user: User,
    /// Never shown again; null when the caller chose it.
    password: Option<String>,
}

impl From<&GrantView> for GrantOutput {
    fn from(grant: &GrantView) -> Self {
        Self {
            id: grant.id.to_string(),
            role_id: grant.role_id.to_string(),
            role: grant.role.clone(),
            tenant_id: (grant.tenant_id != PLATFORM).then(|| grant.tenant_id.to_string()),
            apps: grant.apps.iter().map(ToString::to_string).collect(),
            from_group: grant.by_group,
        }
    }
}

impl From<&UserView> for User {
    fn from(user: &UserView) -> Self {
        Self {
            id: user.id.to_string(),
            name: user.name.clone(),
            display_name: user.display_name.clone(),
            tenant_id: (user.tenant_id != PLATFORM).then(|| user.tenant_id.to_string()),
            disabled: user.disabled,
            must_change_password: user.must_change,
            has_password: user.has_password,
            subject: (!user.subject.is_empty()).then(|| user.subject.clone()),
            revision: user.revision,
            created_at: user.created_at,
            updated_at: user.updated_at,
            last_login_at: (user.last_login_at != 0).then_some(user.last_login_at),
            grants: user.grants.iter().map(GrantOutput::from).collect(),
        }
    }
}

/// What of it somebody sees who holds his permission in `access_scope`: grants in other tenants are not his
/// business, those on the whole platform hold where he is, too.
fn seen(user: &UserView, access_scope: &AccessScope) -> User {
    let is_seen = |grant: &&GrantView| grant.tenant_id == PLATFORM || access_scope.touches(grant.tenant_id);
    let grants = user.grants.iter().filter(is_seen).cloned().collect();
    User::from(&UserView { grants, ..user.clone() })
}

/// What the audit calls a user.
pub fn target(user: &UserView) -> Target {
    Target { kind: "user", id: user.id.to_string(), name: user.name.clone() }
}

/// What the audit keeps of a user, where the account is managed.
fn audited(user: &UserView) -> Option<String> {
    serde_json::to_string(&seen(user, &AccessScope::tenant(user.tenant_id))).ok()
}

/// The user of that id, within reach.
pub async fn find_by_id(api: &Api, access_scope: &AccessScope, id: i64) -> Result<Option<UserView>, Problem> {
    let filter = UserFilter { id: Some(id), limit: 1, ..UserFilter::default() };
    Ok(api.store.list_users(access_scope, &filter).await?.into_iter().next())
}

async fn find(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<UserView, Problem> {
    let id = parse_id("id", id)?;
    let user = find_by_id(api, &caller.access_scope(needs), id).await?;
    user.ok_or_else(|| Refusal::not_found("user", id).into())
}

/// The user of that id, if the caller may manage the account.
async fn managed(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<UserView, Problem> {
    let user = find(api, caller, needs, id).await?;
    if !caller.access.holds(needs, user.tenant_id, 0) {
        return Err(RequestRefusal::ManagedElsewhere.into());
    }
    if !caller.access.covers(&user.access()) {
        return Err(RequestRefusal::UserAboveCaller.into());
    }
    Ok(user)
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<UserQuery>) -> Result<HttpResponse, Problem> {
    let UserQuery { name, search, after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    refuse_wrong_search(search.as_deref())?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or(0);
    let filter = UserFilter { name, search, after, limit, ..UserFilter::default() };
    let access_scope = caller.access_scope(Permission::UsersRead);
    let users = api.store.list_users(&access_scope, &filter).await?;
    let items = users.iter().map(|user| seen(user, &access_scope)).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |user: &User| user.id.clone())))
}

async fn create(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let NewUser { name, display_name, tenant, password } = body::json(payload).await?;
    let mut refused = Vec::new();
    if !is_user_name(&name) {
        refused.push(FieldError::new("name", FieldRefusal::WrongUserName));
    }
    refused.extend(check_display_name(&display_name).err());
    if let Some(password) = &password {
        refused.extend(check_password(password, &name).err().map(|why| FieldError::new("password", why)));
    }
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let tenant_id = match &tenant {
        Some(tenant) => api.whole_tenant(&caller, Permission::UsersCreate, tenant).await?.id,
        None if caller.access.holds(Permission::UsersCreate, PLATFORM, 0) => PLATFORM,
        None => return Err(FieldError::new("tenant", FieldRefusal::TenantNeeded).into()),
    };
    let made_up = if password.is_none() { Some(random_password().map_err(Problem::internal)?) } else { None };
    let chosen = password.as_ref().or(made_up.as_ref()).map(String::as_str).unwrap_or_default();
    let password_hash = api.authenticator.passwords.hash(chosen).await.map_err(Problem::internal)?;
    let now = api.engine.clock.now_ms();
    let row = UserRow {
        id: api.engine.ids.next(now),
        name,
        display_name,
        tenant_id,
        password_hash,
        must_change: true,
        disabled: false,
        subject: String::new(),
    };
    let about = Target { kind: "user", id: row.id.to_string(), name: row.name.clone() };
    let after = serde_json::json!({ "name": row.name, "display_name": row.display_name }).to_string();
    let note = api.note(&caller, Action::CreateUser, tenant_id, about, (None, Some(after)));
    api.store.noting(vec![note]).create_user(&row, &[], now).await?;
    let user = find_by_id(&api, &AccessScope::All, row.id).await?;
    let user = user.ok_or_else(|| Refusal::DeletedMeanwhile { kind: "user".to_owned() })?;
    Ok(HttpResponse::Created()
        .insert_header(etag(user.revision))
        .json(CreatedUser { user: User::from(&user), password: made_up }))
}

fn check_display_name(name: &str) -> Result<(), FieldError> {
    if name.chars().count() <= DISPLAY_NAME_CHARS_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(FieldError::new("display_name", FieldRefusal::WrongLine { most: DISPLAY_NAME_CHARS_MAX as i64 }))
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let user = find(&api, &caller, Permission::UsersRead, &id).await?;
    let shown = seen(&user, &caller.access_scope(Permission::UsersRead));
    Ok(HttpResponse::Ok().insert_header(etag(user.revision)).json(shown))
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let UserInput { display_name, disabled } = body::json(payload).await?;
    if let Some(name) = &display_name {
        check_display_name(name)?;
    }
    let before = managed(&api, &caller, Permission::UsersEdit, &id).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let row = UserRow {
        display_name: display_name.unwrap_or_else(|| before.display_name.clone()),
        disabled: disabled.unwrap_or(before.disabled),
        ..row_of(&before)
    };
    let after = UserView {
        display_name: row.display_name.clone(),
        disabled: row.disabled,
        revision: before.revision + 1,
        ..before.clone()
    };
    write(&api, &caller, Action::EditUser, &row, (&before, &after)).await?;
    Ok(HttpResponse::Ok().insert_header(etag(after.revision)).json(User::from(&after)))
}

async fn write(
    api: &Api,
    caller: &Caller,
    action: Action,
    row: &UserRow,
    (before, after): (&UserView, &UserView),
) -> Result<(), Problem> {
    let note = api.note(caller, action, before.tenant_id, target(before), (audited(before), audited(after)));
    let store = api.store.noting(vec![note]);
    Ok(store.update_user(row, before.revision, "", api.engine.clock.now_ms()).await?)
}

async fn reset_password(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = managed(&api, &caller, Permission::UsersEdit, &id).await?;
    if !before.subject.is_empty() && api.provider.is_some() {
        return Err(Refusal::SingleSignOn.into());
    }
    let password = random_password().map_err(Problem::internal)?;
    let password_hash = api.authenticator.passwords.hash(&password).await.map_err(Problem::internal)?;
    let row = UserRow { password_hash, must_change: true, ..row_of(&before) };
    let after = UserView { must_change: true, has_password: true, revision: before.revision + 1, ..before.clone() };
    write(&api, &caller, Action::ResetPassword, &row, (&before, &after)).await?;
    Ok(HttpResponse::Ok().json(CreatedUser { user: User::from(&after), password: Some(password) }))
}

async fn remove(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let user = managed(&api, &caller, Permission::UsersDelete, &id).await?;
    let mut notes = vec![api.note(&caller, Action::DeleteUser, user.tenant_id, target(&user), (audited(&user), None))];
    // Other tenants lose somebody, too.
    for grant in user.grants.iter().filter(|grant| ![PLATFORM, user.tenant_id].contains(&grant.tenant_id)) {
        let before = serde_json::to_string(&GrantOutput::from(grant)).ok();
        notes.push(api.note(&caller, Action::DeleteUser, grant.tenant_id, target(&user), (before, None)));
    }
    api.store.noting(notes).delete_user(user.tenant_id, user.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn end_sessions(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let user = managed(&api, &caller, Permission::UsersEdit, &id).await?;
    let note = api.note(&caller, Action::EndUserSessions, user.tenant_id, target(&user), (None, None));
    api.store.noting(vec![note]).end_sessions(user.id, None).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn create_grant(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let GrantInput { role, tenant, apps } = body::json(payload).await?;
    let user = find(&api, &caller, Permission::GrantsCreate, &id).await?;
    let tenant_id = match &tenant {
        Some(tenant) => api.tenant(&caller, Permission::GrantsCreate, tenant).await?.id,
        None => PLATFORM,
    };
    let apps = apps_of(&api, tenant_id, apps).await?;
    let role = find_role(&api, &caller, Permission::GrantsCreate, &role).await?;
    if role.tenant_id != PLATFORM && role.tenant_id != tenant_id {
        return Err(FieldError::new("role", FieldRefusal::OtherTenant).into());
    }
    let grant = Grant { permissions: role.permissions, tenant_id, apps: apps.clone() };
    refuse_more(&caller, Permission::GrantsCreate, &grant)?;
    let now = api.engine.clock.now_ms();
    let new = NewGrant {
        id: api.engine.ids.next(now),
        user_id: user.id,
        role_id: role.id,
        tenant_id,
        apps,
        created_by: caller.actor.id,
    };
    let after = serde_json::json!({
        "role": role.name,
        "tenant": tenant,
        "apps": new.apps.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let note = api.note(&caller, Action::CreateGrant, tenant_id, target(&user), (None, Some(after.to_string())));
    api.store.noting(vec![note]).create_grant(&new, now).await?;
    let user = find_by_id(&api, &AccessScope::All, user.id).await?;
    let user = user.ok_or_else(|| Refusal::DeletedMeanwhile { kind: "user".to_owned() })?;
    let shown = seen(&user, &caller.access_scope(Permission::GrantsCreate));
    Ok(HttpResponse::Created().insert_header(etag(user.revision)).json(shown))
}

/// Ids of apps, each the tenant's.
async fn apps_of(api: &Api, tenant_id: i64, apps: Vec<String>) -> Result<Vec<i64>, Problem> {
    let wrong = |refusal: FieldRefusal| Problem::from(FieldError::new("apps", refusal));
    if apps.len() > APPS_MAX {
        return Err(wrong(FieldRefusal::TooMany { most: APPS_MAX as i64 }));
    }
    if tenant_id == PLATFORM && !apps.is_empty() {
        return Err(wrong(FieldRefusal::AppsNeedTenant));
    }
    let mut ids = Vec::with_capacity(apps.len());
    for app in apps {
        let id = parse_id("apps", &app)?;
        let filter = AppFilter { id: Some(id), limit: 1, ..AppFilter::default() };
        let found = api.store.list_apps(&AccessScope::All, &filter).await?;
        if found.first().is_none_or(|app| app.tenant_id != tenant_id) {
            return Err(wrong(FieldRefusal::no_such("app", id)));
        }
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Nobody gives or takes what he does not hold himself, there.
fn refuse_more(caller: &Caller, needs: Permission, grant: &Grant) -> Result<(), Problem> {
    let needed = Grant { permissions: [needs].into_iter().collect(), ..grant.clone() };
    if !caller.access.lacks(&needed).is_empty()
        || !caller.access.holds(needs, grant.tenant_id, grant.apps.first().copied().unwrap_or(0))
    {
        return Err(Problem::forbidden(needs));
    }
    let more = caller.access.lacks(grant);
    if more.is_empty() {
        return Ok(());
    }
    Err(RequestRefusal::BeyondOwn { permissions: more.words().join(", ") }.into())
}

async fn delete_grant(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let user = find(&api, &caller, Permission::GrantsDelete, &path.0).await?;
    let id = parse_id("grant", &path.1)?;
    let access_scope = caller.access_scope(Permission::GrantsDelete);
    let grant = user.grants.iter().find(|grant| grant.id == id && access_scope.touches(grant.tenant_id));
    let grant = grant.ok_or_else(|| Refusal::not_found("grant", id))?;
    let given = Grant { permissions: grant.permissions, tenant_id: grant.tenant_id, apps: grant.apps.clone() };
    refuse_more(&caller, Permission::GrantsDelete, &given)?;
    let before = serde_json::to_string(&GrantOutput::from(grant)).ok();
    let note = api.note(&caller, Action::DeleteGrant, grant.tenant_id, target(&user), (before, None));
    api.store.noting(vec![note]).delete_grant(grant.tenant_id, user.id, id).await?;
    Ok(HttpResponse::NoContent().finish())
}
