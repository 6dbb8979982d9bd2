//! What a node asks of an executor.

use super::run_key::RunKey;
use serde::{Deserialize, Serialize};

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
    /// What to do when an earlier run of the task is still running.
    #[serde(default)]
    pub block_strategy: BlockStrategy,
    /// How long after its due time the run may wait for its start, ms; then it ends as
    /// [`RunStatus::WaitTimedOut`]. 0 means no limit.
    #[serde(default)]
    pub wait_timeout_ms: i64,
    /// Among due runs that wait for capacity, higher ones start first: 1 to 9.
    #[serde(default = "default_priority")]
    pub priority: i32,
    /// W3C trace context, empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
}

fn default_priority() -> i32 {
    crate::PRIORITY_DEFAULT
}

/// What an executor does with a run while an earlier one of the same task is running. Judged by
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
    /// A word of a later release. Refuse the run: executors of that release know what to do.
    #[serde(other)]
    Other,
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
    /// Refused: the executor holds as many runs as it may.
    Busy,
    /// Refused: a cancel for this (log, attempt) came before it.
    Cancelled,
    /// Refused: `accept_until` has passed.
    TooLate,
    /// Refused, for a reason that a later release has a word for.
    #[serde(other)]
    Other,
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
    /// It has ended; its result follows, or was acknowledged.
    Ended,
    /// It never came, as far as the executor remembers; refused if it still arrives.
    Unknown,
    /// A word of a later release; its result, or the next heartbeat, tells what became of it.
    #[serde(other)]
    Other,
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
    /// Those of the requested tasks that have a run that is running, or due and waiting; in the
    /// order of the request, each once.
    pub busy: Vec<i64>,
}

/// `POST /logs` on an executor: a page of a run's log output. It need not be the process that ran it: the output
/// outlives that process, and the next one in its place still has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOutput {
    /// The process that is asked, [`Register::instance`](crate::Register::instance); any other answers `WrongExecutor`, so
    /// that a captured request is worth nothing after a restart. Nodes of carillon 0.1 do not name it: then any process of
    /// the app answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Task log id.
    pub log: i64,
    /// Attempt, from 1.
    pub attempt: i32,
    /// First byte of the page; 0 or the `next` of the previous page. An offset inside a character
    /// means the next character, one past the end means the end.
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
    /// What the executor knows about the run.
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

/// What an executor knows about a run whose output is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputState {
    /// Held; not started.
    Waiting,
    /// Goes on: text may follow after a page without any.
    Running,
    /// Has ended: nothing comes after what is there.
    Ended,
    /// No output: the run never came, logged nothing, or its output was deleted because of its age
    /// or to make room.
    Unknown,
}

/// `POST /health` on an executor: which process of its app listens there? Whichever does answers, also while it drains.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AskHealth {}

/// Answer to [`AskHealth`]; and, without a signature, to the `GET /health` of nodes of carillon 0.1.
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
