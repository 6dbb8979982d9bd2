//! Quotas of tenants, and what is used of them. Setting them is the platform's: no tenant raises its
//! own. A node knows of a change within a second or two.

use super::input::{etag, if_match, refuse_stale};
use super::operation::{Operation, get, put};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::quota::Quotas;
use crate::domain::{Action, Permission, TenantId};
use crate::store::QuotaUse;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/tenants/{tenant}/quotas", "show_quotas", P::QuotasRead, "A tenant's quotas and what it uses of them")
            .answers::<TenantQuotas>(200, "The quotas")
            .to(show),
        put("/tenants/{tenant}/quotas", Action::EditQuotas, P::QuotasEdit, "Set a tenant's quotas")
            .says(
                "What the body leaves out has no bound. Runs that another quota of fires delayed ask anew; tasks \
                 beyond a smaller quota stay.",
            )
            .if_match()
            .body::<Quotas>()
            .answers::<TenantQuotas>(200, "The quotas")
            .to(edit),
    ]
}

/// A tenant's quotas and what it uses of them.
#[derive(Serialize, ToSchema)]
struct TenantQuotas {
    /// Tasks at most; 0 is no bound.
    max_tasks: i32,
    /// Fires in any minute of the whole cluster at most; 0 is no bound.
    max_fires_per_minute: i32,
    /// Most runs at once; 0 means no limit.
    max_concurrent: i32,
    /// Days that ended task logs are kept; 0 is the node's default.
    retain_days: i32,
    used: Used,
}

/// What a tenant uses of its quotas.
#[derive(Serialize, ToSchema)]
struct Used {
    /// Tasks.
    tasks: i64,
    /// Runs that are with executors; a sharded run is one.
    runs: i64,
    /// Fires in the last minute, where there is a quota of them.
    fires_last_minute: i64,
    /// Runs that this quota delays; counted up to 100000.
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
    let quotas: Quotas = body::json(payload).await?;
    let wrong = quotas.check();
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    let tenant = api.tenant(&caller, Permission::QuotasEdit, &tenant).await?;
    refuse_stale(if_match(&request)?, tenant.revision)?;
    let before = api.store.quotas(tenant.id).await?;
    let target = Target { kind: "tenant", id: tenant.id.to_string(), name: tenant.name };
    let say = |quotas: &Quotas| serde_json::to_string(quotas).ok();
    let note = api.note(&caller, Action::EditQuotas, tenant.id, target, (say(&before), say(&quotas)));
    let now = api.engine.clock.now_ms();
    api.store.noting(vec![note]).set_quotas(tenant.id, Some(tenant.revision), &quotas, now).await?;
    // What waited may go now; the other nodes look every second.
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
