//! Counts the unfinished blocking parts of a run. A run has not ended before all of them have returned.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Set in the count once the run has ended: no more parts.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Number of unfinished parts of a run.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    count: AtomicUsize,
    /// Woken when the last part has returned; only the run's slot waits for it.
    none: Notify,
}

impl Parts {
    /// Counts a part in, unless the run has ended.
    pub(crate) fn enter(&self) -> bool {
        let more = |count| (count & CLOSED == 0).then_some(count + 1);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    pub(crate) fn leave(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none.notify_one();
        }
    }

    /// Ends the run if no part is unfinished. Returns whether it did.
    pub(crate) fn close(&self) -> bool {
        self.count.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Resolves when no part is unfinished.
    pub(crate) async fn none_left(&self) {
        while self.count.load(Ordering::Acquire) != 0 {
            self.none.notified().await;
        }
    }
}
