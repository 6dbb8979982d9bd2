//! Rows → values of the domain.

use super::DispatchedRun;
use super::row::{FromRow, Read, absent, column, from_row};
use super::task_columns::read_spec;
use crate::domain::executor::Pulse;
use crate::domain::routing::Tags;
use crate::domain::{Executor, Owner, Run, Task, TaskId};
use sea_orm::{DbErr, QueryResult};

/// Columns of a [`Run`], of table alias `l`.
pub const RUN_COLUMNS: &str = "l.id, l.version, l.tenant_id, l.app_id, l.task_id, l.revision, l.parent_id, \
     l.shard_index, l.shard_total, l.fire_time, l.due_time, l.attempt, l.failures, l.status, l.reason, l.params, \
     l.trigger_kind, l.seq, l.priority, l.executor_id, l.queued_at";

/// Columns of a [`DispatchedRun`].
pub const DISPATCHED_COLUMNS: &str = "l.id, l.version, l.tenant_id, l.app_id, l.task_id, l.revision, l.parent_id, \
     l.shard_index, l.shard_total, l.fire_time, l.due_time, l.attempt, l.failures, l.status, l.reason, l.params, \
     l.trigger_kind, l.seq, l.priority, l.executor_id, l.queued_at, l.node_id, l.dispatched_at, l.finished_at, l.stopping";

/// Columns of a [`Task`], before those of its definition.
pub const TASK_COLUMNS: &str =
    "id, tenant_id, app_id, revision, next_fire_at, written_until, anchor_at, fires, turn, children, started, script";

/// Columns of an [`Executor`].
pub const EXECUTOR_COLUMNS: &str = "e.id, e.tenant_id, e.app_id, e.instance, e.address, e.tags, e.handlers, \
     e.heartbeat_at, e.draining, e.described_at, e.key_id, e.capacity, e.held, e.running, COALESCE(r.weight, 1) AS weight, \
     COALESCE(r.disabled, 0) AS disabled, e.version, e.node_id, e.plain";

/// Columns of a [`Pulse`], of the same tables.
pub const PULSE_COLUMNS: &str = "e.id, e.heartbeat_at, e.gone_at, e.draining, e.held, e.running, e.capacity, e.node_id, \
     e.key_id, e.described_at, COALESCE(r.weight, 1) AS weight, COALESCE(r.disabled, 0) AS disabled";

/// Whose a row is.
pub fn owner(row: &QueryResult) -> Read<Owner> {
    Ok(Owner { tenant_id: column(row, "tenant_id")?, app_id: column(row, "app_id")? })
}

from_row!(Run {
    id,
    version,
    tenant_id,
    app_id,
    task_id,
    revision,
    parent_id,
    shard_index,
    shard_total,
    fire_time,
    due_time,
    attempt,
    failures,
    status,
    reason,
    params,
    trigger: "trigger_kind",
    seq,
    priority,
    executor_id,
    queued_at,
    has_rate_slot = absent,
});

from_row!(DispatchedRun { run = FromRow::from_row, node_id, dispatched_at, finished_at, stopping });

impl FromRow for Task {
    fn from_row(row: &QueryResult) -> Read<Self> {
        let (id, anchor): (TaskId, i64) = (column(row, "id")?, column(row, "anchor_at")?);
        let spec = read_spec(row)?;
        let schedule = spec.to_schedule(anchor, id).map_err(|error| DbErr::Type(format!("its schedule: {error}")))?;
        let children: i32 = column(row, "children")?;
        Ok(Self {
            id,
            tenant_id: column(row, "tenant_id")?,
            app_id: column(row, "app_id")?,
            revision: column(row, "revision")?,
            tags: Tags { all: spec.tags.clone(), any: spec.tags_any.clone(), none: spec.tags_none.clone() },
            spec,
            schedule,
            next_fire_at: column(row, "next_fire_at")?,
            written_until: column(row, "written_until")?,
            fires: column(row, "fires")?,
            turn: column(row, "turn")?,
            has_children: children > 0,
            is_started: column(row, "started")?,
            script: column(row, "script")?,
        })
    }
}

from_row!(Pulse {
    id,
    heartbeat_at,
    gone_at,
    draining,
    disabled,
    weight,
    held,
    running,
    node_id,
    capacity,
    key_id,
    described_at,
});

from_row!(Executor {
    id,
    tenant_id,
    app_id,
    instance,
    address,
    tags,
    handlers,
    heartbeat_at,
    draining,
    described_at,
    key_id,
    capacity,
    held,
    running,
    weight,
    disabled,
    version,
    node_id,
    plain,
});
