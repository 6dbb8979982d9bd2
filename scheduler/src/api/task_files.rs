//! Task files: many tasks compared and applied at once, all or none, and exported again. The body of
//! an apply is the task file itself, as JSON.

use super::input::{self, PAGE_MAX, Query, parse_optional_id};
use super::operation::{Operation, get, post};
use super::parents::Parents;
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::tasks::defaults;
use super::words::{FileAction, TaskState};
use super::{Api, body};
use crate::auth::Caller;
use crate::definitions::NotRevoked;
use crate::domain::Action as Changes;
use crate::domain::audit::{AuditNote, Target};
use crate::domain::refusal::no_app;
use crate::domain::task::FieldChange;
use crate::domain::task::file::{Entry, TaskFile, VERSION};
use crate::domain::{AccessScope, FieldError, Permission, Refusal};
use crate::store::{AppFilter, NewTask, TaskChange, TaskFilter, TaskView, audited_task};
use crate::task_files::{Action, Planned, Step, changes_of, plan};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;
use utoipa::{IntoParams, ToSchema};

/// Largest task file, bytes.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Refusals in one answer at most.
const REFUSALS_MAX: usize = 200;

/// What an entry came to.
const CREATE: &str = "create";
const CHANGE: &str = "change";
const UNCHANGED: &str = "unchanged";

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        post("/tasks/apply", Changes::ApplyTasks, Permission::TasksApply, "Apply a task file: all of it, or nothing")
            .says("The body is the task file as JSON (docs/tasks.md).")
            .query::<How>()
            .body::<TaskFileBody>()
            .answers::<Applied>(200, "The outcome, actual or expected, of each entry")
            .to(apply),
        get("/tasks/export", "export_tasks", Permission::TasksRead, "Tasks as a task file, by id")
            .query::<ExportQuery>()
            .answers::<Exported>(200, "A page of the file")
            .to(export),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct How {
    /// Report the changes without making them.
    #[serde(default)]
    dry_run: bool,
}

/// A task file.
#[derive(ToSchema)]
#[schema(as = TaskFile)]
#[allow(dead_code)] // describes the body, which is read field by field so that every slip is named
struct TaskFileBody {
    /// Version of the format: 1.
    version: i64,
    /// Tenant of the entries that do not name theirs.
    tenant: Option<String>,
    /// App of the entries that do not name theirs.
    app: Option<String>,
    /// Clusters that the entries are for that do not name theirs; where neither does, every cluster.
    clusters: Option<Vec<String>>,
    /// The tasks.
    task: Vec<Value>,
}

/// The outcome of applying a task file.
#[derive(Serialize, ToSchema)]
struct Applied {
    /// Whether this was a dry run, which changes nothing.
    dry_run: bool,
    /// Entries that are new tasks.
    created: usize,
    /// Entries that change tasks.
    changed: usize,
    /// Entries that are as they were.
    unchanged: usize,
    /// Entries for other clusters, which are left out.
    elsewhere: usize,
    /// Each entry, in its order.
    tasks: Vec<Outcome>,
}

/// A page of a task file.
#[derive(Serialize, ToSchema)]
struct Exported {
    /// Version of the format.
    version: i64,
    /// Entries.
    task: Vec<Value>,
    /// Cursor of the next page; null on the last page.
    next: Option<String>,
}

/// The outcome, actual or expected, of one entry.
#[derive(Serialize, ToSchema)]
#[schema(as = AppliedTask)]
struct Outcome {
    /// Id; null for a task that would be created.
    id: Option<String>,
    /// Tenant's name.
    tenant: String,
    /// App's name.
    app: String,
    /// Its name.
    name: String,
    /// Its handler.
    handler: String,
    /// `create`, `change` or `unchanged`.
    #[schema(value_type = FileAction)]
    action: &'static str,
    /// `started`, `stopped` or `paused`, as the file has it.
    #[schema(value_type = TaskState)]
    state: &'static str,
    /// Fields that change.
    changes: Vec<FieldChange>,
    /// Something that is allowed, but may not be intended.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Logs of runs that are still running.
    running: Vec<String>,
    /// Logs of runs whose executor could not be asked; they may still start.
    unreachable: Vec<String>,
}

async fn apply(
    api: web::Data<Api>,
    caller: Caller,
    how: Query<How>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let dry_run = how.0.dry_run;
    let body: Map<String, Value> = body::json_within(payload, BYTES_MAX).await?;
    let defaults = defaults(&api);
    // Thousands of definitions take a while; the HTTP worker must serve other requests.
    let cluster = api.cluster_name.clone();
    let file = web::block(move || TaskFile::read(&body, &defaults, &cluster)).await;
    let file = file.map_err(|error| RequestRefusal::WrongBody { detail: error.to_string() })?;
    let elsewhere = file.elsewhere;
    let now = api.engine.clock.now_ms();
    let access_scope = caller.access_scope(Permission::TasksApply);
    let draft = plan(&api.store, &access_scope, file, || api.engine.ids.next(now), now).await?;
    let hidden = hidden_parents(&api, &caller, &draft.steps).await?;
    let reads = caller.access_scope(Permission::TasksRead);
    let steps = match draft.with_parents(&api.store, &hidden, &reads).await? {
        Planned::Steps(steps) => steps,
        Planned::Refused(errors) => return Err(refusal(errors)),
    };
    let mut not_revoked = Vec::new();
    if !dry_run {
        let (new, changes) = changes_of(&steps);
        if !(new.is_empty() && changes.is_empty()) {
            let notes = notes(&api, &caller, &new, &changes);
            not_revoked = api.definitions.noting(notes).apply(&new, &changes).await?;
        }
    }
    Ok(answer(steps, dry_run, elsewhere, not_revoked))
}

/// Parents (place of the entry, place in its list) that the caller may not use: to them there are none.
async fn hidden_parents(api: &Api, caller: &Caller, steps: &[Step]) -> Result<HashSet<(usize, usize)>, Problem> {
    let mut parents = Parents::new(api, caller, Permission::TasksApply);
    let mut hidden = HashSet::new();
    for (number, Step { entry, action, .. }) in steps.iter().enumerate() {
        let before = match action {
            Action::Create(..) => None,
            Action::Change(before, _) | Action::Keep(before) => Some(&before.spec),
        };
        let of_entry = parents.hidden((&entry.tenant, &entry.app), before, &entry.spec).await?;
        hidden.extend(of_entry.into_iter().map(|at| (number, at)));
    }
    Ok(hidden)
}

/// Each task of a file has an entry of its own in the audit.
fn notes(api: &Api, caller: &Caller, new: &[NewTask], changes: &[TaskChange]) -> Vec<AuditNote> {
    let created = new.iter().map(|task| {
        let after = audited_task(&task.spec, &task.activity);
        api.note(
            caller,
            Changes::ApplyTasks,
            task.owner.tenant_id,
            Target::task(task.id, &task.spec.name),
            (None, after),
        )
    });
    let edited = changes.iter().map(|change| {
        let was = audited_task(&change.before.spec, &change.before.activity);
        let is = audited_task(&change.spec, &change.activity);
        let target = Target::task(change.before.id, &change.spec.name);
        api.note(caller, Changes::ApplyTasks, change.before.owner.tenant_id, target, (was, is))
    });
    created.chain(edited).collect()
}

fn refusal(mut errors: Vec<FieldError>) -> Problem {
    let count = errors.len();
    errors.truncate(REFUSALS_MAX);
    let (count, shown) = (count as i64, errors.len() as i64);
    let refusal = if shown < count {
        RequestRefusal::FileRefusedMany { count, shown }
    } else {
        RequestRefusal::FileRefused { count }
    };
    Problem::from(refusal).naming(errors)
}

/// `left` has one entry for each changed task, in their order; it is empty for a dry run.
fn answer(steps: Vec<Step>, dry_run: bool, elsewhere: usize, not_revoked: Vec<NotRevoked>) -> HttpResponse {
    let mut not_revoked = not_revoked.into_iter();
    let tasks: Vec<Outcome> = steps
        .into_iter()
        .map(|step| {
            let is_change = matches!(step.action, Action::Change(..));
            let not_revoked = if is_change { not_revoked.next() } else { None };
            outcome(step, dry_run, not_revoked.unwrap_or_default())
        })
        .collect();
    let count = |action: &str| tasks.iter().filter(|task| task.action == action).count();
    let (created, changed, unchanged) = (count(CREATE), count(CHANGE), count(UNCHANGED));
    HttpResponse::Ok().json(Applied { dry_run, created, changed, unchanged, elsewhere, tasks })
}

fn outcome(Step { entry, action, warning }: Step, dry_run: bool, not_revoked: NotRevoked) -> Outcome {
    let (word, id, changes) = match action {
        Action::Create(id, _) => (CREATE, (!dry_run).then_some(id), Vec::new()),
        Action::Change(task, changes) => (CHANGE, Some(task.id), changes),
        Action::Keep(task) => (UNCHANGED, Some(task.id), Vec::new()),
    };
    Outcome {
        id: id.map(|id| id.to_string()),
        state: match (entry.started, &entry.pause_note) {
            (true, _) => "started",
            (false, Some(_)) => "paused",
            (false, None) => "stopped",
        },
        tenant: entry.tenant,
        app: entry.app,
        name: entry.spec.name,
        handler: entry.spec.handler,
        action: word,
        changes,
        warning,
        running: not_revoked.running,
        unreachable: not_revoked.unreachable,
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only in this app (name).
    app: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

async fn export(api: web::Data<Api>, caller: Caller, query: Query<ExportQuery>) -> Result<HttpResponse, Problem> {
    let ExportQuery { tenant, app, after, limit } = query.0;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let access_scope = caller.access_scope(Permission::TasksRead);
    refuse_nowhere(&api, &access_scope, tenant.as_deref(), app.as_deref()).await?;
    let limit = input::limit(limit.or(Some(PAGE_MAX)))?;
    let filter = TaskFilter { tenant, app, after, limit, ..TaskFilter::default() };
    let tasks = api.store.list_tasks(&access_scope, &filter).await?;
    let next = tasks.last().filter(|_| tasks.len() as u64 == limit).map(|task| task.id.to_string());
    let task = tasks.into_iter().map(|task| Value::Object(entry_of(task).to_fields())).collect();
    Ok(HttpResponse::Ok().json(Exported { version: VERSION, task, next }))
}

/// A misspelt name must not look like an empty export.
async fn refuse_nowhere(
    api: &Api,
    access_scope: &AccessScope,
    tenant: Option<&str>,
    app: Option<&str>,
) -> Result<(), Problem> {
    if let Some(tenant) = tenant
        && api.store.list_tenants(access_scope, Some(tenant), "", 1).await?.is_empty()
    {
        return Err(Refusal::not_found("tenant", tenant).into());
    }
    let Some(name) = app else { return Ok(()) };
    let (of, app) = (tenant.map(str::to_owned), Some(name.to_owned()));
    let filter = AppFilter { tenant: of, name: app, limit: 1, ..AppFilter::default() };
    if api.store.list_apps(access_scope, &filter).await?.is_empty() {
        let no_app = |tenant: &str| no_app(tenant, name);
        return Err(tenant.map_or_else(|| Refusal::not_found("app", name), no_app).into());
    }
    Ok(())
}

fn entry_of(task: TaskView) -> Entry {
    Entry {
        at: 0,
        tenant: task.tenant,
        app: task.app,
        started: task.activity.started,
        pause_note: task.activity.pause_note,
        spec: task.spec,
    }
}
