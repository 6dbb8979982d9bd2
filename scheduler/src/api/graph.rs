//! The neighbours of a task.

use super::Api;
use super::input::parse_id;
use super::operation::{Operation, get};
use super::problem::Problem;
use super::words::{RunStatus, TaskState};
use crate::auth::Caller;
use crate::domain::Permission;
use crate::domain::Refusal;
use crate::domain::task::ParentOutcome;
use crate::store::{Graph, GraphTask};
use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/tasks/{id}/graph", "show_task_graph", Permission::TasksRead, "A task's parents and children, as a graph")
            .says(
                "Up to three links in each direction and 100 tasks; `complete` is false when there are more. Parents \
                 that the caller may not see appear with their id only; children that they may not see are omitted.",
            )
            .answers::<TaskGraph>(200, "The graph")
            .to(show),
    ]
}

/// A task and its neighbours.
#[derive(Serialize, ToSchema)]
struct TaskGraph {
    /// The task and its neighbours, by id.
    tasks: Vec<Neighbour>,
    /// Links from parents to the children they start.
    links: Vec<Link>,
    /// Whether the graph is complete.
    complete: bool,
}

/// A task of a graph; if the caller may not see it, everything but the id is null.
#[derive(Default, Serialize, ToSchema)]
struct Neighbour {
    /// Id.
    id: String,
    /// Its name.
    name: Option<String>,
    /// Tenant's name.
    tenant: Option<String>,
    /// App's name.
    app_name: Option<String>,
    /// `started`, `stopped` or `paused`.
    #[schema(value_type = Option<TaskState>)]
    state: Option<&'static str>,
    /// State of the most recently due run; null for callers who may not see runs.
    #[schema(value_type = Option<RunStatus>)]
    last_status: Option<&'static str>,
    /// When that run ended, epoch ms.
    last_finished_at: Option<i64>,
}

/// A child that follows a parent.
#[derive(Serialize, ToSchema)]
struct Link {
    /// The parent (id).
    from: String,
    /// The child (id).
    to: String,
    /// Which outcome of the parent counts.
    on: ParentOutcome,
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let id = parse_id("id", &id)?;
    let now = api.engine.clock.now_ms();
    let graph = api.store.task_graph(&caller.access_scope(Permission::TasksRead), id, now).await?;
    let Graph { tasks, unseen, links, is_complete } = graph.ok_or_else(|| Refusal::not_found("task", id))?;
    let seen = tasks.values().map(|task| neighbour(&caller, task));
    let hidden = unseen.iter().map(|id| Neighbour { id: id.to_string(), ..Neighbour::default() });
    let link = |(link, on): (crate::store::GraphLink, ParentOutcome)| Link {
        from: link.from.to_string(),
        to: link.to.to_string(),
        on,
    };
    Ok(HttpResponse::Ok().json(TaskGraph {
        tasks: seen.chain(hidden).collect(),
        links: links.into_iter().map(link).collect(),
        complete: is_complete,
    }))
}

fn neighbour(caller: &Caller, task: &GraphTask) -> Neighbour {
    let last = task.last.filter(|_| caller.access.holds(Permission::TaskLogsRead, task.tenant_id, task.app_id));
    Neighbour {
        id: task.id.to_string(),
        name: Some(task.name.clone()),
        tenant: Some(task.tenant.clone()),
        app_name: Some(task.app.clone()),
        state: Some(task.state.as_str()),
        last_status: last.map(|(status, _)| status.as_str()),
        last_finished_at: last.and_then(|(_, finished_at)| (finished_at != 0).then_some(finished_at)),
    }
}
