//! Backfills, a few runs at a time, by the node that writes ahead.

use crate::cluster::{Clock, RuleBook};
use crate::domain::IdSource;
use crate::store::{BackfillStore, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Backfills that go on at a time.
const OPEN_MAX: u64 = 100;

/// Writes the runs of backfills.
pub struct Backfiller<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    ids: Arc<IdSource>,
    rules: Arc<RuleBook>,
    open: AtomicBool,
}

impl<S: BackfillStore + ?Sized> Backfiller<S> {
    /// Over the node's parts.
    pub fn new(store: Arc<S>, clock: Arc<dyn Clock>, ids: Arc<IdSource>, rules: Arc<RuleBook>) -> Self {
        Self { store, clock, ids, rules, open: AtomicBool::new(false) }
    }

    /// Whether a backfill waits for runs to end.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Goes on with every open backfill; returns how many runs it wrote.
    pub async fn tick(&self) -> Result<usize> {
        let backfills = self.store.open_backfills(OPEN_MAX).await?;
        self.open.store(!backfills.is_empty(), Ordering::Relaxed);
        let now = self.clock.now_ms();
        if self.rules.held_until(now).is_some() {
            // How far they came before the database was restored is not known.
            return Ok(0);
        }
        let mut written = 0;
        for backfill in &backfills {
            written += self.store.advance(backfill, &|| self.ids.next(now), now).await?;
        }
        Ok(written)
    }
}
