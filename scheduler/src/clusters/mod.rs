//! Other clusters of carillon, as they were last heard: each node asks each of them now and then, and answers out of its memory. One that
//! is away is shown as away, and holds nothing up.

mod figures;
mod others;
mod settings;

pub use figures::{ClusterFigures, Lateness, NodeFigures, Total};
pub use others::{Clusters, LOOK_INTERVAL, OtherCluster, SHOWN_MS, State, VouchedFor};
pub use settings::{OtherClusterSettings, OwnClusterSettings, contradiction};
