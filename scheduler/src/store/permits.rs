//! Permits of runs that may only run so many at once, and the state that routing remembers.
//!
//! A permit is a row beside the log. It counts while the log is DISPATCHED, or QUEUED with the
//! version for which it was given: so the end of a run, however it comes, gives it back without a
//! statement of its own, and a node that dies leaves nothing behind that counts.
//!
//! A permit is given to the row as it is: what asks with a version that the row no longer has is a copy that
//! was left behind, and neither gets a permit nor touches the one that is there.
//!
//! With the version's negative the row says that the run waits, and for whose permit: its task's, its app's or its
//! tenant's; the other columns are 0. Where runs keep their order, later ones on other nodes do not pass it; and a run
//! that has waited long has a place in line, which less urgent ones on other nodes respect. That, too, ends with the row's
//! state.

use super::dialect::{Dialect, Kind};
use super::row::{Column, from_row};
use super::rows::DISPATCHED_COLUMNS;
use super::sql::{CANCELLED, DISPATCHED, EXPIRED, ID, ID_VERSION, QUEUED};
use super::sql_store::{Transaction, retrying};
use super::template::Template;
use super::values::{list, to_json};
use super::{PermitStore, Result, SqlStore};
use crate::domain::permit::{Granted, Held, Limit, PermitRequest, Standing, grant};
use crate::domain::rate_limit::{self, Slot};
use crate::domain::routing::{Use, UseChange};
use crate::domain::{AppId, LogId, Reason, TaskId, TenantId, Urgency};
use async_trait::async_trait;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

statements!(
    SCOPE_LOCK = scope_lock,
    SCOPE_INSERT = |d| format!(
        "INSERT INTO permit_scope (id, turn) SELECT v.n_id, 0 FROM {} WHERE 1 = 1 {}",
        d.rows(1, ID),
        d.or_ignore("permit_scope", "id")
    ),
    CLEAN_TASKS = |d| clean(d, "task_id"),
    CLEAN_APPS = |d| clean(d, "app_id"),
    CLEAN_TENANTS = |d| clean(d, "tenant_id"),
    PERMITS_OF_TASKS = |d| permits(d, "task_id"),
    PERMITS_OF_APPS = |d| permits(d, "app_id"),
    PERMITS_OF_TENANTS = |d| permits(d, "tenant_id"),
    LINES_OF_TASKS = |d| lines(d, "task_id", "p.app_id = 0 AND p.tenant_id = 0"),
    LINES_OF_APPS = |d| lines(d, "app_id", "p.tenant_id = 0"),
    LINES_OF_TENANTS = |d| lines(d, "tenant_id", "p.app_id = 0"),
    PERMITS_ASKED = |d| format!(
        "SELECT l.id, COALESCE(p.version, 0), COALESCE(p.app_id, 0), COALESCE(p.tenant_id, 0) FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version \
         LEFT JOIN permit p ON p.id = l.id WHERE +l.status = {QUEUED}",
        d.batch(1, ID_VERSION)
    ),
    PERMIT_BACK = |d| d.update_rows(
        "permit",
        "version = -l.version, app_id = 0, tenant_id = 0",
        ID,
        "l.id = v.n_id AND l.version > 0"
    ),
    PERMIT_DROP = |d| d.delete_from("permit", &d.rows(1, ID), "l.id = v.n_id"),
    PERMIT_INSERT = |d| format!(
        "INSERT INTO permit (id, tenant_id, app_id, task_id, version) SELECT v.n_id, v.n_tenant_id, v.n_app_id, \
         v.n_task_id, v.n_version FROM {}",
        d.rows(
            1,
            &[
                ("id", Kind::Big),
                ("tenant_id", Kind::Big),
                ("app_id", Kind::Big),
                ("task_id", Kind::Big),
                ("version", Kind::Big)
            ]
        )
    ),
    PERMIT_HOLDERS = |d| format!(
        "SELECT {DISPATCHED_COLUMNS} FROM {} permit p ON p.task_id = v.n_id JOIN task_log l ON l.id = p.id \
         WHERE +l.status = {DISPATCHED}",
        d.batch(1, ID)
    ),
    NOTE_WAITS = |d| d.update_rows(
        "task_log",
        "reason = v.n_reason",
        &[("id", Kind::Big), ("version", Kind::Big), ("reason", Kind::Text)],
        &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {QUEUED} AND l.reason = ''"),
    ),
    USES = |d| format!("SELECT task_id, address, uses, last_use FROM routing_use WHERE task_id IN {}", d.ids(1)),
    USE_INSERT = |d| format!(
        "INSERT INTO routing_use (id, task_id, address, uses, last_use) SELECT v.n_id, v.n_task_id, v.n_address, 0, 0 \
         FROM {} WHERE 1 = 1 {}",
        d.rows(1, USE),
        d.or_ignore("routing_use", "task_id, address")
    ),
    USE_ADD = |d| d.update_rows(
        "routing_use",
        "uses = CASE WHEN l.uses > v.n_floor THEN l.uses ELSE v.n_floor END + v.n_added, \
         last_use = CASE WHEN l.last_use > v.n_last THEN l.last_use ELSE v.n_last END",
        USE,
        "l.task_id = v.n_task_id AND l.address = v.n_address",
    ),
    OVERDUE = |d| format!(
        "SELECT l.task_id, l.fire_time FROM (SELECT l.task_id, l.fire_time, l.due_time, l.trigger_kind, l.parent_id, l.status \
         FROM {} task_log l ON l.task_id = v.n_id AND l.fire_time >= v.n_from{}) l \
         WHERE ((l.due_time < {{2}} AND l.trigger_kind = 'schedule') OR l.trigger_kind = 'misfire') AND l.parent_id = 0 AND \
         +l.status NOT IN ({EXPIRED}, {CANCELLED}) \
         ORDER BY l.fire_time DESC LIMIT {{3}}",
        d.batch(1, &[("id", Kind::Big), ("from", Kind::Big)]),
        d.fence()
    ),
);

/// Whether the permit `p` of the log `l` counts.
const HOLDS: &str = "(+l.status = 2 OR (+l.status = 1 AND l.version = p.version))";

/// Whether the permit `p` says that the log `l` waits for one.
const WAITS: &str = "(+l.status = 1 AND l.version = -p.version)";

const USE: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("task_id", Kind::Big),
    ("address", Kind::Text),
    ("floor", Kind::Big),
    ("added", Kind::Big),
    ("last", Kind::Big),
];

/// Locks the rows of a batch in the order of their ids. The others find them by the key, in the order of the batch or of
/// the table, which are the same; PostgreSQL may read the table as its rows happen to lie, which differs from one
/// transaction to the next as each of them is moved by its update.
fn scope_lock(d: Dialect) -> String {
    if d != Dialect::Postgres {
        return d.update_rows("permit_scope", "turn = l.turn + 1", ID, "l.id = v.n_id");
    }
    format!(
        "WITH locked AS (SELECT s.id FROM permit_scope s WHERE s.id IN {} ORDER BY s.id FOR UPDATE) \
         UPDATE permit_scope AS l SET turn = l.turn + 1 FROM locked v WHERE l.id = v.id",
        d.ids(1)
    )
}

/// Deletes permits of these scopes that neither count nor wait.
fn clean(d: Dialect, owner: &str) -> String {
    format!(
        "DELETE FROM permit WHERE id IN (SELECT id FROM (SELECT p.id FROM permit p LEFT JOIN task_log l ON l.id = p.id \
         WHERE p.{owner} IN {} AND (l.id IS NULL OR NOT ({HOLDS} OR {WAITS})) ORDER BY p.id LIMIT {CLEANED_MAX}) dead)",
        d.ids(1)
    )
}

/// Of each of these scopes: how many permits count, when the first run that waits is due, and how many do neither.
/// PostgreSQL must be told to look each log up: where some thousand runs wait, it takes reading the whole of `task_log` for
/// cheaper.
fn permits(d: Dialect, owner: &str) -> String {
    let ids = d.ids(1);
    let with_logs = match d {
        Dialect::Postgres => format!(
            "permit p LEFT JOIN LATERAL (SELECT t.id, t.status, t.version, t.due_time FROM task_log t WHERE t.id = p.id \
             LIMIT 1) l ON TRUE WHERE p.{owner} = ANY (ARRAY{ids})"
        ),
        Dialect::Sqlite | Dialect::MariaDb => {
            format!("permit p LEFT JOIN task_log l ON l.id = p.id WHERE p.{owner} IN {ids}")
        }
    };
    format!(
        "SELECT p.{owner}, COUNT(CASE WHEN {HOLDS} THEN 1 END), MIN(CASE WHEN {WAITS} THEN l.due_time END), \
         COUNT(CASE WHEN l.id IS NULL OR NOT ({HOLDS} OR {WAITS}) THEN 1 END) FROM {with_logs} GROUP BY p.{owner}"
    )
}

/// Who stands in line for the permits of these scopes; `only` leaves out those that wait for another's.
fn lines(d: Dialect, owner: &str, only: &str) -> String {
    format!(
        "SELECT p.{owner}, l.priority, l.due_time, l.id FROM {} permit p ON p.{owner} = v.n_id \
         JOIN task_log l ON l.id = p.id WHERE {only} AND p.version < 0 AND {WAITS} LIMIT {LINES_MAX}",
        d.batch(1, ID)
    )
}

/// Dead permits of what is asked about may be so many before they are deleted: looking for them costs as much as counting.
const DEAD_MAX: i64 = 100;

/// Dead permits deleted at once.
const CLEANED_MAX: i64 = 1_000;

/// Places in line read at once; each line has some tens.
const LINES_MAX: i64 = 10_000;

const ACTION: &str = "give permits";

/// How often a task used an executor, and when last.
struct UseRow {
    task_id: TaskId,
    address: String,
    count: i64,
    last: i64,
}

from_row!(UseRow { task_id, address, count: "uses", last: "last_use" });

#[async_trait]
impl PermitStore for SqlStore {
    async fn acquire(&self, asks: &[PermitRequest]) -> Result<Granted> {
        if asks.is_empty() {
            return Ok(Granted::default());
        }
        retrying(|| self.acquire_once(asks)).await
    }

    async fn release(&self, ids: &[LogId], in_order: bool) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let ids = list(ACTION, ids.iter())?;
        self.execute(ACTION, if in_order { &PERMIT_BACK } else { &PERMIT_DROP }, [ids.into()]).await.map(drop)
    }

    async fn note_waits(&self, waits: &[(LogId, i64, Reason)]) -> Result<()> {
        const ACTION: &str = "note what runs wait for";
        let rows: Vec<_> = waits.iter().map(|(id, version, reason)| (id, version, reason.as_str())).collect();
        self.execute(ACTION, &NOTE_WAITS, [to_json(ACTION, &rows)?.into()]).await.map(drop)
    }

    async fn take_rate_slots(&self, asks: &[rate_limit::SlotRequest], now: i64) -> Result<Vec<Slot>> {
        self.take_rate_slots_in_turn(asks, now).await
    }

    async fn holders(&self, tasks: &[TaskId]) -> Result<Vec<super::DispatchedRun>> {
        let tasks = list(ACTION, tasks.iter())?;
        self.query("read the runs that hold permits", &PERMIT_HOLDERS, [tasks.into()]).await
    }

    async fn uses(&self, tasks: &[TaskId]) -> Result<Vec<(TaskId, String, Use)>> {
        const ACTION: &str = "read the uses of executors";
        let tasks = list(ACTION, tasks.iter())?;
        let found: Vec<UseRow> = self.query(ACTION, &USES, [tasks.into()]).await?;
        let used = |row: UseRow| (row.task_id, row.address, Use { count: row.count, last: row.last });
        Ok(found.into_iter().map(used).collect())
    }

    async fn add_uses(&self, changes: &[UseChange], new_id: &(dyn Fn() -> i64 + Sync)) -> Result<()> {
        const ACTION: &str = "note the uses of executors";
        if changes.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = changes
            .iter()
            .map(|change| (new_id(), change.task_id, &change.address, change.floor, change.added, change.last))
            .collect();
        let rows = to_json(ACTION, &rows)?;
        self.execute(ACTION, &USE_INSERT, [rows.clone().into()]).await?;
        self.execute(ACTION, &USE_ADD, [rows.into()]).await.map(drop)
    }

    async fn overdue(&self, since: &[(TaskId, i64)], due_before: i64, limit: u64) -> Result<Vec<(TaskId, i64)>> {
        const ACTION: &str = "read overdue fires";
        let since = to_json(ACTION, since)?;
        let values = [since.into(), due_before.into(), limit.into()];
        self.query(ACTION, &OVERDUE, values).await
    }
}

impl SqlStore {
    async fn acquire_once(&self, asks: &[PermitRequest]) -> Result<Granted> {
        let bounded = |id: fn(&PermitRequest) -> (i64, Option<i32>)| -> BTreeSet<i64> {
            asks.iter().map(id).filter(|(_, bound)| bound.is_some()).map(|(id, _)| id).collect()
        };
        let tasks = bounded(|ask| (ask.task_id.0, ask.bounds.task));
        let apps = bounded(|ask| (ask.app_id.0, ask.bounds.app));
        let tenants = bounded(|ask| (ask.tenant_id.0, ask.bounds.tenant));
        let tx = self.begin(ACTION).await?;
        self.lock_scopes(&tx, [&tasks, &apps, &tenants].into_iter().flatten().copied().collect()).await?;
        let of_tasks: BTreeSet<i64> = asks.iter().map(|ask| ask.task_id.0).collect();
        // Those in order have their own.
        let free: BTreeSet<i64> =
            asks.iter().filter(|ask| ask.bounds.task.is_some() && !ask.in_order).map(|ask| ask.task_id.0).collect();
        let mut lines = HashMap::new();
        let tasks = look::<TaskId>(&tx, &OF_TASKS, &of_tasks, &free, &mut lines).await?;
        let apps = look::<AppId>(&tx, &OF_APPS, &apps, &apps, &mut lines).await?;
        let tenants = look::<TenantId>(&tx, &OF_TENANTS, &tenants, &tenants, &mut lines).await?;
        let keys = to_json(ACTION, &asks.iter().map(|ask| (ask.id, ask.version)).collect::<Vec<_>>())?;
        let permits: Vec<(LogId, i64, AppId, TenantId)> = tx.query(&PERMITS_ASKED, [keys.into()]).await?;
        let permits: HashMap<LogId, _> =
            permits.into_iter().map(|(id, version, app, tenant)| (id, (version, (app, tenant)))).collect();
        let is_cleaned = tasks.is_cleaned || apps.is_cleaned || tenants.is_cleaned;
        let Looked { counts, waiting, .. } = tasks;
        let held = Held { tasks: counts, apps: apps.counts, tenants: tenants.counts, waiting, lines };
        let standing = |ask: &PermitRequest| permits.get(&ask.id).map(|(version, of)| Standing::of(ask, *version, *of));
        let (granted, changes) = grant(asks, &standing, held);
        if changes.is_empty() {
            if is_cleaned {
                tx.commit().await?;
            } else {
                tx.rollback().await?;
            }
            return Ok(granted);
        }
        let rows: Vec<_> = changes
            .iter()
            .map(|(ask, limit)| match limit {
                None => (ask.id, ask.tenant_id, ask.app_id, ask.task_id, ask.version),
                Some(limit) => {
                    let (task, app, tenant) = ask.waits_for(*limit);
                    (ask.id, tenant, app, task, -ask.version)
                }
            })
            .collect();
        let ids = list(ACTION, rows.iter().map(|row| row.0))?;
        tx.execute(&PERMIT_DROP, [ids.into()]).await?;
        tx.execute(&PERMIT_INSERT, [to_json(ACTION, &rows)?.into()]).await?;
        tx.commit().await?;
        Ok(granted)
    }

    /// Giving permits of a task, app or tenant holds its row until the commit.
    pub(super) async fn lock_scopes(&self, tx: &Transaction<'_>, scopes: BTreeSet<i64>) -> Result<()> {
        // One order for all callers.
        let ids = list(ACTION, &scopes)?;
        if tx.execute(&SCOPE_LOCK, [ids.clone().into()]).await? < scopes.len() as u64 {
            tx.execute(&SCOPE_INSERT, [ids.clone().into()]).await?;
            tx.execute(&SCOPE_LOCK, [ids.into()]).await?;
        }
        Ok(())
    }
}

/// What there is of permits, by task, app or tenant.
struct Looked<Id> {
    counts: HashMap<Id, i64>,
    /// When the first run that waits is due, ms.
    waiting: HashMap<Id, i64>,
    is_cleaned: bool,
}

/// What is asked of the permits of tasks, apps or tenants.
struct Scopes {
    limit: Limit,
    permits: &'static Template,
    clean: &'static Template,
    lines: &'static Template,
}

const OF_TASKS: Scopes =
    Scopes { limit: Limit::Task, permits: &PERMITS_OF_TASKS, clean: &CLEAN_TASKS, lines: &LINES_OF_TASKS };
const OF_APPS: Scopes =
    Scopes { limit: Limit::App, permits: &PERMITS_OF_APPS, clean: &CLEAN_APPS, lines: &LINES_OF_APPS };
const OF_TENANTS: Scopes =
    Scopes { limit: Limit::Tenant, permits: &PERMITS_OF_TENANTS, clean: &CLEAN_TENANTS, lines: &LINES_OF_TENANTS };

/// Counts the permits of these tasks, apps or tenants, and adds who stands in line, where any wait. Those that are dead are
/// deleted once they are many: they are read as long as they are there.
async fn look<Id: Column + From<i64> + Into<i64> + Copy + Eq + Hash>(
    tx: &Transaction<'_>,
    of: &Scopes,
    ids: &BTreeSet<i64>,
    with_lines: &BTreeSet<i64>,
    lines: &mut HashMap<(Limit, i64), Vec<Urgency>>,
) -> Result<Looked<Id>> {
    if ids.is_empty() {
        return Ok(Looked { counts: HashMap::new(), waiting: HashMap::new(), is_cleaned: false });
    }
    let ids = list(ACTION, ids)?;
    let rows: Vec<(Id, i64, Option<i64>, i64)> = tx.query(of.permits, [ids.clone().into()]).await?;
    let first_of = |row: &(Id, i64, Option<i64>, i64)| row.2.map(|due_time| (row.0, due_time));
    let waiting: HashMap<Id, i64> = rows.iter().filter_map(first_of).collect();
    let in_line: Vec<i64> = waiting.keys().map(|id| (*id).into()).filter(|id| with_lines.contains(id)).collect();
    if !in_line.is_empty() {
        let in_line = list(ACTION, &in_line)?;
        let places: Vec<(i64, i32, i64, LogId)> = tx.query(of.lines, [in_line.into()]).await?;
        for (id, priority, due_time, log) in places {
            lines.entry((of.limit, id)).or_default().push((Reverse(priority), (due_time, log)));
        }
    }
    let is_cleaned = rows.iter().map(|(.., dead)| dead).sum::<i64>() > DEAD_MAX;
    if is_cleaned {
        tx.execute(of.clean, [ids.into()]).await?;
    }
    Ok(Looked { counts: rows.iter().map(|row| (row.0, row.1)).collect(), waiting, is_cleaned })
}
