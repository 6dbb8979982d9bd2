//! Retention in bounded batches: a long DELETE would hold locks and fill the undo log.

use super::sql::{ID, SUCCEEDED};
use super::statement::Sql;
use super::template::Template;
use super::values::list;
use super::{HousekeepingStore, Purged, Result, SqlStore};
use crate::domain::{IdSource, LogId};
use async_trait::async_trait;

statements!(
    PURGE_SELECT = |_| format!(
        "SELECT l.id FROM task_log l WHERE l.id < {{1}} AND +l.status >= {SUCCEEDED} AND l.finished_at < {{3}} AND {} \
         ORDER BY l.id LIMIT {{2}}",
        is_counted()
    ),
    PURGE_DELETE =
        |d| d.delete_from("task_log", &d.rows(1, ID), &format!("l.id = v.n_id AND +l.status >= {SUCCEEDED}"),),
    PURGE_STALE =
        |_| "DELETE FROM stale_result WHERE id <= (SELECT MAX(id) FROM (SELECT id FROM stale_result WHERE id < {1} \
         ORDER BY id LIMIT {2}) batch)"
            .into(),
    BESIDE_FOLLOW_UP = |_| beside("outbox", "id"),
    BESIDE_PERMIT = |_| beside("permit", "id"),
    BESIDE_BACKFILL_RUN = |_| beside("backfill_run", "id"),
    BESIDE_RUN_KEY = |_| beside("run_key", "log_id"),
    // Those that no batch took with their logs: a node died in between.
    BESIDE_TASK_LOG_ATTEMPT = |_| beside("task_log_attempt", "log_id"),
    // By the logs' own order, whatever a tenant has among them.
    PURGE_LOOK = |_| format!(
        "SELECT l.id, CASE WHEN t.retain_days = {{4}} AND l.status >= {SUCCEEDED} AND l.finished_at < {{5}} AND {} THEN 1 \
         ELSE 0 END FROM task_log l LEFT JOIN tenant t ON t.id = l.tenant_id WHERE l.id > {{1}} AND l.id < {{2}} \
         ORDER BY l.id LIMIT {{3}}",
        is_counted()
    ),
    BESIDE_THESE = |_| beside_these(),
    OF_THESE_FOLLOW_UP = |d| d.delete_from("outbox", &d.rows(1, ID), "l.id = v.n_id"),
    OF_THESE_PERMIT = |d| d.delete_from("permit", &d.rows(1, ID), "l.id = v.n_id"),
    OF_THESE_BACKFILL_RUN = |d| d.delete_from("backfill_run", &d.rows(1, ID), "l.id = v.n_id"),
    OF_THESE_RUN_KEY = |d| d.delete_from("run_key", &d.rows(1, ID), "l.log_id = v.n_id"),
);

/// Whether the log `l` is no shard of a run that goes on, which counts its shards at its end. A look by the parent's key for
/// each shard: as a join, a database may take it for cheaper to read all parents.
fn is_counted() -> String {
    format!(
        "(l.parent_id = 0 OR COALESCE((SELECT p.status FROM task_log p WHERE p.id = l.parent_id), {SUCCEEDED}) >= {SUCCEEDED})"
    )
}

/// Deletes at most `{2}` rows of a table. A derived table, because MariaDB takes no LIMIT below IN.
fn some_of(table: &str, which: &str) -> String {
    format!("DELETE FROM {table} WHERE id IN (SELECT d.id FROM (SELECT id FROM {table} WHERE {which} LIMIT {{2}}) d)")
}

/// At most `{2}` logs older than `{1}` that are gone, and have rows in this table.
fn beside(table: &str, log: &str) -> String {
    format!(
        "SELECT DISTINCT s.{log} FROM {table} s WHERE s.{log} < {{1}} AND NOT EXISTS (SELECT 1 FROM task_log l \
         WHERE l.id = s.{log}) ORDER BY s.{log} LIMIT {{2}}"
    )
}

/// What finds rows beside logs that retention has taken, and what deletes them.
const PURGE_BESIDE: [(&Template, &Template); 5] = [
    (&BESIDE_FOLLOW_UP, &OF_THESE_FOLLOW_UP),
    (&BESIDE_PERMIT, &OF_THESE_PERMIT),
    (&BESIDE_BACKFILL_RUN, &OF_THESE_BACKFILL_RUN),
    (&BESIDE_RUN_KEY, &OF_THESE_RUN_KEY),
    (&BESIDE_TASK_LOG_ATTEMPT, &super::attempts::PURGE),
];

/// Tables with rows beside logs, the column that names the log, and what deletes those of a batch.
const PURGE_BESIDE_THESE: [(&str, &str, &Template); 5] = [
    ("outbox", "id", &OF_THESE_FOLLOW_UP),
    ("permit", "id", &OF_THESE_PERMIT),
    ("backfill_run", "id", &OF_THESE_BACKFILL_RUN),
    ("run_key", "log_id", &OF_THESE_RUN_KEY),
    ("task_log_attempt", "log_id", &super::attempts::PURGE),
];

/// Which of [`PURGE_BESIDE_THESE`] have a row of a log from `{1}` to `{2}`: mostly none, and a try for each log in each of them
/// costs a database more than half of what deleting the log does.
fn beside_these() -> String {
    let one = |(place, (table, log, _)): (usize, &(&str, &str, &Template))| {
        let any = format!("SELECT {log} FROM {table} WHERE {log} >= {{1}} AND {log} <= {{2}} LIMIT 1");
        format!("SELECT {place} AS place FROM ({any}) b{place}")
    };
    PURGE_BESIDE_THESE.iter().enumerate().map(one).collect::<Vec<_>>().join(" UNION ALL ")
}

impl SqlStore {
    /// Deletes these logs and what stands beside them.
    async fn purge_these(&self, action: &'static str, ids: &[LogId]) -> Result<()> {
        let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else { return Ok(()) };
        let batch = list(action, ids)?;
        self.execute(action, &PURGE_DELETE, [batch.clone().into()]).await?;
        let beside: Vec<i32> = self.query(action, &BESIDE_THESE, [(*first).into(), (*last).into()]).await?;
        for place in beside {
            let found = usize::try_from(place).ok().and_then(|place| PURGE_BESIDE_THESE.get(place));
            if let Some((_, _, delete)) = found {
                self.execute(action, delete, [batch.clone().into()]).await?;
            }
        }
        Ok(())
    }

    /// Deletes stale results, and what a node has left that died between logs and what stood beside them: at most `limit` of
    /// each. Answers whether there may be more.
    async fn purge_leftovers(&self, action: &'static str, first_kept: LogId, limit: u64) -> Result<bool> {
        let stale = self.execute(action, &PURGE_STALE, [first_kept.into(), limit.into()]).await?;
        let mut is_more = stale >= limit;
        for (find, delete) in PURGE_BESIDE {
            let ids: Vec<i64> = self.query(action, find, [first_kept.into(), limit.into()]).await?;
            if !ids.is_empty() {
                self.execute(action, delete, [list(action, &ids)?.into()]).await?;
            }
            is_more |= ids.len() as u64 >= limit;
        }
        Ok(is_more)
    }
}

#[async_trait]
impl HousekeepingStore for SqlStore {
    async fn purge(&self, before: i64, limit: u64) -> Result<Purged> {
        const ACTION: &str = "delete old task logs";
        let first_kept: LogId = IdSource::first_at(before);
        let values = [first_kept.into(), limit.into(), before.into()];
        let ids: Vec<LogId> = self.query(ACTION, &PURGE_SELECT, values).await?;
        self.purge_these(ACTION, &ids).await?;
        let deleted = ids.len() as u64;
        let is_more = deleted >= limit || self.purge_leftovers(ACTION, first_kept, limit).await?;
        Ok(Purged { deleted, is_more })
    }

    async fn retentions(&self) -> Result<Vec<i32>> {
        let sql = sql!("SELECT DISTINCT retain_days FROM tenant WHERE retain_days > 0 ORDER BY 1");
        let mut days = vec![0];
        let read = self.query::<i32, _>("read how long logs are kept", &sql, []);
        days.extend(read.await?);
        Ok(days)
    }

    async fn purge_of(&self, days: i32, before: i64, limit: u64) -> Result<Purged> {
        const ACTION: &str = "delete old task logs of tenants";
        let cursor = sql!("SELECT seen FROM purge_cursor WHERE id = {1}");
        let key = i64::from(days);
        let seen: Vec<i64> = self.query(ACTION, &cursor, [key.into()]).await?;
        let after = seen.first().copied().unwrap_or(0);
        let first_kept: LogId = IdSource::first_at(before);
        let values = [after.into(), first_kept.into(), limit.into(), days.into(), before.into()];
        let looked: Vec<(LogId, i32)> = self.query(ACTION, &PURGE_LOOK, values).await?;
        let Some((last, _)) = looked.last().copied() else { return Ok(Purged::default()) };
        let old: Vec<LogId> = looked.iter().filter(|(_, is_old)| *is_old == 1).map(|(id, _)| *id).collect();
        self.purge_these(ACTION, &old).await?;
        let update = sql!("UPDATE purge_cursor SET seen = {2} WHERE id = {1}");
        if self.execute(ACTION, &update, [key.into(), last.into()]).await? == 0 {
            let insert = sql!(|d| format!(
                "INSERT INTO purge_cursor (id, seen) VALUES ({{1}}, {{2}}) {}",
                d.or_ignore("purge_cursor", "id")
            ));
            self.execute(ACTION, &insert, [key.into(), last.into()]).await?;
        }
        Ok(Purged { deleted: old.len() as u64, is_more: looked.len() as u64 == limit })
    }

    async fn purge_members(&self, before: i64, limit: u64) -> Result<u64> {
        const ACTION: &str = "delete old executors and nodes";
        let mut gone = 0;
        // Executors and nodes; what routing remembers of tasks and addresses that are no more; backfills that are over.
        for (table, which) in [
            ("executor", "heartbeat_at < {1}"),
            ("node", "heartbeat_at < {1}"),
            ("backfill", "finished_at > 0 AND finished_at < {1}"),
        ] {
            let sql = Sql::new(self.backend, &some_of(table, which));
            gone += self.execute(ACTION, &sql, [before.into(), limit.into()]).await?;
        }
        let has_no = |owner: &str| format!("NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.id = permit_scope.id)");
        let without_owner = ["task", "app", "tenant"].map(has_no).join(" AND ");
        // `last_use` is a number within the task, not an instant: what is old shows in the executors alone.
        let unused = "address NOT IN (SELECT e.address FROM executor e) \
                      OR NOT EXISTS (SELECT 1 FROM task o WHERE o.id = routing_use.task_id)";
        for (table, which) in [("permit_scope", without_owner.as_str()), ("routing_use", unused)] {
            let sql = Sql::new(self.backend, &some_of(table, which).replace("{2}", "{1}"));
            gone += self.execute(ACTION, &sql, [limit.into()]).await?;
        }
        Ok(gone)
    }

    async fn purge_access(&self, before: i64, limit: u64) -> Result<u64> {
        const ACTION: &str = "delete old sessions and tokens";
        let sessions = Sql::new(self.backend, &some_of("session", "expires_at <= {1}"));
        let ended = "(expires_at > 0 AND expires_at <= {1}) OR (revoked_at > 0 AND revoked_at <= {1})";
        let tokens = Sql::new(self.backend, &some_of("api_token", ended));
        let gone = self.execute(ACTION, &sessions, [before.into(), limit.into()]).await?;
        Ok(gone + self.execute(ACTION, &tokens, [before.into(), limit.into()]).await?)
    }
}
