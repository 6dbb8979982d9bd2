//! Tasks. An edit or a stop answers only when nothing of the old definition can start any more,
//! save what the answer names.

use super::problem::Problem;
use super::{Api, body};
use crate::domain::Reason;
use crate::domain::cron::CronSchedule;
use crate::domain::task::{Delivery, ExpiredStrategy, FailureStrategy, MisfireStrategy, NEVER, RETRIES_MAX, Routing};
use crate::store::{OutcomeStore, TaskDraft, TaskFilter, TaskView, Unsent};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Items in one page at most.
const PAGE_MAX: u64 = 500;

/// Longest interval, time-out or expiry, ms: thirty days.
const SPAN_MS_MAX: i64 = 30 * 86_400_000;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/tasks").get(list).post(create))
        .service(web::resource("/tasks/{id}").get(show).put(edit).delete(delete))
        .route("/tasks/{id}/start", web::post().to(start))
        .route("/tasks/{id}/stop", web::post().to(stop))
        .route("/tasks/{id}/run", web::post().to(run));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    tenant: Option<String>,
    app: Option<String>,
    after: Option<String>,
    limit: Option<u64>,
}

/// Every field of a task; what is absent keeps its value, or takes the default.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TaskInput {
    tenant: Option<String>,
    app: Option<String>,
    name: Option<String>,
    handler: Option<String>,
    description: Option<String>,
    cron: Option<String>,
    time_zone: Option<String>,
    params: Option<Value>,
    routing: Option<Routing>,
    tags: Option<Vec<String>>,
    failure_strategy: Option<FailureStrategy>,
    max_retries: Option<i32>,
    retry_interval_ms: Option<i64>,
    expired_strategy: Option<ExpiredStrategy>,
    expire_after_ms: Option<i64>,
    misfire_strategy: Option<MisfireStrategy>,
    timeout_ms: Option<i64>,
    delivery: Option<Delivery>,
    started: Option<bool>,
    revision: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RunInput {
    params: Option<Value>,
}

#[derive(Serialize)]
struct TaskOutput<'a> {
    id: String,
    tenant: &'a str,
    app: &'a str,
    #[serde(flatten)]
    draft: &'a TaskDraft,
    started: bool,
    revision: i64,
    /// Logs are written up to this instant, epoch ms; null when it will not fire by itself.
    next_fire_at: Option<i64>,
    created_at: i64,
    updated_at: i64,
}

fn output(task: &TaskView) -> TaskOutput<'_> {
    TaskOutput {
        id: task.id.to_string(),
        tenant: &task.tenant,
        app: &task.app,
        draft: &task.draft,
        started: task.started,
        revision: task.revision,
        next_fire_at: (task.next_fire_at != NEVER).then_some(task.next_fire_at),
        created_at: task.created_at,
        updated_at: task.updated_at,
    }
}

async fn list(api: web::Data<Api>, page: web::Query<Page>) -> Result<HttpResponse, Problem> {
    let Page { tenant, app, after, limit } = page.into_inner();
    let limit = limit.unwrap_or(50).clamp(1, PAGE_MAX);
    let after = after.map_or(Ok(0), |after| parse_id("after", &after))?;
    let tasks = api.store.list_tasks(&TaskFilter { tenant, app, id: None, after, limit }).await?;
    let next = tasks.last().filter(|_| tasks.len() as u64 == limit).map(|task| task.id.to_string());
    let items: Vec<_> = tasks.iter().map(output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items, "next": next })))
}

async fn create(api: web::Data<Api>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let mut input: TaskInput = body::json(payload).await?;
    let needed =
        |field: &str, value: Option<String>| value.ok_or_else(|| Problem::invalid(format!("{field}: is required")));
    let tenant = needed("tenant", input.tenant.take())?;
    let app = needed("app", input.app.take())?;
    let defaults = TaskDraft {
        name: needed("name", input.name.take())?,
        handler: needed("handler", input.handler.take())?,
        description: String::new(),
        cron: String::new(),
        time_zone: api.default_zone.name().to_owned(),
        params: String::new(),
        routing: Routing::default(),
        tags: Vec::new(),
        failure_strategy: FailureStrategy::default(),
        max_retries: 5,
        retry_interval_ms: 10_000,
        expired_strategy: ExpiredStrategy::default(),
        expire_after_ms: 0,
        misfire_strategy: MisfireStrategy::default(),
        timeout_ms: 0,
        delivery: Delivery::default(),
    };
    let started = input.started.unwrap_or(false);
    let draft = merged(defaults, input);
    check(&draft)?;
    let now = api.engine.clock.now_ms();
    let id = api.engine.ids.next(now);
    api.store.create_task(id, &tenant, &app, &draft, started, now).await?;
    write_ahead(&api, id, started).await?;
    Ok(HttpResponse::Created().json(output(&find(&api, id).await?)))
}

async fn show(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(output(&find(&api, parse_id("id", &id)?).await?)))
}

async fn edit(api: web::Data<Api>, id: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let input: TaskInput = body::json(payload).await?;
    let before = find(&api, parse_id("id", &id)?).await?;
    let fixed = [("tenant", &input.tenant, &before.tenant), ("app", &input.app, &before.app)];
    if let Some((field, ..)) = fixed.iter().find(|(_, given, is)| given.as_ref().is_some_and(|given| given != *is)) {
        return Err(Problem::invalid(format!("{field}: a task cannot move to another; create it there")));
    }
    if let Some(revision) = input.revision.filter(|revision| *revision != before.revision) {
        return Err(Problem::conflict(format!(
            "revision {revision} is not current ({} is); read the task again",
            before.revision
        )));
    }
    let started = input.started.unwrap_or(before.started);
    let reason = if before.started && !started { Reason::TaskStopped } else { Reason::TaskEdited };
    let draft = merged(before.draft.clone(), input);
    change(&api, &before, &draft, started, reason).await
}

async fn start(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, parse_id("id", &id)?).await?;
    if before.started {
        return Ok(changed(&before, &TookBackNames::default()));
    }
    change(&api, &before, &before.draft.clone(), true, Reason::TaskEdited).await
}

async fn stop(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, parse_id("id", &id)?).await?;
    change(&api, &before, &before.draft.clone(), false, Reason::TaskStopped).await
}

async fn delete(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, parse_id("id", &id)?).await?;
    let held = api.store.delete_task(&before, api.engine.clock.now_ms()).await?;
    let names = take_back(&api, held, Reason::TaskDeleted).await?;
    Ok(changed(&before, &names))
}

async fn run(api: web::Data<Api>, id: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let RunInput { params } = body::json(payload).await?;
    let task = find(&api, parse_id("id", &id)?).await?;
    let params = params.map(params_text);
    check_params(params.as_deref().unwrap_or_default())?;
    let now = api.engine.clock.now_ms();
    let log = api.engine.ids.next(now);
    let fire_time = api.store.run_now(log, &task, params.as_deref(), now).await?;
    api.poke.notify_one();
    Ok(HttpResponse::Accepted().json(json!({ "log": log.to_string(), "fire_time": fire_time })))
}

/// Changes the definition, takes back what executors hold of the old one, and writes the new
/// one's logs, in this order.
async fn change(
    api: &Api,
    before: &TaskView,
    draft: &TaskDraft,
    started: bool,
    reason: Reason,
) -> Result<HttpResponse, Problem> {
    check(draft)?;
    let now = api.engine.clock.now_ms();
    let held = api.store.change_task(before, draft, started, reason, now).await?;
    let names = take_back(api, held, reason).await?;
    if draft.routing != before.draft.routing {
        api.store.clear_cancelled(before.id, names.first_dropped.map_or(now, |fire_time| fire_time.min(now))).await?;
    }
    if let Some(from) = names.first_dropped.filter(|_| started) {
        // Never into the past: a retry that was dropped belonged to a fire that has been.
        api.store.rewind(before.id, draft, before.revision + 1, from.max(now), now).await?;
    }
    write_ahead(api, before.id, started).await?;
    Ok(changed(&find(api, before.id).await?, &names))
}

/// What an edit, a stop or a delete could not take back.
#[derive(Default)]
struct TookBackNames {
    running: Vec<String>,
    unreachable: Vec<String>,
    /// Fire time of the earliest run that was dropped.
    first_dropped: Option<i64>,
}

async fn take_back(api: &Api, held: Unsent, reason: Reason) -> Result<TookBackNames, Problem> {
    if held.is_empty() {
        return Ok(TookBackNames::default());
    }
    let ids: Vec<i64> = held.iter().map(|handed| handed.run.id).collect();
    let took = api.engine.canceller.take_back(held.clone(), reason, false).await?;
    // What moved on between the transaction and the question (another attempt at another
    // executor) is asked once more where it is now.
    let asked = |id: &i64| took.dropped.contains(id) || took.running.contains(id) || took.unreachable.contains(id);
    let moved: Vec<i64> = ids.iter().filter(|id| !asked(id)).copied().collect();
    let again = api.store.runs(None, &moved).await?;
    let again: Unsent = again
        .into_iter()
        .filter(|handed| handed.run.status == crate::domain::Status::Dispatched && !handed.run.is_parent())
        .collect();
    let second = if again.is_empty() {
        crate::dispatch::TookBack::default()
    } else {
        api.engine.canceller.take_back(again, reason, false).await?
    };
    let text = |ids: &[i64], more: &[i64]| ids.iter().chain(more).map(ToString::to_string).collect();
    let dropped = |id: &i64| took.dropped.contains(id) || second.dropped.contains(id);
    Ok(TookBackNames {
        running: text(&took.running, &second.running),
        unreachable: text(&took.unreachable, &second.unreachable),
        // A retry's fire has been; its instant is owed no other run.
        first_dropped: held
            .iter()
            .filter(|h| dropped(&h.run.id) && h.run.due_time == h.run.fire_time)
            .map(|h| h.run.fire_time)
            .min(),
    })
}

fn changed(task: &TaskView, names: &TookBackNames) -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "task": output(task),
        "running": names.running,
        "unreachable": names.unreachable,
    }))
}

async fn write_ahead(api: &Api, id: i64, started: bool) -> Result<(), Problem> {
    if started {
        api.engine.pregenerator.write_task(id).await?;
        api.poke.notify_one();
    }
    Ok(())
}

async fn find(api: &Api, id: i64) -> Result<TaskView, Problem> {
    let filter = TaskFilter { id: Some(id), limit: 1, ..TaskFilter::default() };
    let found = api.store.list_tasks(&filter).await?;
    found.into_iter().next().ok_or_else(|| Problem::not_found(format!("there is no task {id}")))
}

/// An id out of a path or a query.
pub fn parse_id(field: &str, text: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| Problem::invalid(format!("{field}: `{text}` is no id")))
}

fn merged(before: TaskDraft, input: TaskInput) -> TaskDraft {
    TaskDraft {
        name: input.name.unwrap_or(before.name),
        handler: input.handler.unwrap_or(before.handler),
        description: input.description.unwrap_or(before.description),
        cron: input.cron.map_or(before.cron, |cron| cron.trim().to_owned()),
        time_zone: input.time_zone.unwrap_or(before.time_zone),
        params: input.params.map_or(before.params, params_text),
        routing: input.routing.unwrap_or(before.routing),
        tags: input.tags.unwrap_or(before.tags),
        failure_strategy: input.failure_strategy.unwrap_or(before.failure_strategy),
        max_retries: input.max_retries.unwrap_or(before.max_retries),
        retry_interval_ms: input.retry_interval_ms.unwrap_or(before.retry_interval_ms),
        expired_strategy: input.expired_strategy.unwrap_or(before.expired_strategy),
        expire_after_ms: input.expire_after_ms.unwrap_or(before.expire_after_ms),
        misfire_strategy: input.misfire_strategy.unwrap_or(before.misfire_strategy),
        timeout_ms: input.timeout_ms.unwrap_or(before.timeout_ms),
        delivery: input.delivery.unwrap_or(before.delivery),
    }
}

/// Parameters are text; any other JSON value is stored as its JSON.
fn params_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn check(draft: &TaskDraft) -> Result<(), Problem> {
    let rule = |holds: bool, text: &str| if holds { Ok(()) } else { Err(Problem::invalid(text)) };
    let name = |text: &str| (1..=128).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    let span = |ms: i64| (0..=SPAN_MS_MAX).contains(&ms);
    rule(name(&draft.name), "name: 1 to 128 printable characters are allowed")?;
    rule(name(&draft.handler), "handler: 1 to 128 printable characters are allowed")?;
    rule(draft.description.chars().count() <= 1_000, "description: at most 1000 characters are allowed")?;
    rule(draft.cron.len() <= 190, "cron: at most 190 characters are allowed")?;
    if !draft.cron.is_empty() {
        CronSchedule::parse(&draft.cron).map_err(|error| Problem::invalid(format!("cron: {error}")))?;
    }
    if draft.time_zone.parse::<chrono_tz::Tz>().is_err() {
        return Err(Problem::invalid(format!(
            "time_zone: `{}` is no IANA time zone; Asia/Shanghai or UTC would be",
            draft.time_zone
        )));
    }
    check_params(&draft.params)?;
    rule(
        draft.tags.len() <= 32 && draft.tags.iter().all(|tag| name(tag)),
        "tags: at most 32 tags of 1 to 128 printable characters are allowed",
    )?;
    rule((0..=RETRIES_MAX).contains(&draft.max_retries), "max_retries: 0 to 1000 are allowed")?;
    rule(span(draft.retry_interval_ms), "retry_interval_ms: 0 to 2592000000 (30 days) are allowed")?;
    rule(span(draft.expire_after_ms), "expire_after_ms: 0 (never) to 2592000000 (30 days) are allowed")?;
    rule(span(draft.timeout_ms), "timeout_ms: 0 (none) to 2592000000 (30 days) are allowed")
}

fn check_params(params: &str) -> Result<(), Problem> {
    if params.len() <= carillon_protocol::TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(Problem::invalid(format!("params: at most {} bytes are allowed", carillon_protocol::TEXT_BYTES_MAX)))
}
