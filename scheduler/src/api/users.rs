//! Users and their grants. Callers can only grant and revoke permissions that they hold themselves, and
//! cannot manage users who have more permissions than they do.

use super::input::{Page, Query, etag, given, if_match, limit, parse_optional_id, refuse_stale, refuse_wrong_search};
use super::operation::{Operation, delete, get, patch, post};
use super::people::{GrantOutput, User, audited, find, find_by_id, row_of, seen, target};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::{Api, body};
use crate::auth::{Caller, check_password, random_password};
use crate::domain::access::{PLATFORM, is_user_name};
use crate::domain::audit::Target;
use crate::domain::{AccessScope, Action, AppId, FieldError, FieldRefusal, Permission, Refusal};
use crate::store::{UserFilter, UserRow, UserView};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Longest display name, characters.
const DISPLAY_NAME_CHARS_MAX: usize = 100;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/users", "list_users", P::UsersRead, "Users of the caller's tenants and users with grants there, by id")
            .query::<UserQuery>()
            .answers_page::<User>("A page of users")
            .to(list),
        post("/users", Action::CreateUser, P::UsersCreate, "Create a user without any permissions")
            .says("Without a password one is generated and shown in this response only; it must be changed at the first login.")
            .body::<NewUser>()
            .answers::<CreatedUser>(201, "The user")
            .to(create),
        get("/users/{id}", "show_user", P::UsersRead, "A user").answers::<User>(200, "The user").to(show),
        patch("/users/{id}", Action::EditUser, P::UsersEdit, "Rename or disable a user; disabling ends their sessions")
                        .if_match()
            .changes::<UserPatch>()
            .answers::<User>(200, "The user")
            .to(edit),
        delete("/users/{id}", Action::DeleteUser, P::UsersDelete, "Delete a user with their sessions and tokens")
            .answers_nothing("Deleted")
            .to(remove),
        post("/users/{id}/password", Action::ResetPassword, P::UsersEdit, "Reset a user's password; they must change it")
            .answers::<CreatedUser>(200, "The user and the password, shown once")
            .to(reset_password),
        delete("/users/{id}/sessions", Action::EndUserSessions, P::UsersEdit, "End all sessions of a user")
            .answers_nothing("Ended")
            .to(end_sessions),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct UserQuery {
    /// Only of this name.
    name: Option<String>,
    /// Only those whose name or display name contains this text, ignoring case; 1 to 100 characters.
    #[param(min_length = 1, max_length = 100)]
    search: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// A user to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewUser {
    /// Name to sign in with; it cannot be changed. 1 to 64 characters out of a-z A-Z 0-9 - _ . @, starting with a
    /// letter or digit.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@-]*$")]
    name: String,
    /// Display name.
    #[serde(default)]
    #[schema(max_length = 100)]
    display_name: String,
    /// Tenant (name) whose admins manage the account; platform admins do when absent.
    #[serde(default)]
    tenant: Option<String>,
    /// Initial password, at least 12 characters; generated when absent.
    #[serde(default)]
    password: Option<String>,
}

/// Editable fields of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UserPatch {
    /// Display name.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 100)]
    display_name: Option<String>,
    /// Cannot sign in.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    disabled: Option<bool>,
}

/// A user with a generated password.
#[derive(Serialize, ToSchema)]
struct CreatedUser {
    #[serde(flatten)]
    user: User,
    /// Never shown again; null when the caller chose it.
    password: Option<String>,
}

/// The user of that id, if the caller may manage the account. No one manages their own: a token would take it over, and a
/// session would get past the password.
async fn managed(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<UserView, Problem> {
    let user = find(api, caller, needs, id).await?;
    if !caller.access.holds(needs, user.tenant_id, AppId::NONE) {
        return Err(RequestRefusal::ManagedElsewhere.into());
    }
    if user.id == caller.actor.id {
        return Err(RequestRefusal::OwnAccount.into());
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
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
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
        None if caller.access.holds(Permission::UsersCreate, PLATFORM, AppId::NONE) => PLATFORM,
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
    let UserPatch { display_name, disabled } = body::json(payload).await?;
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
    // Other tenants lose a user, too.
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
