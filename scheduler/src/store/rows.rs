//! Rows → values of the domain.

use super::DispatchedRun;
use super::task_columns::read_spec;
use super::values::json;
use crate::domain::routing::Tags;
use crate::domain::schedule::Schedule;
use crate::domain::{Executor, Reason, Run, Status, Task, TaskId, Trigger};
use sea_orm::{DbErr, QueryResult};

/// Columns of [`run`], of table alias `l`.
pub const RUN_COLUMNS: &str = "l.id, l.version, l.tenant_id, l.app_id, l.task_id, l.revision, l.parent_id, \
     l.shard_index, l.shard_total, l.fire_time, l.due_time, l.attempt, l.failures, l.status, l.reason, l.params, \
     l.trigger_kind, l.seq, l.priority, l.executor_id, l.queued_at";

/// Columns of [`dispatched_run`].
pub const DISPATCHED_COLUMNS: &str = "l.id, l.version, l.tenant_id, l.app_id, l.task_id, l.revision, l.parent_id, \
     l.shard_index, l.shard_total, l.fire_time, l.due_time, l.attempt, l.failures, l.status, l.reason, l.params, \
     l.trigger_kind, l.seq, l.priority, l.executor_id, l.queued_at, l.node_id, l.dispatched_at, l.finished_at, l.stopping";

/// How many those are.
pub const DISPATCHED_COUNT: usize = 25;

/// Columns of [`task`], before those of its definition.
pub const TASK_COLUMNS: &str =
    "id, tenant_id, app_id, revision, next_fire_at, written_until, anchor_at, fires, turn, children, started";

/// How many those are.
const TASK_COUNT: usize = 11;

/// Columns of [`executor`].
pub const EXECUTOR_COLUMNS: &str = "e.id, e.tenant_id, e.app_id, e.instance, e.address, e.tags, e.handlers, \
     e.heartbeat_at, e.draining, e.described_at, e.key_id, e.capacity, e.held, e.running, COALESCE(r.weight, 1), \
     COALESCE(r.disabled, 0), e.version, e.node_id";

pub fn run(row: &QueryResult) -> std::result::Result<Run, DbErr> {
    let status: i32 = row.try_get_by_index(13)?;
    let reason: String = row.try_get_by_index(14)?;
    Ok(Run {
        id: row.try_get_by_index(0)?,
        version: row.try_get_by_index(1)?,
        tenant_id: row.try_get_by_index(2)?,
        app_id: row.try_get_by_index(3)?,
        task_id: row.try_get_by_index(4)?,
        revision: row.try_get_by_index(5)?,
        parent_id: row.try_get_by_index(6)?,
        shard_index: row.try_get_by_index(7)?,
        shard_total: row.try_get_by_index(8)?,
        fire_time: row.try_get_by_index(9)?,
        due_time: row.try_get_by_index(10)?,
        attempt: row.try_get_by_index(11)?,
        failures: row.try_get_by_index(12)?,
        status: i16::try_from(status)
            .ok()
            .and_then(Status::from_number)
            .ok_or_else(|| DbErr::Type(format!("task_log.status {status} is none of ours")))?,
        reason: Reason::parse(&reason),
        params: row.try_get_by_index(15)?,
        trigger: Trigger::parse(&row.try_get_by_index::<String>(16)?),
        seq: row.try_get_by_index(17)?,
        priority: row.try_get_by_index(18)?,
        executor_id: row.try_get_by_index(19)?,
        queued_at: row.try_get_by_index(20)?,
        has_rate_slot: false,
    })
}

pub fn dispatched_run(row: &QueryResult) -> std::result::Result<DispatchedRun, DbErr> {
    Ok(DispatchedRun {
        run: run(row)?,
        node_id: row.try_get_by_index(21)?,
        dispatched_at: row.try_get_by_index(22)?,
        finished_at: row.try_get_by_index(23)?,
        stopping: Reason::parse(&row.try_get_by_index::<String>(24)?),
    })
}

pub fn task(row: &QueryResult) -> std::result::Result<Task, DbErr> {
    let (id, anchor): (TaskId, i64) = (row.try_get_by_index(0)?, row.try_get_by_index(6)?);
    let spec = read_spec(row, TASK_COUNT)?;
    // One definition that an older version wrote and this one cannot read must not keep the
    // others from firing.
    let schedule = spec.to_schedule(anchor, id).unwrap_or_else(|error| {
        tracing::error!(task = id.0, %error, "a stored schedule cannot be read; its task fires only manually");
        Schedule::none()
    });
    let children: i32 = row.try_get_by_index(9)?;
    Ok(Task {
        id,
        tenant_id: row.try_get_by_index(1)?,
        app_id: row.try_get_by_index(2)?,
        revision: row.try_get_by_index(3)?,
        tags: Tags { all: spec.tags.clone(), any: spec.tags_any.clone(), none: spec.tags_none.clone() },
        spec,
        schedule,
        next_fire_at: row.try_get_by_index(4)?,
        written_until: row.try_get_by_index(5)?,
        fires: row.try_get_by_index(7)?,
        turn: row.try_get_by_index(8)?,
        has_children: children > 0,
        is_started: row.try_get_by_index::<i32>(10)? != 0,
    })
}

pub fn executor(row: &QueryResult) -> std::result::Result<Executor, DbErr> {
    let draining: i32 = row.try_get_by_index(8)?;
    Ok(Executor {
        id: row.try_get_by_index(0)?,
        tenant_id: row.try_get_by_index(1)?,
        app_id: row.try_get_by_index(2)?,
        instance: row.try_get_by_index(3)?,
        address: row.try_get_by_index(4)?,
        tags: json(row, 5)?,
        handlers: json(row, 6)?,
        heartbeat_at: row.try_get_by_index(7)?,
        draining: draining != 0,
        described_at: row.try_get_by_index(9)?,
        key_id: row.try_get_by_index(10)?,
        capacity: row.try_get_by_index(11)?,
        held: row.try_get_by_index(12)?,
        running: row.try_get_by_index(13)?,
        weight: row.try_get_by_index(14)?,
        disabled: row.try_get_by_index::<i32>(15)? != 0,
        version: row.try_get_by_index(16)?,
        node_id: row.try_get_by_index(17)?,
    })
}
