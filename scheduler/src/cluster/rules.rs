//! The rules of tenants and apps, as this node last read them.

use crate::domain::rules::Rules;
use crate::domain::silence::{self, Silence};
use crate::store::{Result, RuleStore};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// The rules. Reads never wait.
#[derive(Debug, Default)]
pub struct RuleBook {
    rules: ArcSwap<Rules>,
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

    /// A silence so long that the past is held although nobody lived through it: [`silence::too_long`].
    pub fn too_long_silence(&self, now: i64, lead_ms: i64) -> Option<Silence> {
        silence::too_long(&self.now().silences, now, self.grace_ms, (self.hold_past_after_ms, lead_ms))
    }

    /// Reads them if they have changed: one small statement when they have not. `now` in ms. Every
    /// node that learns of the early end of a maintenance window makes the runs due that wait for
    /// it: another may have postponed some that did not know yet.
    pub async fn refresh(&self, store: &dyn RuleStore, now: i64) -> Result<()> {
        let before = self.now();
        if store.rule_version().await? != before.version {
            let after = store.rules(now).await?;
            for window in before.ended_early(&after, now) {
                let resumed = store.resume(window.tenant_id, window.ends_at, now).await?;
                tracing::info!(
                    tenant = window.tenant_id.0,
                    window = window.id.0,
                    resumed,
                    "maintenance window ended early"
                );
            }
            say_what_is_held(&before.silences, &after.silences, |silence| silence.is_fresh(now, self.grace_ms));
            self.rules.store(Arc::new(after));
        }
        Ok(())
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
