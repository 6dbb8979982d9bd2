//! Runs that are written for the coming time, by fire time; and what tasks are called.

use super::conditions::Conditions;
use super::dialect::{Kind, Sql, rows};
use super::logs::{LogFilter, Way, narrow};
use super::rows::to_json;
use super::{Result, SqlStore};
use crate::domain::{Order, Reach, Status};
use sea_orm::{DatabaseBackend, DbErr, QueryResult};
use std::collections::{BTreeSet, HashMap};

/// Rows that one answer looks at: four seconds of five thousand fires each.
pub const COMING_ROWS: u64 = 20_000;

/// Which runs are wanted.
#[derive(Debug, Clone, Default)]
pub struct ComingFilter {
    /// Only this tenant.
    pub tenant_id: Option<i64>,
    /// Only this app.
    pub app_id: Option<i64>,
    /// Only of this task.
    pub task_id: Option<i64>,
    /// From this fire time on, ms.
    pub from: i64,
    /// Before this fire time, ms.
    pub until: i64,
}

/// A run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComingRun {
    /// Its log.
    pub id: i64,
    /// Of which task.
    pub task_id: i64,
    /// Of which app.
    pub app_id: i64,
    /// ms
    pub fire_time: i64,
    /// ms
    pub due_time: i64,
    /// Where it stands.
    pub status: Status,
    /// The node that has it, or 0.
    pub node_id: i64,
}

/// Runs by fire time.
#[derive(Debug, Clone)]
pub struct ComingRuns {
    /// The runs; a sharded run is one.
    pub runs: Vec<ComingRun>,
    /// Before this instant (ms) none is missing.
    pub until: i64,
    /// Whether that is all that was wanted.
    pub is_complete: bool,
}

/// What a task is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNames {
    /// The task; nothing when it is no more.
    pub task: Option<String>,
    /// Its app.
    pub app: Option<String>,
    /// Their tenant.
    pub tenant: Option<String>,
}

impl SqlStore {
    /// Runs within reach that have not ended, earliest first; [`COMING_ROWS`] rows are looked at.
    pub async fn coming_runs(&self, reach: &Reach, filter: &ComingFilter) -> Result<ComingRuns> {
        const ACTION: &str = "list coming fires";
        let filter = LogFilter {
            tenant_id: filter.tenant_id,
            app_id: filter.app_id,
            task_id: filter.task_id,
            from: Some(filter.from),
            until: Some(filter.until),
            order: Order::Oldest,
            has_no_shards: true,
            ..LogFilter::default()
        };
        let way = Way::of(reach, &filter);
        let order = way.order_by(filter.order);
        let scan = self.scan(way, &filter);
        let head = format!("SELECT l.fire_time FROM task_log l WHERE {}", scan.text);
        let (found, values) = scan.limited(&order, COMING_ROWS);
        let join = if self.backend == DatabaseBackend::MySql { "STRAIGHT_JOIN" } else { "JOIN" };
        let text = format!(
            "SELECT l.id, l.task_id, l.app_id, l.fire_time, l.due_time, l.status, l.node_id FROM (SELECT l.id FROM \
             task_log l WHERE {found}) s {join} task_log l ON l.id = s.id WHERE l.status < {}",
            Status::Succeeded as i16
        );
        let mut wanted = Conditions::new(text, values);
        narrow(&mut wanted, reach, &filter);
        let mut runs = self.query_raw(ACTION, wanted.finish_as(self, &order), coming_run).await?;
        let first_unseen = Conditions::new(head, self.scan(way, &filter).into_values());
        let first_unseen = first_unseen.finish_as(self, &format!("{order} LIMIT 1 OFFSET {COMING_ROWS}"));
        let unseen: Vec<i64> = self.query_raw(ACTION, first_unseen, |row| row.try_get_by_index(0)).await?;
        let until = unseen.first().copied();
        // Of that instant some may lie beyond.
        runs.retain(|run| until.is_none_or(|until| run.fire_time < until));
        Ok(ComingRuns { runs, until: until.or(filter.until).unwrap_or_default(), is_complete: until.is_none() })
    }

    /// What these tasks, each of an app, are called.
    pub async fn names_of(&self, tasks: &BTreeSet<(i64, i64)>) -> Result<HashMap<i64, TaskNames>> {
        const ACTION: &str = "read the names of tasks";
        if tasks.is_empty() {
            return Ok(HashMap::new());
        }
        let batch = rows(self.backend, 1, &[("id", Kind::Big), ("app", Kind::Big)]);
        let text = format!(
            "SELECT v.n_id, t.name, a.name, n.name FROM {batch} LEFT JOIN task t ON t.id = v.n_id LEFT JOIN app a ON \
             a.id = v.n_app LEFT JOIN tenant n ON n.id = a.tenant_id"
        );
        let read = |row: &QueryResult| {
            let names = TaskNames {
                task: row.try_get_by_index(1)?,
                app: row.try_get_by_index(2)?,
                tenant: row.try_get_by_index(3)?,
            };
            Ok((row.try_get_by_index(0)?, names))
        };
        let tasks = to_json(ACTION, tasks)?;
        Ok(self.query(ACTION, &Sql::new(self.backend, &text), [tasks.into()], read).await?.into_iter().collect())
    }
}

fn coming_run(row: &QueryResult) -> std::result::Result<ComingRun, DbErr> {
    let status: i32 = row.try_get_by_index(5)?;
    let known = i16::try_from(status).ok().and_then(Status::from_number);
    Ok(ComingRun {
        id: row.try_get_by_index(0)?,
        task_id: row.try_get_by_index(1)?,
        app_id: row.try_get_by_index(2)?,
        fire_time: row.try_get_by_index(3)?,
        due_time: row.try_get_by_index(4)?,
        status: known.ok_or_else(|| DbErr::Type(format!("task_log.status {status} is none of ours")))?,
        node_id: row.try_get_by_index(6)?,
    })
}
