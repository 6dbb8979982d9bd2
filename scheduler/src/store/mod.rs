//! What the workers ask of the database, in the words of the domain, and the one room that knows
//! SQL.
//!
//! The traits are split by the room that asks. [`SqlStore`] answers them on SQLite, MariaDB/MySQL
//! and PostgreSQL; a model in memory answers them in the simulator; one conformance suite holds
//! all of them to the same behaviour.
//!
//! Rules that every statement keeps:
//! - A change of state is guarded by the version (or by the attempt, for results) and takes a
//!   whole batch; who loses the race learns it from the answer and does nothing.
//! - A guarded batch can be repeated after an error whose effect is unknown: a row that already
//!   is exactly as asked for counts as done.
//! - Times are epoch milliseconds on the cluster clock, given by the caller; only heartbeats and
//!   leases use the database's own clock, because they are what that clock is for.

mod attempts;
mod audit;
mod audit_search;
mod backfills;
mod calendars;
mod claiming;
mod cluster;
mod coming;
mod conditions;
mod connect;
mod dialect;
mod entity;
mod error;
mod executors;
mod follow;
mod grants;
mod graph;
mod handing;
mod handlers;
mod housekeeping;
mod keys;
mod links;
mod logs;
mod migrate;
mod news;
mod next_fires;
mod outcome;
mod permits;
mod planning;
mod query;
mod quotas;
mod rates;
mod roles;
mod rows;
mod rules;
mod sessions;
mod skips;
mod sql;
mod starting;
mod statistics;
mod task_columns;
mod tasks;
mod tenants;
mod users;

pub use attempts::{ATTEMPTS_KEPT_MAX, KeptAttempt, MESSAGE_CHARS_MAX, cut};
pub use audit::ChainView;
pub use audit_search::{AuditFilter, AuditPage};
pub use calendars::CalendarView;
pub use coming::{ComingFilter, ComingRun, ComingRuns, TaskNames};
pub use connect::{DatabaseSettings, SqlStore, place};
pub use error::{STORE_ERRORS, StoreError, StoreErrorKind};
pub use grants::{GrantView, NewGrant};
pub use graph::{Graph, GraphLink, GraphTask};
pub use keys::{KeyPlace, KeyUse, KeyView, KeyWords, SigningKey};
pub use logs::{LogFilter, LogPage, LogView, ShardCounts};
pub use news::{DIGEST_TENANTS, Digest};
pub use next_fires::WrittenFires;
pub use quotas::{DELAYED_MAX, QuotaUse, TaskRoom};
pub use roles::{RoleFilter, RoleView};
pub use rules::{ExecutorPlace, ExecutorRule};
pub use sessions::{SessionView, TokenView};
pub use skips::{SKIPS_MAX, Skip, Skipped};
pub use starting::{NewRun, StartedRun};
pub use statistics::{Counted, Counting, FiguresFilter, Part, STATISTICS_LEASE_MS, StatisticsStore};
pub use tasks::{Activity, NewTask, TaskChange, TaskFilter, TaskState, TaskView, Unsent, audited_task};
pub use tenants::{AppFilter, AppView, TenantView};
pub use users::{UserFilter, UserRow, UserView};

use crate::domain::failure::{self, Attempt};
use crate::domain::permit::{Ask, Limit};
use crate::domain::plan::Plan;
use crate::domain::rate::{self, Place};
use crate::domain::routing::{Use, UseChange};
use crate::domain::rules::Rules;
use crate::domain::{Executor, Origin, Reason, Run, Status, Task};
use async_trait::async_trait;
use carillon_protocol::{Register, RunKey, RunResult};
use std::collections::{HashMap, HashSet};

/// Result of everything in this room.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Rows in one statement at most; larger batches are cut by the callers.
pub const BATCH_MAX: usize = 1_000;

/// Everything that the workers ask.
pub trait Store:
    ClusterStore
    + RuleStore
    + PlanStore
    + BackfillStore
    + ClaimStore
    + HandStore
    + PermitStore
    + OutcomeStore
    + FollowStore
    + ExecutorStore
    + HousekeepingStore
    + StatisticsStore
{
}

impl<T> Store for T where
    T: ClusterStore
        + RuleStore
        + PlanStore
        + BackfillStore
        + ClaimStore
        + HandStore
        + PermitStore
        + OutcomeStore
        + FollowStore
        + ExecutorStore
        + HousekeepingStore
        + StatisticsStore
{
}

/// This process as a member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Node number, 1..=1023; also what its ids carry.
    pub id: i64,
    /// Random per process start: whoever replaces this process under its name changes it.
    pub incarnation: String,
}

/// What a node says of itself.
#[derive(Debug, Clone, Default)]
pub struct NodeInfo {
    /// Unique in the cluster; a new process of the same name replaces the old one.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Software version.
    pub version: String,
}

/// A node as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Node number.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Software version.
    pub version: String,
    /// When the process joined.
    pub started_at: i64,
    /// Last heartbeat by the database's clock.
    pub heartbeat_at: i64,
    /// When it left in good order, else 0.
    pub left_at: i64,
    /// Runs in its memory at the last heartbeat.
    pub queue_depth: i64,
    /// Its machine's clock as it last measured; nothing when it is of a version that does not.
    pub clock: Option<ClockReading>,
}

/// How a machine's own clock stands to the cluster clock. For people: it decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// How far it is ahead, ms; negative when it is behind.
    pub offset_ms: i64,
    /// How wrong that can be at most, µs.
    pub uncertainty_us: i64,
}

/// What a node says with each heartbeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeBeat {
    /// Runs in its memory.
    pub queue_depth: u64,
    /// Its machine's clock, if it has measured it.
    pub clock: Option<ClockReading>,
}

/// A lease as it stands in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// What it is the right to.
    pub name: String,
    /// The node that holds it, or held it last; 0 when none ever did.
    pub holder: i64,
    /// Its fencing number.
    pub fence: i64,
    /// Until when it lives without renewal, ms; 0 when it was given up.
    pub expires_at: i64,
}

/// The rights that one node at a time can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseName {
    /// Writing task logs ahead.
    Pregenerate,
    /// Retention.
    Housekeeping,
    /// Statistics.
    Statistics,
}

impl LeaseName {
    /// The row's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pregenerate => "pregenerate",
            Self::Housekeeping => "housekeeping",
            Self::Statistics => "statistics",
        }
    }
}

/// Proof of holding a lease: the number grows with every change of hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// Which lease.
    pub lease: LeaseName,
    /// Node that holds it.
    pub node: i64,
    /// Its fencing number.
    pub number: i64,
}

/// Asked by `cluster/`.
#[async_trait]
pub trait ClusterStore: Send + Sync {
    /// The cluster clock, epoch µs: the database's own.
    async fn now_us(&self) -> Result<i64>;
    /// Takes a node number. A process of the same name loses its own (its incarnation is
    /// overwritten) and its number is handed on.
    async fn join(&self, node: &NodeInfo) -> Result<Member>;
    /// Renews the heartbeat by the database's clock; `false` when another process has taken the
    /// name or the number.
    async fn heartbeat(&self, me: &Member, beat: &NodeBeat) -> Result<bool>;
    /// Every node that has not left, or left less than an hour ago.
    async fn nodes(&self) -> Result<Vec<NodeState>>;
    /// Says good-bye.
    async fn leave(&self, me: &Member) -> Result<()>;
    /// Takes the lease if it is free or expired, or renews it if `held` is current. `None` when
    /// another node has it.
    async fn take_lease(&self, lease: LeaseName, node: i64, held: Option<Fence>, ttl_ms: i64) -> Result<Option<Fence>>;
    /// Gives the lease up, if it is still held.
    async fn release_lease(&self, fence: Fence) -> Result<()>;
}

/// Asked by `pregenerate/`.
#[async_trait]
pub trait PlanStore: Send + Sync {
    /// Started tasks whose watermark lies at or before `until`, earliest first.
    async fn tasks_due(&self, until: i64, limit: u64) -> Result<Vec<Task>>;
    /// These tasks, whatever their state.
    async fn tasks(&self, ids: &[i64]) -> Result<Vec<Task>>;
    /// Moves a started task's watermark back to its first fire at or after `from` (ms), if its
    /// revision is still the given one's: an instant whose run of an earlier definition was given
    /// up unstarted belongs to the definition that is valid now. Moving back is always safe; what
    /// is written already is left alone.
    async fn reopen(&self, task: &Task, from: i64, now: i64) -> Result<()>;
    /// Fires at or after the instant beside each task, and before `until` (ms), that a person cancelled
    /// before anybody had them: (task, fire time), latest first.
    async fn skipped(&self, since: &[(i64, i64)], until: i64, limit: u64) -> Result<Vec<(i64, i64)>>;
    /// In one transaction: checks the fence, moves each watermark that is still where the plan
    /// found it, writes the logs of exactly those tasks. A log that exists is left alone, save
    /// one that was cancelled by an edit or a stop, which the new definition takes over. A plan
    /// that does not know that its task has children by now writes nothing. Answers the ids of
    /// the tasks that moved; `None` when the fence is no longer valid.
    async fn write_ahead(&self, fence: Option<Fence>, plans: &[Plan], now: i64) -> Result<Option<HashSet<i64>>>;
}

/// A range of a task's fires for which runs are written after the fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfill {
    /// Id.
    pub id: i64,
    /// Tenant.
    pub tenant_id: i64,
    /// Task.
    pub task_id: i64,
    /// First instant, ms.
    pub range_from: i64,
    /// First instant after it, ms.
    pub range_until: i64,
    /// Written up to this instant, ms.
    pub next_at: i64,
    /// Runs of it at once at most.
    pub max_concurrent: i32,
    /// Parameters instead of the task's.
    pub params: Option<String>,
    /// `open`, `done` or `cancelled`.
    pub status: String,
    /// Runs written.
    pub written: i64,
    /// Fires left out, because they have a log already.
    pub existing: i64,
    /// ms.
    pub created_at: i64,
    /// ms, or 0.
    pub finished_at: i64,
}

/// Asked by `pregenerate/` for backfills.
#[async_trait]
pub trait BackfillStore: Send + Sync {
    /// Backfills that are not done, oldest first.
    async fn open_backfills(&self, limit: u64) -> Result<Vec<Backfill>>;
    /// In one transaction: writes as many runs as may go on at once, and moves on, if the backfill
    /// is still where the caller saw it; ends it when all have ended. Answers how many it wrote.
    async fn advance(&self, of: &Backfill, new_id: &(dyn Fn() -> i64 + Sync), now: i64) -> Result<usize>;
}

/// A node's part of the rows: those whose bucket modulo `total` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// Number of nodes.
    pub total: u32,
}

/// Buckets that rows are spread over.
pub const BUCKETS: i64 = 1_024;

/// Rows that a claim passes by, so that others come in before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// These tenants' …
    pub tenants: Vec<i64>,
    /// … up to this priority.
    pub priority: i32,
}

/// Tenants that one read leaves out at most; any after them are not left out.
pub const LEFT_OUT_MAX: usize = 16;

/// Asked by `queue/`.
#[async_trait]
pub trait ClaimStore: Send + Sync {
    /// INIT and RETRY rows due at or before `until`, earliest first; of one share or of all.
    async fn claimable(&self, share: Option<Share>, until: i64, limit: u64) -> Result<Vec<Run>>;
    /// The same of all shares, without those left out; cheap also behind a backlog of theirs.
    async fn claimable_besides(&self, left_out: &LeftOut, until: i64, limit: u64) -> Result<Vec<Run>>;
    /// INIT/RETRY → QUEUED for `node`. Answers those that are the node's now, with their new
    /// version; the others went to somebody else.
    async fn claim(&self, node: i64, runs: Vec<Run>, now: i64) -> Result<Vec<Run>>;
    /// Rows QUEUED for `node`, earliest first: after an error whose effect is unknown.
    async fn queued_of(&self, node: i64, limit: u64) -> Result<Vec<Run>>;
    /// Rows QUEUED for nodes other than `live`.
    async fn queued_of_others(&self, live: &[i64], limit: u64) -> Result<Vec<Run>>;
}

/// The attempt that a step ends without ending its run: it is kept beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its number.
    pub number: i32,
    /// When it should have started, ms: the row tells of the next one then.
    pub due_time: i64,
}

impl LastAttempt {
    /// That of `run`, if a step to `to` ends it so.
    fn ended_by(run: &Run, to: Status) -> Option<Self> {
        let is_over = run.status == Status::Dispatched && to == Status::Retry;
        is_over.then_some(Self { number: run.attempt, due_time: run.due_time })
    }
}

/// One guarded step to a state in which nobody runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Task log id.
    pub id: i64,
    /// Version that the row must have.
    pub version: i64,
    /// New state.
    pub to: Status,
    /// When it is due again; unchanged for an end.
    pub due_time: i64,
    /// Failed attempts so far.
    pub failures: i32,
    /// Why.
    pub reason: Reason,
    /// For people; empty keeps what is there.
    pub message: String,
    /// When the handler was entered, 0 when unknown or never.
    pub started_at: i64,
    /// When it ended, 0 when it has not.
    pub finished_at: i64,
    /// What it ends of a run that goes on.
    pub ended: Option<LastAttempt>,
}

impl Change {
    /// A step of `run` that changes nothing but its state.
    #[must_use]
    pub fn of(run: &Run, to: Status, reason: Reason) -> Self {
        Self {
            id: run.id,
            version: run.version,
            to,
            due_time: run.due_time,
            failures: run.failures,
            reason,
            message: String::new(),
            started_at: 0,
            finished_at: 0,
            ended: LastAttempt::ended_by(run, to),
        }
    }

    /// What the task's definition has follow on an attempt of `run` that failed for `reason` at `now` (epoch ms).
    #[must_use]
    pub fn after_failure(task: &Task, run: &Run, reason: Reason, now: i64) -> Self {
        let next = failure::after(task, Attempt::of(run), reason, now);
        Self {
            due_time: next.due_time,
            failures: next.failures,
            finished_at: if next.status.is_terminal() { now } else { 0 },
            ..Self::of(run, next.status, reason)
        }
    }

    /// The step with which a run waits for its place at `due_time` (ms) in the rate of a tenant that
    /// may have `per_minute` fires in a minute.
    #[must_use]
    pub fn delayed(ask: &rate::Ask, due_time: i64, per_minute: i32) -> Self {
        Self {
            id: ask.id,
            version: ask.version,
            to: ask.back_to,
            due_time,
            failures: ask.failures,
            reason: Reason::OverQuota,
            message: format!(
                "delayed by {} ms: the tenant may have {per_minute} fires in a minute (its quota max_fires_per_minute)",
                due_time - ask.at
            ),
            started_at: 0,
            finished_at: 0,
            ended: None,
        }
    }

    /// The step of a run that waits for its place and has changed it with a more urgent one.
    #[must_use]
    pub fn overtaken(run: &rate::Waiting) -> Self {
        Self {
            id: run.id,
            version: run.version,
            to: Status::Init,
            due_time: run.due_time,
            failures: run.failures,
            reason: Reason::OverQuota,
            message: "a more urgent run of the tenant took its place (quota max_fires_per_minute)".to_owned(),
            started_at: 0,
            finished_at: 0,
            ended: None,
        }
    }
}

/// One run to hand to one executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOver {
    /// Task log id.
    pub id: i64,
    /// Version that the row must have.
    pub version: i64,
    /// Executor that gets it.
    pub executor_id: i64,
    /// The attempt before, when another executor did not take it: it is kept beside the log.
    pub refused: Option<RefusedAttempt>,
}

/// A hand-over that its executor refused, or that never reached it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedAttempt {
    /// Its number.
    pub number: i32,
    /// Who did not take it.
    pub executor_id: i64,
    /// When it was marked, ms.
    pub dispatched_at: i64,
}

/// Asked by `dispatch/`.
#[async_trait]
pub trait HandStore: Send + Sync {
    /// QUEUED or DISPATCHED → DISPATCHED to the executor, attempt + 1. Answers the ids that are
    /// so now; the others were changed by somebody else. Attempts that were refused are kept.
    async fn hand_over(&self, node: i64, items: &[HandOver], now: i64) -> Result<HashSet<i64>>;
    /// In one transaction: the parent QUEUED → DISPATCHED with that many shards, and each shard
    /// inserted as DISPATCHED to its executor, attempt 1. `false` when the parent was changed by
    /// somebody else.
    async fn hand_over_shards(&self, node: i64, parent: &Run, shards: &[Run], now: i64) -> Result<bool>;
    /// Guarded steps out of the hot path. Answers the ids that moved. Attempts that they end without
    /// ending the run are kept, in the same transaction.
    async fn change(&self, changes: &[Change]) -> Result<HashSet<i64>>;
    /// Notes on DISPATCHED runs (id, version) why their executors must stop them; the version
    /// grows, so that whoever judges them by an older look loses the race. Answers those noted.
    async fn note_stop(&self, runs: &[(i64, i64)], reason: Reason) -> Result<HashSet<i64>>;
}

/// Asked by `dispatch/` for runs that may only run so many at once, and for what routing
/// remembers.
#[async_trait]
pub trait PermitStore: Send + Sync {
    /// Gives permits in the order of `asks`, as far as their bounds go; answers the ids that get
    /// none, with what holds them up. A permit counts while its run is DISPATCHED, or QUEUED with
    /// the asked version. What asks in order and gets none is noted: no later run of its task gets
    /// one before it, as long as it is QUEUED with that version.
    async fn acquire(&self, asks: &[Ask]) -> Result<HashMap<i64, Limit>>;
    /// Gives permits of runs back that did not go out after all; they wait again.
    async fn release(&self, ids: &[i64]) -> Result<()>;
    /// Notes on QUEUED rows that still have this version what they wait for, beside (id, version),
    /// where they say nothing yet. The version stays: nothing was decided.
    async fn note_waits(&self, waits: &[(i64, i64, Reason)]) -> Result<()>;
    /// In one transaction: takes places in the rates of the runs' tenants, in the order of `asks`,
    /// and puts those back that have a later one: due then, [`Reason::OverQuota`]. Answers what each
    /// got. The quota is the one that stands in the database, whatever the caller has heard of. A run
    /// that would wait changes places with the first less urgent one that waits (INIT, and without a
    /// time-out for waiting).
    async fn pace(&self, asks: &[rate::Ask], now: i64) -> Result<Vec<Place>>;
    /// DISPATCHED runs of these tasks that hold permits.
    async fn holders(&self, tasks: &[i64]) -> Result<Vec<HandedRun>>;
    /// How often and when these tasks used each executor's address.
    async fn uses(&self, tasks: &[i64]) -> Result<Vec<(i64, String, Use)>>;
    /// Adds uses; other nodes add at the same time.
    async fn add_uses(&self, changes: &[UseChange], new_id: &(dyn Fn() -> i64 + Sync)) -> Result<()>;
    /// Fires of the schedule, at or after the instant beside each task, that were due before
    /// `due_before` (ms), or made up for as nobody had written them in time, and have neither expired
    /// nor been cancelled: (task, fire time), latest first.
    async fn overdue(&self, since: &[(i64, i64)], due_before: i64, limit: u64) -> Result<Vec<(i64, i64)>>;
}

/// Asked by `cluster/` for the rules of tenants and apps.
#[async_trait]
pub trait RuleStore: Send + Sync {
    /// Grows with every change of a rule.
    async fn rule_version(&self) -> Result<i64>;
    /// All of them; windows that ended before `now` (ms) are left out.
    async fn rules(&self, now: i64) -> Result<Rules>;
    /// Makes runs due that wait for the end (ms) of a tenant's maintenance window which is no more.
    async fn resume(&self, tenant_id: i64, ends_at: i64, now: i64) -> Result<u64>;
}

/// Whose rows a caller may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Tenant id.
    pub tenant_id: i64,
    /// App id.
    pub app_id: i64,
}

/// A run as the judge of its outcome sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedRun {
    /// The run.
    pub run: Run,
    /// Node that handed it over (or queued it).
    pub node_id: i64,
    /// When it was handed over, ms.
    pub dispatched_at: i64,
    /// When its last attempt ended, ms; 0 when it has not.
    pub finished_at: i64,
    /// Why its executor was told to stop it; [`Reason::None`] when it was not.
    pub stopping: Reason,
}

/// Which handed-over runs to look at.
#[derive(Debug, Clone)]
pub struct Suspects {
    /// Of these executors; empty means of any executor not in `except`.
    pub executors: Vec<i64>,
    /// Not of these.
    pub except: Vec<i64>,
    /// Due before this instant, ms …
    pub due_before: i64,
    /// … or handed over by a node not among these (when there are any).
    pub or_not_by: Vec<i64>,
    /// At most so many.
    pub limit: u64,
}

/// Asked by `outcome/`.
#[async_trait]
pub trait OutcomeStore: Send + Sync {
    /// DISPATCHED → SUCCEEDED where the attempt is current, in the caller's scope. Answers how
    /// many rows moved; when fewer than asked, [`OutcomeStore::runs`] tells which.
    async fn succeed(&self, scope: Scope, results: &[&RunResult]) -> Result<u64>;
    /// These runs, in the caller's scope (`None`: the engine itself).
    async fn runs(&self, scope: Option<Scope>, ids: &[i64]) -> Result<Vec<HandedRun>>;
    /// Records results that came too late to count.
    async fn record_stale(&self, executor_id: i64, results: &[&RunResult], ids: &[i64], now: i64) -> Result<()>;
    /// Parents of those of these runs that are shards.
    async fn parents_of(&self, ids: &[i64]) -> Result<Vec<i64>>;
    /// Ends those of these parents whose shards have all ended: SUCCEEDED when all did, else
    /// FAILED. Answers how many ended.
    async fn settle_parents(&self, parents: &[i64], now: i64) -> Result<u64>;
    /// DISPATCHED parents handed over before `before`, to sweep those whose settling was lost.
    async fn open_parents(&self, before: i64, limit: u64) -> Result<Vec<i64>>;
    /// DISPATCHED runs (no parents) that their executors must stop.
    async fn stopping(&self, limit: u64) -> Result<Vec<HandedRun>>;
    /// Shards that have not ended and were not told to stop although their parent was; `stopping`
    /// is the parent's.
    async fn shards_to_stop(&self, limit: u64) -> Result<Vec<HandedRun>>;
    /// DISPATCHED runs (no parents) that may be lost.
    async fn suspects(&self, which: &Suspects) -> Result<Vec<HandedRun>>;
}

/// A run that has ended, for what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// Task log id.
    pub log: i64,
    /// Task.
    pub task_id: i64,
    /// How it ended.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// What made it.
    pub origin: Origin,
    /// Definition that it ran by.
    pub revision: i64,
    /// When, ms.
    pub finished_at: i64,
    /// What the handler returned.
    pub output: String,
    /// How often it was handed over.
    pub attempt: i32,
}

/// What a round of following up did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Followed {
    /// Children started.
    pub started: usize,
    /// Tasks whose watermark moved.
    pub moved: Vec<i64>,
    /// Tasks that have failed too often in a row, and how often.
    pub failing: Vec<(i64, i32)>,
}

impl Followed {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.started += other.started;
        self.moved.extend(other.moved);
        self.failing.extend(other.failing);
    }
}

/// Asked by `outcome/` for what follows the end of runs.
#[async_trait]
pub trait FollowStore: Send + Sync {
    /// Whether any run's end has consequences.
    async fn has_follow_ups(&self) -> Result<bool>;
    /// Ended runs that nobody has followed up yet, in their order.
    async fn ended(&self, limit: u64) -> Result<Vec<EndedRun>>;
    /// In one transaction: takes these runs off the list and writes what follows them. `None`,
    /// and nothing done, when another node has taken one of them. `new_id` names children's runs.
    async fn follow(&self, ended: &[EndedRun], new_id: &(dyn Fn() -> i64 + Sync), now: i64)
    -> Result<Option<Followed>>;
}

/// Whose key signed an executor's message, and when.
#[derive(Debug, Clone, Copy)]
pub struct Signer<'a> {
    /// Owner of the key.
    pub scope: Scope,
    /// The key.
    pub key_id: &'a str,
    /// By the executor's clock, ms. Of each kind of message only one that is newer than those
    /// before it counts, so that none can be repeated, wherever and whenever.
    pub signed_at: i64,
}

/// What a registration came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The process's id.
    pub executor_id: i64,
    /// Handlers of the process that have no task, because the tenant has as many as it may.
    pub left_out: Vec<String>,
}

/// A heartbeat to commit.
#[derive(Debug, Clone)]
pub struct ExecutorBeat {
    /// Whose.
    pub executor_id: i64,
    /// As sent; another instance's beat does not count.
    pub instance: String,
    /// Accepted, not started.
    pub held: usize,
    /// Started, not ended.
    pub running: usize,
    /// Takes no new runs.
    pub draining: bool,
    /// The node that heard it.
    pub node_id: i64,
}

/// Asked by `cluster/` and `api/` for executors.
#[async_trait]
pub trait ExecutorStore: Send + Sync {
    /// Registers a process or refreshes its description. A process seen for the first time
    /// replaces whoever was at its address; one that was replaced itself does not come back. Makes
    /// a stopped task of each handler never seen before, as far as the tenant's quota goes; what it
    /// leaves out is tried again with each registration. A message that is not newer than the last
    /// registration is [`StoreErrorKind::Outdated`]. `new_id` makes ids.
    async fn register(
        &self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<Registration>;
    /// Commits a heartbeat by the database's clock; answers whether the executor is known. One
    /// that is not newer than the last is [`StoreErrorKind::Outdated`].
    async fn beat(&self, signer: &Signer<'_>, beat: &ExecutorBeat) -> Result<bool>;
    /// After an executor's silence: bumps the version of every run that is still its own, so that
    /// whoever judged it before loses the race; answers those. The others it must drop.
    async fn reconfirm(&self, scope: Scope, executor_id: i64, runs: &[RunKey]) -> Result<HashSet<RunKey>>;
    /// Marks an executor as gone (`left`) or as taking no new runs, unless it has registered since.
    async fn retire(&self, signer: &Signer<'_>, executor_id: i64, left: bool, now: i64) -> Result<()>;
    /// Executors with a heartbeat at or after `since` that are not gone.
    async fn executors(&self, since: i64) -> Result<Vec<Executor>>;
    /// These executors with their last heartbeat and when they went, dead or alive.
    async fn executor_ends(&self, ids: &[i64]) -> Result<Vec<ExecutorEnd>>;
}

/// What is left of an executor that no longer beats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorEnd {
    /// Id.
    pub id: i64,
    /// Owner.
    pub scope: Scope,
    /// Random per process start.
    pub instance: String,
    /// Where it listened.
    pub address: String,
    /// Last committed heartbeat, ms.
    pub heartbeat_at: i64,
    /// When it left or was replaced, ms; else 0.
    pub gone_at: i64,
}

/// What a look of retention did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Logs deleted.
    pub deleted: u64,
    /// Whether older ones are left to look at.
    pub is_more: bool,
}

/// Asked by `housekeeping/`.
#[async_trait]
pub trait HousekeepingStore: Send + Sync {
    /// For how many days tenants keep their logs, each number once: 0 is the node's default, and
    /// always among them.
    async fn retentions(&self) -> Result<Vec<i32>>;
    /// Deletes ended logs, of whatever tenant, and stale results older than `before` (ms), at most
    /// `limit` of each; answers how many logs.
    async fn purge(&self, before: i64, limit: u64) -> Result<u64>;
    /// Looks at the next `limit` logs that are older than `before` (ms), from where the last look
    /// for these `days` ended, and deletes the ended ones of tenants that keep theirs so long.
    /// What has not ended is left to [`HousekeepingStore::purge`].
    async fn purge_of(&self, days: i32, before: i64, limit: u64) -> Result<Purged>;
    /// Deletes executors and nodes gone since before `before` (ms).
    async fn purge_members(&self, before: i64) -> Result<u64>;
    /// Deletes sessions that were over at `before` (ms), and tokens that had ended or were revoked
    /// then, at most `limit` of each; answers how many.
    async fn purge_access(&self, before: i64, limit: u64) -> Result<u64>;
}
