//! The runs that a process answers for, as plain data.

use carillon_protocol::{CancelOutcome, DispatchItem, DispatchOutcome, RunKey};
use std::collections::{BTreeMap, BTreeSet};

/// Where a run is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Held(DispatchItem),
    Running(DispatchItem),
    Unacknowledged,
}

/// What became of a due run.
#[derive(Debug)]
pub(super) enum Begin {
    Start,
    NotStarted,
    Skipped,
}

/// The runs of one process. A simulation is shorter than anything here is remembered.
#[derive(Debug, Default)]
pub(super) struct Table {
    live: BTreeMap<RunKey, Phase>,
    ended: BTreeSet<RunKey>,
    cancelled: BTreeSet<RunKey>,
}

/// The sets of a heartbeat.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) held: Vec<RunKey>,
    pub(super) running: Vec<RunKey>,
    pub(super) unacknowledged: Vec<RunKey>,
}

impl Table {
    pub(super) fn knows(&self, key: RunKey) -> bool {
        self.live.contains_key(&key) || self.ended.contains(&key)
    }

    pub(super) fn restore(&mut self, key: RunKey) {
        self.live.insert(key, Phase::Unacknowledged);
    }

    pub(super) fn accept(&mut self, key: RunKey, item: &DispatchItem) -> DispatchOutcome {
        if self.knows(key) {
            return DispatchOutcome::Duplicate;
        }
        if self.cancelled.contains(&key) {
            return DispatchOutcome::Cancelled;
        }
        self.live.insert(key, Phase::Held(item.clone()));
        DispatchOutcome::Accepted
    }

    /// A due run starts, unless it was cancelled or the lease has run out.
    pub(super) fn begin(&mut self, key: RunKey, may_start: bool) -> Begin {
        let Some(Phase::Held(item)) = self.live.get(&key).cloned() else { return Begin::Skipped };
        if may_start {
            self.live.insert(key, Phase::Running(item));
            return Begin::Start;
        }
        self.live.insert(key, Phase::Unacknowledged);
        Begin::NotStarted
    }

    /// Whether it was running; it is not any more.
    pub(super) fn finish(&mut self, key: RunKey) -> bool {
        let running = matches!(self.live.get(&key), Some(Phase::Running(_)));
        if running {
            self.live.insert(key, Phase::Unacknowledged);
        }
        running
    }

    pub(super) fn acknowledged(&mut self, key: RunKey) {
        if self.live.get(&key) == Some(&Phase::Unacknowledged) {
            self.live.remove(&key);
            self.ended.insert(key);
        }
    }

    pub(super) fn cancel(&mut self, key: RunKey, unstarted_only: bool) -> CancelOutcome {
        match self.live.get(&key) {
            Some(Phase::Held(_)) => {
                self.live.remove(&key);
                self.cancelled.insert(key);
                CancelOutcome::Dropped
            }
            Some(Phase::Running(_)) if unstarted_only => CancelOutcome::Running,
            Some(Phase::Running(_)) => CancelOutcome::Stopping,
            Some(Phase::Unacknowledged) => CancelOutcome::Ended,
            None if self.ended.contains(&key) => CancelOutcome::Ended,
            None => {
                self.cancelled.insert(key);
                CancelOutcome::Unknown
            }
        }
    }

    pub(super) fn running(&self) -> Vec<RunKey> {
        let running = self.live.iter().filter(|(_, phase)| matches!(phase, Phase::Running(_)));
        running.map(|(key, _)| *key).collect()
    }

    /// Whether a run of the task goes on.
    pub(super) fn runs_task(&self, task: i64) -> bool {
        self.live.values().any(|phase| matches!(phase, Phase::Running(item) if item.task == task))
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let mut sets = Snapshot::default();
        for (key, phase) in &self.live {
            match phase {
                Phase::Held(_) => sets.held.push(*key),
                Phase::Running(_) => sets.running.push(*key),
                Phase::Unacknowledged => sets.unacknowledged.push(*key),
            }
        }
        sets
    }
}
