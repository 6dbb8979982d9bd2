//! The rules of tenants and apps, as this node last read them.

use crate::domain::rules::Rules;
use crate::store::{Result, RuleStore};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// The rules. Reads never wait.
#[derive(Debug, Default)]
pub struct RuleBook {
    rules: ArcSwap<Rules>,
}

impl RuleBook {
    /// As last read.
    pub fn now(&self) -> Arc<Rules> {
        self.rules.load_full()
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
            self.rules.store(Arc::new(after));
        }
        Ok(())
    }
}
