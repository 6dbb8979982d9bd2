//! Task files: many tasks compared and applied at once, all or none, and written out again. The
//! body of an apply is the task file itself, as JSON.

use super::problem::Problem;
use super::tasks::{PAGE_MAX, defaults, parse_id};
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::task::FieldChange;
use crate::domain::task::file::{Entry, TaskFile, VERSION};
use crate::redefine::Left;
use crate::store::{TaskFilter, TaskView};
use crate::task_files::{Action, Planned, Step, changes_of, plan};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Largest task file, bytes.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Refusals in one answer at most.
const REFUSALS_MAX: usize = 200;

/// What an entry came to.
const CREATE: &str = "create";
const CHANGE: &str = "change";
const UNCHANGED: &str = "unchanged";

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config.route("/tasks/apply", web::post().to(apply)).route("/tasks/export", web::get().to(export));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct How {
    #[serde(default)]
    dry_run: bool,
}

/// What became, or would become, of one entry.
#[derive(Serialize)]
struct Outcome<'a> {
    id: Option<String>,
    tenant: &'a str,
    app: &'a str,
    name: &'a str,
    /// `create`, `change` or `unchanged`.
    action: &'static str,
    /// `started`, `stopped` or `paused`, as the file has it.
    state: &'static str,
    changes: &'a [FieldChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
    running: Vec<String>,
    unreachable: Vec<String>,
}

async fn apply(api: web::Data<Api>, how: web::Query<How>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let body: Map<String, Value> = body::json_within(payload, BYTES_MAX).await?;
    let defaults = defaults(&api);
    // Thousands of definitions take a while; the HTTP worker has others to answer.
    let file = web::block(move || TaskFile::read(&body, &defaults)).await;
    let file = file.map_err(|error| Problem::invalid(format!("the file was not read: {error}")))?;
    let now = api.engine.clock.now_ms();
    let steps = match plan(&api.store, file, || api.engine.ids.next(now), now).await? {
        Planned::Steps(steps) => steps,
        Planned::Refused(errors) => return Err(refusal(errors)),
    };
    let mut left = Vec::new();
    if !how.dry_run {
        let (new, changes) = changes_of(&steps);
        if !(new.is_empty() && changes.is_empty()) {
            left = api.redefiner.apply(&new, &changes).await?;
        }
    }
    Ok(answer(&steps, how.dry_run, left))
}

fn refusal(mut errors: Vec<FieldError>) -> Problem {
    let count = errors.len();
    errors.truncate(REFUSALS_MAX);
    let shown = if count > REFUSALS_MAX { format!("; the first {REFUSALS_MAX} are shown") } else { String::new() };
    let fields = if count == 1 { "1 field is refused".to_owned() } else { format!("{count} fields are refused") };
    Problem::refused(format!("{fields}, nothing was changed{shown}"), errors)
}

/// `left` has one entry for each changed task, in their order; of a dry run it is empty.
fn answer(steps: &[Step], dry_run: bool, left: Vec<Left>) -> HttpResponse {
    let mut left = left.into_iter();
    let tasks: Vec<Outcome> = steps
        .iter()
        .map(|step| {
            let is_change = matches!(step.action, Action::Change(..));
            let left = if is_change { left.next() } else { None };
            outcome(step, dry_run, left.unwrap_or_default())
        })
        .collect();
    let count = |action: &str| tasks.iter().filter(|task| task.action == action).count();
    HttpResponse::Ok().json(json!({
        "dry_run": dry_run,
        "created": count(CREATE),
        "changed": count(CHANGE),
        "unchanged": count(UNCHANGED),
        "tasks": tasks,
    }))
}

fn outcome(Step { entry, action, warning }: &Step, dry_run: bool, left: Left) -> Outcome<'_> {
    let (word, id, changes) = match action {
        Action::Create(id) => (CREATE, (!dry_run).then_some(*id), &[][..]),
        Action::Change(task, changes) => (CHANGE, Some(task.id), &changes[..]),
        Action::Keep(task) => (UNCHANGED, Some(task.id), &[][..]),
    };
    Outcome {
        id: id.map(|id| id.to_string()),
        tenant: &entry.tenant,
        app: &entry.app,
        name: &entry.spec.name,
        action: word,
        state: match (entry.started, &entry.pause_note) {
            (true, _) => "started",
            (false, Some(_)) => "paused",
            (false, None) => "stopped",
        },
        changes,
        warning: warning.as_deref(),
        running: left.running,
        unreachable: left.unreachable,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    tenant: Option<String>,
    app: Option<String>,
    after: Option<String>,
    limit: Option<u64>,
}

/// Entries as a task file has them, by id.
async fn export(api: web::Data<Api>, page: web::Query<Page>) -> Result<HttpResponse, Problem> {
    let Page { tenant, app, after, limit } = page.into_inner();
    let after = after.map_or(Ok(0), |after| parse_id("after", &after))?;
    refuse_nowhere(&api, tenant.as_deref(), app.as_deref()).await?;
    let limit = limit.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
    let tasks = api.store.list_tasks(&TaskFilter { tenant, app, after, limit, ..TaskFilter::default() }).await?;
    let next = tasks.last().filter(|_| tasks.len() as u64 == limit).map(|task| task.id.to_string());
    let entries: Vec<_> = tasks.into_iter().map(|task| entry_of(task).to_fields()).collect();
    Ok(HttpResponse::Ok().json(json!({ "version": VERSION, "task": entries, "next": next })))
}

/// A slip in a name must not look like an empty export.
async fn refuse_nowhere(api: &Api, tenant: Option<&str>, app: Option<&str>) -> Result<(), Problem> {
    match (tenant, app) {
        (None, None) => {}
        (Some(tenant), Some(app)) => drop(api.store.scope(tenant, app).await?),
        (Some(tenant), None) => {
            if !api.store.tenants().await?.iter().any(|known| known.name == *tenant) {
                return Err(Problem::not_found(format!("there is no tenant `{tenant}`")));
            }
        }
        (None, Some(app)) => {
            if !api.store.apps().await?.iter().any(|known| known.name == app) {
                return Err(Problem::not_found(format!("no tenant has an app `{app}`")));
            }
        }
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
