//! Backfills: runs for the fires of a range that has passed, a few at a time.

use super::conditions::Conditions;
use super::dialect::Kind;
use super::planning::bucket;
use super::row::from_row;
use super::sql::{EXPIRED, ID, ID_VERSION, INIT, is_known};
use super::sql_store::{Transaction, retrying};
use super::values::{clean, list, to_json};
use super::{Backfill, BackfillStore, FoundTasks, PlanStore, Result, SqlStore, StoreError};
use crate::domain::task::Routing;
use crate::domain::task_log::PARENT_SHARD;
use crate::domain::{BackfillId, LogId, NodeId, Refusal, Status, Task, TaskId, TenantId, Trigger};
use async_trait::async_trait;
use std::collections::HashMap;

statements!(
    TAKEN_FIRES = |d| format!(
        "SELECT l.fire_time, l.id, l.version, CASE WHEN l.status = {EXPIRED} AND l.attempt = 0 THEN 1 ELSE 0 END AS never_ran FROM {} \
         {} task_log l ON l.task_id = {{2}} AND l.fire_time = v.n_id AND l.shard_index = {{3}}",
        d.rows(1, ID),
        d.join_in_order()
    ),
    REVIVE_FIRES = |d| {
        d.update_rows(
                "task_log",
                &format!(
                    "status = {INIT}, version = l.version + 1, revision = {{2}}, due_time = {{3}}, finished_at = 0, reason = '', \
                     message = NULL, failures = 0, trigger_kind = {{5}}, priority = 0, params = {{4}}"
                ),
                ID_VERSION,
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {EXPIRED}"),
            )
    },
    INSERT_BACKFILL = |d| format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason, params, trigger_kind, seq, priority, stopping) \
         SELECT v.n_id, t.tenant_id, t.app_id, t.id, t.revision, 0, {{4}}, {{5}}, v.n_bucket, v.n_fire_time, {{3}}, \
         {INIT}, 1, 0, 0, 0, 0, 0, 0, 0, 0, '', {{6}}, {{7}}, t.turn, 0, '' FROM {} {} task t ON t.id = {{2}}",
        d.rows(1, BACKFILL),
        d.join_in_order()
    ),
    INSERT_BACKFILL_RUNS = |d| format!(
        "INSERT INTO backfill_run (id, backfill_id) SELECT v.n_id, {{2}} FROM {} WHERE 1 = 1 {}",
        d.rows(1, BACKFILL),
        d.or_ignore("backfill_run", "id")
    ),
    // What is revived goes and comes anew, as what an edit takes over.
    FORGET_REVIVED = |d| d.delete_from("outbox", &d.rows(1, ID_VERSION), "l.id = v.n_id"),
    WATCH_BACKFILL = |d| format!(
        "INSERT INTO outbox (id, task_id) SELECT l.id, l.task_id FROM {} task_log l ON l.id = v.n_id \
         JOIN task t ON t.id = l.task_id WHERE (t.children > 0 OR t.pause_after_failures > 0) {}",
        d.batch(1, BACKFILL),
        d.or_ignore("outbox", "id")
    ),
);

const BACKFILL: &[(&str, Kind)] = &[("id", Kind::Big), ("fire_time", Kind::Big), ("bucket", Kind::Int)];

const ACTION: &str = "backfill";

/// Fires of the range looked at in one step.
const LOOK_MAX: usize = 1_000;

/// Columns of [`backfill`].
const COLUMNS: &str = "id, tenant_id, task_id, range_from, range_until, next_at, max_concurrent, params, status, written, \
     existing, created_at, finished_at";

#[async_trait]
impl BackfillStore for SqlStore {
    async fn open_backfills(&self, after: BackfillId, limit: u64) -> Result<Vec<Backfill>> {
        let sql = sql!(format!(
            "SELECT {COLUMNS} FROM backfill WHERE status = 'open' AND id > {{1}} ORDER BY id LIMIT {{2}}"
        ));
        self.query(ACTION, &sql, [after.into(), limit.into()]).await
    }

    async fn advance(
        &self,
        node: NodeId,
        of: &Backfill,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<usize> {
        let FoundTasks { mut tasks, unreadable } = self.find_tasks(&[of.task_id]).await?;
        let Some(task) = tasks.pop() else {
            // One that a later release wrote is not gone: a node of that goes on.
            if unreadable.is_empty() {
                self.end_backfill(of.id, "cancelled", now).await?;
            }
            return Ok(0);
        };
        retrying(|| self.advance_once(node, (of, &task), new_id, now)).await
    }
}

impl SqlStore {
    async fn advance_once(
        &self,
        node: NodeId,
        (of, task): (&Backfill, &Task),
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<usize> {
        let Some(until) = of.past_until(now) else { return Ok(0) };
        let tx = self.begin(ACTION).await?;
        let open = sql!(format!(
            "SELECT COUNT(*) FROM backfill_run b JOIN task_log l ON l.id = b.id WHERE b.backfill_id = {{1}} AND \
                 l.status < {}",
            Status::Succeeded as i16
        ));
        let open: Vec<i64> = tx.query(&open, [of.id.into()]).await?;
        let open = open.first().copied().unwrap_or(0);
        let room = usize::try_from(i64::from(of.max_concurrent) - open).unwrap_or(0);
        if room == 0 {
            tx.rollback().await?;
            return Ok(0);
        }
        // The runs of one round have one number. It holds the row, too: a definition, or a child, that comes meanwhile comes
        // before this or after it.
        let hold =
            sql!(format!("UPDATE task SET turn = turn + 1 WHERE id = {{1}} AND revision = {{2}} AND {}", is_known(3)));
        if tx.execute(&hold, [task.id.into(), task.revision.into(), node.into()]).await? == 0 {
            tx.rollback().await?;
            return Ok(0);
        }
        let candidates = task.schedule.fires(of.next_at, until, LOOK_MAX);
        let is_sharded = task.spec.routing == Routing::Sharding;
        let shard = if is_sharded { PARENT_SHARD } else { 0 };
        let instants = list(ACTION, candidates.iter())?;
        let taken: Vec<Taken> = tx.query(&TAKEN_FIRES, [instants.into(), task.id.into(), shard.into()]).await?;
        let taken: HashMap<i64, Taken> = taken.into_iter().map(|taken| (taken.fire_time, taken)).collect();
        let Picked { chosen, revived, existing, next_at } = pick(&candidates, &taken, room);
        let count = chosen.len() + revived.len();
        let (next_at, is_done) = next_at.map_or((until, until == of.range_until), |at| (at, false));
        if is_done && count == 0 && open > 0 {
            // Written to the end; it ends with its last run.
            tx.rollback().await?;
            return Ok(0);
        }
        let ends = is_done && count == 0;
        let step = sql!(
            "UPDATE backfill SET next_at = {3}, written = written + {4}, existing = existing + {5}, \
             status = CASE WHEN {6} = 1 THEN 'done' ELSE status END, finished_at = CASE WHEN {6} = 1 THEN {7} ELSE 0 END \
             WHERE id = {1} AND next_at = {2} AND status = 'open'"
        );
        let values = [
            of.id.into(),
            of.next_at.into(),
            next_at.into(),
            (count as i64).into(),
            existing.into(),
            i32::from(ends).into(),
            now.into(),
        ];
        if tx.execute(&step, values).await? == 0 {
            tx.rollback().await?;
            return Ok(0);
        }
        if !chosen.is_empty() {
            let rows: Vec<_> = chosen
                .iter()
                .map(|at| {
                    let id = new_id();
                    (id, *at, bucket(id))
                })
                .collect();
            let rows = to_json(ACTION, &rows)?;
            let values = [
                rows.clone().into(),
                task.id.into(),
                now.into(),
                shard.into(),
                i32::from(!is_sharded).into(),
                of.params.as_deref().map(clean).into(),
                Trigger::Backfill.as_str().into(),
            ];
            tx.execute(&INSERT_BACKFILL, values).await?;
            self.note_backfilled(&tx, of, rows).await?;
        }
        if !revived.is_empty() {
            // A fire that has a row and never ran gets its run under it.
            let keys = to_json(ACTION, &revived)?;
            let values = [
                keys.into(),
                task.revision.into(),
                now.into(),
                of.params.as_deref().map(clean).into(),
                Trigger::Backfill.as_str().into(),
            ];
            if tx.execute(&REVIVE_FIRES, values).await? < revived.len() as u64 {
                tx.rollback().await?;
                return Ok(0);
            }
            tx.execute(&FORGET_REVIVED, [to_json(ACTION, &revived)?.into()]).await?;
            let rows = to_json(ACTION, &revived.iter().map(|(id, _)| (id, 0, 0)).collect::<Vec<_>>())?;
            self.note_backfilled(&tx, of, rows).await?;
        }
        let given = candidates.iter().take_while(|at| **at < next_at).copied();
        let given: Vec<i64> = given.filter(|at| taken.get(at).is_none_or(|row| row.never_ran)).collect();
        self.note_past_runs(&tx, &given, now).await?;
        tx.commit().await?;
        Ok(count)
    }

    /// Counts these runs for the backfill, and has their ends followed where they matter.
    async fn note_backfilled(&self, tx: &Transaction<'_>, of: &Backfill, rows: String) -> Result<()> {
        tx.execute(&INSERT_BACKFILL_RUNS, [rows.clone().into(), of.id.into()]).await?;
        tx.execute(&WATCH_BACKFILL, [rows.into()]).await.map(drop)
    }

    /// Ends the backfills of a task that is stopped, paused or deleted.
    pub(super) async fn end_backfills(&self, tx: &Transaction<'_>, task_id: TaskId, now: i64) -> Result<()> {
        let sql =
            sql!("UPDATE backfill SET status = 'cancelled', finished_at = {2} WHERE task_id = {1} AND status = 'open'");
        tx.execute(&sql, [task_id.into(), now.into()]).await.map(drop)
    }

    /// Asks for runs of a task's fires in a range.
    pub async fn create_backfill(&self, of: &Backfill, now: i64) -> Result<()> {
        let sql = sql!(format!(
            "INSERT INTO backfill ({COLUMNS}) VALUES ({{1}}, {{2}}, {{3}}, {{4}}, {{5}}, {{4}}, {{6}}, {{7}}, 'open', 0, 0, \
                 {{8}}, 0)"
        ));
        let values = [
            of.id.into(),
            of.tenant_id.into(),
            of.task_id.into(),
            of.range_from.into(),
            of.range_until.into(),
            of.max_concurrent.into(),
            of.params.as_deref().map(clean).into(),
            now.into(),
        ];
        self.execute(ACTION, &sql, values).await.map(drop)
    }

    /// Backfills of a task before the one of that id, newest first.
    pub async fn backfills_of(
        &self,
        tenant_id: TenantId,
        task_id: TaskId,
        before: Option<BackfillId>,
        limit: u64,
    ) -> Result<Vec<Backfill>> {
        let head = format!("SELECT {COLUMNS} FROM backfill WHERE task_id = {{1}} AND tenant_id = {{2}}");
        let mut wanted = Conditions::new(head, vec![task_id.into(), tenant_id.into()]);
        wanted.and("id < ", before);
        self.query_raw(ACTION, wanted.finish(self, "ORDER BY id DESC", limit)).await
    }

    /// Ends a backfill of a task before its time; what it has written runs all the same.
    pub async fn cancel_backfill(&self, tenant_id: TenantId, task_id: TaskId, id: BackfillId, now: i64) -> Result<()> {
        let sql = sql!("SELECT id FROM backfill WHERE id = {1} AND task_id = {2} AND tenant_id = {3}");
        let values = [id.into(), task_id.into(), tenant_id.into()];
        let known = self.query::<BackfillId, _>(ACTION, &sql, values).await?;
        if known.is_empty() {
            return Err(StoreError::of(ACTION, Refusal::not_found("backfill", id)));
        }
        self.end_backfill(id, "cancelled", now).await
    }

    async fn end_backfill(&self, id: BackfillId, status: &'static str, now: i64) -> Result<()> {
        let sql = sql!("UPDATE backfill SET status = {2}, finished_at = {3} WHERE id = {1} AND status = 'open'");
        self.execute(ACTION, &sql, [id.into(), status.into(), now.into()]).await.map(drop)
    }
}

/// A fire that has a row.
struct Taken {
    fire_time: i64,
    id: LogId,
    version: i64,
    never_ran: bool,
}

from_row!(Taken { fire_time, id, version, never_ran });

/// Fires that get a run in this step.
struct Picked {
    /// They have no row yet.
    chosen: Vec<i64>,
    /// They have one that never ran: (id, version).
    revived: Vec<(LogId, i64)>,
    /// Fires passed over, because they have run.
    existing: i64,
    /// Where the next step goes on; `None` at the end of the range.
    next_at: Option<i64>,
}

fn pick(candidates: &[i64], taken: &HashMap<i64, Taken>, room: usize) -> Picked {
    let mut picked = Picked { chosen: Vec::new(), revived: Vec::new(), existing: 0, next_at: None };
    for at in candidates {
        if picked.chosen.len() + picked.revived.len() == room {
            picked.next_at = Some(*at);
            return picked;
        }
        match taken.get(at) {
            None => picked.chosen.push(*at),
            Some(row) if row.never_ran => picked.revived.push((row.id, row.version)),
            Some(_) => picked.existing += 1,
        }
    }
    picked.next_at = candidates.last().map(|last| last + 1).filter(|_| candidates.len() == LOOK_MAX);
    picked
}

from_row!(Backfill {
    id,
    tenant_id,
    task_id,
    range_from,
    range_until,
    next_at,
    max_concurrent,
    params,
    status,
    written,
    existing,
    created_at,
    finished_at,
});
