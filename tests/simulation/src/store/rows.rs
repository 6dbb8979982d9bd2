//! The tables, and the one function through which a run changes its state.

use super::calendars::CalendarRow;
use super::history::{Claim, DispatchMark, End, Follow, Grants, Move, Rebound, Redefinition, Stays};
use super::job_numbers::AttemptNumberRow;
use super::statistics::{CountingRow, FiguresRow};
use carillon::domain::permit::PermitRequest;
use carillon::domain::quota::Quotas;
use carillon::domain::rate_limit::Rate;
use carillon::domain::routing::{Tags, Use};
use carillon::domain::rules::{MaintenanceWindow, RuleChange};
use carillon::domain::silence::Silence;
use carillon::domain::statistics::Grain;
use carillon::domain::task::{ParentLink, ParentOutcome};
use carillon::domain::{
    AppId, BackfillId, CalendarId, ExecutorId, LogId, NodeId, Owner, Reason, Run, Status, Task, TaskId, TenantId,
    WindowId,
};
use carillon::store::{Backfill, DispatchedRun, KeptAttempt, LogView, NodeState, TaskView};
use std::collections::{BTreeMap, BTreeSet};

/// Every table.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(super) nodes: BTreeMap<NodeId, NodeRow>,
    pub(super) leases: BTreeMap<&'static str, LeaseRow>,
    pub(super) tenants: BTreeMap<String, TenantId>,
    pub(super) apps: BTreeMap<(String, String), Owner>,
    pub(super) handlers: BTreeSet<(TenantId, AppId, String)>,
    /// Quotas of tenants that were given any.
    pub quotas: BTreeMap<TenantId, Quotas>,
    /// The places that runs of tenants have taken.
    pub(super) rates: BTreeMap<TenantId, Rate>,
    /// How far retention has looked: days → log.
    pub(super) cursors: BTreeMap<i32, LogId>,
    /// Which change of rules was the last.
    pub(super) rule_version: i64,
    /// Runs at once of apps that have a bound.
    pub app_bounds: BTreeMap<AppId, i32>,
    /// Times in which a tenant's tasks do not run.
    pub windows: BTreeMap<WindowId, MaintenanceWindow>,
    pub(super) rule_changes: Vec<RuleChange>,
    /// Calendars by id.
    pub(super) calendars: BTreeMap<CalendarId, CalendarRow>,
    /// Ranges of fires for which runs are written after the fact.
    pub backfills: BTreeMap<BackfillId, Backfill>,
    /// Which backfill a run counts for.
    pub backfill_runs: BTreeMap<LogId, BackfillId>,
    /// Minutes before that have been put on the list of what to count, ms.
    pub(super) listed_until: i64,
    /// Minutes and hours to count: (grain, start).
    pub(super) to_count: BTreeMap<(Grain, i64), CountingRow>,
    /// Figures: (grain, start, task or tenant).
    pub figures: BTreeMap<(Grain, i64, i64), FiguresRow>,
    /// By the last heartbeat before them.
    pub(super) silences: BTreeMap<i64, Silence>,
    /// Tasks by id.
    pub tasks: BTreeMap<TaskId, TaskRow>,
    /// Task logs by id.
    pub logs: BTreeMap<LogId, LogRow>,
    /// The unique index: (task, fire time, shard) → log.
    pub by_fire: BTreeMap<(TaskId, i64, i32), LogId>,
    /// Which task runs after which, in the order in which each child names its parents.
    pub links: Vec<Link>,
    /// Runs whose end has consequences: log → task.
    pub outbox_entries: BTreeMap<LogId, TaskId>,
    /// Idempotency keys: (task, key) → log.
    pub(super) run_keys: BTreeMap<(TaskId, String), LogId>,
    /// Permits: log → what it was given for.
    pub permits: BTreeMap<LogId, PermitRequest>,
    /// How a task used an address.
    pub(super) uses: BTreeMap<(TaskId, String), Use>,
    /// Parents that have met their condition: (child, parent) → log.
    pub(super) met: BTreeMap<(TaskId, TaskId), LogId>,
    /// Results that came too late: (id, log, attempt).
    pub stale: Vec<(LogId, LogId, i32)>,
    /// Attempts that did not end their run: (log, attempt).
    pub attempts: BTreeMap<(LogId, i32), KeptAttempt>,
    pub(super) executors: BTreeMap<ExecutorId, ExecutorRow>,
    /// Numbers of tasks within their tenants.
    pub(super) job_numbers: BTreeMap<(TenantId, TaskId), i32>,
    /// Numbers of attempts after the first.
    pub(super) attempt_numbers: BTreeMap<i64, AttemptNumberRow>,
    /// All that is seen of executors that are in SQLite: where they listen.
    pub(super) addresses: BTreeMap<ExecutorId, String>,
    pub(super) joined: u64,
    /// How each run was claimed before it was dispatched for the first time.
    pub claims: BTreeMap<LogId, Claim>,
    /// Every dispatch: (log, attempt).
    pub dispatch_marks: BTreeMap<(LogId, i32), DispatchMark>,
    /// How each attempt ended: (log, attempt).
    pub ends: BTreeMap<(LogId, i32), End>,
    /// When the end of a run was followed up.
    pub follows: BTreeMap<LogId, Follow>,
    /// Every definition that a task had, in order.
    pub changes: Vec<Redefinition>,
    /// Every bound of runs at once that an app or a tenant had, in order.
    pub rebounds: Vec<Rebound>,
    /// Who joined and left when, in order.
    pub moves: Vec<Move>,
    /// When runs had permits and were not dispatched.
    pub grants: Grants,
    /// Where runs were queued.
    pub stays: Stays,
    /// Steps that the state machine forbids.
    pub violations: Vec<String>,
    /// How far the database's clock is ahead of true time during the present statement, ms.
    pub(super) ahead_ms: i64,
    /// What the present statement changed.
    pub(super) events: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct NodeRow {
    pub(super) state: NodeState,
    pub(super) incarnation: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LeaseRow {
    pub(super) holder: NodeId,
    pub(super) fence: i64,
    pub(super) expires_at: i64,
}

/// A task.
#[derive(Debug, Clone)]
pub struct TaskRow {
    /// As an admin sees it, without its parents: those are [`State::links`].
    pub view: TaskView,
    /// Logs of earlier revisions may exist up to this instant, ms.
    pub written_until: i64,
    /// Number of its last run.
    pub turn: i64,
    /// By which version of its calendar it is planned.
    pub calendar_version: i64,
}

/// A task that runs after another.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// The one that runs after.
    pub child: TaskId,
    /// The one whose end counts.
    pub parent: TaskId,
    /// Which end.
    pub on: ParentOutcome,
}

impl State {
    /// What the database's clock says at that true time, ms: `{now}` of the statements.
    pub(super) fn clock(&self, at: i64) -> i64 {
        at + self.ahead_ms
    }

    /// A task as the engine sees it.
    #[must_use]
    pub fn task(&self, row: &TaskRow) -> Task {
        let TaskView { id, owner, spec, revision, next_fire_at, anchor_at, fires, .. } = row.view.clone();
        let mut schedule = spec.to_schedule(anchor_at, id).expect("checked when it was stored");
        schedule.calendar = self.calendar_of(owner.tenant_id, &spec);
        Task {
            id,
            tenant_id: owner.tenant_id,
            app_id: owner.app_id,
            revision,
            schedule,
            tags: Tags { all: spec.tags.clone(), any: spec.tags_any.clone(), none: spec.tags_none.clone() },
            is_started: row.view.activity.started,
            spec,
            next_fire_at,
            written_until: row.written_until,
            fires,
            turn: row.turn,
            has_children: self.has_children(id),
            script: row.view.script,
        }
    }

    /// Whether other tasks run after it.
    #[must_use]
    pub fn has_children(&self, task: TaskId) -> bool {
        self.links.iter().any(|link| link.parent == task)
    }

    /// A task as an admin sees it.
    #[must_use]
    pub fn task_view(&self, row: &TaskRow) -> TaskView {
        let mut view = row.view.clone();
        for link in self.links.iter().filter(|link| link.child == view.id) {
            let parent = &self.tasks[&link.parent].view;
            let (name, app) = (&parent.spec.name, &parent.app);
            let task = if parent.owner == view.owner { name.clone() } else { format!("{app}/{name}") };
            view.spec.parents.push(ParentLink { task, on: link.on });
        }
        view
    }

    /// Whether there is a tenant of that name.
    #[must_use]
    pub fn has_tenant(&self, name: &str) -> bool {
        self.tenants.contains_key(name)
    }

    /// Notes that the end of a run has consequences.
    pub(super) fn watch(&mut self, log: LogId) {
        self.outbox_entries.insert(log, self.logs[&log].run.task_id);
    }
}

/// A task log.
#[derive(Debug, Clone)]
pub struct LogRow {
    /// The run.
    pub run: Run,
    /// Node that queued or dispatched it.
    pub node_id: NodeId,
    /// Why its executor was told to stop it.
    pub(super) stopping: Reason,
    pub(super) bucket: i64,
    pub(super) queued_at: i64,
    pub(super) dispatched_at: i64,
    pub(super) started_at: i64,
    /// When its last attempt ended, ms.
    pub finished_at: i64,
    pub(super) message: String,
    /// What the handler said.
    pub output: String,
}

impl LogRow {
    pub(super) fn new(run: Run) -> Self {
        Self {
            bucket: bucket(run.id),
            run,
            node_id: NodeId::NONE,
            stopping: Reason::None,
            queued_at: 0,
            dispatched_at: 0,
            started_at: 0,
            finished_at: 0,
            message: String::new(),
            output: String::new(),
        }
    }

    pub(super) fn dispatched(&self) -> DispatchedRun {
        DispatchedRun {
            run: self.run.clone(),
            node_id: self.node_id,
            dispatched_at: self.dispatched_at,
            finished_at: self.finished_at,
            stopping: self.stopping,
        }
    }

    pub(super) fn view(&self, tenant: &str) -> LogView {
        LogView {
            dispatched: self.dispatched(),
            task_name: None,
            app_name: None,
            tenant: tenant.to_owned(),
            started_at: self.started_at,
            queued_at: self.queued_at,
            message: self.message.clone(),
            output: self.output.clone(),
            shards: None,
        }
    }
}

/// Spreads ids over the buckets (Fibonacci hashing), as the contract asks of every store.
pub(super) fn bucket(id: impl Into<i64>) -> i64 {
    let spread = (id.into() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread as i64) % carillon::store::BUCKETS
}

#[derive(Debug, Clone)]
pub(super) struct ExecutorRow {
    pub(super) executor: carillon::domain::Executor,
    pub(super) handlers: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) description: String,
    pub(super) own_address: bool,
    pub(super) gone_at: i64,
    /// Until when it counts that it was announced, ms; 0 without an end.
    pub(super) announced_until: i64,
    pub(super) register_signed_at: i64,
    pub(super) heartbeat_signed_at: i64,
}

impl State {
    /// Inserts a log unless the unique index has it; returns whether it did.
    pub(super) fn insert(&mut self, row: LogRow) -> bool {
        let run = &row.run;
        let key = (run.task_id, run.fire_time, run.shard_index);
        if self.by_fire.contains_key(&key) || self.logs.contains_key(&run.id) {
            return false;
        }
        self.events.push(format!(
            "log {} written: task {} fire {} shard {} rev {} {:?}",
            run.id, run.task_id, run.fire_time, run.shard_index, run.revision, run.status
        ));
        self.by_fire.insert(key, run.id);
        self.logs.insert(run.id, row);
        true
    }

    /// The guarded step of a row: checks it against the state machine, counts the version and
    /// answers the row for the rest of the change.
    pub(super) fn step(&mut self, id: LogId, to: Status, reason: Reason, now: i64) -> Option<&mut LogRow> {
        let row = self.logs.get_mut(&id)?;
        let run = &mut row.run;
        let again = run.status == Status::Dispatched && to == Status::Dispatched;
        let line = format!(
            "log {id} v{} attempt {}: {:?} {:?} -> {to:?} {reason:?} (task {} fire {} due {})",
            run.version, run.attempt, run.status, run.reason, run.task_id, run.fire_time, run.due_time
        );
        if !again && !run.status.may_become(to, run.reason) {
            self.violations.push(format!("the state machine forbids: {line}"));
        }
        match run.status {
            Status::Dispatched => drop(self.ends.insert((id, run.attempt), End { to, reason, at: now })),
            Status::Queued => {
                self.stays.end(id, now);
                self.grants.end(id, now);
            }
            _ => {}
        }
        self.events.push(line);
        run.status = to;
        run.reason = reason;
        run.version += 1;
        Some(row)
    }
}
