//! The next fires of any schedule, saved or not, and the instants skipped in between.

use super::input::{Page, Query, parse_id};
use super::operation::{Operation, get, post};
use super::problem::Problem;
use super::task_schema::ScheduleQuestion;
use super::tasks::{defaults, find};
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::rules::{Rules, WindowAction};
use crate::domain::schedule::{Kind, Note, Preview, Schedule, SkipReason};
use crate::domain::task::{Maintenance, TaskSpec};
use crate::domain::{FieldError, FieldRefusal, Permission, TaskId, TenantId};
use crate::store::{TaskState, TaskView};
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

/// Fires in one preview at most.
const COUNT_MAX: usize = 1_000;

/// Maintenance windows that a preview takes into account, the first to end first.
const WINDOWS_MAX: u64 = 1_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get(
            "/tasks/{id}/preview",
            "preview_task",
            P::TasksRead,
            "A task's next fires, and the instants skipped in between",
        )
        .query::<Wanted>()
        .answers_page::<Preview>("Fires, and why others are none")
        .to(of_task),
        post("/schedules/preview", "preview_schedule", P::TasksRead, "The next fires of an unsaved schedule")
            .says("The body has the schedule fields of a task, `tenant` for its calendars, `count` and `after`.")
            .body::<ScheduleQuestion>()
            .answers_page::<Preview>("Fires, and why others are none")
            .to(of_spec),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Number of fires, 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    count: Option<i64>,
    /// After this instant, epoch ms; now when absent.
    after: Option<i64>,
}

async fn of_task(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    wanted: Query<Wanted>,
) -> Result<HttpResponse, Problem> {
    let Wanted { count, after } = wanted.0;
    let task = find(&api, &caller, Permission::TasksRead, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let schedule = schedule_of(&api, &task, now).await?;
    let left = if task.spec.max_fires > 0 { task.spec.max_fires - task.fires } else { i64::MAX };
    let mut lines = lines(schedule, after.unwrap_or(now), checked(count)?, left).await?;
    mark_cancelled(&api, &task, &mut lines).await?;
    mark_resting(&api, &task, &mut lines, now).await?;
    Ok(HttpResponse::Ok().json(Page::whole(lines)))
}

/// A task's schedule; if the task is not started, as if it were started now.
pub async fn schedule_of(api: &Api, task: &TaskView, now: i64) -> Result<Schedule, Problem> {
    let anchor = if task.activity.started { task.anchor_at } else { now };
    ready(api, task.owner.tenant_id, &task.spec, anchor, task.id).await
}

/// Marks fires that were cancelled before an executor had them as skipped.
async fn mark_cancelled(api: &Api, task: &TaskView, lines: &mut [Preview]) -> Result<(), Problem> {
    let fires = lines.iter().filter(|line| line.kind == Kind::Fires).map(|line| line.fire_time);
    let (Some(first), Some(last)) = (fires.clone().min(), fires.max()) else { return Ok(()) };
    let (tenant, until) = (task.owner.tenant_id, last.saturating_add(1));
    let cancelled = api.store.skipped_fires(tenant, task.id, first, until, COUNT_MAX as u64).await?;
    for line in lines.iter_mut().filter(|line| line.kind == Kind::Fires) {
        if cancelled.binary_search(&line.fire_time).is_ok() {
            line.kind = Kind::Skipped(SkipReason::CancelledManually);
        }
    }
    Ok(())
}

/// Marks future fires that will not come, because the task is not started or a maintenance window skips them, and moves
/// those that a window postpones.
async fn mark_resting(api: &Api, task: &TaskView, lines: &mut [Preview], now: i64) -> Result<(), Problem> {
    let tenant_id = task.owner.tenant_id;
    let resting = match task.activity.state() {
        TaskState::Started => None,
        TaskState::Stopped => Some(SkipReason::Stopped),
        TaskState::Paused => Some(SkipReason::Paused),
    };
    let mut rules = Rules::default();
    if resting.is_none() && task.spec.maintenance != Maintenance::Ignore {
        rules.windows.insert(tenant_id, api.store.windows(tenant_id, now, None, WINDOWS_MAX).await?);
    }
    for line in lines.iter_mut().filter(|line| line.kind == Kind::Fires && line.fire_time > now) {
        let window = rules.window_at(tenant_id, line.due_time);
        match (resting, window.map(|window| (window.action, window.ends_at))) {
            (Some(reason), _) => line.kind = Kind::Skipped(reason),
            (None, Some((WindowAction::Skip, _))) => line.kind = Kind::Skipped(SkipReason::Maintenance),
            (None, Some((WindowAction::Postpone, until))) => {
                line.due_time = until;
                line.note.get_or_insert(Note::Postponed);
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// Body: the schedule fields of a task, and `tenant` for its calendars, `count`, `after`.
async fn of_spec(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let mut beside = |name: &str| fields.remove(name);
    let (tenant, count, after) = (beside("tenant"), beside("count"), beside("after"));
    let mut refused = Vec::new();
    let mut number = |field: &str, value: Option<Value>| {
        let number = value.as_ref().and_then(Value::as_i64);
        if let Some(value) = value.filter(|_| number.is_none()) {
            refused.push(FieldError::new(field, FieldRefusal::wrong_type(&value, "a whole number")));
        }
        number
    };
    let (count, after) = (number("count", count), number("after", after));
    let count = checked(count).map_err(|error| refused.push(error)).unwrap_or_default();
    if let Some(tenant) = tenant.as_ref().filter(|tenant| !tenant.is_string()) {
        refused.push(FieldError::new("tenant", FieldRefusal::wrong_type(tenant, "the name of a tenant")));
    }
    // A preview needs no name and no handler.
    for field in ["name", "handler"] {
        fields.entry(field).or_insert_with(|| Value::from("preview"));
    }
    let spec = defaults(&api).read(&fields).map_err(|wrong| refused.extend(wrong));
    let (true, Ok(spec)) = (refused.is_empty(), spec) else {
        return Err(Problem::fields(refused));
    };
    let tenant = match tenant.as_ref().and_then(Value::as_str).filter(|_| !spec.calendar.is_empty()) {
        Some(tenant) => api.tenant(&caller, Permission::TasksRead, tenant).await?.id,
        None => TenantId::NONE,
    };
    let now = api.engine.clock.now_ms();
    let schedule = ready(&api, tenant, &spec, now, TaskId::NONE).await?;
    let left = if spec.max_fires > 0 { spec.max_fires } else { i64::MAX };
    Ok(HttpResponse::Ok().json(Page::whole(lines(schedule, after.unwrap_or(now), count, left).await?)))
}

/// The next fires of an unsaved schedule without a calendar, epoch ms.
pub async fn next_fires(api: &Api, spec: &TaskSpec, count: usize) -> Result<Vec<i64>, Problem> {
    let now = api.engine.clock.now_ms();
    let schedule = ready(api, TenantId::NONE, spec, now, TaskId::NONE).await?;
    let lines = lines(schedule, now, count.min(COUNT_MAX), i64::MAX).await?;
    Ok(lines.iter().filter(|line| line.kind == Kind::Fires).map(|line| line.fire_time).collect())
}

/// How many fires are wanted.
fn checked(count: Option<i64>) -> Result<usize, FieldError> {
    let count = usize::try_from(count.unwrap_or(10)).ok().filter(|count| (1..=COUNT_MAX).contains(count));
    count.ok_or_else(|| FieldError::range("count", 1, COUNT_MAX as i64))
}

async fn ready(api: &Api, tenant: TenantId, spec: &TaskSpec, anchor: i64, id: TaskId) -> Result<Schedule, Problem> {
    let mut schedule = spec.to_schedule(anchor, id)?;
    if !spec.calendar.is_empty() {
        schedule.calendar = Some(api.store.ready_calendar(tenant, &spec.calendar).await?);
    }
    Ok(schedule)
}

/// Off the threads that also hear heartbeats: a schedule may take its time.
async fn lines(schedule: Schedule, after: i64, count: usize, left: i64) -> Result<Vec<Preview>, Problem> {
    let count = count.min(usize::try_from(left).unwrap_or(0));
    if count == 0 {
        return Ok(Vec::new());
    }
    web::block(move || schedule.preview(after, count)).await.map_err(Problem::internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task::ScheduleKind;
    use crate::domain::task::test::task_of;
    use futures_util::poll;
    use std::pin::pin;
    use std::sync::mpsc;

    /// The thread that asks for a preview goes on, however long it takes until there is one.
    #[test]
    fn a_preview_holds_up_no_other_request() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        let (release, released) = mpsc::channel::<()>();
        runtime.block_on(async {
            // What may take its time waits here.
            let busy = web::block(move || released.recv().is_ok());
            let every_second =
                TaskSpec { schedule: ScheduleKind::Cron, cron: "* * * * * ?".to_owned(), ..TaskSpec::default() };
            let mut preview = pin!(lines(task_of(every_second).schedule, 0, 3, i64::MAX));
            assert!(poll!(preview.as_mut()).is_pending(), "made by the thread that also hears heartbeats");
            release.send(()).unwrap();
            assert!(busy.await.unwrap());
            assert_eq!(preview.await.ok().unwrap().len(), 3);
        });
    }
}
