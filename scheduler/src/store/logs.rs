//! Task logs as the management API lists them.

use super::conditions::Conditions;
use super::rows::{self, HANDED_COUNT};
use super::{HandedRun, Result, SqlStore};
use crate::domain::{Reach, Status};
use sea_orm::{DbErr, QueryResult};
use std::collections::HashMap;

/// A task log as the API shows it.
#[derive(Debug, Clone)]
pub struct LogView {
    /// The run.
    pub handed: HandedRun,
    /// Tenant's name.
    pub tenant: String,
    /// When the handler was entered, ms, or 0.
    pub started_at: i64,
    /// When it was claimed last, ms, or 0.
    pub queued_at: i64,
    /// For people.
    pub message: String,
    /// What the handler returned.
    pub output: String,
    /// Of a sharded run's parent.
    pub shards: Option<ShardCounts>,
}

/// How far a sharded run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardCounts {
    /// Shards that have started, or are due with their executor: when it entered the handler it says
    /// with the result only.
    pub started: i64,
    /// Shards that have ended.
    pub ended: i64,
    /// Shards that ended well.
    pub succeeded: i64,
}

/// Which logs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Only this tenant.
    pub tenant_id: Option<i64>,
    /// Only of this task.
    pub task_id: Option<i64>,
    /// Only in this state.
    pub status: Option<Status>,
    /// Only shards of this parent.
    pub parent_id: Option<i64>,
    /// Only this log.
    pub id: Option<i64>,
    /// Fired before this instant and, at it, with a smaller id.
    pub before: Option<(i64, i64)>,
    /// At most so many.
    pub limit: u64,
}

impl SqlStore {
    /// Lists logs within reach, newest fire first.
    pub async fn list_logs(&self, reach: &Reach, filter: &LogFilter) -> Result<Vec<LogView>> {
        let head = format!(
            "SELECT {}, n.name, l.started_at, l.queued_at, l.message, l.output FROM task_log l \
             JOIN tenant n ON n.id = l.tenant_id WHERE l.id > {{1}}",
            rows::HANDED_COLUMNS
        );
        let mut wanted = Conditions::new(head, vec![0i64.into()]);
        wanted.within(reach, "l.tenant_id", Some("l.app_id"));
        wanted.and("l.tenant_id = ", filter.tenant_id);
        wanted.and("l.task_id = ", filter.task_id);
        wanted.and("l.status = ", filter.status.map(|status| status as i32));
        wanted.and("l.parent_id = ", filter.parent_id);
        wanted.and("l.id = ", filter.id);
        if let Some((fire_time, id)) = filter.before {
            wanted.and("l.fire_time <= ", Some(fire_time));
            let at = wanted.push(fire_time);
            let id = wanted.push(id);
            wanted.text = format!("{} AND (l.fire_time < {{{at}}} OR l.id < {{{id}}})", wanted.text);
        }
        let statement = wanted.finish(self, "ORDER BY l.fire_time DESC, l.id DESC", filter.limit);
        let mut logs = self.query_raw("list task logs", statement, log_view).await?;
        self.count_shards(&mut logs).await?;
        Ok(logs)
    }

    /// How far sharded runs have come.
    async fn count_shards(&self, logs: &mut [LogView]) -> Result<()> {
        let parents: Vec<[i64; 1]> =
            logs.iter().map(|log| &log.handed.run).filter(|run| run.is_parent()).map(|run| [run.id]).collect();
        if parents.is_empty() {
            return Ok(());
        }
        let ids = rows::to_json("count shards", &parents)?;
        let counts: HashMap<i64, ShardCounts> =
            self.query("count shards", &self.sql.shard_counts, [ids.into()], shard_counts).await?.into_iter().collect();
        for log in logs {
            log.shards = counts.get(&log.handed.run.id).copied();
        }
        Ok(())
    }
}

fn log_view(row: &QueryResult) -> std::result::Result<LogView, DbErr> {
    let text = |at| row.try_get_by_index::<Option<String>>(at).map(Option::unwrap_or_default);
    Ok(LogView {
        handed: rows::handed_run(row)?,
        tenant: row.try_get_by_index(HANDED_COUNT)?,
        started_at: row.try_get_by_index(HANDED_COUNT + 1)?,
        queued_at: row.try_get_by_index(HANDED_COUNT + 2)?,
        message: text(HANDED_COUNT + 3)?,
        output: text(HANDED_COUNT + 4)?,
        shards: None,
    })
}

fn shard_counts(row: &QueryResult) -> std::result::Result<(i64, ShardCounts), DbErr> {
    let counts = ShardCounts {
        ended: row.try_get_by_index(1)?,
        succeeded: row.try_get_by_index(2)?,
        started: row.try_get_by_index(3)?,
    };
    Ok((row.try_get_by_index(0)?, counts))
}
