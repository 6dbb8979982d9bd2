//! Where a run goes: pure functions from what is known to an executor.
//!
//! ```text
//! online of the app ─ handler ─ tags ─ open ─▶ candidates ─ refused_by, avoid ─▶ routing ─▶ Choice
//! ```
//!
//! **One order.** Candidates stand in the order of (address, id), whoever lists them: an address
//! outlives the process behind it, an id does not. "First", "last", ties, the probing order and
//! the numbers of shards all go by it, so every node answers alike, also after executors restart.
//! Addresses are compared as text: `:10000` comes before `:9999`.
//!
//! **No state of a node's own.** What a routing must remember lies in the database and comes in as
//! an argument: a run's number within its task ([`Request::seq`]), how often and when each address
//! was used ([`Uses`]), the load that executors report.
//!
//! | routing | decides by | weight |
//! | --- | --- | --- |
//! | first, last | the order | only 0 counts |
//! | round | the run's number, smooth weighted round robin | exact over a period |
//! | random | the run's id, spread | in proportion |
//! | `consistent_hash` | the task's id on xxl-job's ring | only 0 counts |
//! | `least_frequently_used` | uses / weight | in proportion |
//! | `least_recently_used` | the last use | only 0 counts |
//! | failover, busyover | the order, and what the caller's probes find | only 0 counts |
//! | `least_loaded` | load / (capacity × weight) | in proportion |
//! | sharding | all of them | only 0 counts |

mod tags;

mod candidates;
mod nobody;

mod load;
mod ring;
mod round;
mod uses;
mod weights;

mod chooser;
mod field;
mod probe;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;

pub use candidates::candidates;
pub use chooser::{Choice, Chooser, Known, Request};
pub use nobody::Nobody;
pub use probe::{Answer, Probe};
pub use ring::{Ring, Rings};
pub use tags::Tags;
pub use uses::{Use, UseChange, Uses};
pub use weights::Weights;

use super::executor::Executor;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Executors in the order of (address, id); copying it copies a pointer.
pub type Executors = Arc<[Arc<Executor>]>;

/// How executors are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// The first that fits.
    First,
    /// The last that fits.
    Last,
    /// In turn, each as often as its weight.
    Round,
    /// One of those that fit, at random, by weight.
    #[default]
    Random,
    /// Always the same one for a task, as xxl-job computes it.
    ConsistentHash,
    /// The one this task has used least, by weight.
    LeastFrequentlyUsed,
    /// The one this task has not used for longest.
    LeastRecentlyUsed,
    /// The first that answers a probe.
    Failover,
    /// The first that answers a probe and is not busy with this task.
    Busyover,
    /// The one with the least to do for its capacity and weight.
    LeastLoaded,
    /// All that fit, each with its page and the total.
    Sharding,
}

impl Routing {
    /// Every routing, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::First,
        Self::Last,
        Self::Round,
        Self::Random,
        Self::ConsistentHash,
        Self::LeastFrequentlyUsed,
        Self::LeastRecentlyUsed,
        Self::Failover,
        Self::Busyover,
        Self::LeastLoaded,
        Self::Sharding,
    ];

    /// Whether it goes by [`Uses`], which must be loaded for the task before and stored after.
    #[must_use]
    pub fn goes_by_uses(self) -> bool {
        matches!(self, Self::LeastFrequentlyUsed | Self::LeastRecentlyUsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routings_have_stable_words() {
        let words = [
            "first",
            "last",
            "round",
            "random",
            "consistent_hash",
            "least_frequently_used",
            "least_recently_used",
            "failover",
            "busyover",
            "least_loaded",
            "sharding",
        ];
        for (routing, word) in Routing::ALL.into_iter().zip(words) {
            assert_eq!(serde_json::to_value(routing).unwrap(), word);
            assert_eq!(serde_json::from_value::<Routing>(word.into()).unwrap(), routing);
        }
        assert_eq!(Routing::default(), Routing::Random);
    }
}
