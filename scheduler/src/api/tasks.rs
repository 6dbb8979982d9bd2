//! Tasks: reading, creating, editing, starting, stopping, pausing, deleting.

use super::problem::Problem;
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::task::file::NOTE_CHARS_MAX;
use crate::domain::task::{NEVER, ScheduleKind, TaskSpec};
use crate::redefine::{Left, change_of};
use crate::store::{Activity, NewTask, TaskFilter, TaskView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Items in one page at most.
pub const PAGE_MAX: u64 = 500;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/tasks").get(list).post(create))
        .service(web::resource("/tasks/{id}").get(show).put(edit).delete(delete))
        .route("/tasks/{id}/start", web::post().to(start))
        .route("/tasks/{id}/stop", web::post().to(stop))
        .route("/tasks/{id}/pause", web::post().to(pause));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    tenant: Option<String>,
    app: Option<String>,
    name: Option<String>,
    after: Option<String>,
    limit: Option<u64>,
}

/// What stands beside the definition in a body.
#[derive(Default)]
pub struct Beside {
    pub tenant: Option<String>,
    pub app: Option<String>,
    pub started: Option<bool>,
    pub pause_note: Option<String>,
    pub revision: Option<i64>,
}

impl Beside {
    /// Takes its fields out of `fields`; the rest is the definition's. Answers what is wrong with
    /// them, too.
    pub fn take(fields: &mut Map<String, Value>) -> (Self, Vec<FieldError>) {
        fn read<T: serde::de::DeserializeOwned>(
            fields: &mut Map<String, Value>,
            refused: &mut Vec<FieldError>,
            (name, allowed): (&str, &str),
        ) -> Option<T> {
            let value = fields.remove(name)?;
            let read = serde_json::from_value(value);
            let wrong = |_| refused.push(FieldError::new(name, format!("{allowed} is allowed")));
            read.map_err(wrong).ok().flatten()
        }
        let mut refused = Vec::new();
        let beside = Self {
            tenant: read(fields, &mut refused, ("tenant", "the name of a tenant")),
            app: read(fields, &mut refused, ("app", "the name of an app")),
            started: read(fields, &mut refused, ("started", "true or false")),
            pause_note: read(fields, &mut refused, ("pause_note", "text")),
            revision: read(fields, &mut refused, ("revision", "the number that the task was read with")),
        };
        if beside.pause_note.as_ref().is_some_and(|note| note.chars().count() > NOTE_CHARS_MAX) {
            refused.push(FieldError::new("pause_note", "at most 1000 characters are allowed"));
        }
        if beside.pause_note.is_some() && beside.started == Some(true) {
            refused.push(FieldError::new("pause_note", "not allowed together with `started: true`"));
        }
        (beside, refused)
    }

    /// The state that the body asks for, of a task that is in `now`.
    pub fn activity(&self, now: &Activity) -> Activity {
        match (self.started, &self.pause_note) {
            (_, Some(note)) => Activity { started: false, pause_note: Some(note.clone()) },
            (Some(started), None) => Activity::of(started),
            (None, None) => now.clone(),
        }
    }
}

#[derive(Serialize)]
struct TaskOutput<'a> {
    id: String,
    tenant: &'a str,
    app: &'a str,
    #[serde(flatten)]
    spec: &'a TaskSpec,
    /// `started`, `stopped` or `paused`.
    state: &'static str,
    started: bool,
    pause_note: Option<&'a str>,
    paused_at: Option<i64>,
    revision: i64,
    /// Logs are written up to this instant, epoch ms; null when it will not fire by itself.
    next_fire_at: Option<i64>,
    fires: i64,
    failures_in_row: i32,
    created_at: i64,
    updated_at: i64,
}

fn output(task: &TaskView) -> TaskOutput<'_> {
    let state = match (task.activity.started, &task.activity.pause_note) {
        (true, _) => "started",
        (false, Some(_)) => "paused",
        (false, None) => "stopped",
    };
    TaskOutput {
        id: task.id.to_string(),
        tenant: &task.tenant,
        app: &task.app,
        spec: &task.spec,
        state,
        started: task.activity.started,
        pause_note: task.activity.pause_note.as_deref(),
        paused_at: (task.paused_at != 0).then_some(task.paused_at),
        revision: task.revision,
        next_fire_at: (task.next_fire_at != NEVER).then_some(task.next_fire_at),
        fires: task.fires,
        failures_in_row: task.failures_in_row,
        created_at: task.created_at,
        updated_at: task.updated_at,
    }
}

async fn list(api: web::Data<Api>, page: web::Query<Page>) -> Result<HttpResponse, Problem> {
    let Page { tenant, app, name, after, limit } = page.into_inner();
    let limit = limit.unwrap_or(50).clamp(1, PAGE_MAX);
    let after = after.map_or(Ok(0), |after| parse_id("after", &after))?;
    let filter = TaskFilter { tenant, app, name, after, limit, ..TaskFilter::default() };
    let tasks = api.store.list_tasks(&filter).await?;
    let next = tasks.last().filter(|_| tasks.len() as u64 == limit).map(|task| task.id.to_string());
    let items: Vec<_> = tasks.iter().map(output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items, "next": next })))
}

async fn create(api: web::Data<Api>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let (beside, mut refused) = Beside::take(&mut fields);
    let given = [
        ("tenant", beside.tenant.is_some()),
        ("app", beside.app.is_some()),
        ("name", fields.contains_key("name")),
        ("handler", fields.contains_key("handler")),
    ];
    for (field, _) in given.iter().filter(|(_, is_given)| !is_given) {
        add(&mut refused, vec![FieldError::new(*field, "is required")]);
    }
    let now = api.engine.clock.now_ms();
    let activity = beside.activity(&Activity::default());
    let spec = read(&defaults(&api), &fields, &activity, now, &mut refused);
    let (Some(spec), Some(tenant), Some(app)) = (spec.filter(|_| refused.is_empty()), beside.tenant, beside.app) else {
        return Err(Problem::fields(refused));
    };
    let task = NewTask { id: api.engine.ids.next(now), tenant, app, activity, spec };
    api.redefiner.apply(std::slice::from_ref(&task), &[]).await?;
    Ok(HttpResponse::Created().json(output(&find(&api, task.id).await?)))
}

/// What a body without the field means.
pub fn defaults(api: &Api) -> TaskSpec {
    TaskSpec { time_zone: api.default_zone.name().to_owned(), ..TaskSpec::default() }
}

/// The definition with `fields` in place of its own; what is wrong with them goes to `refused`.
fn read(
    before: &TaskSpec,
    fields: &Map<String, Value>,
    activity: &Activity,
    now: i64,
    refused: &mut Vec<FieldError>,
) -> Option<TaskSpec> {
    match before.read(fields) {
        Err(wrong) => {
            add(refused, wrong);
            None
        }
        Ok(spec) => {
            if spec.fire_at != before.fire_at || spec.schedule != before.schedule {
                refused.extend(refuse_past(&spec, activity, now).err());
            }
            Some(spec)
        }
    }
}

/// One word about each field is enough.
fn add(refused: &mut Vec<FieldError>, more: Vec<FieldError>) {
    for error in more {
        if !refused.iter().any(|known| known.field == error.field) {
            refused.push(error);
        }
    }
}

/// A task that would fire once, in the past, is a slip.
fn refuse_past(spec: &TaskSpec, activity: &Activity, now: i64) -> Result<(), FieldError> {
    if spec.schedule == ScheduleKind::Once && activity.started && spec.fire_at > 0 && spec.fire_at <= now {
        return Err(FieldError::new(
            "fire_at",
            format!("lies in the past (it is {now} now); start a run by hand instead"),
        ));
    }
    Ok(())
}

async fn show(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(output(&find(&api, parse_id("id", &id)?).await?)))
}

async fn edit(api: web::Data<Api>, id: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let (beside, mut refused) = Beside::take(&mut fields);
    let before = find(&api, parse_id("id", &id)?).await?;
    let fixed = [("tenant", &beside.tenant, &before.tenant), ("app", &beside.app, &before.app)];
    for (field, ..) in fixed.iter().filter(|(_, given, is)| given.as_ref().is_some_and(|given| given != *is)) {
        refused.push(FieldError::new(*field, "a task cannot move to another; create it there"));
    }
    let activity = beside.activity(&before.activity);
    let spec = read(&before.spec, &fields, &activity, api.engine.clock.now_ms(), &mut refused);
    let Some(spec) = spec.filter(|_| refused.is_empty()) else {
        return Err(Problem::fields(refused));
    };
    if let Some(revision) = beside.revision.filter(|revision| *revision != before.revision) {
        return Err(Problem::conflict(format!(
            "revision {revision} is not current ({} is); read the task again",
            before.revision
        )));
    }
    change(&api, before, spec, activity).await
}

async fn start(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, parse_id("id", &id)?).await?;
    if before.activity.started {
        return Ok(changed(&before, &Left::default()));
    }
    refuse_past(&before.spec, &Activity::of(true), api.engine.clock.now_ms())?;
    let spec = before.spec.clone();
    change(&api, before, spec, Activity::of(true)).await
}

async fn stop(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, parse_id("id", &id)?).await?;
    let spec = before.spec.clone();
    change(&api, before, spec, Activity::of(false)).await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PauseInput {
    note: String,
}

async fn pause(api: web::Data<Api>, id: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let PauseInput { note } = body::json(payload).await?;
    if note.trim().is_empty() || note.chars().count() > NOTE_CHARS_MAX {
        return Err(
            FieldError::new("note", "1 to 1000 characters are allowed: say why, for whoever finds it paused").into()
        );
    }
    let before = find(&api, parse_id("id", &id)?).await?;
    let spec = before.spec.clone();
    change(&api, before, spec, Activity { started: false, pause_note: Some(note) }).await
}

async fn delete(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, parse_id("id", &id)?).await?;
    let left = api.redefiner.delete(&before).await?;
    Ok(changed(&before, &left))
}

async fn change(api: &Api, before: TaskView, spec: TaskSpec, activity: Activity) -> Result<HttpResponse, Problem> {
    let id = before.id;
    let left = api.redefiner.apply(&[], &[change_of(before, spec, activity)]).await?;
    Ok(changed(&find(api, id).await?, left.first().unwrap_or(&Left::default())))
}

fn changed(task: &TaskView, left: &Left) -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "task": output(task),
        "running": left.running,
        "unreachable": left.unreachable,
    }))
}

/// The task of that id.
pub async fn find(api: &Api, id: i64) -> Result<TaskView, Problem> {
    api.redefiner.find(id).await?.ok_or_else(|| Problem::not_found(format!("there is no task {id}")))
}

/// An id out of a path or a query.
pub fn parse_id(field: &str, text: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| Problem::invalid(format!("{field}: `{text}` is no id")))
}
