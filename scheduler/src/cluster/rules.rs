//! The rules of tenants and apps, as this node last read them.

use crate::domain::clock_step::CLOCK_STEP_MIN_MS;
use crate::domain::rules::{RuleChange, Rules};
use crate::domain::silence::{self, Silence};
use crate::store::{Result, RuleStore};
use arc_swap::ArcSwap;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A quota of fires that was changed so long ago, and that delayed runs have not followed, was left to others, ms.
const MAKES_UP_AFTER_MS: i64 = 10_000;

/// The rules. Reads never wait.
#[derive(Debug, Default)]
pub struct RuleBook {
    rules: ArcSwap<Rules>,
    /// When they were read, ms.
    read_at: AtomicI64,
    /// Changes that runs have followed as far as this process knows.
    followed: Mutex<HashSet<RuleChange>>,
    /// There are others, which whoever made them may still be about.
    is_any_left: AtomicBool,
    grace_ms: i64,
    hold_past_after_ms: i64,
}

impl RuleBook {
    /// No rules yet. After a time without any node the past is held for `grace_ms`, and after one of more than
    /// `hold_past_after_ms` (0: none is too long) until an operator decides.
    pub fn new(grace_ms: i64, hold_past_after_ms: i64) -> Self {
        Self { grace_ms, hold_past_after_ms, ..Self::default() }
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

    /// A silence so long that the past is held although nobody lived through it: [`silence::too_long`].
    pub fn too_long_silence(&self, now: i64, lead_ms: i64) -> Option<Silence> {
        silence::too_long(&self.now().silences, now, self.grace_ms, (self.hold_past_after_ms, lead_ms))
    }

    /// Reads them if they have changed: one small statement when they have not. `now` in ms.
    pub async fn refresh(&self, store: &dyn RuleStore, now: i64) -> Result<()> {
        let before = self.now();
        // By the time before the clock was set back windows were over that are still to come.
        let was_set_back = now < self.read_at.load(Ordering::Relaxed) - CLOCK_STEP_MIN_MS;
        let is_any_left = self.is_any_left.load(Ordering::Relaxed);
        if store.rule_version().await? != before.version || was_set_back || is_any_left {
            let after = store.rules(now).await?;
            self.follow(store, &after.changes, now).await?;
            say_what_is_held(&before.silences, &after.silences, |silence| silence.is_fresh(now, self.grace_ms));
            self.rules.store(Arc::new(after));
            self.read_at.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets runs follow changes of rules. Each process does so once that learns of the early end of a maintenance window, a new
    /// one, too: another may have postponed runs that did not know yet, or have died before it had any go on. Those whom another
    /// quota of fires concerns ask again once; a process makes up for that if the one that changed it has not come to it.
    async fn follow(&self, store: &dyn RuleStore, changes: &[RuleChange], now: i64) -> Result<()> {
        let followed = self.followed().clone();
        let mut is_any_left = false;
        for change in changes.iter().filter(|change| !followed.contains(change)) {
            if change.ends_at > 0 {
                let resumed = store.resume(change.tenant_id, change.ends_at, now).await?;
                let (tenant, window) = (change.tenant_id.0, change.id);
                tracing::info!(tenant, window, resumed, "maintenance window ended early");
            } else if change.changed_at > now - MAKES_UP_AFTER_MS && change.changed_at <= now {
                is_any_left = true;
                continue;
            } else {
                let again = store.ask_again(change, now).await?;
                tracing::info!(tenant = change.tenant_id.0, again, "quota of fires changed: delayed runs ask again");
            }
            self.followed().insert(*change);
        }
        self.followed().retain(|change| changes.contains(change));
        self.is_any_left.store(is_any_left, Ordering::Relaxed);
        Ok(())
    }

    fn followed(&self) -> MutexGuard<'_, HashSet<RuleChange>> {
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
    use std::collections::HashMap;

    /// A window until 60,000; nothing else ever changes. Counts what follows a change.
    #[derive(Default)]
    struct OneWindow {
        changes: Vec<RuleChange>,
        followed: AtomicI64,
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
            let (windows, changes) = (HashMap::from([(tenant_id, windows)]), self.changes.clone());
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
    async fn a_process_follows_what_another_may_have_left_and_once() {
        let window = RuleChange { id: 1, tenant_id: TenantId(1), ends_at: 60_000, changed_at: 0 };
        let quota = RuleChange { id: 5, tenant_id: TenantId(5), ends_at: 0, changed_at: 40_000 };
        let store = OneWindow { changes: vec![window, quota], ..OneWindow::default() };
        let book = RuleBook::default();
        let followed = async |now| {
            book.refresh(&store, now).await.unwrap();
            store.followed.swap(0, Ordering::Relaxed)
        };
        assert_eq!(followed(41_000).await, 60_000, "whoever changed the quota may be about to follow it");
        assert_eq!(followed(49_999).await, 0);
        assert_eq!(followed(50_000).await, 5);
        assert_eq!(followed(51_000).await, 0);
    }
}
