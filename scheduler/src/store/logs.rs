//! Task logs as the management API lists them: newest or oldest first, a page at a time, whatever the
//! number of rows.
//!
//! Each list goes by the index that fits its filters best ([`ListIndex`]); what this index does not know
//! is looked for step by step, for a bounded time ([`SCAN_TIME`]). A page that is not full for this
//! reason names the place from which the next one goes on.

use super::conditions::Conditions;
use super::dialect::Dialect;
use super::row::{FromRow, Read, absent, column, from_row, or_default};
use super::rows;
use super::sql::{DISPATCHED, ID, SUCCEEDED, phase_of};
use super::sql_store::read_all;
use super::values::to_json;
use super::{DispatchedRun, Result, SqlStore};
use crate::domain::{AccessScope, AppId, ExecutorId, LogId, Order, Reason, Run, Status, TaskId, TenantId, Trigger};
use sea_orm::QueryResult;
use std::collections::HashMap;
use std::time::{Duration, Instant};

statements!(
    SHARD_COUNTS = |d| format!(
        "SELECT p.id, COUNT(CASE WHEN s.status >= {SUCCEEDED} THEN 1 END) AS ended, \
         COUNT(CASE WHEN s.status = {SUCCEEDED} THEN 1 END) AS succeeded, COUNT(CASE WHEN s.started_at > 0 OR (s.status = {DISPATCHED} AND s.due_time <= {{now}}) THEN 1 END) AS started \
         FROM {} task_log p ON p.id = v.n_id JOIN task_log s ON s.task_id = p.task_id AND \
         s.fire_time = p.fire_time AND s.parent_id = p.id GROUP BY p.id",
        d.batch(1, ID)
    ),
);

/// Rows that one statement looks at for what its index does not know: rows that lie far apart take
/// a read from disk each.
pub(super) const SCAN_STEP: u64 = 500;

/// Such statements for one page at most …
pub(super) const SCAN_STEPS_MAX: usize = 40;

/// … and no further one after this long: the page is not full then, and names where to go on.
pub(super) const SCAN_TIME: Duration = Duration::from_millis(50);

/// A task log as the API shows it.
#[derive(Debug, Clone)]
pub struct LogView {
    /// The run.
    pub dispatched: DispatchedRun,
    /// Tenant's name.
    pub tenant: String,
    /// Task's name; `None` when the task no longer exists.
    pub task_name: Option<String>,
    /// App's name.
    pub app_name: Option<String>,
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

/// A place in a list: what its last row has in the columns of its order.
pub type LogCursor = Vec<i64>;

/// Which logs to list.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Only this tenant.
    pub tenant_id: Option<TenantId>,
    /// Only this app.
    pub app_id: Option<AppId>,
    /// Only of this task.
    pub task_id: Option<TaskId>,
    /// Only in this state.
    pub status: Option<Status>,
    /// Only for this reason.
    pub reason: Option<Reason>,
    /// Only what was made so.
    pub trigger: Option<Trigger>,
    /// Only what this executor has or had.
    pub executor_id: Option<ExecutorId>,
    /// Only shards of this parent.
    pub parent_id: Option<LogId>,
    /// No shards of runs.
    pub has_no_shards: bool,
    /// Only this log.
    pub id: Option<LogId>,
    /// From this instant on, ms.
    pub from: Option<i64>,
    /// Before this instant, ms.
    pub until: Option<i64>,
    /// Which come first.
    pub order: Order,
    /// After this place of the list.
    pub after: Option<LogCursor>,
    /// At most so many.
    pub limit: u64,
}

/// A page of logs.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// The logs.
    pub logs: Vec<LogView>,
    /// From where the next page goes on; nothing when this is the last.
    pub next: Option<LogCursor>,
}

/// The index that a list goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListIndex {
    /// One row.
    Id(LogId),
    /// A task's, by fire time.
    Task(TaskId),
    /// By due time: those of a status's phase, of what is not ended, or of all tenants.
    Status(Status),
    /// What ended badly in one tenant, by due time.
    Bad(TenantId, Status),
    /// A tenant's, by fire time.
    Tenant(TenantId),
    /// All, by fire time.
    All,
}

impl ListIndex {
    pub(super) fn of(access_scope: &AccessScope, filter: &LogFilter) -> Self {
        let only = match access_scope {
            AccessScope::Of(places) if places.len() == 1 => Some(places[0].tenant_id),
            _ => None,
        };
        let tenant = filter.tenant_id.or(only);
        match (filter.id, filter.task_id, filter.status, tenant) {
            (Some(id), ..) => Self::Id(id),
            (_, Some(task), ..) => Self::Task(task),
            (_, _, Some(status), _) if !status.is_terminal() => Self::Status(status),
            (_, _, Some(status), Some(tenant)) if status != Status::Succeeded => Self::Bad(tenant, status),
            (_, _, Some(status), None) if status != Status::Succeeded => Self::Status(status),
            (_, _, _, Some(tenant)) => Self::Tenant(tenant),
            _ => Self::All,
        }
    }

    /// The columns of its index, which the list is in the order of; the first is a time.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Status(_) => &["due_time", "tenant_id", "priority", "id"],
            Self::All => &["fire_time", "task_id", "id"],
            Self::Bad(..) => &["due_time", "id"],
            Self::Id(_) | Self::Task(_) | Self::Tenant(_) => &["fire_time", "id"],
        }
    }

    /// As the statement says it. Either way all columns go one way, so that the index serves both.
    pub(super) fn order_by(self, order: Order) -> String {
        let direction = match order {
            Order::Newest => "DESC",
            Order::Oldest => "ASC",
        };
        let columns: Vec<String> = self.columns().iter().map(|column| format!("l.{column} {direction}")).collect();
        format!("ORDER BY {}", columns.join(", "))
    }

    /// Where a log stands in the list.
    fn place(self, run: &Run) -> LogCursor {
        let of = |column: &&str| match *column {
            "due_time" => run.due_time,
            "fire_time" => run.fire_time,
            "tenant_id" => run.tenant_id.0,
            "task_id" => run.task_id.0,
            "priority" => run.priority.into(),
            _ => run.id.0,
        };
        self.columns().iter().map(of).collect()
    }

    fn bound(self, wanted: &mut Conditions, backend: Dialect) {
        match self {
            Self::Id(id) => wanted.and("l.id = ", Some(id)),
            Self::Task(task) => wanted.and("l.task_id = ", Some(task)),
            Self::Status(status) => wanted.and(&format!("{} = ", backend.phase()), phase_of(status)),
            Self::Bad(tenant, status) => {
                wanted.and("l.tenant_id = ", Some(tenant));
                wanted.and(&format!("{} = ", backend.bad_status()), Some(status as i32));
            }
            Self::Tenant(tenant) => wanted.and("l.tenant_id = ", Some(tenant)),
            Self::All => {}
        }
    }
}

from_row!(ShardCounts { started, ended, succeeded });

/// A parent of shards.
struct CountedShards {
    id: LogId,
    counts: ShardCounts,
}

from_row!(CountedShards { id, counts = FromRow::from_row });

impl SqlStore {
    /// The log of that id, within reach.
    pub async fn log(&self, access_scope: &AccessScope, id: LogId) -> Result<Option<LogView>> {
        let filter = LogFilter { id: Some(id), limit: 1, ..LogFilter::default() };
        Ok(self.list_logs(access_scope, &filter).await?.logs.into_iter().next())
    }

    /// Lists logs within reach.
    pub async fn list_logs(&self, access_scope: &AccessScope, filter: &LogFilter) -> Result<LogPage> {
        let way = ListIndex::of(access_scope, filter);
        let is_narrow = is_narrow(way, access_scope, filter);
        let begun = Instant::now();
        let mut rest = filter.clone();
        let mut page = LogPage { logs: Vec::new(), next: None };
        for _ in 0..SCAN_STEPS_MAX {
            let found = self.look(way, access_scope, &rest, is_narrow).await?;
            rest.limit -= found.len() as u64;
            page.logs.extend(found);
            page.next = match page.logs.last().filter(|_| rest.limit == 0) {
                Some(last) => Some(way.place(&last.dispatched.run)),
                None if is_narrow => self.scanned_to(way, &rest).await?,
                None => None,
            };
            if rest.limit == 0 || page.next.is_none() || begun.elapsed() > SCAN_TIME {
                break;
            }
            rest.after.clone_from(&page.next);
        }
        self.count_shards(&mut page.logs).await?;
        self.name_tasks(&mut page.logs).await?;
        Ok(page)
    }

    /// Those of the next rows of a way that fit.
    async fn look(
        &self,
        way: ListIndex,
        access_scope: &AccessScope,
        filter: &LogFilter,
        is_narrow: bool,
    ) -> Result<Vec<LogView>> {
        let order = way.order_by(filter.order);
        let most = if is_narrow { SCAN_STEP } else { filter.limit };
        let (found, values) = self.scan(way, filter).limited(&order, most);
        // First the index, then the rows, then the names: MySQL would begin with the tenants.
        let join = self.backend.join_in_order();
        let text = format!(
            "SELECT {}, n.name AS tenant, l.started_at, l.message, l.output FROM (SELECT l.id FROM task_log l WHERE \
             {found}) s {join} task_log l ON l.id = s.id {join} tenant n ON n.id = l.tenant_id WHERE 1 = 1",
            rows::DISPATCHED_COLUMNS
        );
        let mut wanted = Conditions::new(text, values);
        narrow(&mut wanted, access_scope, filter);
        self.query_raw("list task logs", wanted.finish(self, &order, filter.limit)).await
    }

    /// The rows that the way's index finds from the filter's place on.
    pub(super) fn scan(&self, way: ListIndex, filter: &LogFilter) -> Conditions {
        let time = way.columns()[0];
        let mut scan = Conditions::new("1 = 1".to_owned(), Vec::new());
        way.bound(&mut scan, self.backend);
        scan.and(&format!("l.{time} >= "), filter.from);
        scan.and(&format!("l.{time} < "), filter.until);
        if let Some(place) = &filter.after {
            let further = match filter.order {
                Order::Newest => "<",
                Order::Oldest => ">",
            };
            // For the index: databases do not see it in what follows.
            scan.and(&format!("l.{time} {further}= "), place.first().copied());
            let mut after = String::new();
            for (column, value) in way.columns().iter().zip(place).rev() {
                let at = scan.push(*value);
                after = match after.as_str() {
                    "" => format!("l.{column} {further} {{{at}}}"),
                    more => format!("l.{column} {further} {{{at}}} OR (l.{column} = {{{at}}} AND ({more}))"),
                };
            }
            scan.text = format!("{} AND ({after})", scan.text);
        }
        scan
    }

    /// Where a bounded look ended; nothing when it saw everything there is.
    async fn scanned_to(&self, way: ListIndex, filter: &LogFilter) -> Result<Option<LogCursor>> {
        let columns = way.columns();
        let scan = self.scan(way, filter);
        let head = format!("SELECT l.{} FROM task_log l WHERE {}", columns.join(", l."), scan.text);
        let last = Conditions::new(head, scan.into_values());
        let statement =
            last.finish_as(self, &format!("{} LIMIT 1 OFFSET {}", way.order_by(filter.order), SCAN_STEP - 1));
        let rows = self.fetch("list task logs", statement).await?;
        let read = |row: &QueryResult| columns.iter().map(|name| number(row, name)).collect();
        Ok(read_all("list task logs", &rows, read)?.pop())
    }

    /// What the tasks of these logs, and their apps, are called.
    async fn name_tasks(&self, logs: &mut [LogView]) -> Result<()> {
        let tasks = logs.iter().map(|log| (log.dispatched.run.task_id, log.dispatched.run.app_id)).collect();
        let names = self.names_of(&tasks).await?;
        for log in logs {
            if let Some(names) = names.get(&log.dispatched.run.task_id) {
                log.task_name.clone_from(&names.task);
                log.app_name.clone_from(&names.app);
            }
        }
        Ok(())
    }

    /// How far sharded runs have come.
    async fn count_shards(&self, logs: &mut [LogView]) -> Result<()> {
        let parents: Vec<[LogId; 1]> =
            logs.iter().map(|log| &log.dispatched.run).filter(|run| run.is_parent()).map(|run| [run.id]).collect();
        if parents.is_empty() {
            return Ok(());
        }
        let ids = to_json("count shards", &parents)?;
        let found: Vec<CountedShards> = self.query("count shards", &SHARD_COUNTS, [ids.into()]).await?;
        let counts: HashMap<LogId, ShardCounts> = found.into_iter().map(|row| (row.id, row.counts)).collect();
        for log in logs {
            log.shards = counts.get(&log.dispatched.run.id).copied();
        }
        Ok(())
    }
}

/// A column of an order; priorities are 32 bits wide.
fn number(row: &QueryResult, name: &str) -> Read<i64> {
    match name {
        "priority" => column::<i32, _>(row, name).map(i64::from),
        _ => column(row, name),
    }
}

/// Whether there are conditions that the way's index does not know.
fn is_narrow(way: ListIndex, access_scope: &AccessScope, filter: &LogFilter) -> bool {
    let is_whole = match access_scope {
        AccessScope::All => true,
        AccessScope::Of(places) => matches!(
            (way, &places[..]),
            (ListIndex::Tenant(tenant) | ListIndex::Bad(tenant, _), [only]) if only.tenant_id == tenant && only.apps.is_empty()
        ),
    };
    let status = filter.status.filter(|status| match way {
        // A phase of what has not ended is of two.
        ListIndex::Status(_) => !status.is_terminal(),
        _ => !matches!(way, ListIndex::Bad(..)),
    });
    let tenant = filter.tenant_id.filter(|_| !matches!(way, ListIndex::Tenant(_) | ListIndex::Bad(..)));
    let task = filter.task_id.filter(|_| !matches!(way, ListIndex::Task(_)));
    !is_whole
        || status.is_some()
        || task.is_some()
        || tenant.is_some()
        || filter.app_id.is_some()
        || filter.executor_id.is_some()
        || filter.parent_id.is_some()
        || filter.reason.is_some()
        || filter.trigger.is_some()
        || filter.has_no_shards
}

/// Adds every condition; those of the way's index cost nothing more.
pub(super) fn narrow(wanted: &mut Conditions, access_scope: &AccessScope, filter: &LogFilter) {
    wanted.within(access_scope, "l.tenant_id", Some("l.app_id"));
    wanted.and("l.tenant_id = ", filter.tenant_id);
    wanted.and("l.app_id = ", filter.app_id);
    wanted.and("l.task_id = ", filter.task_id);
    wanted.and("l.status = ", filter.status.map(|status| status as i32));
    wanted.and("l.reason = ", filter.reason.map(Reason::as_str));
    wanted.and("l.trigger_kind = ", filter.trigger.map(Trigger::as_str));
    wanted.and("l.executor_id = ", filter.executor_id);
    wanted.and("l.parent_id = ", filter.parent_id);
    wanted.and("l.parent_id = ", filter.has_no_shards.then_some(0i64));
}

from_row!(LogView {
    dispatched = FromRow::from_row,
    tenant,
    task_name = absent,
    app_name = absent,
    started_at,
    queued_at,
    message = or_default("message"),
    output = or_default("output"),
    shards = absent,
});
