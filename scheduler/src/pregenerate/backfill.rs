//! Backfills, a few runs at a time, by the node that writes ahead.

use crate::cluster::{Clock, RuleBook};
use crate::domain::IdSource;
use crate::store::{BackfillStore, Result, StoreErrorKind};
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

    /// Goes on with every open backfill; returns how many runs it wrote. One that fails is tried again in the next tick, and
    /// keeps no other from going on.
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
            match self.store.advance(backfill, &|| self.ids.next(now), now).await {
                Ok(count) => written += count,
                Err(error) if error.kind() == StoreErrorKind::Unavailable => return Err(error),
                Err(error) => tracing::error!(backfill = backfill.id.0, %error, "a backfill cannot go on"),
            }
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BackfillId, LogId, NodeId, TaskId, TenantId};
    use crate::store::{Backfill, StoreError};
    use async_trait::async_trait;

    /// Has three backfills, of which the first cannot go on.
    struct Failing(StoreErrorKind);

    #[async_trait]
    impl BackfillStore for Failing {
        async fn open_backfills(&self, _: u64) -> Result<Vec<Backfill>> {
            Ok((1..=3).map(backfill).collect())
        }

        async fn advance(&self, of: &Backfill, _: &(dyn Fn() -> LogId + Sync), _: i64) -> Result<usize> {
            if of.id.0 == 1 { Err(StoreError::new(self.0, "backfill", "it cannot")) } else { Ok(5) }
        }
    }

    fn backfill(id: i64) -> Backfill {
        Backfill {
            id: BackfillId(id),
            tenant_id: TenantId(1),
            task_id: TaskId(id),
            range_from: 0,
            range_until: 1_000,
            next_at: 0,
            max_concurrent: 5,
            params: None,
            status: "open".to_owned(),
            written: 0,
            existing: 0,
            created_at: 0,
            finished_at: 0,
        }
    }

    struct Still;

    impl Clock for Still {
        fn now_us(&self) -> i64 {
            1_000_000_000
        }

        fn here_us(&self) -> i64 {
            self.now_us()
        }

        fn local_us(&self) -> i64 {
            self.now_us()
        }
    }

    async fn tick_with(kind: StoreErrorKind) -> Result<usize> {
        let (ids, rules) = (Arc::new(IdSource::new(NodeId(1))), Arc::new(RuleBook::new(0, 0)));
        Backfiller::new(Arc::new(Failing(kind)), Arc::new(Still), ids, rules).tick().await
    }

    #[tokio::test]
    async fn one_that_fails_keeps_no_other_from_going_on() {
        for kind in [StoreErrorKind::Other, StoreErrorKind::Contention] {
            assert_eq!(tick_with(kind).await.unwrap(), 10);
        }
        let away = tick_with(StoreErrorKind::Unavailable).await.unwrap_err();
        assert_eq!(away.kind(), StoreErrorKind::Unavailable, "nor is each of them asked of a database that is away");
    }
}
