//! What the database says, read without the product's code.

use crate::database::Database;
use sea_orm::{DbErr, QueryResult};

/// State of a task log by its stored number. Written down here again on purpose: a change of the
/// numbers breaks every installation, and must break a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// 0
    Init,
    /// 1
    Queued,
    /// 2
    Dispatched,
    /// 3
    Retry,
    /// 10
    Succeeded,
    /// 11
    Failed,
    /// 12
    Discarded,
    /// 13
    Expired,
    /// 14
    Cancelled,
}

impl Status {
    fn of(number: i32) -> Self {
        match number {
            0 => Self::Init,
            1 => Self::Queued,
            2 => Self::Dispatched,
            3 => Self::Retry,
            10 => Self::Succeeded,
            11 => Self::Failed,
            12 => Self::Discarded,
            13 => Self::Expired,
            14 => Self::Cancelled,
            other => panic!("task_log.status {other} is unknown"),
        }
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Init | Self::Queued | Self::Dispatched | Self::Retry)
    }
}

/// A row of `task_log`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the columns, see the schema
pub struct LogRow {
    pub id: i64,
    pub task: i64,
    pub parent: i64,
    pub shard_index: i32,
    pub shard_total: i32,
    pub fire_time: i64,
    pub due_time: i64,
    pub status: Status,
    pub version: i64,
    pub attempt: i32,
    pub failures: i32,
    pub node: i64,
    pub executor: i64,
    pub dispatched_at: i64,
    pub started_at: i64,
    pub finished_at: i64,
    pub reason: String,
    pub message: String,
    pub output: String,
    pub trigger: String,
    pub seq: i64,
    pub priority: i32,
    pub stopping: String,
}

impl LogRow {
    /// Whether it stands for the shards of one fire.
    #[must_use]
    pub fn is_parent(&self) -> bool {
        self.shard_index == -1
    }

    fn read(row: &QueryResult) -> Result<Self, DbErr> {
        let text = |at| row.try_get_by_index::<Option<String>>(at).map(Option::unwrap_or_default);
        Ok(Self {
            id: row.try_get_by_index(0)?,
            task: row.try_get_by_index(1)?,
            parent: row.try_get_by_index(2)?,
            shard_index: row.try_get_by_index(3)?,
            shard_total: row.try_get_by_index(4)?,
            fire_time: row.try_get_by_index(5)?,
            due_time: row.try_get_by_index(6)?,
            status: Status::of(row.try_get_by_index(7)?),
            version: row.try_get_by_index(8)?,
            attempt: row.try_get_by_index(9)?,
            failures: row.try_get_by_index(10)?,
            node: row.try_get_by_index(11)?,
            executor: row.try_get_by_index(12)?,
            dispatched_at: row.try_get_by_index(13)?,
            started_at: row.try_get_by_index(14)?,
            finished_at: row.try_get_by_index(15)?,
            reason: row.try_get_by_index(16)?,
            message: text(17)?,
            output: text(18)?,
            trigger: row.try_get_by_index(19)?,
            seq: row.try_get_by_index(20)?,
            priority: row.try_get_by_index(21)?,
            stopping: row.try_get_by_index(22)?,
        })
    }
}

impl Database {
    /// Task logs that meet `condition`, by fire time.
    pub async fn logs(&self, condition: &str) -> Vec<LogRow> {
        let sql = format!(
            "SELECT id, task_id, parent_id, shard_index, shard_total, fire_time, due_time, status, version, attempt, \
             failures, node_id, executor_id, dispatched_at, started_at, finished_at, reason, message, output, \
             trigger_kind, seq, priority, stopping FROM task_log WHERE {condition} ORDER BY fire_time, shard_index"
        );
        self.query(&sql, LogRow::read).await
    }

    /// All logs of a task.
    pub async fn logs_of(&self, task: i64) -> Vec<LogRow> {
        self.logs(&format!("task_id = {task}")).await
    }

    /// One log.
    pub async fn log(&self, id: i64) -> LogRow {
        let mut rows = self.logs(&format!("id = {id}")).await;
        rows.pop().unwrap_or_else(|| panic!("there is no task log {id}"))
    }

    /// The number of the node of that name.
    pub async fn node_id(&self, name: &str) -> i64 {
        self.number(&format!("SELECT id FROM node WHERE name = '{name}'")).await
    }

    /// The id of the executor that listens at that port and is not gone.
    pub async fn executor_at(&self, port: u16) -> i64 {
        self.number(&format!("SELECT id FROM executor WHERE address LIKE '%:{port}' AND gone_at = 0")).await
    }
}
