//! Nodes, executors, health.

use super::Api;
use super::problem::Problem;
use crate::store::ClusterStore;
use actix_web::{HttpResponse, web};
use serde_json::json;
use std::time::Duration;

/// How long a probe waits for the database.
const READY_MAX: Duration = Duration::from_millis(700);

/// Routes behind the token.
pub fn routes(config: &mut web::ServiceConfig) {
    config.route("/nodes", web::get().to(nodes)).route("/executors", web::get().to(executors));
}

/// Routes for orchestrators, without a token: they tell nothing but well or not.
pub fn health_routes(config: &mut web::ServiceConfig) {
    config.route("/healthz", web::get().to(alive)).route("/readyz", web::get().to(ready));
}

async fn nodes(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let view = api.engine.membership.view();
    let items: Vec<_> = api
        .store
        .nodes()
        .await?
        .iter()
        .map(|node| {
            json!({
                "id": node.id.to_string(),
                "name": node.name,
                "address": node.address,
                "version": node.version,
                "online": view.live.contains(&node.id),
                "started_at": node.started_at,
                "heartbeat_at": node.heartbeat_at,
                "left_at": (node.left_at != 0).then_some(node.left_at),
                "queue_depth": node.queue_depth,
            })
        })
        .collect();
    let me = json!({
        "id": api.engine.membership.id().to_string(),
        "queue_depth": api.engine.queue.len(),
        "statements": api.store.statements_sent(),
        "cluster_time": api.engine.clock.now_ms(),
    });
    Ok(HttpResponse::Ok().json(json!({ "items": items, "this": me })))
}

async fn executors(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let mut online: Vec<_> = api.engine.registry.ids();
    online.sort_unstable();
    let items: Vec<_> = online
        .iter()
        .filter_map(|id| api.engine.registry.find(*id))
        .map(|executor| {
            json!({
                "id": executor.id.to_string(),
                "tenant_id": executor.tenant_id.to_string(),
                "app_id": executor.app_id.to_string(),
                "address": executor.address,
                "tags": executor.tags,
                "handlers": executor.handlers,
                "heartbeat_at": executor.heartbeat_at,
                "draining": executor.draining,
                "disabled": executor.disabled,
                "weight": executor.weight,
                "capacity": executor.capacity,
                "held": executor.held,
                "running": executor.running,
            })
        })
        .collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "up" }))
}

async fn ready(api: web::Data<Api>) -> HttpResponse {
    if api.stop.is_cancelled() {
        return HttpResponse::ServiceUnavailable().json(json!({ "status": "stopping" }));
    }
    // Probes give up after a second.
    let answered = tokio::time::timeout(READY_MAX, api.store.now_us()).await;
    if matches!(answered, Ok(Ok(_))) {
        return HttpResponse::Ok().json(json!({ "status": "ready" }));
    }
    tracing::warn!("not ready: the database does not answer");
    HttpResponse::ServiceUnavailable().json(json!({ "status": "the database does not answer" }))
}
