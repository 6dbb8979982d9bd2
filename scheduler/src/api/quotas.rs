//! Quotas of tenants, and their use. Only the platform sets them: no tenant can raise its own. Nodes
//! learn of a change within a second or two.

use super::input::{etag, given, if_match, refuse_stale};
use super::operation::{Operation, get, patch};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::quota::Quotas;
use crate::domain::{Action, Permission, TenantId};
use crate::store::QuotaUse;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/tenants/{tenant}/quotas", "show_quotas", P::QuotasRead, "A tenant's quotas and their use")
            .answers::<TenantQuotas>(200, "The quotas")
            .to(show),
        patch("/tenants/{tenant}/quotas", Action::EditQuotas, P::QuotasEdit, "Set a tenant's quotas")
            .says("Runs that the previous fire quota delayed are scheduled again; tasks beyond a smaller quota stay.")
            .if_match()
            .changes::<QuotasPatch>()
            .answers::<TenantQuotas>(200, "The quotas")
            .to(edit),
    ]
}

/// Quotas to change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QuotasPatch {
    /// Maximum number of tasks; 0 means no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000)]
    max_tasks: Option<i32>,
    /// Maximum number of fires in any minute, in the whole cluster; 0 means no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000)]
    max_fires_per_minute: Option<i32>,
    /// Maximum number of runs at once; 0 means no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000)]
    max_concurrent: Option<i32>,
    /// Days that ended task logs are kept; 0 means the node's default.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 0, maximum = 3_650)]
    retain_days: Option<i32>,
}

impl QuotasPatch {
    fn applied_to(&self, before: &Quotas) -> Quotas {
        Quotas {
            max_tasks: self.max_tasks.unwrap_or(before.max_tasks),
            max_fires_per_minute: self.max_fires_per_minute.unwrap_or(before.max_fires_per_minute),
            max_concurrent: self.max_concurrent.unwrap_or(before.max_concurrent),
            retain_days: self.retain_days.unwrap_or(before.retain_days),
        }
    }
}

/// A tenant's quotas and their use.
#[derive(Serialize, ToSchema)]
struct TenantQuotas {
    /// Maximum number of tasks; 0 means no limit.
    max_tasks: i32,
    /// Maximum number of fires in any minute, in the whole cluster; 0 means no limit.
    max_fires_per_minute: i32,
    /// Maximum number of runs at once; 0 means no limit.
    max_concurrent: i32,
    /// Days that ended task logs are kept; 0 means the node's default.
    retain_days: i32,
    used: Used,
}

/// A tenant's use of its quotas.
#[derive(Serialize, ToSchema)]
struct Used {
    /// Number of tasks.
    tasks: i64,
    /// Runs that executors hold; a sharded run counts as one.
    runs: i64,
    /// Fires in the last minute, if there is a quota for them.
    fires_last_minute: i64,
    /// Runs that the fire quota delays; counted up to 100,000.
    delayed: i64,
    /// When the last of those is due, epoch ms.
    delayed_until: Option<i64>,
}

impl From<QuotaUse> for Used {
    fn from(used: QuotaUse) -> Self {
        let QuotaUse { tasks, runs, fires, delayed, delayed_until } = used;
        Self { tasks, runs, fires_last_minute: fires, delayed, delayed_until }
    }
}

async fn show(api: web::Data<Api>, caller: Caller, tenant: web::Path<String>) -> Result<HttpResponse, Problem> {
    let tenant = api.tenant(&caller, Permission::QuotasRead, &tenant).await?;
    answer(&api, tenant.id, tenant.revision).await
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let patch: QuotasPatch = body::json(payload).await?;
    let tenant = api.tenant(&caller, Permission::QuotasEdit, &tenant).await?;
    refuse_stale(if_match(&request)?, tenant.revision)?;
    let before = api.store.quotas(tenant.id).await?;
    let quotas = patch.applied_to(&before);
    let wrong = quotas.check();
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    let target = Target { kind: "tenant", id: tenant.id.to_string(), name: tenant.name };
    let say = |quotas: &Quotas| serde_json::to_string(quotas).ok();
    let note = api.note(&caller, Action::EditQuotas, tenant.id, target, (say(&before), say(&quotas)));
    let now = api.engine.clock.now_ms();
    api.store.noting(vec![note]).set_quotas(tenant.id, Some(tenant.revision), &quotas, now).await?;
    // Runs that waited may go now; the other nodes check every second.
    api.engine.look().await?;
    api.wake.notify_one();
    answer(&api, tenant.id, tenant.revision + 1).await
}

async fn answer(api: &Api, tenant_id: TenantId, revision: i64) -> Result<HttpResponse, Problem> {
    let Quotas { max_tasks, max_fires_per_minute, max_concurrent, retain_days } = api.store.quotas(tenant_id).await?;
    let used = api.store.quota_use(tenant_id, api.engine.clock.now_ms()).await?.into();
    let output = TenantQuotas { max_tasks, max_fires_per_minute, max_concurrent, retain_days, used };
    Ok(HttpResponse::Ok().insert_header(etag(revision)).json(output))
}
