//! Upcoming fires: those that are already written.

use super::Api;
use super::input::{Query, parse_optional_id};
use super::operation::{Operation, get};
use super::problem::Problem;
use super::words::RunStatus;
use crate::auth::Caller;
use crate::domain::{AppId, FieldError, Permission, Status, TaskId};
use crate::store::{TaskNames, UpcomingFilter, UpcomingRun};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use utoipa::{IntoParams, ToSchema};

/// How far a timeline reaches, ms: as far as logs are written ahead by default.
const UPCOMING_MAX_MS: i64 = 180_000;

/// How long overdue runs that have not started are still shown, ms.
const OVERDUE_MS: i64 = 10_000;

/// Most logs that one response reads: four seconds of five thousand fires each.
const ROWS: u64 = 20_000;

/// Tasks in a timeline …
const TASKS_MAX: usize = 50;

/// … and runs of each.
const NEXT_MAX: usize = 200;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get(
            "/fires/upcoming",
            "list_upcoming_fires",
            Permission::TaskLogsRead,
            "Runs of the next minutes, as a timeline",
        )
        .says(
            "The task logs that are already written for this time, and those of the last 10 s that have not started. A \
                 sharded run counts as one. At most 20,000 logs are read, which a caller's tenants share if there are \
                 at most 16 of them. When there are more logs, `complete` is false, and fires at `until` or later \
                 are omitted.",
        )
        .query::<UpcomingQuery>()
        .answers::<Upcoming>(200, "The timeline")
        .to(upcoming),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct UpcomingQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only of this app (id).
    app: Option<String>,
    /// Only of this task.
    task: Option<String>,
    /// Length of the timeline from now on, 1 to 180,000 ms; the maximum when absent.
    #[param(minimum = 1, maximum = 180_000)]
    ms: Option<i64>,
}

/// Upcoming fires.
#[derive(Serialize, ToSchema)]
struct Upcoming {
    /// Now, by the cluster's clock, epoch ms.
    at: i64,
    /// The timeline is complete before this instant, epoch ms.
    until: i64,
    /// Runs that were counted.
    counted: usize,
    /// Whether `until` is as far as requested.
    complete: bool,
    /// Seconds in which something fires, in their order.
    seconds: Vec<Second>,
    /// Tasks by their next fire, 50 at most.
    tasks: Vec<UpcomingTask>,
    /// Number of further tasks that fire.
    more_tasks: usize,
}

/// A second in which something fires.
#[derive(Serialize, ToSchema)]
struct Second {
    /// When it starts, epoch ms.
    second: i64,
    /// Fires in it.
    fires: usize,
}

/// A task that fires.
#[derive(Serialize, ToSchema)]
struct UpcomingTask {
    /// Id.
    task: String,
    /// Its name; null when it no longer exists.
    name: Option<String>,
    /// App's id.
    app: String,
    /// App's name.
    app_name: Option<String>,
    /// Tenant's name.
    tenant: Option<String>,
    /// How often it fires.
    fires: usize,
    /// The next of them, 200 at most.
    next: Vec<UpcomingFire>,
}

/// An upcoming run.
#[derive(Serialize, ToSchema)]
struct UpcomingFire {
    /// Its log.
    log: String,
    /// Epoch ms.
    fire_time: i64,
    /// When it should start, epoch ms.
    due_time: i64,
    /// `init`, `queued`, `dispatched` (an executor holds it) or `retry`.
    #[schema(value_type = RunStatus)]
    status: &'static str,
    /// The node that has it.
    node: Option<String>,
}

async fn upcoming(api: web::Data<Api>, caller: Caller, query: Query<UpcomingQuery>) -> Result<HttpResponse, Problem> {
    const NEEDS: Permission = Permission::TaskLogsRead;
    let UpcomingQuery { tenant, app, task, ms } = query.0;
    let ms = ms.unwrap_or(UPCOMING_MAX_MS);
    if !(1..=UPCOMING_MAX_MS).contains(&ms) {
        return Err(FieldError::span("ms", 1, UPCOMING_MAX_MS).into());
    }
    let tenant_id = match tenant {
        Some(tenant) => Some(api.tenant(&caller, NEEDS, &tenant).await?.id),
        None => None,
    };
    let at = api.engine.clock.now_ms();
    let filter = UpcomingFilter {
        tenant_id,
        app_id: parse_optional_id("app", app.as_ref())?,
        task_id: parse_optional_id("task", task.as_ref())?,
        late_from: at - OVERDUE_MS,
        from: at,
        until: at + ms,
        rows: ROWS,
    };
    let mut found = api.store.upcoming_runs(&caller.access_scope(NEEDS), &filter).await?;
    // Such a run has started, as far as a node can tell before its result.
    found.runs.retain(|run| !(run.status == Status::Dispatched && run.due_time <= at));
    let mut seconds: BTreeMap<i64, usize> = BTreeMap::new();
    for run in &found.runs {
        *seconds.entry(run.fire_time - run.fire_time.rem_euclid(1_000)).or_default() += 1;
    }
    let (tasks, more_tasks) = by_task(&found.runs);
    let these: BTreeSet<(TaskId, AppId)> = tasks.iter().map(|(first, ..)| (first.task_id, first.app_id)).collect();
    let names = api.store.names_of(&these).await?;
    Ok(HttpResponse::Ok().json(Upcoming {
        at,
        until: found.until,
        counted: found.runs.len(),
        complete: found.is_complete,
        seconds: seconds.into_iter().map(|(second, fires)| Second { second, fires }).collect(),
        tasks: tasks
            .into_iter()
            .map(|(first, fires, next)| shown(first, fires, &next, names.get(&first.task_id)))
            .collect(),
        more_tasks,
    }))
}

/// A task's first run, its number of runs, and the next of them.
type RunsOfTask<'a> = (&'a UpcomingRun, usize, Vec<&'a UpcomingRun>);

/// The runs of each task, and the number of omitted tasks.
fn by_task(runs: &[UpcomingRun]) -> (Vec<RunsOfTask<'_>>, usize) {
    let mut places: HashMap<TaskId, usize> = HashMap::new();
    let mut tasks: Vec<RunsOfTask<'_>> = Vec::new();
    for run in runs {
        let next = places.len();
        let place = *places.entry(run.task_id).or_insert(next);
        if place == tasks.len() && place < TASKS_MAX {
            tasks.push((run, 0, Vec::new()));
        }
        if let Some((_, fires, next)) = tasks.get_mut(place) {
            *fires += 1;
            if next.len() < NEXT_MAX {
                next.push(run);
            }
        }
    }
    let left_out = places.len() - tasks.len();
    (tasks, left_out)
}

fn shown(first: &UpcomingRun, fires: usize, next: &[&UpcomingRun], names: Option<&TaskNames>) -> UpcomingTask {
    let fire = |run: &&UpcomingRun| UpcomingFire {
        log: run.id.to_string(),
        fire_time: run.fire_time,
        due_time: run.due_time,
        status: run.status.as_str(),
        node: (!run.node_id.is_none()).then(|| run.node_id.to_string()),
    };
    UpcomingTask {
        task: first.task_id.to_string(),
        name: names.and_then(|names| names.task.clone()),
        app: first.app_id.to_string(),
        app_name: names.and_then(|names| names.app.clone()),
        tenant: names.and_then(|names| names.tenant.clone()),
        fires,
        next: next.iter().map(fire).collect(),
    }
}
