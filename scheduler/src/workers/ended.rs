//! Who waits for runs to end, and is told.

use crate::engine::Engine;
use crate::store::Store;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Told when runs have ended.
#[derive(Debug, Default)]
pub struct RunEndSignal {
    pub(super) outbox: Arc<Notify>,
    pub(super) waiting: Arc<Notify>,
    pub(super) backfill: Arc<Notify>,
    any: Notify,
}

impl RunEndSignal {
    /// Completes when runs have ended of which this node knows.
    pub fn any(&self) -> Notified<'_> {
        self.any.notified()
    }

    /// Runs have ended; wakes those of `engine` who wait for that.
    pub fn notify<S: Store + 'static>(&self, engine: &Engine<S>) {
        self.any.notify_waiters();
        if engine.outbox_worker.is_watching() {
            self.outbox.notify_one();
        }
        if !engine.queue.blocked.is_empty() {
            self.waiting.notify_one();
        }
        if engine.backfiller.is_open() {
            self.backfill.notify_one();
        }
    }
}
