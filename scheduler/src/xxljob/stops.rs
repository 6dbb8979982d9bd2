//! What a node has told plain executors of runs that are to be stopped.

use carillon_protocol::RunKey;
use dashmap::DashMap;

/// Runs to be stopped that are remembered at most.
const STOPS_MAX: usize = 10_000;

/// What this node has told of runs that are to be stopped.
#[derive(Debug, Default)]
pub(super) struct Stops(DashMap<RunKey, Told>);

/// What this node has told of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// This node was the first to learn that it is to be stopped, and has not told anybody.
    NotYet,
    /// At this instant for the first time, cluster ms.
    At(i64),
}

impl Stops {
    pub(super) fn note(&self, key: RunKey, told: Told) {
        if self.0.len() >= STOPS_MAX {
            // What is forgotten counts as told by another node.
            self.0.clear();
        }
        self.0.insert(key, told);
    }

    pub(super) fn told(&self, key: RunKey) -> Option<Told> {
        self.0.get(&key).map(|told| *told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let stops = Stops::default();
        (0..=STOPS_MAX as i64).for_each(|log| stops.note(RunKey(log, 1), Told::NotYet));
        assert_eq!((stops.0.len(), stops.told(RunKey(0, 1))), (1, None));
    }
}
