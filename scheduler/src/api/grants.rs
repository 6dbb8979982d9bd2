//! Grants of roles to users. Callers can only grant and revoke permissions that they hold themselves.

use super::input::{etag, parse_id};
use super::operation::{Operation, delete, post};
use super::people::{GrantOutput, User, find, find_by_id, seen, target};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::roles::find_role;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::access::{Grant, PLATFORM};
use crate::domain::{AccessScope, Action, AppId, FieldError, FieldRefusal, Permission, Refusal, TenantId};
use crate::store::{AppFilter, NewGrant};
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use utoipa::ToSchema;

/// Apps of one grant at most.
const APPS_MAX: usize = 100;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        post(
            "/users/{id}/grants",
            Action::CreateGrant,
            P::GrantsCreate,
            "Grant a role to a user, in a tenant or on the platform",
        )
        .body::<GrantInput>()
        .answers::<User>(201, "The user")
        .to(create_grant),
        delete("/users/{id}/grants/{grant}", Action::DeleteGrant, P::GrantsDelete, "Revoke a role from a user")
            .answers_nothing("Revoked")
            .to(delete_grant),
    ]
}

/// A role to grant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GrantInput {
    /// Role's id.
    role: String,
    /// Tenant (name) to grant it in; the whole platform when absent.
    #[serde(default)]
    tenant: Option<String>,
    /// Only in these apps (ids) of the tenant; empty means all.
    #[serde(default)]
    #[schema(max_items = 100)]
    apps: Vec<String>,
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
    let apps = apps_of(&api, &caller, tenant_id, apps).await?;
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

/// Ids of apps, each the tenant's: all that the caller may know of. Others are refused later, whether they are there or not.
async fn apps_of(api: &Api, caller: &Caller, tenant_id: TenantId, apps: Vec<String>) -> Result<Vec<AppId>, Problem> {
    let wrong = |refusal: FieldRefusal| Problem::from(FieldError::new("apps", refusal));
    if apps.len() > APPS_MAX {
        return Err(wrong(FieldRefusal::TooMany { most: APPS_MAX as i64 }));
    }
    if tenant_id == PLATFORM && !apps.is_empty() {
        return Err(wrong(FieldRefusal::AppsNeedTenant));
    }
    let sees_all = caller.access.holds(Permission::GrantsCreate, tenant_id, AppId::NONE);
    let mut ids = Vec::with_capacity(apps.len());
    for app in apps {
        let id = parse_id("apps", &app)?;
        if !sees_all {
            ids.push(id);
            continue;
        }
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

/// Refuses to grant or revoke permissions that the caller does not hold there.
fn refuse_more(caller: &Caller, needs: Permission, grant: &Grant) -> Result<(), Problem> {
    let needed = Grant { permissions: [needs].into_iter().collect(), ..grant.clone() };
    if !caller.access.lacks(&needed).is_empty()
        || !caller.access.holds(needs, grant.tenant_id, grant.apps.first().copied().unwrap_or_default())
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
