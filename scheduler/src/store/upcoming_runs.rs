//! Runs that are written for the coming time, by fire time, and what waits of the time before; and what tasks are
//! called.

use super::conditions::Conditions;
use super::dialect::Kind;
use super::logs::{ListIndex, LogFilter, narrow};
use super::row::from_row;
use super::statement::Sql;
use super::values::to_json;
use super::{Result, SqlStore};
use crate::domain::{AccessScope, AppId, LogId, NodeId, Order, Status, TaskId, TenantId};
use std::collections::{BTreeSet, HashMap};

/// Tenants that are read one by one; with more in reach, one bounded read over all of them is used.
const TENANTS_MAX: usize = 16;

const ACTION: &str = "list coming fires";

/// Which runs are wanted.
#[derive(Debug, Clone, Default)]
pub struct UpcomingFilter {
    /// Only this tenant.
    pub tenant_id: Option<TenantId>,
    /// Only this app.
    pub app_id: Option<AppId>,
    /// Only of this task.
    pub task_id: Option<TaskId>,
    /// Those that have not started although they fire from then on, ms …
    pub late_from: i64,
    /// … and those that fire from then on, ms …
    pub from: i64,
    /// … and before then, ms.
    pub until: i64,
    /// Rows ahead that are looked at; of the late ones as many in each state.
    pub rows: u64,
}

/// A run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpcomingRun {
    /// Its log.
    pub id: LogId,
    /// Of which task.
    pub task_id: TaskId,
    /// Of which app.
    pub app_id: AppId,
    /// ms
    pub fire_time: i64,
    /// ms
    pub due_time: i64,
    /// Where it stands.
    pub status: Status,
    /// The node that has it, or 0.
    pub node_id: NodeId,
}

/// Runs by fire time.
#[derive(Debug, Clone)]
pub struct UpcomingRuns {
    /// The runs; a sharded run is one.
    pub runs: Vec<UpcomingRun>,
    /// Before this instant (ms) none is missing.
    pub until: i64,
    /// Whether that is all that was wanted.
    pub is_complete: bool,
}

/// What a task is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNames {
    /// The task; `None` when it no longer exists.
    pub task: Option<String>,
    /// Its app.
    pub app: Option<String>,
    /// Their tenant.
    pub tenant: Option<String>,
}

/// Of what may be gone.
type Name = Option<String>;

impl SqlStore {
    /// Runs within reach that are to come, and late ones that wait, earliest first. The tenants within reach share
    /// the rows that are looked at.
    pub async fn upcoming_runs(&self, access_scope: &AccessScope, filter: &UpcomingFilter) -> Result<UpcomingRuns> {
        let mut all =
            UpcomingRuns { runs: self.late_runs(access_scope, filter).await?, until: filter.until, is_complete: true };
        let tenants = tenants_of(access_scope, filter);
        let rows = filter.rows / tenants.len().max(1) as u64;
        for tenant_id in tenants {
            let filter = LogFilter { tenant_id, limit: rows, ..ahead(filter) };
            let (runs, unseen) = self.runs_ahead(access_scope, &filter).await?;
            all.runs.extend(runs);
            all.until = all.until.min(unseen.unwrap_or(all.until));
            all.is_complete &= unseen.is_none();
        }
        // Of that instant some may lie beyond.
        all.runs.retain(|run| run.fire_time < all.until);
        all.runs.sort_unstable_by_key(|run| (run.fire_time, run.id));
        Ok(all)
    }

    /// Runs ahead by fire time, and the first instant that was not looked at.
    async fn runs_ahead(
        &self,
        access_scope: &AccessScope,
        filter: &LogFilter,
    ) -> Result<(Vec<UpcomingRun>, Option<i64>)> {
        let way = ListIndex::of(access_scope, filter);
        let runs = self.open_runs(access_scope, filter, way).await?;
        let scan = self.scan(way, filter);
        let head = format!("SELECT l.fire_time FROM task_log l WHERE {}", scan.text);
        let order = way.order_by(filter.order);
        let unseen = Conditions::new(head, scan.into_values());
        let unseen = unseen.finish_as(self, &format!("{order} LIMIT 1 OFFSET {}", filter.limit));
        let unseen: Vec<i64> = self.query_raw(ACTION, unseen).await?;
        Ok((runs, unseen.first().copied()))
    }

    /// Runs whose time has come and that wait: at a node, for a node, or for their next attempt.
    async fn late_runs(&self, access_scope: &AccessScope, wanted: &UpcomingFilter) -> Result<Vec<UpcomingRun>> {
        let mut late = Vec::new();
        for status in [Status::Init, Status::Queued, Status::Retry] {
            // By due time, which an attempt has later than its fire.
            let until = if status == Status::Retry { wanted.until } else { wanted.from };
            let filter = LogFilter {
                tenant_id: wanted.tenant_id,
                from: Some(wanted.late_from),
                until: Some(until),
                status: Some(status),
                limit: wanted.rows,
                ..ahead(wanted)
            };
            late.extend(self.open_runs(access_scope, &filter, ListIndex::Status(status)).await?);
        }
        late.retain(|run| (wanted.late_from..wanted.from).contains(&run.fire_time));
        Ok(late)
    }

    /// Runs that have not ended, of the first rows of that way.
    async fn open_runs(
        &self,
        access_scope: &AccessScope,
        filter: &LogFilter,
        way: ListIndex,
    ) -> Result<Vec<UpcomingRun>> {
        let order = way.order_by(filter.order);
        let mut scan = self.scan(way, filter);
        // Others of its phase must not take its rows' places.
        scan.and("l.status = ", filter.status.map(|status| status as i32));
        let (found, values) = scan.limited(&order, filter.limit);
        let join = self.backend.join_in_order();
        let text = format!(
            "SELECT l.id, l.task_id, l.app_id, l.fire_time, l.due_time, l.status, l.node_id FROM (SELECT l.id FROM \
             task_log l WHERE {found}) s {join} task_log l ON l.id = s.id WHERE l.status < {}",
            Status::Succeeded as i16
        );
        let mut open = Conditions::new(text, values);
        narrow(&mut open, access_scope, filter);
        self.query_raw(ACTION, open.finish_as(self, &order)).await
    }

    /// What these tasks, each of an app, are called.
    pub async fn names_of(&self, tasks: &BTreeSet<(TaskId, AppId)>) -> Result<HashMap<TaskId, TaskNames>> {
        const ACTION: &str = "read the names of tasks";
        if tasks.is_empty() {
            return Ok(HashMap::new());
        }
        let batch = self.backend.rows(1, &[("id", Kind::Big), ("app", Kind::Big)]);
        let text = format!(
            "SELECT v.n_id, t.name, a.name, n.name FROM {batch} LEFT JOIN task t ON t.id = v.n_id LEFT JOIN app a ON \
             a.id = v.n_app LEFT JOIN tenant n ON n.id = a.tenant_id"
        );
        let tasks = to_json(ACTION, tasks)?;
        let found: Vec<(TaskId, Name, Name, Name)> =
            self.query(ACTION, &Sql::new(self.backend, &text), [tasks.into()]).await?;
        Ok(found.into_iter().map(|(id, task, app, tenant)| (id, TaskNames { task, app, tenant })).collect())
    }
}

/// What is wanted ahead, of all tenants.
fn ahead(filter: &UpcomingFilter) -> LogFilter {
    LogFilter {
        app_id: filter.app_id,
        task_id: filter.task_id,
        from: Some(filter.from),
        until: Some(filter.until),
        order: Order::Oldest,
        has_no_shards: true,
        ..LogFilter::default()
    }
}

/// The tenants to look at, each by itself: no tenant's few fires are lost among many of others.
fn tenants_of(access_scope: &AccessScope, filter: &UpcomingFilter) -> Vec<Option<TenantId>> {
    let AccessScope::Of(places) = access_scope else { return vec![filter.tenant_id] };
    let tenants: BTreeSet<TenantId> = places.iter().map(|place| place.tenant_id).collect();
    if filter.tenant_id.is_some() || filter.task_id.is_some() || tenants.len() > TENANTS_MAX {
        return vec![filter.tenant_id];
    }
    tenants.into_iter().map(Some).collect()
}

from_row!(UpcomingRun { id, task_id, app_id, fire_time, due_time, status, node_id });
