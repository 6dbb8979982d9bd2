//! All clusters, at a glance.

use super::Api;
use super::operation::{Operation, get};
use crate::clusters::{ClusterFigures, Lateness, NodeFigures, OtherCluster, SHOWN_MS, State, Total};
use crate::domain::statistics::{Figures, MINUTE_MS, Step};
use crate::domain::{AccessScope, Permission};
use crate::store::{ClusterStore, FiguresFilter};
use actix_web::{HttpResponse, web};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// How long a caller waits for the figures of this cluster.
const OWN_MAX: Duration = Duration::from_secs(1);

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/clusters", "list_clusters", Permission::ClustersRead, "This cluster, and others as this node last heard them")
            .says(
                "The others are those of the setting `clusters`. Each node asks them every five seconds and answers out of its memory: one \
                 that is away delays nothing. What this cluster does comes from its database; while that does not answer, its figures \
                 are null.",
            )
            .answers::<Clusters>(200, "The clusters")
            .to(list),
    ]
}

/// How a cluster is.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ClusterState {
    /// It has not been asked yet.
    Pending,
    /// It answers.
    Current,
    /// It does not.
    Away,
}

/// Another cluster.
#[derive(Serialize, ToSchema)]
struct Cluster {
    /// What it is called.
    name: String,
    /// Where it answers.
    url: String,
    /// How it is.
    state: ClusterState,
    /// Since when, epoch ms.
    since: Option<i64>,
    /// Why it is away; empty while it is not.
    problem: String,
    /// When it answered last, epoch ms.
    read_at: Option<i64>,
    /// What it said then.
    figures: Option<ClusterFigures>,
}

/// The cluster that answers.
#[derive(Serialize, ToSchema)]
struct ThisCluster {
    /// What it is called; empty: nothing.
    name: String,
    /// The same of it as of the others; null while its database does not answer.
    figures: Option<ClusterFigures>,
}

/// Clusters.
#[derive(Serialize, ToSchema)]
struct Clusters {
    /// The cluster that answers.
    this: ThisCluster,
    /// The others, in the order of the setting.
    items: Vec<Cluster>,
}

impl From<OtherCluster> for Cluster {
    fn from(other: OtherCluster) -> Self {
        let OtherCluster { name, url, state, since, problem, read_at, figures } = other;
        let state = match state {
            State::Pending => ClusterState::Pending,
            State::Current => ClusterState::Current,
            State::Away => ClusterState::Away,
        };
        let instant = |at: i64| (at != 0).then_some(at);
        Self { name, url, state, since: instant(since), problem, read_at: instant(read_at), figures }
    }
}

async fn list(api: web::Data<Api>) -> HttpResponse {
    let items = api.clusters.all().into_iter().map(Cluster::from).collect();
    let look = async { tokio::time::timeout(OWN_MAX, own(&api)).await.ok().and_then(Result::ok) };
    let figures = api.cached.own_figures.or(look).await;
    HttpResponse::Ok().json(Clusters { this: ThisCluster { name: api.cluster_name.clone(), figures }, items })
}

/// What the others are asked for, of this cluster.
async fn own(api: &Api) -> crate::store::Result<ClusterFigures> {
    let view = api.engine.membership.view();
    let executors = api.engine.registry.everyone();
    let node = |node: crate::store::NodeState| NodeFigures {
        online: view.live.contains(&node.id),
        left_at: (node.left_at != 0).then_some(node.left_at),
        queue_depth: node.queue_depth,
        executors: executors.iter().filter(|executor| executor.node_id == node.id).count(),
    };
    let nodes: Vec<NodeFigures> = api.store.nodes().await?.into_iter().map(node).collect();
    let now = api.engine.clock.now_ms();
    let from = (now - SHOWN_MS) / MINUTE_MS * MINUTE_MS;
    let filter =
        FiguresFilter { tenant_id: None, task_id: None, from, until: now + MINUTE_MS, step: Step::FiveMinutes };
    let mut all = Figures::default();
    for (_, figures) in api.store.figures(&AccessScope::All, &filter).await? {
        all.merge(&figures);
    }
    let lateness = Lateness { p50_ms: all.lateness.quantile_ms(0.5), p99_ms: all.lateness.quantile_ms(0.99) };
    let Figures { fires, succeeded, failed, expired, .. } = all;
    let total = Total { fires, succeeded, failed, expired, lateness };
    Ok(ClusterFigures::of(&nodes, api.engine.watch.overload().is_some(), total))
}
