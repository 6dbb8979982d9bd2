//! Runs of whose end this node knows, until what follows them is written.

use crate::domain::LogId;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kept at most; of more than these a look through the outbox learns.
const ENDED_MAX: usize = 50_000;

/// Ids of runs that have ended since they were asked for last; most of them have no consequences. It may forget: the outbox
/// in the database does not.
#[derive(Debug, Default)]
pub struct EndedRuns {
    ids: Mutex<Vec<LogId>>,
}

impl EndedRuns {
    /// These have ended.
    pub fn note(&self, ids: impl IntoIterator<Item = LogId>) {
        let mut noted = self.lock();
        let room = ENDED_MAX.saturating_sub(noted.len());
        noted.extend(ids.into_iter().take(room));
    }

    /// Takes all of them, each once, in their order.
    pub fn take(&self) -> Vec<LogId> {
        let mut ids = std::mem::take(&mut *self.lock());
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LogId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
