//! Roles: named sets of permissions.

use super::input::{AfterQuery, Page, Query, etag, given, if_match, limit, parse_id, parse_optional_id, refuse_stale};
use super::operation::{Operation, delete, get, patch, post};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::tenants::check_description;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::access::{BUILT_IN, BUILT_IN_MAX, BuiltIn, Grant, PLATFORM, PermissionSet, built_in};
use crate::domain::audit::Target;
use crate::domain::{Action, AppId, FieldError, FieldRefusal, Permission, Refusal};
use crate::store::{RoleFilter, RoleView};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/roles", "list_roles", P::RolesRead, "Built-in roles, the platform's, and those of the caller's tenants")
            .query::<AfterQuery>()
            .answers_page::<Role>("A page of roles, by id")
            .to(list),
        post("/roles", Action::CreateRole, P::RolesCreate, "Create a role, for one tenant or for all")
            .body::<NewRole>()
            .answers::<Role>(201, "The role")
            .to(create),
        get("/roles/{id}", "show_role", P::RolesRead, "A role").answers::<Role>(200, "The role").to(show),
        patch("/roles/{id}", Action::EditRole, P::RolesEdit, "Edit a role; its users are affected at once")
            .says("Built-in roles cannot be edited.")
            .if_match()
            .changes::<RolePatch>()
            .answers::<Role>(200, "The role")
            .to(edit),
        delete("/roles/{id}", Action::DeleteRole, P::RolesDelete, "Delete a role that no user has")
            .answers_nothing("Deleted")
            .to(remove),
    ]
}

/// A role to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRole {
    /// Its name, unique in its tenant.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// Free text for people to read.
    #[serde(default)]
    #[schema(max_length = 1000)]
    description: String,
    /// Tenant (name) where it can be granted; everywhere when absent.
    #[serde(default)]
    tenant: Option<String>,
    /// What it allows.
    #[schema(value_type = Vec<String>)]
    permissions: PermissionSet,
}

/// Editable fields of a role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RolePatch {
    /// Its name.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
    /// Free text for people to read.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 1000)]
    description: Option<String>,
    /// What it allows.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, value_type = Option<Vec<String>>)]
    permissions: Option<PermissionSet>,
}

/// A role.
#[derive(Serialize, ToSchema)]
struct Role {
    /// Id.
    id: String,
    /// Name.
    name: String,
    /// Free text for people to read.
    description: String,
    /// Whether it is built into carillon.
    built_in: bool,
    /// Tenant where it can be granted (id); null means everywhere.
    tenant_id: Option<String>,
    /// What it allows.
    permissions: Vec<&'static str>,
    /// Increases with every change.
    revision: i64,
}

impl From<&RoleView> for Role {
    fn from(role: &RoleView) -> Self {
        Self {
            id: role.id.to_string(),
            name: role.name.clone(),
            description: role.description.clone(),
            built_in: role.id < BUILT_IN_MAX,
            tenant_id: (role.tenant_id != PLATFORM).then(|| role.tenant_id.to_string()),
            permissions: role.permissions.words(),
            revision: role.revision,
        }
    }
}

fn view(role: &BuiltIn) -> RoleView {
    RoleView {
        id: role.id,
        tenant_id: PLATFORM,
        name: role.name.to_owned(),
        description: role.description.to_owned(),
        permissions: role.permissions(),
        revision: 1,
        created_at: 0,
        updated_at: 0,
    }
}

/// The role with that id, where the caller holds the permission; everyone sees built-in roles.
pub async fn find_role(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<RoleView, Problem> {
    let id = parse_id("role", id)?;
    if let Some(role) = built_in(id) {
        return Ok(view(role));
    }
    let filter = RoleFilter { id: Some(id), limit: 1, ..RoleFilter::default() };
    let found = api.store.list_roles(&caller.access_scope(needs), &filter).await?;
    found.into_iter().next().ok_or_else(|| Refusal::not_found("role", id).into())
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<AfterQuery>) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let built_in = BUILT_IN.iter().map(view).filter(|role| role.id > after);
    let mut roles: Vec<RoleView> = built_in.take(limit as usize).collect();
    let rest = limit - roles.len() as u64;
    if rest > 0 {
        let filter = RoleFilter { after, limit: rest, ..RoleFilter::default() };
        roles.extend(api.store.list_roles(&caller.access_scope(Permission::RolesRead), &filter).await?);
    }
    let items = roles.iter().map(Role::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |role: &Role| role.id.clone())))
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let role = find_role(&api, &caller, Permission::RolesRead, &id).await?;
    Ok(HttpResponse::Ok().insert_header(etag(role.revision)).json(Role::from(&role)))
}

/// Refuses to create or change a role with permissions that the caller does not hold there.
fn refuse_more(caller: &Caller, needs: Permission, role: &RoleView) -> Result<(), Problem> {
    if !caller.access.holds(needs, role.tenant_id, AppId::NONE) {
        return Err(Problem::forbidden(needs));
    }
    let grant = Grant { permissions: role.permissions, tenant_id: role.tenant_id, apps: Vec::new() };
    let more = caller.access.lacks(&grant);
    if more.is_empty() {
        return Ok(());
    }
    Err(RequestRefusal::BeyondOwn { permissions: more.words().join(", ") }.into())
}

fn check(role: &RoleView) -> Result<(), Problem> {
    check_description(&role.description)?;
    if !(1..=64).contains(&role.name.trim().chars().count()) || role.name.chars().any(char::is_control) {
        return Err(FieldError::name("name", 64).into());
    }
    if BUILT_IN.iter().any(|known| known.name.eq_ignore_ascii_case(role.name.trim())) {
        return Err(FieldError::new("name", FieldRefusal::BuiltInName).into());
    }
    Ok(())
}

async fn create(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let NewRole { name, description, tenant, permissions } = body::json(payload).await?;
    let tenant_id = match &tenant {
        Some(tenant) => api.whole_tenant(&caller, Permission::RolesCreate, tenant).await?.id,
        None => PLATFORM,
    };
    let now = api.engine.clock.now_ms();
    let role = RoleView {
        id: api.engine.ids.next(now),
        tenant_id,
        name: name.trim().to_owned(),
        description,
        permissions,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    check(&role)?;
    refuse_more(&caller, Permission::RolesCreate, &role)?;
    let note = api.note(&caller, Action::CreateRole, tenant_id, target(&role), (None, audited(&role)));
    api.store.noting(vec![note]).create_role(&role).await?;
    Ok(HttpResponse::Created().insert_header(etag(1)).json(Role::from(&role)))
}

/// A role that this caller can change.
async fn changeable(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<RoleView, Problem> {
    let role = find_role(api, caller, needs, id).await?;
    if role.id < BUILT_IN_MAX {
        return Err(Refusal::BuiltIn.into());
    }
    refuse_more(caller, needs, &role)?;
    Ok(role)
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let RolePatch { name, description, permissions } = body::json(payload).await?;
    let before = changeable(&api, &caller, Permission::RolesEdit, &id).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let mut after = RoleView {
        name: name.map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
        description: description.unwrap_or_else(|| before.description.clone()),
        permissions: permissions.unwrap_or(before.permissions),
        ..before.clone()
    };
    check(&after)?;
    refuse_more(&caller, Permission::RolesEdit, &after)?;
    let change = (audited(&before), audited(&after));
    let note = api.note(&caller, Action::EditRole, before.tenant_id, target(&before), change);
    api.store.noting(vec![note]).update_role(&after, api.engine.clock.now_ms()).await?;
    after.revision += 1;
    Ok(HttpResponse::Ok().insert_header(etag(after.revision)).json(Role::from(&after)))
}

async fn remove(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let role = changeable(&api, &caller, Permission::RolesDelete, &id).await?;
    let note = api.note(&caller, Action::DeleteRole, role.tenant_id, target(&role), (audited(&role), None));
    api.store.noting(vec![note]).delete_role(&role).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn target(role: &RoleView) -> Target {
    Target { kind: "role", id: role.id.to_string(), name: role.name.clone() }
}

fn audited(role: &RoleView) -> Option<String> {
    serde_json::to_string(&Role::from(role)).ok()
}
