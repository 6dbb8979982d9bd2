//! Tasks: reading, creating, editing, starting, stopping, pausing, deleting.

mod changes;
mod input;
mod output;

pub use changes::{Changes, delete as delete_task, start as start_task, stop as stop_task};
pub use input::{StateFields, defaults, refuse_past};
pub use output::Task;

use super::input::{
    Page, Query, etag, if_match, known_word, limit, parse_id, parse_optional_id, refuse_stale, refuse_wrong_search,
};
use super::operation::{Operation, delete, get, patch, post, put};
use super::problem::Problem;
use super::task_schema::{self, TaskDefinition, TaskPatch};
use super::{Api, body, words};
use crate::auth::Caller;
use crate::definitions::NotRevoked;
use crate::domain::task::file::NOTE_CHARS_MAX;
use crate::domain::task::{NEVER, TaskSpec};
use crate::domain::{Action, FieldError, FieldRefusal, Permission, TaskId};
use crate::store::{Activity, TaskFilter, TaskState, TaskView};
use actix_web::{HttpRequest, HttpResponse, web};
use input::{READ_ONLY, add, default_of, gone, read};
use output::Changed;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/tasks", "list_tasks", P::TasksRead, "Tasks, by id")
            .query::<TaskQuery>()
            .answers_page::<Task>("A page of tasks")
            .to(list),
        post("/tasks", Action::CreateTask, P::TasksCreate, "Create a task")
            .says("`tenant`, `app`, `name` and `handler` are required; every other field has a default (docs/policies.md).")
            .body::<task_schema::NewTask>()
            .answers::<Task>(201, "The task")
            .to(create),
        get("/tasks/{id}", "show_task", P::TasksRead, "A task").answers::<Task>(200, "The task").to(show),
        patch("/tasks/{id}", Action::EditTask, P::TasksEdit, "Edit fields of a task")
            .says("A JSON merge patch (RFC 7396): omitted fields keep their values, null resets a field to its \
                   default. Runs of the old definition are revoked before the response.")
            .if_match()
            .changes::<TaskPatch>()
            .answers::<Changed>(200, "The task, and the runs that could not be revoked")
            .to(edit),
        put("/tasks/{id}", Action::ReplaceTask, P::TasksEdit, "Replace the definition of a task")
            .says("Every field is required. The response of `GET` can be sent back with changes: read-only fields are \
                   ignored, and `revision` guards against overwriting. Runs of the old definition are revoked before \
                   the response.")
            .if_match()
            .body::<TaskDefinition>()
            .answers::<Changed>(200, "The task, and the runs that could not be revoked")
            .to(replace),
        delete("/tasks/{id}", Action::DeleteTask, P::TasksDelete, "Delete a task; its logs stay until retention deletes them")
            .if_match()
            .answers::<Changed>(200, "The task as it was, and the runs that could not be revoked")
            .to(remove),
        post("/tasks/{id}/start", Action::StartTask, P::TasksStart, "Start a task")
            .answers::<Changed>(200, "The task")
            .to(start),
        post("/tasks/{id}/stop", Action::StopTask, P::TasksStop, "Stop a task and reset its counters")
            .answers::<Changed>(200, "The task, and the runs that could not be revoked")
            .to(stop),
        post("/tasks/{id}/pause", Action::PauseTask, P::TasksPause, "Pause a task, with a reason")
            .body::<PauseInput>()
            .answers::<Changed>(200, "The task, and the runs that could not be revoked")
            .to(pause),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct TaskQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only in this app (name).
    app: Option<String>,
    /// Only of this name.
    name: Option<String>,
    /// Only those whose name or handler contains this text, ignoring case; 1 to 100 characters.
    #[param(min_length = 1, max_length = 100)]
    search: Option<String>,
    /// Only in this state: `started`, `stopped` or `paused`.
    #[param(inline, value_type = Option<words::TaskState>)]
    state: Option<String>,
    /// Only those that run this handler.
    handler: Option<String>,
    /// Only those that follow this task (id): its children.
    parent: Option<String>,
    /// Only those that use this calendar.
    calendar: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

async fn shown(api: &Api, task: &TaskView) -> Result<Task, Problem> {
    let next = api.store.next_fires(std::slice::from_ref(task), api.engine.clock.now_ms()).await?;
    Ok(Task::new(task, next.first().copied().unwrap_or(NEVER)))
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<TaskQuery>) -> Result<HttpResponse, Problem> {
    let TaskQuery { tenant, app, name, search, state, handler, parent, calendar, after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    refuse_wrong_search(search.as_deref())?;
    let state = state.map(|word| known_state(&word)).transpose()?;
    let parent_id = parse_optional_id("parent", parent.as_ref())?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let filter = TaskFilter {
        tenant,
        app,
        name,
        search,
        calendar,
        handler,
        state,
        parent_id,
        after,
        limit,
        ..TaskFilter::default()
    };
    let tasks = api.store.list_tasks(&caller.access_scope(Permission::TasksRead), &filter).await?;
    let next = api.store.next_fires(&tasks, api.engine.clock.now_ms()).await?;
    let items: Vec<Task> = tasks.iter().zip(next).map(|(task, next)| Task::new(task, next)).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |task| task.id.clone())))
}

fn known_state(word: &str) -> Result<TaskState, Problem> {
    known_word("state", word, TaskState::parse(word), || "started, stopped, paused".to_owned())
}

async fn create(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let (beside, mut refused) = StateFields::take(&mut fields);
    let given = [
        ("tenant", beside.tenant.is_some()),
        ("app", beside.app.is_some()),
        ("name", fields.contains_key("name")),
        ("handler", fields.contains_key("handler")),
    ];
    for (field, _) in given.iter().filter(|(_, is_given)| !is_given) {
        add(&mut refused, vec![FieldError::required(*field)]);
    }
    let now = api.engine.clock.now_ms();
    let activity = beside.activity(&Activity::default());
    let spec = read(&defaults(&api), &fields, &activity, now, &mut refused);
    let (Some(spec), Some(tenant), Some(app)) = (spec.filter(|_| refused.is_empty()), beside.tenant, beside.app) else {
        return Err(Problem::fields(refused));
    };
    let id: TaskId = api.engine.ids.next(now);
    let mut changes = Changes::of(&api, &caller);
    changes.create(id, (&tenant, &app), spec, activity).await?;
    changes.make().await?;
    let task = find(&api, &caller, Permission::TasksCreate, id).await?;
    Ok(HttpResponse::Created().insert_header(etag(task.revision)).json(shown(&api, &task).await?))
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let task = find(&api, &caller, Permission::TasksRead, parse_id("id", &id)?).await?;
    Ok(HttpResponse::Ok().insert_header(etag(task.revision)).json(shown(&api, &task).await?))
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let defaults = serde_json::to_value(defaults(&api)).unwrap_or_default();
    for (name, value) in fields.iter_mut().filter(|(_, value)| value.is_null()) {
        if let Some(default) = default_of(name, &defaults) {
            *value = default;
        }
    }
    let ends_pause = fields.get("pause_note").is_some_and(Value::is_null);
    rewrite(&api, &caller, Action::EditTask, (&id, &request), fields, ends_pause).await
}

async fn replace(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let mut refused: Vec<FieldError> =
        TaskSpec::field_names().filter(|name| !fields.contains_key(*name)).map(FieldError::required).collect();
    if fields.get("id").is_some_and(|given| given != id.as_str()) {
        refused.push(FieldError::new("id", FieldRefusal::OfAnotherTask));
    }
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    fields.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
    rewrite(&api, &caller, Action::ReplaceTask, (&id, &request), fields, false).await
}

/// The only way in which definitions change: `fields` replace those of the task.
async fn rewrite(
    api: &Api,
    caller: &Caller,
    action: Action,
    (id, request): (&str, &HttpRequest),
    mut fields: Map<String, Value>,
    ends_pause: bool,
) -> Result<HttpResponse, Problem> {
    let (beside, mut refused) = StateFields::take(&mut fields);
    let before = find(api, caller, Permission::TasksEdit, parse_id("id", id)?).await?;
    let fixed = [("tenant", &beside.tenant, &before.tenant), ("app", &beside.app, &before.app)];
    for (field, ..) in fixed.iter().filter(|(_, given, is)| given.as_ref().is_some_and(|given| given != *is)) {
        refused.push(FieldError::new(*field, FieldRefusal::CannotMove));
    }
    let mut activity = beside.activity(&before.activity);
    if ends_pause {
        activity.pause_note = None;
    }
    let spec = read(&before.spec, &fields, &activity, api.engine.clock.now_ms(), &mut refused);
    let Some(spec) = spec.filter(|_| refused.is_empty()) else {
        return Err(Problem::fields(refused));
    };
    refuse_stale(beside.revision, before.revision)?;
    refuse_stale(if_match(request)?, before.revision)?;
    let (task, not_revoked) = changes::change(api, caller, action, before, spec, activity).await?;
    changed(api, &task, not_revoked).await
}

async fn start(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, &caller, Permission::TasksStart, parse_id("id", &id)?).await?;
    let (task, not_revoked) = start_task(&api, &caller, before).await?;
    changed(&api, &task, not_revoked).await
}

async fn stop(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let before = find(&api, &caller, Permission::TasksStop, parse_id("id", &id)?).await?;
    let (task, not_revoked) = stop_task(&api, &caller, before).await?;
    changed(&api, &task, not_revoked).await
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct PauseInput {
    /// Why the task is paused, for people who find it so; 1 to 1000 characters.
    #[schema(required, min_length = 1, max_length = 1000)]
    note: String,
}

async fn pause(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let PauseInput { note } = body::json(payload).await?;
    if note.trim().is_empty() || note.chars().count() > NOTE_CHARS_MAX {
        return Err(FieldError::length("note", 1, NOTE_CHARS_MAX).into());
    }
    let before = find(&api, &caller, Permission::TasksPause, parse_id("id", &id)?).await?;
    let spec = before.spec.clone();
    let activity = Activity { started: false, pause_note: Some(note) };
    let (task, not_revoked) = changes::change(&api, &caller, Action::PauseTask, before, spec, activity).await?;
    changed(&api, &task, not_revoked).await
}

async fn remove(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let before = find(&api, &caller, Permission::TasksDelete, parse_id("id", &id)?).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let not_revoked = delete_task(&api, &caller, &before).await?;
    changed(&api, &before, not_revoked).await
}

async fn changed(api: &Api, task: &TaskView, not_revoked: NotRevoked) -> Result<HttpResponse, Problem> {
    let NotRevoked { running, unreachable, .. } = not_revoked;
    let answer = Changed { task: shown(api, task).await?, running, unreachable };
    Ok(HttpResponse::Ok().insert_header(etag(task.revision)).json(answer))
}

/// The task of that id, where the caller holds the permission.
pub async fn find(api: &Api, caller: &Caller, needs: Permission, id: TaskId) -> Result<TaskView, Problem> {
    let filter = TaskFilter { id: Some(id), limit: 1, ..TaskFilter::default() };
    let found = api.store.list_tasks(&caller.access_scope(needs), &filter).await?;
    found.into_iter().next().ok_or_else(|| gone(id))
}
