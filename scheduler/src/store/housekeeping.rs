//! Retention in bounded batches: a long DELETE would hold locks and fill the undo log.

use super::dialect::Sql;
use super::rows::to_json;
use super::{HousekeepingStore, Result, SqlStore};
use crate::domain::IdSource;
use async_trait::async_trait;

#[async_trait]
impl HousekeepingStore for SqlStore {
    async fn purge(&self, before: i64, limit: u64) -> Result<u64> {
        const ACTION: &str = "delete old task logs";
        let first_kept = IdSource::first_at(before);
        let ids: Vec<i64> = self
            .query(ACTION, &self.sql.purge_select, [first_kept.into(), limit.into(), before.into()], |row| {
                row.try_get_by_index(0)
            })
            .await?;
        if !ids.is_empty() {
            let list = to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>())?;
            self.execute(ACTION, &self.sql.purge_delete, [list.into()]).await?;
        }
        if (ids.len() as u64) < limit {
            self.execute(ACTION, &self.sql.purge_stale, [first_kept.into(), limit.into()]).await?;
            for beside in &self.sql.purge_beside {
                self.execute(ACTION, beside, [first_kept.into()]).await?;
            }
        }
        Ok(ids.len() as u64)
    }

    async fn purge_members(&self, before: i64) -> Result<u64> {
        const ACTION: &str = "delete old executors and nodes";
        let executors = Sql::new(self.backend, "DELETE FROM executor WHERE heartbeat_at < {1}");
        let nodes = Sql::new(self.backend, "DELETE FROM node WHERE heartbeat_at < {1}");
        let gone = self.execute(ACTION, &executors, [before.into()]).await?;
        Ok(gone + self.execute(ACTION, &nodes, [before.into()]).await?)
    }
}
