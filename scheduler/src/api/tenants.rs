//! Tenants.

use super::input::{Page, Query, etag, given, if_match, limit, refuse_stale};
use super::operation::{Operation, delete, get, patch, post};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::access::PLATFORM;
use crate::domain::audit::Target;
use crate::domain::{Action, FieldError, FieldRefusal, Permission};
use crate::store::TenantView;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Longest description, characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/tenants", "list_tenants", P::TenantsRead, "Tenants, by name")
            .query::<TenantQuery>()
            .answers_page::<Tenant>("A page of tenants")
            .to(list),
        post("/tenants", Action::CreateTenant, P::TenantsCreate, "Create a tenant")
            .body::<NewTenant>()
            .answers::<Tenant>(201, "The tenant")
            .to(create),
        get("/tenants/{tenant}", "show_tenant", P::TenantsRead, "A tenant, by name")
            .answers::<Tenant>(200, "The tenant")
            .to(show),
        patch("/tenants/{tenant}", Action::EditTenant, P::TenantsEdit, "Set a tenant's description")
            .if_match()
            .changes::<TenantPatch>()
            .answers::<Tenant>(200, "The tenant")
            .to(edit),
        delete(
            "/tenants/{tenant}",
            Action::DeleteTenant,
            P::TenantsDelete,
            "Delete a tenant that has no app, user or role",
        )
        .answers_nothing("Deleted")
        .to(remove),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct TenantQuery {
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// A tenant to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewTenant {
    /// Its name; it cannot be changed. 1 to 64 characters out of a-z A-Z 0-9 - _ . starting with a letter or digit.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    name: String,
    /// Free text for people to read.
    #[serde(default)]
    #[schema(max_length = 1000)]
    description: String,
}

/// Editable fields of a tenant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TenantPatch {
    /// Free text for people to read.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 1000)]
    description: Option<String>,
}

/// A tenant.
#[derive(Serialize, ToSchema)]
struct Tenant {
    /// Id.
    id: String,
    /// Name.
    name: String,
    /// Free text for people to read.
    description: String,
    /// Maximum number of runs at once; 0 means no limit.
    max_concurrent: i32,
    /// Increases with every change.
    revision: i64,
    /// Epoch ms.
    created_at: i64,
}

impl From<TenantView> for Tenant {
    fn from(tenant: TenantView) -> Self {
        Self {
            id: tenant.id.to_string(),
            name: tenant.name,
            description: tenant.description,
            max_concurrent: tenant.max_concurrent,
            revision: tenant.revision,
            created_at: tenant.created_at,
        }
    }
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<TenantQuery>) -> Result<HttpResponse, Problem> {
    let limit = limit(query.0.limit)?;
    let after = query.0.after.unwrap_or_default();
    let tenants = api.store.list_tenants(&caller.access_scope(Permission::TenantsRead), None, &after, limit).await?;
    let items = tenants.into_iter().map(Tenant::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |tenant: &Tenant| tenant.name.clone())))
}

async fn create(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let NewTenant { name, description } = body::json(payload).await?;
    check_name("name", &name)?;
    check_description(&description)?;
    let now = api.engine.clock.now_ms();
    let id = api.engine.ids.next(now);
    let tenant = TenantView { id, name, description, max_concurrent: 0, revision: 1, created_at: now };
    let note = api.note(&caller, Action::CreateTenant, PLATFORM, target(&tenant), (None, audited(&tenant)));
    api.store.noting(vec![note]).create_tenant(&tenant).await?;
    Ok(HttpResponse::Created().insert_header(etag(1)).json(Tenant::from(tenant)))
}

async fn show(api: web::Data<Api>, caller: Caller, name: web::Path<String>) -> Result<HttpResponse, Problem> {
    let tenant = api.tenant(&caller, Permission::TenantsRead, &name).await?;
    Ok(HttpResponse::Ok().insert_header(etag(tenant.revision)).json(Tenant::from(tenant)))
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    name: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let TenantPatch { description } = body::json(payload).await?;
    if let Some(description) = &description {
        check_description(description)?;
    }
    let before = api.tenant(&caller, Permission::TenantsEdit, &name).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let after = TenantView {
        description: description.unwrap_or_else(|| before.description.clone()),
        revision: before.revision + 1,
        ..before.clone()
    };
    let change = (audited(&before), audited(&after));
    let note = api.note(&caller, Action::EditTenant, before.id, target(&before), change);
    api.store.noting(vec![note]).describe_tenant(&before, &after.description).await?;
    Ok(HttpResponse::Ok().insert_header(etag(after.revision)).json(Tenant::from(after)))
}

async fn remove(api: web::Data<Api>, caller: Caller, name: web::Path<String>) -> Result<HttpResponse, Problem> {
    let tenant = api.tenant(&caller, Permission::TenantsDelete, &name).await?;
    let note = api.note(&caller, Action::DeleteTenant, PLATFORM, target(&tenant), (audited(&tenant), None));
    api.store.noting(vec![note]).delete_tenant(tenant.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn target(tenant: &TenantView) -> Target {
    Target { kind: "tenant", id: tenant.id.to_string(), name: tenant.name.clone() }
}

fn audited(tenant: &TenantView) -> Option<String> {
    Some(serde_json::json!({ "name": tenant.name, "description": tenant.description }).to_string())
}

/// Refuses a description that is too long.
pub fn check_description(description: &str) -> Result<(), Problem> {
    if description.chars().count() <= DESCRIPTION_CHARS_MAX {
        return Ok(());
    }
    Err(FieldError::too_long("description", DESCRIPTION_CHARS_MAX).into())
}

/// Names of tenants and apps appear in headers, signatures and paths: plain ASCII words.
pub fn check_name(field: &str, name: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if (1..=64).contains(&name.len()) && begins_well && name.chars().all(plain) {
        return Ok(());
    }
    Err(FieldError::new(field, FieldRefusal::WrongPlainName).into())
}
