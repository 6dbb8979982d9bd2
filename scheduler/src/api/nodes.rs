//! Nodes, and what orchestrators ask of this one.

use super::Api;
use super::operation::{Operation, get};
use super::problem::Problem;
use crate::cluster::Overload as Overloaded;
use crate::domain::Permission;
use crate::store::{ClusterStore, LeaseState, NodeState};
use actix_web::{HttpResponse, web};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use utoipa::ToSchema;

/// How long a probe waits for the database.
const READY_MAX: Duration = Duration::from_millis(700);

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/nodes", "list_nodes", Permission::NodesRead, "Nodes, and this one in detail")
            .answers::<Nodes>(200, "The nodes")
            .to(nodes),
    ]
}

/// Routes for orchestrators, without a login: they reveal only whether the node is healthy.
pub fn health_routes(config: &mut web::ServiceConfig) {
    config.route("/healthz", web::get().to(alive)).route("/readyz", web::get().to(ready));
}

/// A scheduler process.
#[derive(Serialize, ToSchema)]
struct Node {
    /// Id, 1 to 1023.
    id: String,
    /// Name, unique in the cluster.
    name: String,
    /// Where it listens.
    address: String,
    /// Version of carillon.
    version: String,
    /// Whether it is alive.
    online: bool,
    /// Epoch ms.
    started_at: i64,
    /// Last heartbeat, epoch ms.
    heartbeat_at: i64,
    /// When it left, epoch ms.
    left_at: Option<i64>,
    /// Runs in its memory.
    queue_depth: i64,
    /// How far its machine's own clock is ahead of the cluster clock (negative: behind), ms, as last
    /// measured. Nothing fires by that clock.
    clock_offset_ms: Option<i64>,
    /// How wrong that can be at most, µs: its round trips to the database.
    clock_uncertainty_us: Option<i64>,
    /// Executors online that talked to it last.
    executors: usize,
}

/// The right to do work that one node does at a time.
#[derive(Serialize, ToSchema)]
struct Lease {
    /// `pregenerate`, `housekeeping` or `statistics`.
    name: String,
    /// The node that holds it; null when none does.
    node: Option<String>,
    /// Its name.
    node_name: Option<String>,
    /// Increases with every change of holder.
    fence: i64,
    /// Until when it is held without renewal, epoch ms; in the past when no node holds it.
    expires_at: Option<i64>,
}

/// The node that answers.
#[derive(Serialize, ToSchema)]
struct ThisNode {
    /// Id.
    id: String,
    /// Runs in its memory.
    queue_depth: usize,
    /// Number of statements it has sent to the database.
    statements: u64,
    /// Its estimate of the database's clock, epoch ms.
    cluster_time: i64,
    /// Version of the rules (quotas, limits, maintenance windows, calendars, executors' weights) that it
    /// applies; increases with every change of one.
    rule_version: i64,
    /// Version of the IANA time zone database that it uses.
    time_zones: &'static str,
    /// There while more is due than this node and its database carry.
    overload: Option<Overload>,
}

/// More is due than a node and its database carry.
#[derive(Serialize, ToSchema)]
struct Overload {
    /// Since when, epoch ms.
    since: i64,
    /// How long the longest waiting run that the node can claim has been due, ms.
    claim_lag_ms: i64,
    /// How long the longest waiting run in its memory has been ready for its dispatch, ms.
    dispatch_lag_ms: i64,
    /// How far ahead the task that is most behind has been written, ms; negative when fires have passed. Null on a node
    /// that does not write ahead.
    written_ahead_ms: Option<i64>,
}

/// Nodes.
#[derive(Serialize, ToSchema)]
struct Nodes {
    items: Vec<Node>,
    /// By name.
    leases: Vec<Lease>,
    this: ThisNode,
}

async fn nodes(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let view = api.engine.membership.view();
    let nodes = api.store.nodes().await?;
    let leases = leases(&api, &nodes).await?;
    let executors = api.engine.registry.everyone();
    let items = nodes
        .into_iter()
        .map(|node| Node {
            id: node.id.to_string(),
            online: view.live.contains(&node.id),
            name: node.name,
            address: node.address,
            version: node.version,
            started_at: node.started_at,
            heartbeat_at: node.heartbeat_at,
            left_at: (node.left_at != 0).then_some(node.left_at),
            queue_depth: node.queue_depth,
            clock_offset_ms: node.clock.map(|clock| clock.offset_ms),
            clock_uncertainty_us: node.clock.map(|clock| clock.uncertainty_us),
            executors: executors.iter().filter(|executor| executor.node_id == node.id).count(),
        })
        .collect();
    let this = ThisNode {
        id: api.engine.membership.id().to_string(),
        queue_depth: api.engine.queue.len(),
        statements: api.store.statements_sent(),
        cluster_time: api.engine.clock.now_ms(),
        rule_version: api.engine.rules.now().version,
        time_zones: chrono_tz::IANA_TZDB_VERSION,
        overload: overload(&api),
    };
    Ok(HttpResponse::Ok().json(Nodes { items, leases, this }))
}

fn overload(api: &Api) -> Option<Overload> {
    let Overloaded { since, .. } = api.engine.watch.overload()?;
    let behind = api.engine.watch.behind();
    Some(Overload {
        since,
        claim_lag_ms: behind.claiming_ms,
        dispatch_lag_ms: behind.dispatching_ms,
        written_ahead_ms: behind.written_ahead_ms,
    })
}

async fn leases(api: &Api, nodes: &[NodeState]) -> Result<Vec<Lease>, Problem> {
    let now = api.engine.clock.now_ms();
    let found = api.store.leases().await?;
    let lease = |lease: LeaseState| {
        let is_held = lease.expires_at >= now;
        let holder = nodes.iter().find(|node| node.id == lease.holder).filter(|_| is_held);
        Lease {
            name: lease.name,
            node: is_held.then(|| lease.holder.to_string()),
            node_name: holder.map(|node| node.name.clone()),
            fence: lease.fence,
            expires_at: (lease.expires_at != 0).then_some(lease.expires_at),
        }
    };
    Ok(found.into_iter().map(lease).collect())
}

async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "up" }))
}

async fn ready(api: web::Data<Api>) -> HttpResponse {
    if api.stop.is_cancelled() {
        return HttpResponse::ServiceUnavailable().json(json!({ "status": "stopping" }));
    }
    let look = async {
        // Probes give up after a second.
        let answered = tokio::time::timeout(READY_MAX, api.store.now_us()).await;
        let is_there = matches!(answered, Ok(Ok(_)));
        if !is_there {
            tracing::warn!("not ready: the database does not answer");
        }
        is_there
    };
    if api.cached.answers.or(look).await {
        return HttpResponse::Ok().json(json!({ "status": "ready" }));
    }
    HttpResponse::ServiceUnavailable().json(json!({ "status": "the database does not answer" }))
}
