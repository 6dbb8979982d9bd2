//! The messages, one struct per body. Times are epoch milliseconds UTC on the cluster clock
//! unless the name ends in `_us` (microseconds). Unknown fields are ignored, so that either
//! side may be newer.

use crate::code::Code;
use serde::{Deserialize, Serialize};

/// The envelope of every reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply<T> {
    /// Outcome; `0` is success.
    pub code: Code,
    /// `ok`, or what went wrong and how to mend it.
    pub msg: String,
    /// The answer; absent unless `code` is `0` (a refused heartbeat still carries the time).
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T> Reply<T> {
    /// A success.
    pub fn ok(data: T) -> Self {
        Self { code: Code::Ok, msg: "ok".to_owned(), data: Some(data) }
    }

    /// A refusal.
    pub fn refuse(code: Code, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into(), data: None }
    }
}

/// One dispatch of a run: the fencing token of everything that is said about it.
/// On the wire it is the array `[log, attempt]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey(
    /// Task log id.
    pub i64,
    /// Attempt, counted from 1.
    pub i32,
);

/// `POST /openapi/executors/register`. Sent at start, after `RegisterAgain`, and every
/// `metadata_interval_ms` to refresh what is described.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Register {
    /// Random per process start; tells a restart from a repetition.
    pub instance: String,
    /// Where nodes reach this executor, `http://host:port`.
    pub address: String,
    /// Name of the machine or container.
    pub host_name: String,
    /// Process id.
    pub pid: u32,
    /// Version of the executor's own software.
    pub version: String,
    /// Tags, each compared exactly by routing.
    #[serde(default)]
    pub tags: Vec<String>,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// Runs at once at most.
    pub capacity: u32,
    /// Every handler that this process has.
    pub handlers: Vec<HandlerInfo>,
}

/// A handler as an executor describes it. Registering one makes a stopped task, once; what an
/// admin changes later is never overwritten.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HandlerInfo {
    /// Name, unique within the app.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// Default schedule (Quartz cron); a task made without one fires only manually.
    #[serde(default)]
    pub cron: Option<String>,
    /// Default IANA time zone of the schedule.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Default time-out of a run, ms; 0 is none.
    #[serde(default)]
    pub timeout_ms: i64,
    /// Further defaults of the task, by the API's own field names, for example
    /// `{"routing": "round", "block_strategy": "serial", "max_retries": 2}`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub policies: serde_json::Map<String, serde_json::Value>,
}

/// Answer to [`Register`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Registered {
    /// This process's id until it registers under another instance.
    pub executor_id: i64,
    /// Cluster clock when the node answered, epoch µs.
    pub cluster_time_us: i64,
    /// Periods that the executor keeps to.
    pub settings: ExecutorSettings,
    /// Its handlers that have no task, because the tenant has as many tasks as it may (its quota
    /// `max_tasks`). Each registration tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Periods that the node sets for its executors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorSettings {
    /// Between heartbeats, ms.
    pub heartbeat_interval_ms: u64,
    /// Between repetitions of [`Register`], ms.
    pub metadata_interval_ms: u64,
    /// Without an acknowledged heartbeat for this long the executor counts as offline and what
    /// it holds unstarted goes elsewhere; so it must not start such a run itself any more. ms.
    pub offline_after_ms: u64,
    /// Without an acknowledged heartbeat for this long the executor stops what it runs, because
    /// the nodes then count those runs as dead. ms.
    pub abandon_after_ms: u64,
}

/// `POST /openapi/executors/heartbeat`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Heartbeat {
    /// As answered by register.
    pub executor_id: i64,
    /// As sent in register.
    pub instance: String,
    /// Cluster time at which the sets below were taken, ms. What was accepted later is not in
    /// them.
    pub snapshot_at: i64,
    /// Accepted, not started.
    pub held: Vec<RunKey>,
    /// Started, not ended.
    pub running: Vec<RunKey>,
    /// Ended, result not yet acknowledged by a node.
    pub unacknowledged: Vec<RunKey>,
    /// Runs at once at most.
    pub capacity: u32,
    /// Takes no new runs (shutting down).
    #[serde(default)]
    pub draining: bool,
}

/// Answer to [`Heartbeat`]. With `StoreUnavailable` the time is present and nothing else counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeartbeatAck {
    /// Cluster clock when the node answered, epoch µs.
    pub cluster_time_us: i64,
    /// Runs that must not start, or must stop.
    #[serde(default)]
    pub cancel: Vec<RunKey>,
}

/// `POST /openapi/executors/unregister`. What is in `held` was never started and never will be;
/// it is back with the nodes before the answer. While `running` is not empty the executor keeps
/// its heartbeat and calls again when it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unregister {
    /// As answered by register.
    pub executor_id: i64,
    /// As sent in register.
    pub instance: String,
    /// Accepted and dropped unstarted.
    pub held: Vec<RunKey>,
    /// Started, not ended; their results follow.
    pub running: Vec<RunKey>,
}

/// Answer to [`Unregister`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unregistered {
    /// How many held runs went back.
    pub returned: u64,
}

/// `POST /openapi/results`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// The process that ran them.
    pub executor_id: i64,
    /// At most [`crate::RESULT_ITEMS_MAX`].
    pub results: Vec<RunResult>,
}

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Task log id.
    pub log: i64,
    /// Attempt that this is the outcome of.
    pub attempt: i32,
    /// What happened.
    pub status: RunStatus,
    /// For people: the error, the panic, why it was not started. At most
    /// [`crate::TEXT_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the handler returned. At most [`crate::TEXT_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Cluster time when the handler was entered, ms; 0 when it never was.
    pub started_at: i64,
    /// Cluster time when it ended, ms.
    pub finished_at: i64,
    /// When it should have started, as it was dispatched, ms; 0 from executors that do not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub due_time: i64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// What happened to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The handler returned `Ok`.
    Succeeded,
    /// The handler returned an error that may be retried.
    Failed,
    /// The handler returned an error and asks not to be retried.
    FailedForGood,
    /// The handler panicked.
    Panicked,
    /// The run's time-out passed and the handler was stopped.
    TimedOut,
    /// A cancel dropped or stopped it.
    Cancelled,
    /// Accepted but never started (the executor lost its nodes, or is shutting down); another
    /// attempt cannot double it.
    NotStarted,
    /// Stopped by the executor itself: contact with every node was lost for `abandon_after_ms`,
    /// or it was shut down harder than it could drain.
    Abandoned,
    /// Never started: it was due while an earlier run of the task still went on
    /// ([`BlockStrategy::DiscardLater`]).
    Blocked,
    /// A later run of the task took its place ([`BlockStrategy::CoverEarly`]): dropped
    /// unstarted, or stopped.
    Covered,
    /// Never started: `wait_timeout_ms` passed first.
    WaitTimedOut,
}

/// Answer to [`Results`], sent after the commit; one verdict per result, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultsAck {
    /// In the order of the request.
    pub verdicts: Vec<Verdict>,
}

/// What the node did with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Committed, now or by an earlier sending of the same result.
    Applied,
    /// Another attempt is current, or the run had ended; recorded, not applied.
    Stale,
    /// No such run for this tenant.
    Unknown,
}

/// `POST /dispatch` on an executor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Dispatch {
    /// The process that these are for; any other answers `WrongExecutor`.
    pub executor_id: i64,
    /// Cluster clock when the node sent this, epoch µs.
    pub cluster_time_us: i64,
    /// At most [`crate::DISPATCH_ITEMS_MAX`].
    pub items: Vec<DispatchItem>,
}

/// One run to hold until its due time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispatchItem {
    /// Task log id.
    pub log: i64,
    /// Attempt, from 1.
    pub attempt: i32,
    /// Task id.
    pub task: i64,
    /// Task name, for people and logs.
    pub task_name: String,
    /// Handler name.
    pub handler: String,
    /// Parameters as entered; JSON where the handler wants a typed value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub params: String,
    /// The instant that the schedule names, ms.
    pub fire_time: i64,
    /// When this attempt starts, ms; never earlier.
    pub due_time: i64,
    /// Accepted only before this cluster time, ms; later the dispatch counts as lost and may
    /// have been given to another.
    pub accept_until: i64,
    /// Shard of this run, from 0.
    pub shard_index: i32,
    /// Number of shards, 1 when not sharded.
    pub shard_total: i32,
    /// Time-out of the run, ms; 0 is none.
    pub timeout_ms: i64,
    /// What to do when an earlier run of the task still goes on.
    #[serde(default)]
    pub block_strategy: BlockStrategy,
    /// How long after its due time the run may wait for its start, ms; then it ends as
    /// [`RunStatus::WaitTimedOut`]. 0 is for ever.
    #[serde(default)]
    pub wait_timeout_ms: i64,
    /// Among due runs that wait for room the higher starts first: 1 to 9.
    #[serde(default = "default_priority")]
    pub priority: i32,
    /// W3C trace context, empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
}

fn default_priority() -> i32 {
    crate::PRIORITY_DEFAULT
}

/// What an executor does with a run while an earlier one of the same task goes on. Judged by
/// task id within one executor process, when the run is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockStrategy {
    /// Starts beside it.
    #[default]
    Concurrent,
    /// Waits until it has ended.
    Serial,
    /// Ends as [`RunStatus::Blocked`] without having started.
    DiscardLater,
    /// Has it stopped ([`RunStatus::Covered`]) and starts when it has ended.
    CoverEarly,
}

/// Answer to [`Dispatch`]: one outcome per item, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DispatchAck {
    /// In the order of the request.
    pub outcomes: Vec<DispatchOutcome>,
}

/// What the executor did with one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DispatchOutcome {
    /// Held until its due time.
    Accepted,
    /// This (log, attempt) was accepted before; counts as accepted.
    Duplicate,
    /// Refused: shutting down.
    ShuttingDown,
    /// Refused: no such handler here.
    HandlerMissing,
    /// Refused: as many are held as the executor will hold.
    Busy,
    /// Refused: a cancel for this (log, attempt) came before it.
    Cancelled,
    /// Refused: `accept_until` has passed.
    TooLate,
}

impl DispatchOutcome {
    /// Whether the executor now answers for this attempt.
    #[must_use]
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::Duplicate)
    }
}

/// `POST /cancel` on an executor. Unknown pairs are remembered, so that a dispatch which
/// arrives after its cancel is refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cancel {
    /// The process that these are for; any other answers `WrongExecutor`.
    pub executor_id: i64,
    /// At most [`crate::DISPATCH_ITEMS_MAX`].
    pub runs: Vec<RunKey>,
    /// Only what has not started; a running handler goes on.
    #[serde(default)]
    pub unstarted_only: bool,
}

/// Answer to [`Cancel`]: one outcome per pair, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelAck {
    /// In the order of the request.
    pub outcomes: Vec<CancelOutcome>,
}

/// What a cancel met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// Held, and dropped before it started; no result follows.
    Dropped,
    /// The handler was stopped; its result follows.
    Stopped,
    /// The handler was told to stop and has not yet; its result follows.
    Stopping,
    /// Running, and left alone because only unstarted runs were to be cancelled.
    Running,
    /// Neither held nor running; refused if it still arrives.
    Unknown,
}

/// `POST /probe` on an executor: is it alive, and which of these tasks keep it busy? One that
/// is draining refuses with `ShuttingDown`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Probe {
    /// The process that this is for; any other answers `WrongExecutor`.
    pub executor_id: i64,
    /// Task ids, at most [`crate::PROBE_TASKS_MAX`]; none only asks for the totals.
    #[serde(default)]
    pub tasks: Vec<i64>,
}

/// Answer to [`Probe`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAck {
    /// Accepted, not started: all tasks.
    pub held: usize,
    /// Started, not ended: all tasks.
    pub running: usize,
    /// Runs at once at most.
    pub capacity: u32,
    /// Of the asked tasks those of which it runs one, or has one waiting that is already due;
    /// in the order of the request, each once.
    pub busy: Vec<i64>,
}

/// `POST /logs` on an executor: a page of the output of a run, which is what it has logged. The
/// run is named by (log, attempt) alone: what it logged outlives the process that ran it, and the
/// next one at its place still has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOutput {
    /// Task log id.
    pub log: i64,
    /// Attempt, from 1.
    pub attempt: i32,
    /// First byte of the page; 0 or the `next` of the page before. One in the middle of a character
    /// means the next character, one past the end the end.
    #[serde(default)]
    pub from: u64,
    /// Bytes of the page at most, [`crate::OUTPUT_PAGE_BYTES`]; other values are brought into that
    /// range.
    #[serde(default = "default_page")]
    pub limit: u32,
}

fn default_page() -> u32 {
    *crate::OUTPUT_PAGE_BYTES.end()
}

/// Answer to [`ReadOutput`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPage {
    /// What the executor knows of the run.
    pub state: OutputState,
    /// Whole characters only. Bytes that are none (a damaged file) are shown as U+FFFD.
    pub text: String,
    /// Where the next page begins. It counts bytes of the file, and need not be `from` plus the
    /// length of `text`.
    pub next: u64,
    /// Whether there is text after `next` by now.
    pub more: bool,
    /// Whether the run logged more than is kept of one run; the last line says so.
    pub cut: bool,
}

/// What an executor knows of a run whose output is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputState {
    /// Held; not started.
    Waiting,
    /// Goes on: text may follow after a page without any.
    Running,
    /// Has ended: nothing comes after what is there.
    Ended,
    /// Nothing of it is here: it never came, logged nothing, or what it logged was deleted for
    /// its age or for room.
    Unknown,
}

/// Answer to `GET /health` on an executor, unsigned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Health {
    /// Id from the last registration; 0 before it.
    pub executor_id: i64,
    /// Random per process start.
    pub instance: String,
    /// Accepted, not started.
    pub held: usize,
    /// Started, not ended.
    pub running: usize,
    /// Version of the executor's own software.
    pub version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispatch_of_an_older_node_means_what_it_always_meant() {
        let item = r#"{"log": 1, "attempt": 1, "task": 2, "task_name": "t", "handler": "h", "fire_time": 5,
            "due_time": 5, "accept_until": 9, "shard_index": 0, "shard_total": 1, "timeout_ms": 0}"#;
        let item: DispatchItem = serde_json::from_str(item).unwrap();
        assert_eq!((item.block_strategy, item.wait_timeout_ms), (BlockStrategy::Concurrent, 0));
        assert_eq!(item.priority, crate::PRIORITY_DEFAULT);
        let handler: HandlerInfo = serde_json::from_str(r#"{"name": "h"}"#).unwrap();
        assert!(handler.policies.is_empty());
    }

    #[test]
    fn an_answer_of_an_older_node_leaves_nothing_out() {
        let settings = r#"{"heartbeat_interval_ms": 1, "metadata_interval_ms": 2, "offline_after_ms": 3,
            "abandon_after_ms": 4}"#;
        let answer = format!(r#"{{"executor_id": 1, "cluster_time_us": 5, "settings": {settings}}}"#);
        let mut answer: Registered = serde_json::from_str(&answer).unwrap();
        assert!(answer.left_out.is_empty());
        assert!(!serde_json::to_string(&answer).unwrap().contains("left_out"));
        answer.left_out.push("tick".to_owned());
        assert!(serde_json::to_string(&answer).unwrap().contains(r#""left_out":["tick"]"#));
    }

    #[test]
    fn what_is_new_has_its_name_on_the_wire() {
        let strategies = [BlockStrategy::Serial, BlockStrategy::DiscardLater, BlockStrategy::CoverEarly];
        assert_eq!(serde_json::to_string(&strategies).unwrap(), r#"["serial","discard_later","cover_early"]"#);
        let statuses = [RunStatus::Blocked, RunStatus::Covered, RunStatus::WaitTimedOut];
        assert_eq!(serde_json::to_string(&statuses).unwrap(), r#"["blocked","covered","wait_timed_out"]"#);
        let states = [OutputState::Waiting, OutputState::Running, OutputState::Ended, OutputState::Unknown];
        assert_eq!(serde_json::to_string(&states).unwrap(), r#"["waiting","running","ended","unknown"]"#);
        let read: ReadOutput = serde_json::from_str(r#"{"log": 1, "attempt": 2}"#).unwrap();
        assert_eq!((read.from, read.limit), (0, 256 * 1024));
    }
}
