//! Task logs.

use super::Api;
use super::input::{Page, Query, known_word, limit, parse_cursor, parse_id, parse_optional_id};
use super::operation::{Operation, get, post};
use super::problem::Problem;
use super::waiting;
use super::words::{RunReason, RunStatus, RunTrigger, STOPPING, StoredRunStatus};
use crate::auth::Caller;
use crate::domain::Refusal;
use crate::domain::audit::{AuditNote, Target};
use crate::domain::reason::REASONS;
use crate::domain::{Action, IdSource, Order, Permission, Reason, Status, Transition, Trigger};
use crate::store::{DispatchStore, DispatchedRun, ExecutorStore, KeptAttempt, LogFilter, LogPage, LogView, cut};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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

/// Progress of a sharded run.
#[derive(Serialize, ToSchema)]
struct Shards {
    /// Total number of shards.
    total: i32,
    /// Shards that have started, or are due and held by an executor.
    started: i64,
    /// Shards that have ended.
    ended: i64,
    /// Shards that have succeeded.
    succeeded: i64,
}

/// One run of a task.
#[derive(Serialize, ToSchema)]
pub struct TaskLog {
    /// Id.
    pub id: String,
    /// Task.
    task: String,
    /// Its name; null when it no longer exists.
    task_name: Option<String>,
    /// App's id.
    app: String,
    /// App's name; null when it no longer exists.
    app_name: Option<String>,
    /// Tenant's name.
    tenant: String,
    /// Revision of the task that it follows.
    revision: i64,
    /// Its state; `stopping` when its executor was asked to stop it and has not confirmed yet.
    #[schema(value_type = RunStatus)]
    status: &'static str,
    /// Why it is in this state; docs/concepts.md lists the words.
    #[schema(value_type = RunReason)]
    reason: &'static str,
    /// What made it: `schedule`, `misfire`, `manual`, `parent` or `backfill`.
    #[schema(value_type = RunTrigger)]
    trigger: &'static str,
    /// 1 to 9, 9 is the most urgent.
    priority: i32,
    /// The scheduled instant, epoch ms.
    fire_time: i64,
    /// When this attempt should start, epoch ms.
    due_time: i64,
    /// How often it was dispatched.
    attempt: i32,
    /// How many attempts failed.
    failures: i32,
    /// Which shard, from 0.
    shard_index: i32,
    /// Number of shards.
    shard_total: i32,
    /// Progress of the shards, if the run is sharded.
    shards: Option<Shards>,
    /// The sharded run that it belongs to.
    parent: Option<String>,
    /// The executor that has or had it.
    executor: Option<String>,
    /// The node that has or had it.
    node: Option<String>,
    /// When it was written, epoch ms.
    written_at: i64,
    /// The node that wrote it.
    written_by: Option<String>,
    /// When a node claimed it, epoch ms.
    queued_at: Option<i64>,
    /// When it was dispatched, epoch ms.
    dispatched_at: Option<i64>,
    /// When the handler started, epoch ms.
    started_at: Option<i64>,
    /// When it ended, epoch ms.
    finished_at: Option<i64>,
    /// Free text for people to read.
    message: String,
    /// What the handler returned.
    output: String,
    /// Parameters instead of the task's.
    params: Option<String>,
    /// Increases with every step.
    version: i64,
}

/// One run of a task, with its attempts.
#[derive(Serialize, ToSchema)]
struct TaskLogInFull {
    #[serde(flatten)]
    log: TaskLog,
    /// Every dispatch, oldest first; the last one is taken from the log itself.
    attempts: Vec<AttemptOutput>,
}

/// A dispatch of a run to an executor, and its outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = Attempt)]
struct AttemptOutput {
    /// Counted from 1.
    attempt: i32,
    /// Its outcome: `retry` when it failed, or was not accepted, and the run went on.
    #[schema(value_type = RunStatus)]
    status: &'static str,
    /// Why.
    #[schema(value_type = RunReason)]
    reason: &'static str,
    /// Message for people; its first 1,000 characters.
    message: String,
    /// Executor that had it; null for a sharded run, whose shards name theirs.
    executor: Option<String>,
    /// Address of that executor.
    executor_address: Option<String>,
    /// The node that dispatched it.
    node: Option<String>,
    /// When it should have started, epoch ms.
    due_time: i64,
    /// When it was dispatched, epoch ms.
    dispatched_at: Option<i64>,
    /// When the handler started, epoch ms; unknown until the result comes.
    started_at: Option<i64>,
    /// When the handler ended, epoch ms; null when it never started, or its end is unknown.
    finished_at: Option<i64>,
}

impl AttemptOutput {
    fn kept(kept: KeptAttempt) -> Self {
        let KeptAttempt { number, executor_id, address, node_id, due_time, .. } = kept;
        Self {
            attempt: number,
            status: kept.status.as_str(),
            reason: kept.reason.as_str(),
            message: kept.message,
            executor: known_id(executor_id),
            executor_address: (!address.is_empty()).then_some(address),
            node: known_id(node_id),
            due_time,
            dispatched_at: known_time(kept.dispatched_at),
            started_at: known_time(kept.started_at),
            finished_at: known_time(kept.finished_at),
        }
    }

    /// The last attempt, taken from the log itself.
    fn last(log: &LogView, address: Option<String>) -> Self {
        let LogView { dispatched, .. } = log;
        Self {
            attempt: dispatched.run.attempt,
            status: shown_status(dispatched),
            reason: shown_reason(dispatched).as_str(),
            message: cut(&log.message),
            executor: known_id(dispatched.run.executor_id),
            executor_address: address,
            node: known_id(dispatched.node_id),
            due_time: dispatched.run.due_time,
            dispatched_at: known_time(dispatched.dispatched_at),
            started_at: known_time(log.started_at),
            finished_at: known_time(dispatched.finished_at),
        }
    }
}

fn known_id(id: impl Into<i64>) -> Option<String> {
    let id = id.into();
    (id != 0).then(|| id.to_string())
}

fn known_time(ms: i64) -> Option<i64> {
    (ms != 0).then_some(ms)
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

/// How often a cancel is retried when the run changes between reading and writing.
const CANCEL_ROUNDS_MAX: usize = 10;

/// Cancels one run: at once when no executor has it. Otherwise it is `stopping` until the executor
/// confirms; the request survives this node, and an executor that is unreachable right now.
/// For a sharded run, all shards stop.
async fn cancel(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
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
        let is_done = if run.status == Status::Dispatched {
            let runs = vec![log.dispatched.clone()];
            api.engine.canceller.stop_by(&store, runs, Reason::CancelledManually).await?.noted > 0
        } else {
            let message = how.message.to_owned();
            let ended = Transition::of(run, Status::Cancelled, Reason::CancelledManually);
            let change = Transition { finished_at: now, message, ..ended };
            !store.change(&[change]).await?.is_empty()
        };
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

fn is_stopping(dispatched: &DispatchedRun) -> bool {
    dispatched.run.status == Status::Dispatched && dispatched.stopping != Reason::None
}

/// A run's state as shown to callers.
fn shown_status(dispatched: &DispatchedRun) -> &'static str {
    if is_stopping(dispatched) { STOPPING } else { dispatched.run.status.as_str() }
}

/// The reason for the state as shown to callers.
fn shown_reason(dispatched: &DispatchedRun) -> Reason {
    if is_stopping(dispatched) { dispatched.stopping } else { dispatched.run.reason }
}

/// The log of that id, where the caller holds the permission.
pub async fn find(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<LogView, Problem> {
    let id = parse_id("id", id)?;
    let found = api.store.log(&caller.access_scope(needs), id).await?;
    found.ok_or_else(|| Refusal::not_found("task log", id).into())
}

impl From<&LogView> for TaskLog {
    fn from(log: &LogView) -> Self {
        let dispatched = &log.dispatched;
        let run = &dispatched.run;
        let time = known_time;
        Self {
            id: run.id.to_string(),
            task: run.task_id.to_string(),
            task_name: log.task_name.clone(),
            app: run.app_id.to_string(),
            app_name: log.app_name.clone(),
            tenant: log.tenant.clone(),
            revision: run.revision,
            status: shown_status(dispatched),
            reason: shown_reason(dispatched).as_str(),
            trigger: run.trigger.as_str(),
            priority: run.priority,
            fire_time: run.fire_time,
            due_time: run.due_time,
            attempt: run.attempt,
            failures: run.failures,
            shard_index: run.shard_index,
            shard_total: run.shard_total,
            shards: log.shards.map(|shards| Shards {
                total: run.shard_total,
                started: shards.started,
                ended: shards.ended,
                succeeded: shards.succeeded,
            }),
            parent: known_id(run.parent_id),
            executor: known_id(run.executor_id),
            node: known_id(dispatched.node_id),
            written_at: IdSource::made_at(run.id),
            written_by: known_id(IdSource::made_by(run.id)),
            queued_at: time(log.queued_at),
            dispatched_at: time(dispatched.dispatched_at),
            started_at: time(log.started_at),
            finished_at: time(dispatched.finished_at),
            message: log.message.clone(),
            output: log.output.clone(),
            params: run.params.clone(),
            version: run.version,
        }
    }
}
