//! Rows → values of the domain.

use super::{HandedRun, Result, StoreError, StoreErrorKind};
use crate::domain::cron::CronSchedule;
use crate::domain::executor::WEIGHT_DEFAULT;
use crate::domain::task::Schedule;
use crate::domain::{Executor, Reason, Run, Status, Task};
use chrono_tz::Tz;
use sea_orm::{DbErr, QueryResult};
use serde::de::DeserializeOwned;

/// Columns of [`run`], of table alias `l`.
pub const RUN_COLUMNS: &str = "l.id, l.version, l.tenant_id, l.app_id, l.task_id, l.revision, l.parent_id, \
     l.shard_index, l.shard_total, l.fire_time, l.due_time, l.attempt, l.failures, l.status, l.reason, l.params";

/// Columns of [`handed_run`].
pub const HANDED_COLUMNS: &str = "l.id, l.version, l.tenant_id, l.app_id, l.task_id, l.revision, l.parent_id, \
     l.shard_index, l.shard_total, l.fire_time, l.due_time, l.attempt, l.failures, l.status, l.reason, l.params, \
     l.node_id, l.executor_id, l.dispatched_at, l.finished_at";

/// Columns of [`task`].
pub const TASK_COLUMNS: &str = "id, tenant_id, app_id, revision, name, handler, params, cron, time_zone, \
     next_fire_at, written_until, routing, tags, failure_strategy, max_retries, retry_interval_ms, \
     expired_strategy, expire_after_ms, misfire_strategy, timeout_ms, delivery";

/// Columns of [`executor`].
pub const EXECUTOR_COLUMNS: &str = "id, tenant_id, app_id, instance, address, tags, handlers, heartbeat_at, \
     draining, described_at, key_id";

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
    })
}

pub fn handed_run(row: &QueryResult) -> std::result::Result<HandedRun, DbErr> {
    Ok(HandedRun {
        run: run(row)?,
        node_id: row.try_get_by_index(16)?,
        executor_id: row.try_get_by_index(17)?,
        dispatched_at: row.try_get_by_index(18)?,
        finished_at: row.try_get_by_index(19)?,
    })
}

pub fn task(row: &QueryResult) -> std::result::Result<Task, DbErr> {
    let cron: String = row.try_get_by_index(7)?;
    let zone: String = row.try_get_by_index(8)?;
    Ok(Task {
        id: row.try_get_by_index(0)?,
        tenant_id: row.try_get_by_index(1)?,
        app_id: row.try_get_by_index(2)?,
        revision: row.try_get_by_index(3)?,
        name: row.try_get_by_index(4)?,
        handler: row.try_get_by_index(5)?,
        params: row.try_get_by_index(6)?,
        // One definition that an older version wrote and this one cannot read must not keep the
        // others from firing.
        schedule: schedule(&cron, &zone).unwrap_or_else(|error| {
            tracing::error!(cron, zone, error, "a stored schedule cannot be read; its task fires only by hand");
            Schedule::None
        }),
        next_fire_at: row.try_get_by_index(9)?,
        written_until: row.try_get_by_index(10)?,
        routing: word(row, 11)?,
        tags: json(row, 12)?,
        failure_strategy: word(row, 13)?,
        max_retries: row.try_get_by_index(14)?,
        retry_interval_ms: row.try_get_by_index(15)?,
        expired_strategy: word(row, 16)?,
        expire_after_ms: row.try_get_by_index(17)?,
        misfire_strategy: word(row, 18)?,
        timeout_ms: row.try_get_by_index(19)?,
        delivery: word(row, 20)?,
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
        disabled: false,
        weight: WEIGHT_DEFAULT,
        capacity: 0,
        held: 0,
        running: 0,
        described_at: row.try_get_by_index(9)?,
        key_id: row.try_get_by_index(10)?,
    })
}

/// The schedule of a stored cron (empty: only by hand) and zone.
pub fn schedule(cron: &str, zone: &str) -> std::result::Result<Schedule, String> {
    if cron.is_empty() {
        return Ok(Schedule::None);
    }
    let zone: Tz = zone.parse().map_err(|_| format!("`{zone}` is no IANA time zone"))?;
    let cron = CronSchedule::parse(cron).map_err(|error| error.to_string())?;
    Ok(Schedule::Cron(Box::new(cron), zone))
}

/// A `snake_case` enum stored as its word.
pub fn word<T: DeserializeOwned>(row: &QueryResult, at: usize) -> std::result::Result<T, DbErr> {
    let text: String = row.try_get_by_index(at)?;
    serde_json::from_value(serde_json::Value::String(text)).map_err(|error| DbErr::Type(error.to_string()))
}

/// A value stored as JSON text.
pub fn json<T: DeserializeOwned>(row: &QueryResult, at: usize) -> std::result::Result<T, DbErr> {
    let text: String = row.try_get_by_index(at)?;
    serde_json::from_str(&text).map_err(|error| DbErr::Type(error.to_string()))
}

/// A value as JSON text for a column or a batch.
pub fn to_json<T: serde::Serialize + ?Sized>(action: &'static str, value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::new(StoreErrorKind::Invalid, action, error.to_string()))
}

/// Text that every database stores: PostgreSQL refuses NUL.
pub fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The stored word of a `snake_case` enum.
pub fn to_word<T: serde::Serialize>(action: &'static str, value: &T) -> Result<String> {
    to_json(action, value).map(|json| json.trim_matches('"').to_owned())
}
