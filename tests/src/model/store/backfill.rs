//! Backfills: the model has none.

use super::ModelStore;
use async_trait::async_trait;
use carillon::domain::LogId;
use carillon::store::{Backfill, BackfillStore, Result};

#[async_trait]
impl BackfillStore for ModelStore {
    async fn open_backfills(&self, _limit: u64) -> Result<Vec<Backfill>> {
        Ok(Vec::new())
    }

    async fn advance(&self, _of: &Backfill, _new_id: &(dyn Fn() -> LogId + Sync), _now: i64) -> Result<usize> {
        Ok(0)
    }
}
