//! Runs that this node has sent to plain executors, or holds for them.

use super::run_door::Hold;
use crate::domain::{ExecutorId, TaskId};
use carillon_protocol::RunKey;
use dashmap::DashMap;
use std::sync::Arc;

/// Runs remembered at most. Of others it is not known here when they began.
const SENT_MAX: usize = 200_000;

/// What is known of a run that was sent.
#[derive(Debug, Clone)]
pub struct SentRun {
    /// To whom.
    pub executor_id: ExecutorId,
    /// Its task.
    pub task: TaskId,
    /// Tells whether it has left, and when; withdraws it.
    pub hold: Hold,
}

/// Runs on their way, and those that have not ended.
#[derive(Debug, Default, Clone)]
pub struct SentRuns(Arc<DashMap<RunKey, SentRun>>);

impl SentRuns {
    /// Notes a run; `false` when it has been sent before, or may have been: a second message would be a second run.
    pub fn begin(&self, key: RunKey, run: SentRun) -> bool {
        if self.0.len() >= SENT_MAX && !self.0.contains_key(&key) {
            // It is sent all the same: without a note, only its repetition after an unknown outcome is not known as one.
            return true;
        }
        match self.0.entry(key) {
            dashmap::Entry::Occupied(_) => false,
            dashmap::Entry::Vacant(place) => {
                place.insert(run);
                true
            }
        }
    }

    /// It did not arrive, or has ended.
    pub fn end(&self, key: RunKey) -> Option<SentRun> {
        self.0.remove(&key).map(|(_, run)| run)
    }

    /// What is known of it.
    pub fn find(&self, key: RunKey) -> Option<SentRun> {
        self.0.get(&key).map(|run| run.clone())
    }

    /// Keeps those for which `is_open` holds.
    pub fn retain(&self, is_open: impl Fn(RunKey) -> bool) {
        self.0.retain(|key, _| is_open(*key));
    }
}
