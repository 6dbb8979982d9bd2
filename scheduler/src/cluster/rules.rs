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

    /// Reads them if they have changed: one small statement when they have not. `now` in ms.
    pub async fn refresh(&self, store: &dyn RuleStore, now: i64) -> Result<()> {
        if store.rule_version().await? != self.rules.load().version {
            self.rules.store(Arc::new(store.rules(now).await?));
        }
        Ok(())
    }
}
