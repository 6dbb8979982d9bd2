//! Starting runs outside of a schedule.

use super::input::{BeforeQuery, Page, Query, limit, parse_id, parse_optional_id};
use super::logs::{self, TaskLog};
use super::operation::{Operation, delete, get, post};
use super::problem::Problem;
use super::tasks::find;
use super::words::BackfillStatus;
use super::{Api, body, waiting};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::task::{SPAN_MS_MAX, ScheduleKind, check_params, params_text};
use crate::domain::{Action, BackfillId, FieldError, FieldRefusal, LogId, Owner, Permission};
use crate::store::{Backfill, NewRun, StartedRun, TaskView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Longest idempotency key, characters.
const KEY_CHARS_MAX: usize = 255;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        post("/tasks/{id}/run", Action::RunTask, P::TasksRun, "Run a task manually, now or later")
            .says(
                "Two calls with the same `idempotency_key` start one run. With `wait_ms` the response comes when the \
                   run has ended, or after that time, with the log as it is then; this also needs `task_logs.read`.",
            )
            .query::<logs::WaitQuery>()
            .body::<RunInput>()
            .answers::<Started>(202, "The run")
            .to(run),
        get("/tasks/{id}/backfills", "list_backfills", P::BackfillsRead, "Backfills of a task, newest first")
            .query::<BeforeQuery>()
            .answers_page::<BackfillOutput>("A page of backfills")
            .to(list_backfills),
        post("/tasks/{id}/backfills", Action::CreateBackfill, P::BackfillsCreate, "Run a task for past fires")
            .body::<BackfillInput>()
            .answers::<BackfillOutput>(202, "The backfill")
            .to(backfill),
        delete("/tasks/{id}/backfills/{backfill}", Action::CancelBackfill, P::BackfillsCancel, "Cancel a backfill")
            .says("Runs that are already written go on; cancel them one by one.")
            .answers_nothing("Cancelled: it writes no more runs")
            .to(cancel_backfill),
    ]
}

/// A run to start.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct RunInput {
    /// Parameters instead of the task's: text, or any JSON.
    params: Option<Value>,
    /// Start this many ms from now.
    #[schema(minimum = 0, maximum = 2_592_000_000i64)]
    delay_ms: Option<i64>,
    /// Start at this instant, epoch ms.
    at: Option<i64>,
    /// Priority instead of the task's.
    #[schema(minimum = 1, maximum = 9)]
    priority: Option<i32>,
    /// Requests for one task with the same key start only one run.
    #[schema(min_length = 1, max_length = 255)]
    idempotency_key: Option<String>,
}

/// A run that was started.
#[derive(Serialize, ToSchema)]
struct Started {
    /// Its log.
    log: String,
    /// Its fire time, epoch ms.
    fire_time: i64,
    /// Whether an earlier call with the same key started it.
    repeated: bool,
    /// With `wait_ms`: the log, ended or as it stands after that time.
    run: Option<TaskLog>,
}

async fn run(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    query: Query<logs::WaitQuery>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let wait = waiting::wanted(query.0.wait_ms)?;
    let input: RunInput = body::json(payload).await?;
    let task = find(&api, &caller, Permission::TasksRun, parse_id("id", &id)?).await?;
    let Owner { tenant_id, app_id } = task.owner;
    if wait.is_some() && !caller.access.holds(Permission::TaskLogsRead, tenant_id, app_id) {
        return Err(Problem::forbidden(Permission::TaskLogsRead));
    }
    // Without a wait slot nothing is started.
    let _slot = wait.map(|_| api.waiting.enter()).transpose()?;
    let now = api.engine.clock.now_ms();
    let wanted = input.read(api.engine.ids.next(now), now)?;
    let started = start_run(&api, &caller, &task, &wanted).await?;
    let log = started.log.to_string();
    let run = match wait {
        Some(wait) => {
            let look = async || logs::find(&api, &caller, Permission::TaskLogsRead, &log).await;
            Some(TaskLog::from(&waiting::until_ended(&api, wait, look).await?))
        }
        None => None,
    };
    let answer = Started { log, fire_time: started.fire_time, repeated: started.is_repeated, run };
    Ok(HttpResponse::Accepted().json(answer))
}

/// Starts a run of a task that the caller may run, and records it in the audit.
pub async fn start_run(api: &Api, caller: &Caller, task: &TaskView, wanted: &NewRun) -> Result<StartedRun, Problem> {
    let after = json!({ "log": wanted.id.to_string(), "at": wanted.at, "params": wanted.params }).to_string();
    let target = Target::task(task.id, &task.spec.name);
    let note = api.note(caller, Action::RunTask, task.owner.tenant_id, target, (None, Some(after)));
    let started = api.store.noting(vec![note]).start_run(task, wanted).await?;
    api.wake.notify_one();
    Ok(started)
}

impl RunInput {
    fn read(self, id: LogId, now: i64) -> Result<NewRun, Problem> {
        let mut refused = Vec::new();
        let params = self.params.map(params_text);
        refused.extend(check_params(params.as_deref().unwrap_or_default()).err());
        let mut unless = |holds: bool, field: &str, refusal: FieldRefusal| {
            if !holds {
                refused.push(FieldError::new(field, refusal));
            }
        };
        unless(self.delay_ms.is_none() || self.at.is_none(), "at", FieldRefusal::not_with("delay_ms"));
        let at = self.at.unwrap_or_else(|| now.saturating_add(self.delay_ms.unwrap_or(0)));
        let field = if self.at.is_some() { "at" } else { "delay_ms" };
        let refusal = FieldRefusal::TooFarAhead { days: SPAN_MS_MAX / 86_400_000 };
        unless((now..=now + SPAN_MS_MAX).contains(&at), field, refusal);
        let is_priority = self.priority.is_none_or(|priority| (1..=9).contains(&priority));
        unless(is_priority, "priority", FieldRefusal::OutOfRange { least: 1, most: 9 });
        let key = &self.idempotency_key;
        let is_key = key.as_ref().is_none_or(|key| (1..=KEY_CHARS_MAX).contains(&key.chars().count()));
        unless(is_key, "idempotency_key", FieldRefusal::WrongLength { least: 1, most: KEY_CHARS_MAX as i64 });
        if !refused.is_empty() {
            return Err(Problem::fields(refused));
        }
        Ok(NewRun { params, at, priority: self.priority, key: self.idempotency_key, ..NewRun::manual(id, now) })
    }
}

/// Longest range of a backfill, ms: a leap year.
const RANGE_MS_MAX: i64 = 366 * 86_400_000;

/// Most runs of a backfill at once.
const BACKFILL_CONCURRENT_MAX: i32 = 1_000;

/// A past range to run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BackfillInput {
    /// First instant, epoch ms.
    from: i64,
    /// First instant after the range, epoch ms.
    until: i64,
    /// Most runs of it at once.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1000)]
    max_concurrent: i32,
    /// Parameters instead of the task's: text, or any JSON.
    #[serde(default)]
    params: Option<Value>,
}

fn one() -> i32 {
    1
}

/// Creates runs for the fires of a past range. Live fires go first.
async fn backfill(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let input: BackfillInput = body::json(payload).await?;
    let task = find(&api, &caller, Permission::BackfillsCreate, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let mut refused = Vec::new();
    let mut unless = |holds: bool, field: &str, refusal: FieldRefusal| {
        if !holds {
            refused.push(FieldError::new(field, refusal));
        }
    };
    let has_instants = matches!(task.spec.schedule, ScheduleKind::Cron | ScheduleKind::FixedRate);
    unless(has_instants, "schedule", FieldRefusal::NothingToFill);
    let is_range = input.from >= 0 && input.from < input.until && input.until - input.from <= RANGE_MS_MAX;
    let refusal = FieldRefusal::WrongSpan { other: "until".to_owned(), days: RANGE_MS_MAX / 86_400_000 };
    unless(is_range, "from", refusal);
    unless(input.until <= now, "until", FieldRefusal::NotPast);
    let is_bound = (1..=BACKFILL_CONCURRENT_MAX).contains(&input.max_concurrent);
    let most = BACKFILL_CONCURRENT_MAX.into();
    unless(is_bound, "max_concurrent", FieldRefusal::OutOfRange { least: 1, most });
    let params = input.params.map(params_text);
    refused.extend(check_params(params.as_deref().unwrap_or_default()).err());
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let backfill = Backfill {
        id: api.engine.ids.next(now),
        tenant_id: task.owner.tenant_id,
        task_id: task.id,
        range_from: input.from,
        range_until: input.until,
        next_at: input.from,
        max_concurrent: input.max_concurrent,
        params,
        status: "open".to_owned(),
        written: 0,
        existing: 0,
        created_at: now,
        finished_at: 0,
    };
    let output = BackfillOutput::from(&backfill);
    let after = serde_json::to_string(&output).ok();
    let target = Target::task(task.id, &task.spec.name);
    let note = api.note(&caller, Action::CreateBackfill, task.owner.tenant_id, target, (None, after));
    api.store.noting(vec![note]).create_backfill(&backfill, now).await?;
    Ok(HttpResponse::Accepted().json(output))
}

async fn list_backfills(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    query: Query<BeforeQuery>,
) -> Result<HttpResponse, Problem> {
    let BeforeQuery { before, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let before = parse_optional_id("before", before.as_ref())?;
    let task = find(&api, &caller, Permission::BackfillsRead, parse_id("id", &id)?).await?;
    let backfills = api.store.backfills_of(task.owner.tenant_id, task.id, before, limit).await?;
    let items = backfills.iter().map(BackfillOutput::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |backfill: &BackfillOutput| backfill.id.clone())))
}

async fn cancel_backfill(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (task, id): (_, BackfillId) = (parse_id("id", &path.0)?, parse_id("backfill", &path.1)?);
    let task = find(&api, &caller, Permission::BackfillsCancel, task).await?;
    let before = Some(json!({ "backfill": id.to_string() }).to_string());
    let target = Target::task(task.id, &task.spec.name);
    let note = api.note(&caller, Action::CancelBackfill, task.owner.tenant_id, target, (before, None));
    api.store.noting(vec![note]).cancel_backfill(task.owner.tenant_id, task.id, id, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A backfill.
#[derive(Serialize, ToSchema)]
#[schema(as = Backfill)]
struct BackfillOutput {
    /// Id.
    id: String,
    /// Task.
    task: String,
    /// First instant, epoch ms.
    from: i64,
    /// First instant after the range, epoch ms.
    until: i64,
    /// Written up to this instant, epoch ms.
    next_at: i64,
    /// Most runs of it at once.
    max_concurrent: i32,
    /// Parameters instead of the task's.
    params: Option<String>,
    /// `open`, `done` or `cancelled`.
    #[schema(value_type = BackfillStatus)]
    status: String,
    /// Runs written.
    written: i64,
    /// Fires skipped because they already have a log.
    existing: i64,
    /// Epoch ms.
    created_at: i64,
    /// Epoch ms.
    finished_at: Option<i64>,
}

impl From<&Backfill> for BackfillOutput {
    fn from(backfill: &Backfill) -> Self {
        Self {
            id: backfill.id.to_string(),
            task: backfill.task_id.to_string(),
            from: backfill.range_from,
            until: backfill.range_until,
            next_at: backfill.next_at,
            max_concurrent: backfill.max_concurrent,
            params: backfill.params.clone(),
            status: backfill.status.clone(),
            written: backfill.written,
            existing: backfill.existing,
            created_at: backfill.created_at,
            finished_at: (backfill.finished_at != 0).then_some(backfill.finished_at),
        }
    }
}
