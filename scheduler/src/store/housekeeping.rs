//! Retention in bounded batches: a long DELETE would hold locks and fill the undo log.

use super::dialect::Sql;
use super::rows::to_json;
use super::{HousekeepingStore, Purged, Result, SqlStore};
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
            self.execute(ACTION, &self.sql.purge_delete, [list.clone().into()]).await?;
            self.execute(ACTION, &self.sql.attempts.purge, [list.into()]).await?;
        }
        if (ids.len() as u64) < limit {
            self.execute(ACTION, &self.sql.purge_stale, [first_kept.into(), limit.into()]).await?;
            for beside in &self.sql.purge_beside {
                self.execute(ACTION, beside, [first_kept.into()]).await?;
            }
        }
        Ok(ids.len() as u64)
    }

    async fn retentions(&self) -> Result<Vec<i32>> {
        let sql = Sql::new(self.backend, "SELECT DISTINCT retain_days FROM tenant WHERE retain_days > 0 ORDER BY 1");
        let mut days = vec![0];
        let read = self.query("read how long logs are kept", &sql, [], |row| row.try_get_by_index::<i32>(0));
        days.extend(read.await?);
        Ok(days)
    }

    async fn purge_of(&self, days: i32, before: i64, limit: u64) -> Result<Purged> {
        const ACTION: &str = "delete old task logs of tenants";
        let cursor = Sql::new(self.backend, "SELECT seen FROM purge_cursor WHERE id = {1}");
        let key = i64::from(days);
        let seen: Vec<i64> = self.query(ACTION, &cursor, [key.into()], |row| row.try_get_by_index(0)).await?;
        let after = seen.first().copied().unwrap_or(0);
        let first_kept = IdSource::first_at(before);
        let values = [after.into(), first_kept.into(), limit.into(), days.into(), before.into()];
        let looked: Vec<(i64, i32)> = self
            .query(ACTION, &self.sql.purge_look, values, |row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)))
            .await?;
        let Some((last, _)) = looked.last().copied() else { return Ok(Purged::default()) };
        let old: Vec<[i64; 1]> = looked.iter().filter(|(_, is_old)| *is_old == 1).map(|(id, _)| [*id]).collect();
        if !old.is_empty() {
            let ids = to_json(ACTION, &old)?;
            self.execute(ACTION, &self.sql.purge_delete, [ids.clone().into()]).await?;
            for beside in self.sql.purge_beside_these.iter().chain([&self.sql.attempts.purge]) {
                self.execute(ACTION, beside, [ids.clone().into()]).await?;
            }
        }
        let update = Sql::new(self.backend, "UPDATE purge_cursor SET seen = {2} WHERE id = {1}");
        if self.execute(ACTION, &update, [key.into(), last.into()]).await? == 0 {
            let insert = Sql::new(
                self.backend,
                &format!(
                    "INSERT INTO purge_cursor (id, seen) VALUES ({{1}}, {{2}}) {}",
                    self.backend.or_ignore("purge_cursor", "id")
                ),
            );
            self.execute(ACTION, &insert, [key.into(), last.into()]).await?;
        }
        Ok(Purged { deleted: old.len() as u64, is_more: looked.len() as u64 == limit })
    }

    async fn purge_members(&self, before: i64) -> Result<u64> {
        const ACTION: &str = "delete old executors and nodes";
        let executors = Sql::new(self.backend, "DELETE FROM executor WHERE heartbeat_at < {1}");
        let nodes = Sql::new(self.backend, "DELETE FROM node WHERE heartbeat_at < {1}");
        let gone = self.execute(ACTION, &executors, [before.into()]).await?;
        Ok(gone + self.execute(ACTION, &nodes, [before.into()]).await?)
    }

    async fn purge_access(&self, before: i64, limit: u64) -> Result<u64> {
        const ACTION: &str = "delete old sessions and tokens";
        // A derived table, because MariaDB takes no LIMIT below IN.
        let oldest = |table: &str, ended: &str| {
            format!(
                "DELETE FROM {table} WHERE id IN (SELECT o.id FROM (SELECT id FROM {table} WHERE {ended} LIMIT {{2}}) o)"
            )
        };
        let sessions = Sql::new(self.backend, &oldest("session", "expires_at <= {1}"));
        let ended = "(expires_at > 0 AND expires_at <= {1}) OR (revoked_at > 0 AND revoked_at <= {1})";
        let tokens = Sql::new(self.backend, &oldest("api_token", ended));
        let gone = self.execute(ACTION, &sessions, [before.into(), limit.into()]).await?;
        Ok(gone + self.execute(ACTION, &tokens, [before.into(), limit.into()]).await?)
    }
}
