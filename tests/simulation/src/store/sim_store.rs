//! The database of a simulation: the model, or what ships on SQLite. Faults are the same over both: those of [`ModelStore`]'s
//! gate and commits, which know nothing of what a call does.

use super::sqlite::Sqlite;
use super::{ModelStore, Saved, State};
use crate::gate::writes;
use crate::{Gate, SimTime, Trace};
use async_trait::async_trait;
use carillon::domain::audit::{Actor, AuditNote};
use carillon::domain::executor::Pulse;
use carillon::domain::permit::{Granted, PermitRequest};
use carillon::domain::plan::Plan;
use carillon::domain::rate_limit::{Slot, SlotRequest};
use carillon::domain::routing::{Use, UseChange};
use carillon::domain::rules::{RuleChange, Rules};
use carillon::domain::silence::Silence;
use carillon::domain::statistics::Grain;
use carillon::domain::xxljob::Script;
use carillon::domain::{
    BackfillId, CalendarId, Executor, ExecutorId, LogId, NodeId, Owner, Reason, Run, Task, TaskId, TenantId, Transition,
};
use carillon::store::{
    Announced, Announcement, Backfill, BackfillStore, Beat, CalendarChange, ClaimStore, ClusterStore, Counted,
    Counting, DefinitionStore, DispatchStore, DispatchedRun, DueRange, EndedPage, EndedRun, ExecutorEnd,
    ExecutorHeartbeat, ExecutorStore, Fence, FoundTasks, HeartbeatVerdict, HousekeepingStore, JobNumberStore,
    LeaseName, LeftOut, Member, MissedQuestion, NewTask, NodeHeartbeat, NodeInfo, NodeState, NumberedAttempt,
    OutboxRound, OutboxStore, OutcomeStore, Part, PermitStore, Place, PlainExecutorStore, PlanStore, Purged,
    Registration, Result, RuleStore, RunDispatch, ScriptStore, Share, SignedHeartbeat, Signer, SqlStore,
    StatisticsStore, Suspect, Suspects, TaskChange, TaskView, UnclaimedEnd, Unsent, Writer,
};
use carillon_protocol::{Register, RunKey, RunResult};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One process's connection to the database. Everything behind it is shared.
#[derive(Debug, Clone)]
pub struct SimStore {
    /// The rows; or what was seen of them, if they are in SQLite.
    pub(super) rows: ModelStore,
    pub(super) sqlite: Option<Sqlite>,
}

impl SimStore {
    /// An empty database in the model.
    #[must_use]
    pub fn model(time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        Self { rows: ModelStore::new(time, trace), sqlite: None }
    }

    /// An empty database in SQLite.
    #[must_use]
    pub fn over_sqlite(time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        let sqlite = Sqlite::new();
        Self { rows: ModelStore::over(Some(sqlite.database()), time, trace), sqlite: Some(sqlite) }
    }

    /// The same database seen through a node's gate, over connections of its own.
    #[must_use]
    pub fn through(&self, gate: Arc<Gate>) -> Self {
        Self { rows: self.rows.through(gate), sqlite: self.sqlite.as_ref().map(Sqlite::anew) }
    }

    /// Looks at the rows, past every gate.
    pub fn inspect<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.rows.inspect(look)
    }

    /// What it holds now.
    #[must_use]
    pub fn save(&self) -> Saved {
        self.rows.shared.save()
    }

    /// Takes back what was committed since `before`, as the takeover of a standby does that lacks it.
    pub fn lose_commits_since(&self, before: Saved) {
        self.rows.shared.put_back(before);
    }

    /// A call of what ships, at one instant, through the model's faults.
    pub(super) async fn call<T>(
        &self,
        sqlite: &Sqlite,
        action: &'static str,
        asked: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.rows.call(action, |state, now| sqlite.carry_out(state, now, writes(action), asked)).await
    }
}

/// What the gate knows a call by: a question begins with `read`.
macro_rules! action {
    (ask $method:ident) => {
        concat!("read ", stringify!($method))
    };
    (change $method:ident) => {
        stringify!($method)
    };
}

/// Implements what the workers ask, over whichever database it is.
macro_rules! either {
    ($($store:ident { $($kind:ident $method:ident($($name:ident: $type:ty),*) -> $answer:ty;)* })*) => {$(
        #[async_trait]
        impl $store for SimStore {
            $(async fn $method(&self, $($name: $type),*) -> Result<$answer> {
                match &self.sqlite {
                    None => <ModelStore as $store>::$method(&self.rows, $($name),*).await,
                    Some(sqlite) => {
                        let asked = <SqlStore as $store>::$method(&sqlite.sql, $($name),*);
                        self.call(sqlite, action!($kind $method), asked).await
                    }
                }
            })*
        }
    )*};
}

either! {
    ClusterStore {
        ask now_us() -> i64;
        change join(node: &NodeInfo) -> Member;
        change heartbeat(me: &Member, beat: &NodeHeartbeat) -> Beat;
        ask nodes() -> Vec<NodeState>;
        change leave(me: &Member) -> ();
        change take_lease(lease: LeaseName, node: NodeId, held: Option<Fence>, ttl_ms: i64) -> Option<Fence>;
        change release_lease(fence: Fence) -> ();
    }
    RuleStore {
        ask rule_version() -> i64;
        ask rules(now: i64) -> Rules;
        change witness(told: &Silence) -> bool;
        change resume(tenant_id: TenantId, ends_at: i64, now: i64) -> u64;
        change ask_again(change: &RuleChange, now: i64) -> u64;
    }
    PlanStore {
        ask tasks_due(until: i64, besides: &[TenantId], limit: u64) -> Vec<Task>;
        ask find_tasks(ids: &[TaskId]) -> FoundTasks;
        ask skipped(since: &[(TaskId, i64)], until: i64, limit: u64) -> Vec<(TaskId, i64)>;
        change write_ahead(by: Writer, plans: &[Plan], now: i64) -> Option<HashSet<TaskId>>;
    }
    BackfillStore {
        ask open_backfills(after: BackfillId, limit: u64) -> Vec<Backfill>;
        change advance(node: NodeId, of: &Backfill, new_id: &(dyn Fn() -> LogId + Sync), now: i64) -> usize;
    }
    ClaimStore {
        ask claimable(share: Option<Share>, due: DueRange, limit: u64) -> Vec<Run>;
        ask claimable_besides(left_out: &LeftOut, due: DueRange, limit: u64) -> Vec<Run>;
        change claim(node: NodeId, runs: Vec<Run>, now: i64) -> Vec<Run>;
        ask missed_at(questions: &[MissedQuestion], due_before: i64) -> Vec<(TaskId, i64)>;
        change expire_unclaimed(node: NodeId, ends: &[UnclaimedEnd], now: i64) -> HashSet<LogId>;
        ask queued_before(node: NodeId, at: i64, due: DueRange, limit: u64) -> Vec<Run>;
        ask queued_of_others(live: &[NodeId], due: DueRange, limit: u64) -> Vec<Run>;
        ask held_after(from: i64, until: i64, rows: u64) -> Option<i64>;
    }
    DispatchStore {
        change dispatch(node: NodeId, items: &[RunDispatch]) -> HashSet<LogId>;
        change dispatch_shards(node: NodeId, parent: &Run, shards: &[Run], now: i64) -> bool;
        change change(changes: &[Transition]) -> HashSet<LogId>;
        change note_stop(runs: &[(LogId, i64)], reason: Reason) -> HashSet<LogId>;
        change settle_revoked(runs: &[Run], now: i64) -> HashSet<LogId>;
        change leave_running(runs: &[(LogId, i64)]) -> ();
    }
    PermitStore {
        change acquire(asks: &[PermitRequest]) -> Granted;
        change release(ids: &[LogId], in_order: bool) -> ();
        change note_waits(waits: &[(LogId, i64, Reason)]) -> ();
        change take_rate_slots(asks: &[SlotRequest], now: i64) -> Vec<Slot>;
        ask holders(tasks: &[TaskId]) -> Vec<DispatchedRun>;
        ask uses(tasks: &[TaskId]) -> Vec<(TaskId, String, Use)>;
        change add_uses(changes: &[UseChange], new_id: &(dyn Fn() -> i64 + Sync)) -> ();
        ask overdue(since: &[(TaskId, i64)], due_before: i64, limit: u64) -> Vec<(TaskId, i64)>;
    }
    OutcomeStore {
        change succeed(owner: Owner, results: &[&RunResult]) -> u64;
        change succeed_whole(owner: Owner, results: &[&RunResult]) -> u64;
        ask runs(owner: Option<Owner>, ids: &[LogId]) -> Vec<DispatchedRun>;
        change record_stale(executor_id: ExecutorId, results: &[&RunResult], ids: &[i64], now: i64) -> ();
        ask parents_of(ids: &[LogId]) -> Vec<LogId>;
        change settle_parents(parents: &[LogId], now: i64) -> u64;
        ask open_parents(before: i64, until: i64, after: Place, limit: u64) -> Vec<Place>;
        ask stopping(until: i64, after: Place, limit: u64) -> Vec<DispatchedRun>;
        ask shards_to_stop(limit: u64) -> Vec<DispatchedRun>;
        ask suspects(which: &Suspects) -> Vec<Suspect>;
    }
    OutboxStore {
        ask has_outbox_entries() -> bool;
        ask ended(after: LogId, rows: u64) -> EndedPage;
        ask ended_among(ids: &[LogId]) -> Vec<EndedRun>;
        change process_outbox(
            ended: &[EndedRun], node: &Actor, new_id: &(dyn Fn() -> LogId + Sync), now: i64
        ) -> Option<OutboxRound>;
    }
    ExecutorStore {
        change register(
            signer: &Signer<'_>, register: &Register, new_id: &(dyn Fn() -> i64 + Sync), now: i64
        ) -> Registration;
        change beat(signer: &Signer<'_>, beat: &ExecutorHeartbeat) -> bool;
        change beats(beats: &[SignedHeartbeat]) -> Vec<HeartbeatVerdict>;
        change reconfirm(owner: Owner, executor_id: ExecutorId, runs: &[RunKey]) -> HashSet<RunKey>;
        change retire(signer: &Signer<'_>, executor_id: ExecutorId, left: bool, now: i64) -> ();
        ask executors(since: i64) -> Vec<Executor>;
        ask executors_among(ids: &[ExecutorId], since: i64) -> Vec<Executor>;
        ask pulses(since: i64) -> Vec<Pulse>;
        ask executor_ends(ids: &[ExecutorId]) -> Vec<ExecutorEnd>;
    }
    PlainExecutorStore {
        change announce(
            announcement: &Announcement<'_>, new_id: &(dyn Fn() -> i64 + Sync), now: i64
        ) -> ExecutorId;
        change withdraw(owner: Owner, address: &str, now: i64) -> Option<ExecutorId>;
        ask announced(after: ExecutorId, limit: u64) -> Vec<Announced>;
        change end_announcements(now: i64) -> u64;
    }
    JobNumberStore {
        change job_numbers(owner: Owner, tasks: &[TaskId]) -> HashMap<TaskId, i32>;
        change job_numbers_from(owner: Owner, task: TaskId) -> HashMap<TaskId, i32>;
        change attempt_number(
            attempt: &NumberedAttempt, number: &(dyn Fn(usize) -> i64 + Sync), now: i64
        ) -> i64;
        ask numbered_attempts(numbers: &[i64]) -> HashMap<i64, NumberedAttempt>;
        change forget_attempt_numbers(before: i64) -> u64;
    }
    ScriptStore {
        ask scripts(wanted: &[(TaskId, i64, TenantId)]) -> HashMap<(TaskId, i64), Script>;
    }
    HousekeepingStore {
        ask retentions() -> Vec<i32>;
        change purge(before: i64, limit: u64) -> Purged;
        change purge_of(days: i32, before: i64, limit: u64) -> Purged;
        change purge_members(before: i64, limit: u64) -> u64;
        change purge_access(before: i64, limit: u64) -> u64;
    }
    StatisticsStore {
        change list_minutes(fence: Fence, since: i64, until: i64) -> bool;
        ask to_count(now: i64, limit: u64) -> Vec<Counting>;
        ask tasks_fired(minute: i64) -> Vec<(TaskId, u64)>;
        ask tasks_open(minute: i64) -> Vec<(TaskId, u64)>;
        ask open_runs(minute: i64) -> u64;
        change count_tasks(fence: Fence, minute: i64, tasks: &[TaskId]) -> bool;
        change sum_minute(fence: Fence, minute: i64) -> bool;
        ask rows_of_hour(hour: i64) -> u64;
        change sum_task_hours(fence: Fence, hour: i64, part: Part) -> bool;
        change sum_tenant_hours(fence: Fence, hour: i64) -> bool;
        change counted(fence: Fence, of: &Counting, found: Counted, now: i64) -> bool;
        change purge_figures(grain: Grain, before: i64, limit: u64) -> bool;
    }
}

#[async_trait]
impl DefinitionStore for SimStore {
    fn noting(&self, notes: Vec<AuditNote>) -> Self {
        let sqlite = self.sqlite.as_ref().map(|sqlite| sqlite.noting(notes));
        Self { sqlite, ..self.clone() }
    }

    async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        match &self.sqlite {
            None => self.rows.apply_tasks(new, changes, now).await,
            Some(sqlite) => self.call(sqlite, "apply_tasks", sqlite.sql.apply_tasks(new, changes, now)).await,
        }
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        match &self.sqlite {
            None => self.rows.delete_task(before, now).await,
            Some(sqlite) => self.call(sqlite, "delete_task", sqlite.sql.delete_task(before, now)).await,
        }
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskView>> {
        match &self.sqlite {
            None => self.rows.task(id).await,
            Some(sqlite) => self.call(sqlite, "read task", DefinitionStore::task(&sqlite.sql, id)).await,
        }
    }

    async fn calendar_changes(&self, limit: u64) -> Result<Vec<CalendarChange>> {
        match &self.sqlite {
            None => self.rows.calendar_changes(limit).await,
            Some(sqlite) => self.call(sqlite, "read calendar_changes", sqlite.sql.calendar_changes(limit)).await,
        }
    }

    async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Result<Vec<TaskView>> {
        match &self.sqlite {
            None => self.rows.tasks_behind(id, after, limit).await,
            Some(sqlite) => self.call(sqlite, "read tasks_behind", sqlite.sql.tasks_behind(id, after, limit)).await,
        }
    }

    async fn end_calendar_change(&self, change: &CalendarChange) -> Result<()> {
        match &self.sqlite {
            None => self.rows.end_calendar_change(change).await,
            Some(sqlite) => self.call(sqlite, "end_calendar_change", sqlite.sql.end_calendar_change(change)).await,
        }
    }
}
