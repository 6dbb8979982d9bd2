//! What an executor asks of a node.

use super::run_key::RunKey;
use serde::{Deserialize, Serialize};

/// `POST /openapi/executors/register`. Sent at start, after `RegisterAgain`, and every
/// `metadata_interval_ms` to refresh what is described.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Register {
    /// Random per process start; tells a restart from a repetition.
    pub instance: String,
    /// Where nodes reach this executor, `http://host:port`.
    pub address: String,
    /// Whether this process itself listens at `address`, on an address of its own machine: whoever is refused there, or
    /// meets another instance, knows that it is gone. With a proxy, a mapped port or a balancer in between, that proves nothing.
    /// Executors of carillon 0.1 do not say so.
    #[serde(default)]
    pub own_address: bool,
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
    /// As in [`Heartbeat`]; of a process that no node has acknowledged yet, that of the one before it over its journal.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub acknowledged_at: i64,
}

/// A handler as an executor describes it. Registering one creates a stopped task, once; later
/// changes by an admin are never overwritten.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HandlerInfo {
    /// Name, unique within the app.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// Default schedule (Quartz cron); a task created without one only runs manually.
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
    /// Its handlers that have no task, because the tenant has reached its quota `max_tasks`. Each
    /// registration tries again.
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
    /// Cluster time at which the sets below were taken, ms. Runs accepted later are not in them.
    pub snapshot_at: i64,
    /// Accepted, not started. With `running` and `unacknowledged` at most [`crate::EXECUTOR_RUNS_MAX`].
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
    /// When a node last acknowledged a heartbeat of this process, or of the one before it over its journal, by that node's clock,
    /// ms; 0 when none has. At most [`crate::ACKNOWLEDGED_LAG_MS`] too early. It shows a node that the database was restored
    /// from a backup that is older.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub acknowledged_at: i64,
    /// By a clock of the process's own, µs, and not after it was sent. Nodes read nothing from it; they return it
    /// ([`HeartbeatAck::written_us`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_us: i64,
}

/// Answer to [`Heartbeat`]. With `StoreUnavailable` `cancel` does not count.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeartbeatAck {
    /// Cluster clock when the node answered, epoch µs.
    pub cluster_time_us: i64,
    /// Runs that must not start, or must stop.
    #[serde(default)]
    pub cancel: Vec<RunKey>,
    /// With `StoreUnavailable`: [`Heartbeat::made_us`] of the newest heartbeat of the process that this node has committed, though
    /// perhaps after it had answered it so. A slow database does not end the process's lease, then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_us: Option<i64>,
}

/// `POST /openapi/executors/unregister`. Runs in `held` were never started and never will be; they
/// are back with the nodes before the reply. While `running` is not empty the executor keeps its
/// heartbeat and calls again when it is; a process that ends before that has left their results to the next one over its
/// journal, and the nodes notice its end by its silence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unregister {
    /// As answered by register.
    pub executor_id: i64,
    /// As sent in register.
    pub instance: String,
    /// Accepted and dropped unstarted. With `running` at most [`crate::EXECUTOR_RUNS_MAX`].
    pub held: Vec<RunKey>,
    /// Started, results not delivered; they follow.
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
    /// A word of a later release: it has ended, and how is not known.
    #[serde(other)]
    Other,
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
    /// The node does not see the attempt, which has ended only just now: what it reads may lag behind. Send the result
    /// again.
    Again,
    /// A word of a later release. Send the result again.
    #[serde(other)]
    Other,
}
