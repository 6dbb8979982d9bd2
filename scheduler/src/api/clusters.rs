//! Other clusters, at a glance.

use super::Api;
use super::operation::{Operation, get};
use crate::clusters::{ClusterFigures, OtherCluster, State};
use crate::domain::Permission;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/clusters", "list_clusters", Permission::ClustersRead, "Other clusters, as this node last heard them")
            .says(
                "Those of the setting `clusters`. Each node asks them every five seconds and answers out of its memory: one that is away \
                 delays nothing.",
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

/// Clusters.
#[derive(Serialize, ToSchema)]
struct Clusters {
    /// What this cluster is called; empty: nothing.
    this: String,
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
    HttpResponse::Ok().json(Clusters { this: api.cluster_name.clone(), items })
}
