//! Task logs.

mod cancel;
mod find;
mod output;

pub use cancel::{Cancel, cancel_log};
pub use find::find;
pub use output::TaskLog;

use super::Api;
use super::input::{Page, Query, known_word, limit, parse_cursor, parse_optional_id};
use super::operation::{Operation, get, post};
use super::problem::Problem;
use super::waiting;
use super::words::{RunReason, RunTrigger, StoredRunStatus};
use crate::auth::Caller;
use crate::domain::reason::REASONS;
use crate::domain::{Action, Order, Permission, Reason, Status, Trigger};
use crate::store::{ExecutorStore, LogFilter, LogPage, LogView};
use actix_web::{HttpResponse, web};
use cancel::cancel;
use output::{AttemptOutput, TaskLogInFull};
use serde::Deserialize;
use utoipa::IntoParams;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/task-logs", "list_task_logs", P::TaskLogsRead, "Task logs, newest first, or oldest first")
            .says(
                "A page that is not full can still have a `next`: the node stopped searching there. Continue from it.",
            )
            .query::<LogQuery>()
            .answers_page::<TaskLog>("A page of task logs")
            .to(list),
        get("/task-logs/{id}", "show_task_log", P::TaskLogsRead, "A task log")
            .says(
                "With its latest 101 attempts, oldest first. With `wait_ms` the response comes when the run has \
                   ended, or after that time.",
            )
            .query::<WaitQuery>()
            .answers::<TaskLogInFull>(200, "The log")
            .to(show),
        post(
            "/task-logs/{id}/cancel",
            Action::CancelRun,
            P::TaskLogsCancel,
            "Cancel a run, or kill it if it is running",
        )
        .says("For a sharded run, all shards stop. A run that has ended is not changed: 409.")
        .answers::<TaskLog>(200, "Cancelled")
        .answers::<TaskLog>(202, "Its executor has been asked to stop it, and has not confirmed yet")
        .to(cancel),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only of this app (id).
    app: Option<String>,
    /// Only of this task.
    task: Option<String>,
    /// Only shards of this run.
    parent: Option<String>,
    /// `false` omits the shards of runs; they are included when absent.
    shards: Option<bool>,
    /// Only runs that this executor has or had.
    executor: Option<String>,
    /// Only in this state.
    #[param(inline, value_type = Option<StoredRunStatus>)]
    status: Option<String>,
    /// Only for this reason.
    #[param(inline, value_type = Option<RunReason>)]
    reason: Option<String>,
    /// Only with this trigger: `schedule`, `misfire`, `manual`, `parent` or `backfill`.
    #[param(inline, value_type = Option<RunTrigger>)]
    trigger: Option<String>,
    /// From this fire time on, epoch ms; in a list by a `status` other than `succeeded`, due time.
    from: Option<i64>,
    /// Before this fire time, epoch ms.
    until: Option<i64>,
    /// Sort order by fire time (or due time); `newest` when absent.
    #[param(inline)]
    order: Option<Order>,
    /// `next` of the previous page, in the same order.
    before: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// How long to wait for a run.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct WaitQuery {
    /// Wait until the run has ended, for at most this many ms; no wait when absent.
    #[param(minimum = 0, maximum = 60_000)]
    pub wait_ms: Option<i64>,
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<LogQuery>) -> Result<HttpResponse, Problem> {
    let LogQuery {
        tenant,
        app,
        task,
        parent,
        shards,
        executor,
        status,
        reason,
        trigger,
        from,
        until,
        order,
        before,
        limit: wanted,
    } = query.0;
    let status = status
        .map(|word| {
            let words = || crate::domain::task_log::STATUSES.map(|(_, word)| word).join(", ");
            known_word("status", &word, Status::parse(&word), words)
        })
        .transpose()?;
    let limit = limit(wanted)?;
    let access_scope = caller.access_scope(Permission::TaskLogsRead);
    let tenant_id = match tenant {
        Some(tenant) => Some(api.tenant(&caller, Permission::TaskLogsRead, &tenant).await?.id),
        None => None,
    };
    let filter = LogFilter {
        tenant_id,
        app_id: parse_optional_id("app", app.as_ref())?,
        task_id: parse_optional_id("task", task.as_ref())?,
        status,
        reason: reason.map(|word| known_reason(&word)).transpose()?,
        trigger: trigger.map(|word| known_trigger(&word)).transpose()?,
        executor_id: parse_optional_id("executor", executor.as_ref())?,
        parent_id: parse_optional_id("parent", parent.as_ref())?,
        has_no_shards: shards == Some(false),
        id: None,
        from,
        until,
        order: order.unwrap_or_default(),
        after: before.map(|place| parse_cursor("before", &place, 2..=4)).transpose()?,
        limit,
    };
    let LogPage { logs, next } = api.store.list_logs(&access_scope, &filter).await?;
    let next = next.map(|place| place.iter().map(ToString::to_string).collect::<Vec<_>>().join("-"));
    Ok(HttpResponse::Ok().json(Page { items: logs.iter().map(TaskLog::from).collect(), next }))
}

fn known_reason(word: &str) -> Result<Reason, Problem> {
    let known = REASONS.iter().find(|(_, known)| *known == word).map(|(reason, _)| *reason);
    known_word("reason", word, known, || "those that docs/concepts.md lists".to_owned())
}

fn known_trigger(word: &str) -> Result<Trigger, Problem> {
    let trigger = Some(Trigger::parse(word)).filter(|trigger| trigger.as_str() == word);
    known_word("trigger", word, trigger, || "schedule, misfire, manual, parent, backfill".to_owned())
}

async fn show(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    query: Query<WaitQuery>,
) -> Result<HttpResponse, Problem> {
    let look = async || find(&api, &caller, Permission::TaskLogsRead, &id).await;
    let log = match waiting::wanted(query.0.wait_ms)? {
        Some(wait) => {
            let _slot = api.waiting.enter()?;
            waiting::until_ended(&api, wait, look).await?
        }
        None => look().await?,
    };
    let attempts = attempts(&api, &log).await?;
    Ok(HttpResponse::Ok().json(TaskLogInFull { log: TaskLog::from(&log), attempts }))
}

/// The attempts of a run. Those that did not end the run have records of their own; the last one is
/// taken from the log.
async fn attempts(api: &Api, log: &LogView) -> Result<Vec<AttemptOutput>, Problem> {
    let run = &log.dispatched.run;
    if run.attempt == 0 {
        return Ok(Vec::new());
    }
    let kept = api.store.kept_attempts(run.tenant_id, run.id).await?;
    let is_kept = kept.last().is_some_and(|last| last.number >= run.attempt);
    let mut attempts: Vec<AttemptOutput> = kept.into_iter().map(AttemptOutput::kept).collect();
    if !is_kept {
        let executor = api.store.executor_ends(&[run.executor_id]).await?.pop();
        let address = executor.filter(|executor| executor.owner.tenant_id == run.tenant_id).map(|found| found.address);
        attempts.push(AttemptOutput::last(log, address));
    }
    Ok(attempts)
}
