//! The rules of tenants and apps, as this node last read them.

use crate::domain::clock_step::CLOCK_STEP_MIN_MS;
use crate::domain::rules::{RuleChange, Rules};
use crate::domain::silence::{self, Silence};
use crate::store::{Result, RuleStore};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A quota of fires that was changed so long ago, and that delayed runs have not followed, was left to others, ms.
const MAKES_UP_AFTER_MS: i64 = 10_000;

/// What was judged by the rules of before is written within this time, ms: longer than a statement, and the waits for it, may take.
const JUDGED_WITHIN_MS: i64 = 30_000;

/// The rules. Reads never wait.
#[derive(Debug, Default)]
pub struct RuleBook {
    rules: ArcSwap<Rules>,
    /// When they were read, ms.
    read_at: AtomicI64,
    /// Held while they are read.
    reading: tokio::sync::Mutex<()>,
    /// Changes that runs have followed as far as this process knows, and when they do once more, ms by this machine's clock.
    followed: Mutex<HashMap<RuleChange, i64>>,
    grace_ms: i64,
}

impl RuleBook {
    /// No rules yet. After a time without any node the past is held for `grace_ms`.
    pub fn new(grace_ms: i64) -> Self {
        Self { grace_ms, ..Self::default() }
    }

    /// As last read.
    pub fn now(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// What is due at or before this instant (epoch ms) may have run, and must wait.
    pub fn held_until(&self, now: i64) -> Option<i64> {
        silence::held_until(&self.now().silences, now, self.grace_ms)
    }

    /// What was to fire at or before this instant (epoch ms) may have run: [`silence::doubted_until`].
    pub fn doubted_until(&self, now: i64) -> Option<i64> {
        silence::doubted_until(&self.now().silences, now, self.grace_ms)
    }

    /// Reads them if they have changed: one small statement when they have not. `now` in ms. One at a time, so that nobody goes back
    /// to what another has read before.
    pub async fn refresh(&self, store: &dyn RuleStore, now: i64) -> Result<()> {
        let _alone = self.reading.lock().await;
        let before = self.now();
        // By the time before the clock was set back windows were over that are still to come.
        let was_set_back = now < self.read_at.load(Ordering::Relaxed) - CLOCK_STEP_MIN_MS;
        if store.rule_version().await? != before.version || was_set_back {
            let after = store.rules(now).await?;
            say_what_is_held(&before.silences, &after.silences, |silence| silence.is_fresh(now, self.grace_ms));
            self.rules.store(Arc::new(after));
            self.read_at.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets runs follow changes of rules by which this process goes already. Each process does so that learns of the early end of a
    /// maintenance window, a new one, too: another may have died before it had any go on. And once more when what it judged by the
    /// rules of before is written. Those whom another quota of fires concerns ask again once; a process makes up for that if the
    /// one that changed it has not come to it. `now` by the cluster's clock, `here` by this machine's, ms. Returns how many runs did.
    pub async fn follow(&self, store: &dyn RuleStore, now: i64, here: i64) -> Result<u64> {
        let is_due = |change: &RuleChange| self.followed().get(change).is_none_or(|again_at| *again_at <= here);
        let rules = self.now();
        if !rules.changes.iter().any(is_due) {
            return Ok(0);
        }
        // Another process may have come to it.
        let changes = store.rules(now).await?.changes;
        {
            let mut followed = self.followed();
            followed.retain(|change, _| rules.changes.contains(change));
            let gone = rules.changes.iter().filter(|change| !changes.contains(change));
            followed.extend(gone.map(|change| (*change, i64::MAX)));
        }
        let mut moved = 0;
        for change in changes.into_iter().filter(is_due) {
            if change.ends_at > 0 {
                let resumed = store.resume(change.tenant_id, change.ends_at, now).await?;
                let (tenant, window) = (change.tenant_id.0, change.id);
                moved += resumed;
                tracing::info!(tenant, window, resumed, "maintenance window ended early");
            } else if change.changed_at > now - MAKES_UP_AFTER_MS && change.changed_at <= now {
                continue;
            } else {
                let again = store.ask_again(&change, now).await?;
                moved += again;
                tracing::info!(tenant = change.tenant_id.0, again, "quota of fires changed: delayed runs ask again");
            }
            let is_first = change.ends_at > 0 && !self.followed().contains_key(&change);
            self.followed().insert(change, if is_first { here + JUDGED_WITHIN_MS } else { i64::MAX });
        }
        Ok(moved)
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<RuleChange, i64>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn say_what_is_held(before: &[Silence], after: &[Silence], is_fresh: impl Fn(&Silence) -> bool) {
    for silence in after.iter().filter(|silence| !before.contains(silence)) {
        let Silence { from, until, lived_until, found_by, decision } = silence;
        if silence.is_open() {
            tracing::error!(
                from,
                until,
                lived_until,
                found_by,
                "the database was restored, or no node ran for longer than schedulers.hold_past_after: what was due until \
                 then may have run, and is held until you decide; run `carillon cluster resume --skip-past` or `--run-past`"
            );
        } else if let Some(decision) = decision {
            tracing::warn!(from, until, lived_until, ?decision, "decided what becomes of the past");
        } else if is_fresh(silence) {
            tracing::warn!(
                from,
                until,
                "no node ran for {} s. If the database was restored from a backup, run `carillon restored` now: what was due \
                 may have run, and is then held until you decide with `carillon cluster resume`. Otherwise it soon runs as \
                 missed, unless an executor tells that it was in contact with a node meanwhile",
                (until - from) / 1_000
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::rules::{MaintenanceWindow, WindowAction};
    use crate::domain::{TenantId, WindowId};
    use async_trait::async_trait;

    /// A window until 60,000; nothing else ever changes. Counts what follows a change.
    #[derive(Default)]
    struct OneWindow {
        changes: Mutex<Vec<RuleChange>>,
        followed: AtomicI64,
        reads: AtomicI64,
    }

    #[async_trait]
    impl RuleStore for OneWindow {
        async fn rule_version(&self) -> Result<i64> {
            Ok(1)
        }
        async fn rules(&self, now: i64) -> Result<Rules> {
            let (id, tenant_id, note) = (WindowId(1), TenantId(1), String::new());
            let action = WindowAction::Postpone;
            let window = MaintenanceWindow { id, tenant_id, starts_at: 50_000, ends_at: 60_000, action, note };
            let windows = if window.ends_at > now { vec![window] } else { Vec::new() };
            self.reads.fetch_add(1, Ordering::Relaxed);
            let (windows, changes) = (HashMap::from([(tenant_id, windows)]), self.changes.lock().unwrap().clone());
            Ok(Rules { version: 1, windows, changes, ..Rules::default() })
        }
        async fn witness(&self, _: &Silence) -> Result<bool> {
            Ok(false)
        }
        async fn resume(&self, _: TenantId, ends_at: i64, _: i64) -> Result<u64> {
            self.followed.fetch_add(ends_at, Ordering::Relaxed);
            Ok(1)
        }
        async fn ask_again(&self, change: &RuleChange, _: i64) -> Result<u64> {
            self.followed.fetch_add(change.id, Ordering::Relaxed);
            Ok(1)
        }
    }

    #[tokio::test]
    async fn windows_that_were_over_by_a_clock_that_was_set_back_are_still_to_come() {
        let book = RuleBook::default();
        let has_window = || book.now().window_at(TenantId(1), 55_000).is_some();
        let store = OneWindow::default();
        book.refresh(&store, 100_000).await.unwrap();
        assert!(!has_window());
        book.refresh(&store, 40_000).await.unwrap();
        assert!(has_window());
    }

    #[tokio::test]
    async fn a_process_follows_what_another_may_have_left_and_what_it_judged_itself() {
        let window = RuleChange { id: 1, tenant_id: TenantId(1), ends_at: 60_000, changed_at: 0 };
        let quota = RuleChange { id: 5, tenant_id: TenantId(5), ends_at: 0, changed_at: 40_000 };
        let store = OneWindow { changes: Mutex::new(vec![window, quota]), ..OneWindow::default() };
        let book = RuleBook::default();
        let followed = async |now| {
            book.refresh(&store, now).await.unwrap();
            book.follow(&store, now, now + 7).await.unwrap();
            store.followed.swap(0, Ordering::Relaxed)
        };
        assert_eq!(followed(41_000).await, 60_000, "whoever changed the quota may be about to follow it");
        assert_eq!(followed(49_999).await, 0);
        assert_eq!(followed(50_000).await, 5);
        assert_eq!(followed(51_000).await, 0);
        assert_eq!(followed(70_999).await, 0);
        assert_eq!(followed(71_000).await, 60_000, "what was judged before it was known");
        assert_eq!(followed(200_000).await, 0);
    }

    #[tokio::test]
    async fn what_another_process_has_followed_is_not_asked_about_again() {
        let quota = RuleChange { id: 5, tenant_id: TenantId(5), ends_at: 0, changed_at: 40_000 };
        let store = OneWindow { changes: Mutex::new(vec![quota]), ..OneWindow::default() };
        let book = RuleBook::default();
        book.refresh(&store, 41_000).await.unwrap();
        book.follow(&store, 41_000, 0).await.unwrap();
        store.changes.lock().unwrap().clear();
        book.follow(&store, 42_000, 1_000).await.unwrap();
        store.reads.store(0, Ordering::Relaxed);
        book.follow(&store, 90_000, 49_000).await.unwrap();
        let told = (store.followed.load(Ordering::Relaxed), store.reads.load(Ordering::Relaxed));
        assert_eq!(told, (0, 0));
    }
}
