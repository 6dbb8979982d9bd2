//! Cancelling single future fires of a task, and restoring them.

use super::input::parse_id;
use super::logs::{self, Cancel, TaskLog};
use super::operation::{Operation, post};
use super::problem::Problem;
use super::tasks::find;
use super::{Api, body, schedules};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::instant::utc_words;
use crate::domain::schedule::Schedule;
use crate::domain::task::ScheduleKind;
use crate::domain::{Action, FieldError, FieldRefusal, LogId, Order, Permission};
use crate::store::{LogFilter, LogView, Skip, Skipped, TaskView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

/// How far ahead a fire can be cancelled, ms: a leap year.
const AHEAD_MS_MAX: i64 = 366 * 86_400_000;

/// Longest note, characters.
const NOTE_CHARS_MAX: usize = 1_000;

/// Most fires counted to see whether `max_fires` is reached before the instant; beyond this count it is assumed
/// not to be.
const COUNTED_MAX: i64 = 10_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        post("/tasks/{id}/skip", Action::SkipFire, P::TaskLogsCancel, "Cancel one future fire of a task")
            .says(
                "Also a fire whose run is not written yet: at most 366 days ahead, and at most 1,000 per task. A \
                 written run is cancelled as by `cancel_run`; one that has started or ended is not changed: 409.",
            )
            .body::<SkipInput>()
            .answers::<TaskLog>(200, "Its log, cancelled")
            .answers::<TaskLog>(202, "Its executor has been asked to drop it, and has not confirmed yet")
            .to(skip),
        post("/tasks/{id}/restore", Action::RestoreFire, P::TaskLogsCancel, "Restore a cancelled fire")
            .says("Only a future fire that was cancelled before an executor had it.")
            .body::<RestoreInput>()
            .answers::<Restored>(200, "Restored; it fires if the task does at that instant")
            .to(restore),
    ]
}

/// A fire to cancel.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SkipInput {
    /// The instant that the schedule names, epoch ms.
    fire_time: i64,
    /// Why.
    #[serde(default)]
    #[schema(max_length = 1000)]
    note: String,
}

/// A cancelled fire to restore.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RestoreInput {
    /// The instant that the schedule names, epoch ms.
    fire_time: i64,
}

/// A restored fire.
#[derive(Serialize, ToSchema)]
struct Restored {
    /// The instant, epoch ms.
    fire_time: i64,
    /// Its log, if already written.
    log: Option<String>,
}

async fn skip(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let SkipInput { fire_time, note } = body::json(payload).await?;
    if note.chars().count() > NOTE_CHARS_MAX {
        return Err(FieldError::too_long("note", NOTE_CHARS_MAX).into());
    }
    let task = find(&api, &caller, Permission::TaskLogsCancel, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    if !(0..=now + AHEAD_MS_MAX).contains(&fire_time) {
        return Err(FieldError::new("fire_time", FieldRefusal::TooFarAhead { days: AHEAD_MS_MAX / 86_400_000 }).into());
    }
    let cancel = Cancel { action: Action::SkipFire, message: &note, may_run: false };
    if let Some(log) = log_of(&api, &caller, &task, fire_time).await? {
        return logs::cancel_log(&api, &caller, &log.dispatched.run.id.to_string(), &cancel).await;
    }
    let schedule = schedules::schedule_of(&api, &task, now).await?;
    refuse_no_fire(&task, &schedule, fire_time, now)?;
    let log: LogId = api.engine.ids.next(now);
    let after = json!({ "fire_time": fire_time, "note": note, "log": log.to_string() }).to_string();
    let target = Target::task(task.id, &task.spec.name);
    let noted = api.note(&caller, Action::SkipFire, task.owner.tenant_id, target, (None, Some(after)));
    let wanted = Skip { id: log, fire_time, message: note.clone() };
    match api.store.noting(vec![noted]).skip_fire(&task, &wanted, now).await? {
        Skipped::Written => {
            let log = logs::find(&api, &caller, Permission::TaskLogsCancel, &log.to_string()).await?;
            Ok(HttpResponse::Ok().json(TaskLog::from(&log)))
        }
        // It was written in between.
        Skipped::There(log) => logs::cancel_log(&api, &caller, &log.to_string(), &cancel).await,
    }
}

/// The log of a fire, not one of its shards: the earliest one of its instant.
async fn log_of(api: &Api, caller: &Caller, task: &TaskView, fire_time: i64) -> Result<Option<LogView>, Problem> {
    let (from, until) = (Some(fire_time), Some(fire_time.saturating_add(1)));
    let filter =
        LogFilter { task_id: Some(task.id), from, until, order: Order::Oldest, limit: 1, ..LogFilter::default() };
    let page = api.store.list_logs(&caller.access_scope(Permission::TaskLogsCancel), &filter).await?;
    Ok(page.logs.into_iter().find(|log| log.dispatched.run.parent_id.is_none()))
}

/// Refuses an instant at which the task will not fire, as far as that is known.
fn refuse_no_fire(task: &TaskView, schedule: &Schedule, fire_time: i64, now: i64) -> Result<(), Problem> {
    let spec = &task.spec;
    let refused = |refusal: FieldRefusal| Err(FieldError::new("fire_time", refusal).into());
    match spec.schedule {
        ScheduleKind::None => return refused(FieldRefusal::NoSchedule),
        ScheduleKind::FixedDelay => {
            return refused(FieldRefusal::FixedDelayAhead);
        }
        ScheduleKind::FixedRate if !task.activity.started => {
            return refused(FieldRefusal::RateNotStarted);
        }
        ScheduleKind::Cron | ScheduleKind::FixedRate | ScheduleKind::Once => {}
    }
    if fire_time <= now {
        return refused(FieldRefusal::NotToCome);
    }
    let next = schedule.next_after(fire_time - 1);
    if next == crate::domain::schedule::NEVER {
        return refused(FieldRefusal::NoFire);
    }
    if next != fire_time {
        return refused(FieldRefusal::NoFireNext { next: utc_words(next) });
    }
    if !reaches(task, schedule, fire_time, now) {
        return refused(FieldRefusal::MaxFiresUsed);
    }
    Ok(())
}

/// Whether `max_fires` leaves a fire for that instant, which the schedule names.
fn reaches(task: &TaskView, schedule: &Schedule, fire_time: i64, now: i64) -> bool {
    if task.spec.max_fires <= 0 {
        return true;
    }
    let left = if task.activity.started { task.spec.max_fires - task.fires } else { task.spec.max_fires };
    let mut at = if task.activity.started { task.next_fire_at } else { schedule.next_after(now) };
    for _ in 0..left.min(COUNTED_MAX) {
        if at >= fire_time {
            return true;
        }
        at = schedule.next_after(at);
    }
    left > COUNTED_MAX
}

async fn restore(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let RestoreInput { fire_time } = body::json(payload).await?;
    let task = find(&api, &caller, Permission::TaskLogsCancel, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let schedule = schedules::schedule_of(&api, &task, now).await?;
    let is_named = schedule.next_after(fire_time.saturating_sub(1)) == fire_time;
    let before = json!({ "fire_time": fire_time }).to_string();
    let target = Target::task(task.id, &task.spec.name);
    let note = api.note(&caller, Action::RestoreFire, task.owner.tenant_id, target, (Some(before), None));
    api.store.noting(vec![note]).restore_fire(&task, fire_time, is_named, now).await?;
    if task.activity.started {
        // Its window may have been written already.
        api.engine.pregenerator.write_task(task.id).await?;
        api.wake.notify_one();
    }
    let log = log_of(&api, &caller, &task, fire_time).await?.map(|log| log.dispatched.run.id.to_string());
    Ok(HttpResponse::Ok().json(Restored { fire_time, log }))
}
