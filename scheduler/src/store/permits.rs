//! Permits of runs that may only run so many at once, and the state that routing remembers.
//!
//! A permit is a row beside the log. It counts while the log is DISPATCHED, or QUEUED with the
//! version for which it was given: so the end of a run, however it comes, gives it back without a
//! statement of its own, and a node that dies leaves nothing behind that counts.
//!
//! A permit is given to the row as it is: what asks with a version that the row no longer has is a copy that
//! was left behind, and neither gets a permit nor touches the one that is there.
//!
//! With the version's negative the row says that the run waits: where runs keep their order, later
//! ones on other nodes do not pass it. That, too, ends with the row's state.

use super::dialect::{Dialect, Kind};
use super::row::{Column, from_row};
use super::rows::DISPATCHED_COLUMNS;
use super::sql::{CANCELLED, DISPATCHED, EXPIRED, ID, ID_VERSION, QUEUED};
use super::sql_store::{Transaction, retrying};
use super::template::Text;
use super::values::{list, to_json};
use super::{PermitStore, Result, SqlStore};
use crate::domain::permit::{Granted, Held, PermitRequest, Standing, grant};
use crate::domain::rate_limit::{self, Slot};
use crate::domain::routing::{Use, UseChange};
use crate::domain::{LogId, Reason, TaskId};
use async_trait::async_trait;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

statements!(
    SCOPE_LOCK = |d| scope_lock(d),
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
    PERMITS_WAITING = |d| format!(
        "SELECT p.task_id, MIN(l.due_time) FROM permit p JOIN task_log l ON l.id = p.id WHERE p.task_id IN {} \
         AND {WAITS} GROUP BY p.task_id",
        d.ids(1)
    ),
    PERMITS_ASKED = |d| format!(
        "SELECT l.id, COALESCE(p.version, 0) AS version FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version \
         LEFT JOIN permit p ON p.id = l.id WHERE +l.status = {QUEUED}",
        d.batch(1, ID_VERSION)
    ),
    PERMIT_BACK = |d| d.update_rows("permit", "version = -l.version", ID, "l.id = v.n_id AND l.version > 0"),
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
        "SELECT l.task_id, l.fire_time FROM {} task_log l ON l.task_id = v.n_id AND l.fire_time >= v.n_from \
         WHERE ((l.due_time < {{2}} AND l.trigger_kind = 'schedule') OR l.trigger_kind = 'misfire') AND l.parent_id = 0 AND \
         +l.status NOT IN ({EXPIRED}, {CANCELLED}) \
         ORDER BY l.fire_time DESC LIMIT {{3}}",
        d.batch(1, &[("id", Kind::Big), ("from", Kind::Big)])
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
         WHERE p.{owner} IN {} AND (l.id IS NULL OR NOT ({HOLDS} OR {WAITS})) ORDER BY p.id LIMIT 1000) dead)",
        d.ids(1)
    )
}

/// How many permits count of each of these scopes.
fn permits(d: Dialect, owner: &str) -> String {
    format!(
        "SELECT p.{owner}, COUNT(*) FROM permit p JOIN task_log l ON l.id = p.id WHERE p.{owner} IN {} AND {HOLDS} \
         GROUP BY p.{owner}",
        d.ids(1)
    )
}

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

    async fn release(&self, ids: &[LogId]) -> Result<()> {
        let ids = list(ACTION, ids.iter())?;
        self.execute(ACTION, &PERMIT_BACK, [ids.into()]).await.map(drop)
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
        let of_tasks: BTreeSet<TaskId> = asks.iter().map(|ask| ask.task_id).collect();
        tx.execute(&CLEAN_TASKS, [list(ACTION, &of_tasks)?.into()]).await?;
        // What is counted is kept as small as what counts.
        for (clean, scopes) in [(&CLEAN_APPS, &apps), (&CLEAN_TENANTS, &tenants)] {
            if !scopes.is_empty() {
                tx.execute(clean, [list(ACTION, scopes)?.into()]).await?;
            }
        }
        let keys = to_json(ACTION, &asks.iter().map(|ask| (ask.id, ask.version)).collect::<Vec<_>>())?;
        let permits: HashMap<LogId, i64> = tx.query(&PERMITS_ASKED, [keys.into()]).await?.into_iter().collect();
        let mut held = Held {
            tasks: count_permits(&tx, &PERMITS_OF_TASKS, &tasks).await?,
            apps: count_permits(&tx, &PERMITS_OF_APPS, &apps).await?,
            tenants: count_permits(&tx, &PERMITS_OF_TENANTS, &tenants).await?,
            waiting: HashMap::new(),
        };
        let in_order: BTreeSet<TaskId> = asks.iter().filter(|ask| ask.in_order).map(|ask| ask.task_id).collect();
        if !in_order.is_empty() {
            held.waiting = tx.query(&PERMITS_WAITING, [list(ACTION, &in_order)?.into()]).await?.into_iter().collect();
        }
        let (granted, changes) =
            grant(asks, &|ask| permits.get(&ask.id).map(|version| Standing::of(ask, *version)), held);
        if changes.is_empty() {
            tx.rollback().await?;
            return Ok(granted);
        }
        let rows: Vec<_> = changes
            .iter()
            .map(|(ask, is_granted)| {
                let version = if *is_granted { ask.version } else { -ask.version };
                (ask.id, ask.tenant_id, ask.app_id, ask.task_id, version)
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

/// Permits that count, of each of these tasks, apps or tenants.
async fn count_permits<Id: Column + From<i64> + Eq + Hash>(
    tx: &Transaction<'_>,
    sql: &impl Text,
    scopes: &BTreeSet<i64>,
) -> Result<HashMap<Id, i64>> {
    if scopes.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(tx.query(sql, [list(ACTION, scopes)?.into()]).await?.into_iter().collect())
}
