//! Task logs.

use super::Api;
use super::problem::Problem;
use super::tasks::parse_id;
use crate::domain::{Reason, Status};
use crate::store::{Change, HandStore, LogFilter, LogView};
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Items in one page at most.
const PAGE_MAX: u64 = 1_000;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/task-logs", web::get().to(list))
        .route("/task-logs/{id}", web::get().to(show))
        .route("/task-logs/{id}/cancel", web::post().to(cancel));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    tenant: Option<String>,
    task: Option<String>,
    parent: Option<String>,
    status: Option<String>,
    before: Option<String>,
    limit: Option<u64>,
}

async fn list(api: web::Data<Api>, page: web::Query<Page>) -> Result<HttpResponse, Problem> {
    let Page { tenant, task, parent, status, before, limit } = page.into_inner();
    let id = |field: &str, text: Option<String>| text.map(|text| parse_id(field, &text)).transpose();
    let status = status
        .map(|word| {
            Status::parse(&word).ok_or_else(|| {
                let words = crate::domain::task_log::STATUSES.map(|(_, word)| word).join(", ");
                Problem::invalid(format!("status: `{word}` is none of {words}"))
            })
        })
        .transpose()?;
    let limit = limit.unwrap_or(50).clamp(1, PAGE_MAX);
    let filter = LogFilter {
        tenant,
        task_id: id("task", task)?,
        status,
        parent_id: id("parent", parent)?,
        id: None,
        before: before.as_deref().map(cursor).transpose()?,
        limit,
    };
    let logs = api.store.list_logs(&filter).await?;
    let next = logs
        .last()
        .filter(|_| logs.len() as u64 == limit)
        .map(|log| format!("{}-{}", log.handed.run.fire_time, log.handed.run.id));
    let items: Vec<_> = logs.iter().map(output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items, "next": next })))
}

/// `fire_time-id`, as the page before gave it.
fn cursor(text: &str) -> Result<(i64, i64), Problem> {
    let parts = text.split_once('-').and_then(|(fire, id)| Some((fire.parse().ok()?, id.parse().ok()?)));
    parts.ok_or_else(|| Problem::invalid("before: use the `next` of the page before"))
}

async fn show(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(output(&find(&api, &id).await?)))
}

/// A run that changes between the look and the step is looked at again so often.
const CANCEL_ROUNDS_MAX: usize = 10;

/// Cancels one run: at once when nobody runs it. When an executor has it, it is `stopping` until
/// the executor confirms; that wish outlives this node, and an executor that cannot be reached now.
/// Of a sharded run all shards stop.
async fn cancel(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    for _ in 0..CANCEL_ROUNDS_MAX {
        let log = find(&api, &id).await?;
        let run = &log.handed.run;
        if run.status.is_terminal() {
            return Err(Problem::conflict(format!("the run has ended ({})", run.status.as_str())));
        }
        let is_done = if run.status == Status::Dispatched {
            api.engine.canceller.stop(vec![log.handed.clone()], Reason::CancelledByHand).await?.noted > 0
        } else {
            let now = api.engine.clock.now_ms();
            let change = Change { finished_at: now, ..Change::of(run, Status::Cancelled, Reason::CancelledByHand) };
            !api.store.change(&[change]).await?.is_empty()
        };
        if is_done {
            api.ended.notify(&api.engine);
            let log = find(&api, &id).await?;
            let ended = log.handed.run.status.is_terminal();
            let mut answer = if ended { HttpResponse::Ok() } else { HttpResponse::Accepted() };
            return Ok(answer.json(output(&log)));
        }
    }
    Err(Problem::conflict("the run keeps changing; try again"))
}

async fn find(api: &Api, id: &str) -> Result<LogView, Problem> {
    let id = parse_id("id", id)?;
    let filter = LogFilter { id: Some(id), limit: 1, ..LogFilter::default() };
    let found = api.store.list_logs(&filter).await?;
    found.into_iter().next().ok_or_else(|| Problem::not_found(format!("there is no task log {id}")))
}

fn output(log: &LogView) -> Value {
    let handed = &log.handed;
    let run = &handed.run;
    let name = |id: i64| (id != 0).then(|| id.to_string());
    let time = |ms: i64| (ms != 0).then_some(ms);
    let is_stopping = run.status == Status::Dispatched && handed.stopping != Reason::None;
    let shards = log.shards.map(|shards| {
        json!({
            "total": run.shard_total,
            "started": shards.started,
            "ended": shards.ended,
            "succeeded": shards.succeeded,
        })
    });
    json!({
        "id": run.id.to_string(),
        "task": run.task_id.to_string(),
        "tenant": log.tenant,
        "revision": run.revision,
        // Told to stop, and not confirmed yet.
        "status": if is_stopping { "stopping" } else { run.status.as_str() },
        "reason": if is_stopping { handed.stopping } else { run.reason }.as_str(),
        "origin": run.origin.as_str(),
        "priority": run.priority,
        "fire_time": run.fire_time,
        "due_time": run.due_time,
        "attempt": run.attempt,
        "failures": run.failures,
        "shard_index": run.shard_index,
        "shard_total": run.shard_total,
        "shards": shards,
        "parent": name(run.parent_id),
        "executor": name(handed.run.executor_id),
        "node": name(handed.node_id),
        "queued_at": time(log.queued_at),
        "dispatched_at": time(handed.dispatched_at),
        "started_at": time(log.started_at),
        "finished_at": time(handed.finished_at),
        "message": log.message,
        "output": log.output,
        "params": run.params,
        "version": run.version,
    })
}
