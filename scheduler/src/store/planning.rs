//! Writing task logs ahead.

use super::cluster::LEASE_RENEW;
use super::dialect::{Dialect, Kind};
use super::row::{FromRow as _, column};
use super::rows::TASK_COLUMNS;
use super::sql::{CANCELLED, GIVEN_UP, INIT, SUCCEEDED, is_known};
use super::sql_store::retrying;
use super::task_columns::spec_list;
use super::template::Text as _;
use super::values::{list, to_json};
use super::{BUCKETS, Fence, FoundTasks, PlanStore, Result, SqlStore, StoreError, Writer};
use crate::domain::plan::{Fire, Plan};
use crate::domain::task::NEVER;
use crate::domain::task_log::PARENT_SHARD;
use crate::domain::{LogId, Reason, Status, Task, TaskId, TenantId, Trigger};
use async_trait::async_trait;
use sea_orm::QueryResult;
use std::collections::HashSet;

statements!(
    KNOWS = |_| format!("SELECT CASE WHEN {} THEN 1 ELSE 0 END AS knows", is_known(1)),
    TASKS_DUE = |_| format!(
        "SELECT {TASK_COLUMNS}, {} FROM task WHERE next_fire_at <= {{1}} ORDER BY next_fire_at LIMIT {{2}} OFFSET {{3}}",
        spec_list("")
    ),
    TASKS_DUE_BESIDES = |d| format!(
        "SELECT {TASK_COLUMNS}, {} FROM task WHERE next_fire_at <= {{1}} AND tenant_id NOT IN {} ORDER BY next_fire_at \
         LIMIT {{2}} OFFSET {{3}}",
        spec_list(""),
        d.ids(4)
    ),
    TASKS = |d| format!("SELECT {TASK_COLUMNS}, {} FROM task WHERE id IN {}", spec_list(""), d.ids(1)),
    MOVE_WATERMARKS = |d| d.update_rows(
        "task",
        "next_fire_at = v.n_to, fires = l.fires + v.n_counted, turn = l.turn + v.n_turns",
        MARK,
        // A plan made before the first child came would leave its runs without a follow-up;
        // the next one knows.
        "l.id = v.n_id AND l.revision = v.n_revision AND l.next_fire_at = v.n_from AND \
         (v.n_outbox = 1 OR l.children = 0)",
    ),
    MOVED_TASKS = |d| format!(
        "SELECT t.id FROM {} task t ON t.id = v.n_id AND t.revision = v.n_revision AND t.next_fire_at = v.n_to \
         AND (v.n_outbox = 1 OR t.children = 0)",
        d.batch(1, MARK)
    ),
    WATERMARK = |_| "SELECT MIN(next_fire_at) FROM task".into(),
    SKIPPED = super::skips::skipped,
    INSERT_FIRES = |d| insert_fires(
        d,
        FIRE,
        "t.id = v.n_task_id AND t.revision = v.n_revision AND t.next_fire_at = v.n_next",
        &format!(
            "v.n_shard_index, CASE WHEN v.n_shard_index < 0 THEN 0 ELSE 1 END, v.n_bucket, v.n_fire_time, v.n_due_time, \
             v.n_status, 1, 0, 0, 0, 0, 0, 0, 0, {}, v.n_reason, v.n_message, v.n_trigger_kind, v.n_seq",
            end_of_fire()
        ),
    ),
    INSERT_PLAIN_FIRES = |d| insert_fires(
        d,
        PLAIN_FIRE,
        "t.id = v.n_task_id",
        &format!(
            "0, 1, v.n_bucket, v.n_fire_time, v.n_fire_time, {INIT}, 1, 0, 0, 0, 0, 0, 0, 0, 0, '', NULL, 'schedule', v.n_seq"
        ),
    ),
    KEEP_GIVEN_UP = |d| super::attempts::keep_given_up(d, &d.batch(1, FIRE), &may_take_over()),
    TAKE_OVER_FIRES = |d| {
        d.update_rows(
        "task_log",
        &format!(
            "status = v.n_status, revision = v.n_revision, due_time = v.n_due_time, reason = v.n_reason, \
             message = v.n_message, version = l.version + 1, failures = 0, trigger_kind = v.n_trigger_kind, seq = v.n_seq, \
             priority = v.n_priority, node_id = 0, executor_id = 0, \
             finished_at = {}, shard_total = CASE WHEN l.shard_index = -1 THEN 0 ELSE l.shard_total END",
            end_of_fire()
        ),
        FIRE,
        &may_take_over(),
    )
    },
    // The row of what is taken over goes, and comes anew: who processes its old end meanwhile has to wait for this, or this
    // for them. An insert that finds the row would do neither. What has ended under this definition keeps its row: a plan may
    // come again, after a fire before it was restored, or when it is not known what came of it.
    FORGET_ENDS = |d| {
        d.delete_from(
        "outbox",
        &format!(
            "(SELECT t.id AS n_id FROM {} task_log t ON t.task_id = v.n_task_id AND t.fire_time = v.n_fire_time AND \
             t.shard_index = v.n_shard_index WHERE t.revision = v.n_revision AND (+t.status < {SUCCEEDED} OR \
             (+t.status = v.n_status AND t.finished_at = {{2}}))) v",
            d.batch(1, FIRE)
        ),
        "l.id = v.n_id",
    )
    },
    WATCH_FIRES = |d| format!(
        "INSERT INTO outbox (id, task_id) SELECT l.id, l.task_id FROM {} task_log l ON \
         l.task_id = v.n_task_id AND l.fire_time = v.n_fire_time AND l.shard_index = v.n_shard_index \
         WHERE l.revision = v.n_revision AND +l.status < {SUCCEEDED} {}",
        d.batch(1, FIRE),
        d.or_ignore("outbox", "id")
    ),
    // A run of a fixed delay has another one's row at its instant: the chain goes on beside it. (A plan that comes again
    // finds the row of its first try.)
    MOVE_CHAINS_ON = |d| {
        d.update_rows(
        "task",
        "next_fire_at = v.n_instead, fires = CASE WHEN l.fires > 0 THEN l.fires - 1 ELSE 0 END",
        CHAIN,
        &format!(
            "l.id = v.n_id AND l.revision = v.n_revision AND +l.next_fire_at = {NEVER} AND NOT EXISTS (SELECT 1 FROM task_log f \
             WHERE f.task_id = v.n_id AND f.fire_time = v.n_fire_time AND f.shard_index = v.n_shard_index AND \
             (f.id = v.n_log OR (f.revision = v.n_revision AND f.trigger_kind IN ('schedule', 'misfire'))))"
        ),
    )
    },
    // Of task `{1}` under revision `{2}`, to the instant `{3}`, at `{4}`. Both take the watermark before that is
    // set: MySQL assigns left to right.
    MOVE_BACK = |_| format!(
        "UPDATE task SET written_until = CASE WHEN next_fire_at = {NEVER} THEN {{4}} + 86400000 WHEN next_fire_at > \
         written_until THEN next_fire_at ELSE written_until END, fires = {}, next_fire_at = {{3}} \
         WHERE id = {{1}} AND revision = {{2}} AND started = 1 AND next_fire_at > {{3}}",
        fires_before("{3}")
    ),
);

const FIRE: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("task_id", Kind::Big),
    ("revision", Kind::Big),
    ("next", Kind::Big),
    ("fire_time", Kind::Big),
    ("due_time", Kind::Big),
    ("status", Kind::Int),
    ("bucket", Kind::Int),
    ("shard_index", Kind::Int),
    ("reason", Kind::Text),
    ("message", Kind::Text),
    ("trigger_kind", Kind::Text),
    ("seq", Kind::Big),
    ("priority", Kind::Int),
];

/// One that is due at the instant that its schedule names, as nearly all are, of a task that the transaction holds: a column costs a
/// database about as much as an entry of an index.
const PLAIN_FIRE: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("task_id", Kind::Big),
    ("bucket", Kind::Int),
    ("fire_time", Kind::Big),
    ("seq", Kind::Big),
    ("priority", Kind::Int),
];

const MARK: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("revision", Kind::Big),
    ("from", Kind::Big),
    ("to", Kind::Big),
    ("counted", Kind::Big),
    ("turns", Kind::Big),
    ("outbox", Kind::Int),
];

const CHAIN: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("revision", Kind::Big),
    ("instead", Kind::Big),
    ("log", Kind::Big),
    ("fire_time", Kind::Big),
    ("shard_index", Kind::Int),
];

/// `values` are those of the columns from `shard_index` to `seq`.
fn insert_fires(d: Dialect, columns: &[(&str, Kind)], of: &str, values: &str) -> String {
    format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, \
         bucket, fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, \
         dispatched_at, started_at, finished_at, reason, message, trigger_kind, seq, priority) \
         SELECT v.n_id, t.tenant_id, t.app_id, t.id, t.revision, 0, {values}, v.n_priority FROM {} task t ON {of} \
         WHERE 1 = 1 {}",
        d.batch(1, columns),
        d.or_ignore("task_log", "task_id, fire_time, shard_index")
    )
}

/// When the fire `v` ended: what is written as missed, at `{2}` (epoch ms).
fn end_of_fire() -> String {
    format!("CASE WHEN v.n_status < {SUCCEEDED} THEN 0 ELSE {{2}} END")
}

/// Whether the fire `v` takes over the log `l`, which an earlier definition gave up.
fn may_take_over() -> String {
    format!(
        "l.task_id = v.n_task_id AND l.fire_time = v.n_fire_time AND l.shard_index = v.n_shard_index AND \
         l.parent_id = 0 AND +l.status = {CANCELLED} AND l.revision < v.n_revision AND \
         l.reason IN ({GIVEN_UP})"
    )
}

#[async_trait]
impl PlanStore for SqlStore {
    async fn tasks_due(&self, until: i64, besides: &[TenantId], limit: u64) -> Result<Vec<Task>> {
        const ACTION: &str = "read the tasks that fall due";
        let left_out = list(ACTION, besides.iter())?;
        let mut passed = 0;
        loop {
            let statement = if besides.is_empty() {
                TASKS_DUE.on(self.backend).bind([until.into(), limit.into(), passed.into()])
            } else {
                let values = [until.into(), limit.into(), passed.into(), left_out.clone().into()];
                TASKS_DUE_BESIDES.on(self.backend).bind(values)
            };
            let rows = self.fetch(ACTION, statement).await?;
            let count = rows.len() as u64;
            let mut found = read_tasks(&rows)?;
            self.fill_calendars(&mut found).await?;
            // A page of none but these must not hide what is behind it.
            if !found.tasks.is_empty() || count < limit {
                return Ok(found.tasks);
            }
            passed += count;
        }
    }

    async fn find_tasks(&self, ids: &[TaskId]) -> Result<FoundTasks> {
        const ACTION: &str = "read tasks";
        let ids = list(ACTION, ids.iter())?;
        let rows = self.fetch(ACTION, TASKS.on(self.backend).bind([ids.into()])).await?;
        let mut found = read_tasks(&rows)?;
        self.fill_calendars(&mut found).await?;
        Ok(found)
    }

    async fn skipped(&self, since: &[(TaskId, i64)], until: i64, limit: u64) -> Result<Vec<(TaskId, i64)>> {
        const ACTION: &str = "list cancelled fires";
        let values = [to_json(ACTION, since)?.into(), until.into(), limit.into()];
        self.query(ACTION, &SKIPPED, values).await
    }

    async fn write_ahead(&self, by: Writer, plans: &[Plan], now: i64) -> Result<Option<HashSet<TaskId>>> {
        retrying(|| self.write_ahead_once(by, plans, now)).await
    }
}

/// Reads tasks; one that a later release wrote, and this one cannot read, must not keep the others from firing.
pub(super) fn read_tasks(rows: &[QueryResult]) -> Result<FoundTasks> {
    let mut found = FoundTasks::default();
    for row in rows {
        match Task::from_row(row) {
            Ok(task) => found.tasks.push(task),
            Err(error) => {
                let id: TaskId = column(row, "id").map_err(|error| StoreError::from_db("read tasks", &error))?;
                tracing::error!(task = id.0, %error, "a task cannot be read; it waits for a node of a later release");
                found.unreadable.push(id);
            }
        }
    }
    Ok(found)
}

impl SqlStore {
    /// The earliest fire that is not written yet, of all tasks, ms; far away when there is none.
    pub async fn watermark(&self) -> Result<i64> {
        let earliest: Vec<Option<i64>> = self.query("read the watermark", &WATERMARK, []).await?;
        Ok(earliest.first().copied().flatten().unwrap_or(NEVER))
    }

    async fn write_ahead_once(&self, by: Writer, plans: &[Plan], now: i64) -> Result<Option<HashSet<TaskId>>> {
        const ACTION: &str = "write task logs ahead";
        let marks: Vec<_> = plans.iter().map(mark).collect();
        let marks = to_json(ACTION, &marks)?;
        let tx = self.begin(ACTION).await?;
        let may_write = match by {
            // Renewing inside the transaction holds the lease's row until the commit: a node
            // that lost the lease meanwhile writes nothing.
            Writer::Lease(Fence { lease, node, number, ttl_ms }) => {
                let values = [lease.as_str().into(), node.into(), number.into(), ttl_ms.into()];
                tx.execute(&LEASE_RENEW, values).await? == 1
            }
            Writer::Node(node) => tx.query::<i32, _>(&KNOWS, [node.into()]).await? == [1],
        };
        if !may_write {
            tx.rollback().await?;
            return Ok(None);
        }
        // The watermark first: it locks exactly the tasks that are still as planned, so that an
        // edit or a stop comes either before (and this plan writes nothing) or after (and
        // cancels what it finds written).
        let held = tx.execute(&MOVE_WATERMARKS, [marks.clone().into()]).await? == plans.len() as u64;
        let moved: HashSet<TaskId> = if held {
            plans.iter().map(|plan| plan.task_id).collect()
        } else {
            let read = tx.query(&MOVED_TASKS, [marks.into()]).await?;
            read.into_iter().collect()
        };
        let written = fires_of_moved(plans, &moved);
        let fires_of = |which: &dyn Fn(&Plan) -> bool| {
            let chosen = written.iter().filter(|(plan, _)| which(plan));
            chosen.map(|(plan, fire)| row(plan, fire)).collect::<Vec<_>>()
        };
        let takeovers = fires_of(&|plan| plan.takes_over);
        if !takeovers.is_empty() {
            let takeovers = to_json(ACTION, &takeovers)?;
            tx.execute(&KEEP_GIVEN_UP, [takeovers.clone().into()]).await?;
            tx.execute(&TAKE_OVER_FIRES, [takeovers.into(), now.into()]).await?;
        }
        let (plain, other): (Vec<_>, Vec<_>) = written.iter().partition(|(plan, fire)| held && is_plain(plan, fire));
        if !plain.is_empty() {
            let plain: Vec<_> = plain.into_iter().map(|(plan, fire)| plain_row(plan, fire)).collect();
            tx.execute(&INSERT_PLAIN_FIRES, [to_json(ACTION, &plain)?.into()]).await?;
        }
        if !other.is_empty() {
            let other: Vec<_> = other.into_iter().map(|(plan, fire)| row(plan, fire)).collect();
            tx.execute(&INSERT_FIRES, [to_json(ACTION, &other)?.into(), now.into()]).await?;
        }
        let instants: Vec<i64> = written.iter().map(|(_, fire)| fire.fire_time).collect();
        self.note_past_runs(&tx, &instants, now).await?;
        let taken_over = fires_of(&|plan| plan.outbox && plan.takes_over);
        if !taken_over.is_empty() {
            tx.execute(&FORGET_ENDS, [to_json(ACTION, &taken_over)?.into(), now.into()]).await?;
        }
        let watched = fires_of(&|plan| plan.outbox);
        if !watched.is_empty() {
            tx.execute(&WATCH_FIRES, [to_json(ACTION, &watched)?.into()]).await?;
        }
        let chains: Vec<_> = plans.iter().filter(|plan| moved.contains(&plan.task_id)).filter_map(chain).collect();
        if !chains.is_empty() {
            tx.execute(&MOVE_CHAINS_ON, [to_json(ACTION, &chains)?.into()]).await?;
        }
        tx.commit().await?;
        tracing::trace!(tasks = moved.len(), logs = written.len(), now, "task logs written ahead");
        Ok(Some(moved))
    }
}

/// `task.fires` without the fires from `first` up to the watermark, which will be planned, and
/// counted, again. Those that were given up untried count no more, nor those that executors gave up
/// for a stop or a pause; what they give up for an edit counts until it is planned again.
pub(super) fn fires_before(first: &str) -> String {
    let again = format!(
        "(SELECT COUNT(*) FROM task_log l WHERE l.task_id = task.id AND l.fire_time >= {first} AND \
         l.fire_time < task.next_fire_at AND l.parent_id = 0 AND l.trigger_kind IN ('schedule', 'misfire') AND \
         l.reason <> 'misfire_skipped' AND NOT (l.status = {} AND ((l.attempt = 0 AND l.reason = 'task_edited') OR \
         (l.failures = 0 AND l.reason IN ('task_stopped', 'task_paused')))))",
        Status::Cancelled as i16
    );
    format!("CASE WHEN fires > {again} THEN fires - {again} ELSE 0 END")
}

/// What moves a watermark: from where, to where, how many fires and runs that makes, and whether the
/// plan knows that their ends have consequences.
fn mark(plan: &Plan) -> (TaskId, i64, i64, i64, i64, i64, i32) {
    let runs = plan.counted();
    (plan.task_id, plan.revision, plan.from, plan.to, runs, runs, i32::from(plan.outbox))
}

/// The run of a fixed delay, and where it goes if its instant is taken.
fn chain(plan: &Plan) -> Option<(TaskId, i64, i64, LogId, i64, i32)> {
    let run = plan.fires.iter().find(|fire| plan.instead != NEVER && fire.status == Status::Init)?;
    Some((plan.task_id, plan.revision, plan.instead, run.id, run.fire_time, shard_of(plan)))
}

fn shard_of(plan: &Plan) -> i32 {
    if plan.sharded { PARENT_SHARD } else { 0 }
}

/// The fires of the plans whose tasks have moved.
fn fires_of_moved<'a>(plans: &'a [Plan], moved: &HashSet<TaskId>) -> Vec<(&'a Plan, &'a Fire)> {
    let plans = plans.iter().filter(|plan| moved.contains(&plan.task_id));
    plans.flat_map(|plan| plan.fires.iter().map(move |fire| (plan, fire))).collect()
}

/// Whether all that its row has to say is in [`PLAIN_FIRE`].
fn is_plain(plan: &Plan, fire: &Fire) -> bool {
    fire.status == Status::Init
        && fire.due_time == fire.fire_time
        && fire.reason == Reason::None
        && fire.trigger == Trigger::Schedule
        && fire.message.is_empty()
        && !plan.sharded
}

fn plain_row(plan: &Plan, fire: &Fire) -> (LogId, TaskId, i64, i64, i64, i32) {
    (fire.id, plan.task_id, bucket_of(plan, fire), fire.fire_time, fire.seq, plan.priority)
}

fn bucket_of(plan: &Plan, fire: &Fire) -> i64 {
    if plan.together { bucket(plan.task_id) } else { bucket(fire.id) }
}

type Row<'a> = (LogId, TaskId, i64, i64, i64, i64, i16, i64, i32, &'a str, Option<&'a str>, &'a str, i64, i32);

fn row<'a>(plan: &Plan, fire: &'a Fire) -> Row<'a> {
    (
        fire.id,
        plan.task_id,
        plan.revision,
        plan.to,
        fire.fire_time,
        fire.due_time,
        fire.status as i16,
        bucket_of(plan, fire),
        shard_of(plan),
        fire.reason.as_str(),
        (!fire.message.is_empty()).then_some(fire.message.as_str()),
        fire.trigger.as_str(),
        fire.seq,
        plan.priority,
    )
}

/// Spreads ids over the buckets that nodes share out among themselves (Fibonacci hashing,
/// Knuth, TAOCP 3, 6.4): ids of one millisecond differ only in their low bits.
pub(super) fn bucket(id: impl Into<i64>) -> i64 {
    let spread = (id.into() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread as i64) % BUCKETS
}
