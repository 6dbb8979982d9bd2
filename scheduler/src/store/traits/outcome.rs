//! What `outcome/` asks: results, lost runs, what follows an end.

use crate::domain::audit::Actor;
use crate::domain::{ExecutorId, LogId, NodeId, Owner, Reason, Run, Status, TaskId, Trigger};
use crate::store::Result;
use async_trait::async_trait;
use carillon_protocol::RunResult;

/// A run as the judge of its outcome sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchedRun {
    /// The run.
    pub run: Run,
    /// Node that dispatched it (or queued it).
    pub node_id: NodeId,
    /// When it was dispatched, ms.
    pub dispatched_at: i64,
    /// When its last attempt ended, ms; 0 when it has not.
    pub finished_at: i64,
    /// Why its executor was told to stop it, or, for a change of its task, to drop it if it has not started;
    /// [`Reason::None`] when it was not.
    pub stopping: Reason,
}

impl DispatchedRun {
    /// Whether its executor must stop it, started or not.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping != Reason::None && !self.stopping.is_revocation()
    }
}

/// A run's place in their order: its due time in ms, its log. A page begins behind one.
pub type Place = (i64, LogId);

/// What is before all others.
pub const FROM_THE_FIRST: Place = (i64::MIN, LogId::NONE);

/// Which handed-over runs to look at.
#[derive(Debug, Clone)]
pub struct Suspects {
    /// Of these executors; empty means of any executor not in `except`.
    pub executors: Vec<ExecutorId>,
    /// Not of these.
    pub except: Vec<ExecutorId>,
    /// Due before this instant, ms; not earlier than that of `after` …
    pub due_before: i64,
    /// … or dispatched by a node not among these (when there are any).
    pub or_not_by: Vec<NodeId>,
    /// Due before this instant in any case, ms.
    pub until: i64,
    /// Behind this.
    pub after: Place,
    /// At most so many.
    pub limit: u64,
}

/// A run that may be lost: what tells whether it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// Task log id.
    pub log: LogId,
    /// Of the row: what is decided by this, is decided about this version only. An executor that has come back meanwhile
    /// has kept the run under another one.
    pub version: i64,
    /// Dispatches so far.
    pub attempt: i32,
    /// When it was to start, ms.
    pub due_time: i64,
    /// Who should have it.
    pub executor_id: ExecutorId,
    /// When it was dispatched, ms.
    pub dispatched_at: i64,
}

/// Asked by `outcome/`.
#[async_trait]
pub trait OutcomeStore: Send + Sync {
    /// DISPATCHED → SUCCEEDED where the attempt is current, in the caller's scope. Answers how
    /// many rows moved; when fewer than asked, [`OutcomeStore::runs`] tells which.
    async fn succeed(&self, owner: Owner, results: &[&RunResult]) -> Result<u64>;
    /// The same, of runs that are no shards of others.
    async fn succeed_whole(&self, owner: Owner, results: &[&RunResult]) -> Result<u64>;
    /// These runs, in the caller's scope (`None`: the engine itself).
    async fn runs(&self, owner: Option<Owner>, ids: &[LogId]) -> Result<Vec<DispatchedRun>>;
    /// Records results that came too late to count.
    async fn record_stale(&self, executor_id: ExecutorId, results: &[&RunResult], ids: &[i64], now: i64) -> Result<()>;
    /// Parents of those of these runs that are shards.
    async fn parents_of(&self, ids: &[LogId]) -> Result<Vec<LogId>>;
    /// Ends those of these parents none of whose shards is open: SUCCEEDED when as many did as it had, CANCELLED when
    /// the parent was told to stop, else FAILED. Answers how many ended.
    async fn settle_parents(&self, parents: &[LogId], now: i64) -> Result<u64>;
    /// DISPATCHED parents dispatched before `before` (ms) and due before `until` (ms), to sweep those whose settling was lost: the
    /// first behind `after`, in their order.
    async fn open_parents(&self, before: i64, until: i64, after: Place, limit: u64) -> Result<Vec<Place>>;
    /// DISPATCHED runs (no parents) due before `until` (ms) that their executors must stop, or drop if they have not started: the
    /// first behind `after`, in their order.
    async fn stopping(&self, until: i64, after: Place, limit: u64) -> Result<Vec<DispatchedRun>>;
    /// Shards that have not ended and were not told to stop although their parent was; `stopping`
    /// is the parent's.
    async fn shards_to_stop(&self, limit: u64) -> Result<Vec<DispatchedRun>>;
    /// DISPATCHED runs (no parents) that may be lost.
    async fn suspects(&self, which: &Suspects) -> Result<Vec<Suspect>>;
}

/// A run that has ended, for what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// Task log id.
    pub log: LogId,
    /// Task.
    pub task_id: TaskId,
    /// How it ended.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// What made it.
    pub trigger: Trigger,
    /// Definition that it ran by.
    pub revision: i64,
    /// The instant that its schedule named, ms.
    pub fire_time: i64,
    /// When it ended, ms.
    pub finished_at: i64,
    /// What the handler returned.
    pub output: String,
    /// How often it was dispatched.
    pub attempt: i32,
}

/// Ended runs in a part of the outbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedPage {
    /// Those whose runs have ended, in their order.
    pub ended: Vec<EndedRun>,
    /// Outbox rows that were looked at.
    pub rows: u64,
    /// The last of them; none when there is nothing behind it.
    pub next: Option<LogId>,
}

/// What a round of following up did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboxRound {
    /// Children started.
    pub started: usize,
    /// Tasks whose watermark moved.
    pub moved: Vec<TaskId>,
    /// Tasks that were paused because they have failed too often in a row.
    pub paused: Vec<PausedTask>,
}

/// A task that was paused because it has failed too often in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedTask {
    /// Task.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// Failed runs in a row.
    pub failures: i32,
    /// What executors hold of it, marked as revoked.
    pub held: Vec<DispatchedRun>,
}

impl OutboxRound {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.started += other.started;
        self.moved.extend(other.moved);
        self.paused.extend(other.paused);
    }
}

/// Asked by `outcome/` for what follows the end of runs.
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// Whether any run's end has consequences.
    async fn has_outbox_entries(&self) -> Result<bool>;
    /// Ended runs among those of the next `rows` outbox rows (at most [`BATCH_MAX`](crate::store::BATCH_MAX)) after the one
    /// of `after`.
    async fn ended(&self, after: LogId, rows: u64) -> Result<EndedPage>;
    /// Of these runs (at most [`BATCH_MAX`](crate::store::BATCH_MAX)) those that have ended and whose outbox row is still
    /// there, in their order.
    async fn ended_among(&self, ids: &[LogId]) -> Result<Vec<EndedRun>>;
    /// In one transaction: takes these runs off the list and writes what follows them. `None`,
    /// and nothing done, when another node has taken one of them. `new_id` names children's runs and audit entries,
    /// which name `node`.
    async fn process_outbox(
        &self,
        ended: &[EndedRun],
        node: &Actor,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<Option<OutboxRound>>;
}
