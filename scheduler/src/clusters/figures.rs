//! What is shown of a cluster, out of what its API answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A cluster at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ClusterFigures {
    /// Nodes that have not left.
    pub nodes: usize,
    /// Those of them that are alive.
    pub nodes_online: usize,
    /// Executors that talked to those last.
    pub executors: usize,
    /// Runs in their memory.
    pub queue_depth: i64,
    /// Whether more is due than the node that answered and its database carry.
    pub overloaded: bool,
    /// Fires of the hour before.
    pub fires: u64,
    /// Runs of them that succeeded.
    pub succeeded: u64,
    /// Runs of them that failed with no attempts left.
    pub failed: u64,
    /// Runs of them that were too late.
    pub expired: u64,
    /// From the due time to the start, the median of that hour, ms.
    pub lateness_p50_ms: Option<f64>,
    /// The same, the 99th percentile, ms.
    pub lateness_p99_ms: Option<f64>,
}

/// `GET /api/v1/nodes`, as far as it is of use here.
#[derive(Deserialize)]
pub struct Nodes {
    items: Vec<NodeFigures>,
    this: This,
}

/// A node, as far as it is of use here.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct NodeFigures {
    /// Whether it is alive.
    pub online: bool,
    /// When it left, if it has.
    #[serde(default)]
    pub left_at: Option<i64>,
    /// Runs in its memory.
    pub queue_depth: i64,
    /// Executors that talked to it last.
    pub executors: usize,
}

#[derive(Deserialize)]
struct This {
    cluster_time: i64,
    #[serde(default)]
    overload: Option<serde_json::Value>,
}

/// `GET /api/v1/statistics`, as far as it is of use here.
#[derive(Deserialize)]
pub struct Statistics {
    total: Total,
}

/// The totals of a time.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Total {
    /// As [`ClusterFigures::fires`].
    pub fires: u64,
    /// As [`ClusterFigures::succeeded`].
    pub succeeded: u64,
    /// As [`ClusterFigures::failed`].
    pub failed: u64,
    /// As [`ClusterFigures::expired`].
    pub expired: u64,
    /// From the due time to the start.
    pub lateness: Lateness,
}

/// How late runs began.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Lateness {
    /// The median, ms.
    pub p50_ms: Option<f64>,
    /// The 99th percentile, ms.
    pub p99_ms: Option<f64>,
}

impl Nodes {
    /// The other cluster's time, epoch ms.
    pub fn cluster_time(&self) -> i64 {
        self.this.cluster_time
    }

    /// Of both answers.
    pub fn figures(&self, Statistics { total }: Statistics) -> ClusterFigures {
        ClusterFigures::of(&self.items, self.this.overload.is_some(), total)
    }
}

impl ClusterFigures {
    /// Of a cluster's nodes and totals. What another cluster says may be anything: sums stay within their bounds.
    #[must_use]
    pub fn of(nodes: &[NodeFigures], overloaded: bool, total: Total) -> Self {
        let online = || nodes.iter().filter(|node| node.online);
        Self {
            nodes: nodes.iter().filter(|node| node.left_at.is_none()).count(),
            nodes_online: online().count(),
            executors: online().fold(0, |sum, node| sum.saturating_add(node.executors)),
            queue_depth: online().fold(0, |sum, node| sum.saturating_add(node.queue_depth)),
            overloaded,
            fires: total.fires,
            succeeded: total.succeeded,
            failed: total.failed,
            expired: total.expired,
            lateness_p50_ms: total.lateness.p50_ms,
            lateness_p99_ms: total.lateness.p99_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_of_what_is_there() {
        let node = |online: bool, left_at: Option<i64>| json!({ "id": "1", "online": online, "left_at": left_at, "queue_depth": 7, "executors": 3 });
        let nodes = json!({
            "items": [node(true, None), node(true, None), node(false, None), node(false, Some(5))],
            "leases": [], "this": { "cluster_time": 1_795_000_000_000i64, "overload": { "since": 1 } },
        });
        let nodes: Nodes = serde_json::from_value(nodes).unwrap();
        assert_eq!(nodes.cluster_time(), 1_795_000_000_000);
        let total = json!({
            "fires": 10, "succeeded": 7, "failed": 2, "expired": 1, "open": 0, "lateness": { "p50_ms": 0.4, "p99_ms": null },
        });
        let statistics: Statistics = serde_json::from_value(json!({ "from": 0, "total": total })).unwrap();
        let expected = ClusterFigures {
            nodes: 3,
            nodes_online: 2,
            executors: 6,
            queue_depth: 14,
            overloaded: true,
            fires: 10,
            succeeded: 7,
            failed: 2,
            expired: 1,
            lateness_p50_ms: Some(0.4),
            lateness_p99_ms: None,
        };
        assert_eq!(nodes.figures(statistics), expected);
    }

    #[test]
    fn numbers_out_of_all_bounds_stay_numbers() {
        let node = NodeFigures { online: true, left_at: None, queue_depth: i64::MAX, executors: usize::MAX };
        let lateness = Lateness { p50_ms: None, p99_ms: None };
        let total = Total { fires: u64::MAX, succeeded: 0, failed: 0, expired: 0, lateness };
        let figures = ClusterFigures::of(&[node, node], false, total);
        assert_eq!((figures.executors, figures.queue_depth), (usize::MAX, i64::MAX));
    }
}
