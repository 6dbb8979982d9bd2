//! Quotas of tenants, and what is used of them.

use super::problem::Problem;
use super::{Api, body};
use crate::domain::quota::Quotas;
use actix_web::{HttpResponse, web};
use serde_json::json;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config.service(web::resource("/tenants/{tenant}/quotas").get(show).put(edit));
}

async fn show(api: web::Data<Api>, tenant: web::Path<String>) -> Result<HttpResponse, Problem> {
    answer(&api, api.store.tenant_id(&tenant).await?).await
}

/// What the body leaves out has no bound.
async fn edit(api: web::Data<Api>, tenant: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let quotas: Quotas = body::json(payload).await?;
    let wrong = quotas.check();
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    let id = api.store.tenant_id(&tenant).await?;
    api.store.set_quotas(id, &quotas, api.engine.clock.now_ms()).await?;
    // What waited may go now; the other nodes look every second.
    api.engine.look().await?;
    api.poke.notify_one();
    answer(&api, id).await
}

async fn answer(api: &Api, tenant_id: i64) -> Result<HttpResponse, Problem> {
    let quotas = api.store.quotas(tenant_id).await?;
    let used = api.store.quota_use(tenant_id, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::Ok().json(json!({
        "max_tasks": quotas.max_tasks,
        "max_fires_per_minute": quotas.max_fires_per_minute,
        "max_concurrent": quotas.max_concurrent,
        "retain_days": quotas.retain_days,
        "used": {
            "tasks": used.tasks,
            "runs": used.runs,
            "fires_last_minute": used.fires,
            "delayed": used.delayed,
            "delayed_until": used.delayed_until,
        },
    })))
}
