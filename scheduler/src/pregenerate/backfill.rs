//! Backfills, a few runs at a time, by the node that writes ahead.

use crate::cluster::{Clock, RuleBook};
use crate::domain::{BackfillId, IdSource, NodeId};
use crate::store::{Backfill, BackfillStore, Result, StoreErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Backfills that go on in one tick. The next tick takes the next ones, so that those which cannot go on hold up no other.
const OPEN_MAX: u64 = 100;

/// Writes the runs of backfills.
pub struct Backfiller<S: ?Sized> {
    store: Arc<S>,
    node: NodeId,
    clock: Arc<dyn Clock>,
    ids: Arc<IdSource>,
    rules: Arc<RuleBook>,
    open: AtomicBool,
    /// The last one that went on.
    came_to: AtomicI64,
}

impl<S: BackfillStore + ?Sized> Backfiller<S> {
    /// Over the node's parts.
    pub fn new(store: Arc<S>, node: NodeId, clock: Arc<dyn Clock>, ids: Arc<IdSource>, rules: Arc<RuleBook>) -> Self {
        Self { store, node, clock, ids, rules, open: AtomicBool::new(false), came_to: AtomicI64::new(0) }
    }

    /// Whether a backfill waits for runs to end.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Goes on with the next open backfills, in turn; returns how many runs it wrote. One that fails is tried again in the next tick, and
    /// keeps no other from going on.
    pub async fn tick(&self) -> Result<usize> {
        let backfills = self.in_turn().await?;
        self.open.store(!backfills.is_empty(), Ordering::Relaxed);
        let now = self.clock.now_ms();
        if self.rules.held_until(now).is_some() {
            // How far they came before the database was restored is not known.
            return Ok(0);
        }
        let mut written = 0;
        for backfill in &backfills {
            match self.store.advance(self.node, backfill, &|| self.ids.next(now), now).await {
                Ok(count) => written += count,
                Err(error) if error.kind() == StoreErrorKind::Unavailable => return Err(error),
                Err(error) => tracing::error!(backfill = backfill.id.0, %error, "a backfill cannot go on"),
            }
        }
        Ok(written)
    }

    async fn in_turn(&self) -> Result<Vec<Backfill>> {
        let came_to = BackfillId(self.came_to.load(Ordering::Relaxed));
        let mut page = self.store.open_backfills(came_to, OPEN_MAX).await?;
        if page.is_empty() && came_to != BackfillId(0) {
            page = self.store.open_backfills(BackfillId(0), OPEN_MAX).await?;
        }
        let is_last = (page.len() as u64) < OPEN_MAX;
        let last = page.last().filter(|_| !is_last).map_or(0, |last| last.id.0);
        self.came_to.store(last, Ordering::Relaxed);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{LogId, TaskId, TenantId};
    use crate::store::StoreError;
    use async_trait::async_trait;

    /// Has backfills up to a number, of which the first so many cannot go on.
    struct Failing {
        stuck: i64,
        all: i64,
        kind: StoreErrorKind,
    }

    #[async_trait]
    impl BackfillStore for Failing {
        async fn open_backfills(&self, after: BackfillId, limit: u64) -> Result<Vec<Backfill>> {
            Ok((after.0 + 1..=self.all).take(limit as usize).map(backfill).collect())
        }

        async fn advance(&self, _: NodeId, of: &Backfill, _: &(dyn Fn() -> LogId + Sync), _: i64) -> Result<usize> {
            if of.id.0 <= self.stuck { Err(StoreError::new(self.kind, "backfill", "it cannot")) } else { Ok(5) }
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

    fn over(store: Failing) -> Backfiller<Failing> {
        let (ids, rules) = (Arc::new(IdSource::new(NodeId(1))), Arc::new(RuleBook::new(0)));
        Backfiller::new(Arc::new(store), NodeId(1), Arc::new(Still), ids, rules)
    }

    async fn tick_with(kind: StoreErrorKind) -> Result<usize> {
        over(Failing { stuck: 1, all: 3, kind }).tick().await
    }

    #[tokio::test]
    async fn however_many_cannot_go_on_the_others_do() {
        let backfiller = over(Failing { stuck: 250, all: 260, kind: StoreErrorKind::Other });
        let mut written = Vec::new();
        for _ in 0..6 {
            written.push(backfiller.tick().await.unwrap());
            assert!(backfiller.is_open());
        }
        assert_eq!(written, [0, 0, 50, 0, 0, 50]);
        let none = over(Failing { stuck: 0, all: 0, kind: StoreErrorKind::Other });
        assert!(none.tick().await.unwrap() == 0 && !none.is_open());
        // The last of a full page was the last one.
        let full = over(Failing { stuck: 0, all: 100, kind: StoreErrorKind::Other });
        assert_eq!((full.tick().await.unwrap(), full.tick().await.unwrap()), (500, 500));
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
