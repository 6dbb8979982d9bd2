//! Cancelling a run.

use super::find::find;
use super::output::{TaskLog, shown_status};
use crate::api::Api;
use crate::api::problem::Problem;
use crate::api::words::STOPPING;
use crate::auth::Caller;
use crate::domain::audit::{AuditNote, Target};
use crate::domain::{Action, Permission, Reason, Refusal, Status};
use crate::store::LogView;
use actix_web::{HttpResponse, web};

/// How often a cancel is retried when the run changes between reading and writing.
const CANCEL_ROUNDS_MAX: usize = 10;

/// Cancels one run: at once when no executor has it. Otherwise it is `stopping` until the executor
/// confirms; the request survives this node, and an executor that is unreachable right now.
/// For a sharded run, all shards stop.
pub async fn cancel(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    cancel_log(&api, &caller, &id, &Cancel { action: Action::CancelRun, message: "", may_run: true }).await
}

/// How a run is cancelled.
pub struct Cancel<'a> {
    /// Its action in the audit.
    pub action: Action,
    /// Why, for people; may be empty.
    pub message: &'a str,
    /// Whether a run that is due and held by an executor is stopped, too.
    pub may_run: bool,
}

/// Cancels the run of that id, as [`cancel`] says.
pub async fn cancel_log(api: &Api, caller: &Caller, id: &str, how: &Cancel<'_>) -> Result<HttpResponse, Problem> {
    for _ in 0..CANCEL_ROUNDS_MAX {
        let log = find(api, caller, Permission::TaskLogsCancel, id).await?;
        let run = &log.dispatched.run;
        let now = api.engine.clock.now_ms();
        if run.status.is_terminal() {
            return Err(Refusal::RunEnded { status: run.status.as_str().to_owned() }.into());
        }
        if !how.may_run && run.status == Status::Dispatched && run.due_time <= now {
            return Err(Refusal::RunStarted { id: id.to_owned() }.into());
        }
        let store = api.store.noting(vec![cancel_note(api, caller, &log, how.action)]);
        let canceller = &api.engine.canceller;
        let is_done = canceller.cancel_by(&store, &log.dispatched, Reason::CancelledManually, how.message).await?;
        if is_done {
            api.ended.notify(&api.engine);
            let log = find(api, caller, Permission::TaskLogsCancel, id).await?;
            let ended = log.dispatched.run.status.is_terminal();
            let mut answer = if ended { HttpResponse::Ok() } else { HttpResponse::Accepted() };
            return Ok(answer.json(TaskLog::from(&log)));
        }
    }
    Err(Refusal::KeepsChanging.into())
}

/// The audit note of a cancel: for a run that an executor has, that it is to stop; its log says when and
/// how it ended.
fn cancel_note(api: &Api, caller: &Caller, log: &LogView, action: Action) -> AuditNote {
    let run = &log.dispatched.run;
    let told = |status: &str| serde_json::json!({ "status": status, "attempt": run.attempt }).to_string();
    let to = if run.status == Status::Dispatched { STOPPING } else { Status::Cancelled.as_str() };
    let change = (Some(told(shown_status(&log.dispatched))), Some(told(to)));
    let target = Target { kind: "task_log", id: run.id.to_string(), name: format!("task {}", run.task_id) };
    api.note(caller, action, run.tenant_id, target, change)
}
