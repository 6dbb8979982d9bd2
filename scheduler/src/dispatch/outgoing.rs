//! A run on its way through the dispatcher.

use crate::domain::permit::Limit;
use crate::domain::routing::{NoExecutor, Routing};
use crate::domain::task::{self, BlockScope};
use crate::domain::{Executor, ExecutorId, LogId, Reason, Run, Status, Task};
use crate::store::RefusedAttempt;
use carillon_protocol::{BlockStrategy, DispatchItem};
use std::collections::HashMap;
use std::sync::Arc;

/// A run on its way, and who has refused it.
pub struct OutgoingRun {
    pub run: Run,
    pub task: Arc<Task>,
    pub refused_by: Vec<ExecutorId>,
    /// When it was marked for the executor it goes to, ms; a shard is, in its parent's transaction.
    pub dispatched_at: Option<i64>,
    /// When it was marked for the one that has just refused it, ms; 0 when that is forgotten.
    pub refused_dispatch_at: i64,
    /// Whether it has a permit, which goes back when it does not go out.
    pub has_permit: bool,
}

impl OutgoingRun {
    pub fn new(run: Run, task: Arc<Task>) -> Self {
        Self { run, task, refused_by: Vec::new(), dispatched_at: None, refused_dispatch_at: 0, has_permit: false }
    }

    /// The dispatch that its executor did not take, if it has been dispatched.
    pub fn refused_attempt(&self) -> Option<RefusedAttempt> {
        let Run { status, attempt, executor_id, .. } = self.run;
        let (number, dispatched_at) = (attempt, self.refused_dispatch_at);
        (status == Status::Dispatched).then_some(RefusedAttempt { number, executor_id, dispatched_at })
    }

    /// Whether executors are asked before one is chosen.
    pub fn asks_first(&self) -> bool {
        matches!(self.task.spec.routing, Routing::Failover | Routing::Busyover) && !self.run.is_parent()
    }
}

/// A run for one executor.
pub struct RoutedRun {
    pub outgoing: OutgoingRun,
    pub executor: Arc<Executor>,
}

/// A run that no executor takes, and why.
pub struct UnroutedRun {
    pub outgoing: OutgoingRun,
    pub why: NoExecutor,
}

impl UnroutedRun {
    /// A run that has been refused often enough.
    pub fn refused(outgoing: OutgoingRun) -> Self {
        let (handler, refused) = (outgoing.task.handler().to_owned(), outgoing.refused_by.len());
        Self { outgoing, why: NoExecutor::AllRefused { handler, refused } }
    }

    pub fn reason(&self) -> Reason {
        match self.why {
            NoExecutor::AllRefused { .. } | NoExecutor::NoAnswer { .. } => Reason::NotAccepted,
            NoExecutor::NoIdle { .. } => Reason::AllBusy,
            _ => Reason::NoExecutor,
        }
    }
}

pub fn refused(outgoing_runs: Vec<OutgoingRun>, executor: ExecutorId) -> Vec<OutgoingRun> {
    outgoing_runs
        .into_iter()
        .map(|mut outgoing| {
            outgoing.refused_by.push(executor);
            outgoing.refused_dispatch_at = outgoing.dispatched_at.take().unwrap_or(0);
            outgoing
        })
        .collect()
}

pub fn item(outgoing: &OutgoingRun, accept_until: i64) -> DispatchItem {
    let OutgoingRun { run, task, .. } = outgoing;
    DispatchItem {
        log: run.id.0,
        attempt: run.attempt,
        task: task.id.0,
        task_name: task.spec.name.clone(),
        handler: task.handler().to_owned(),
        params: run.params.clone().unwrap_or_else(|| task.spec.params.clone()),
        fire_time: run.fire_time,
        due_time: run.due_time,
        accept_until,
        shard_index: run.shard_index,
        shard_total: run.shard_total,
        timeout_ms: task.spec.timeout_ms,
        block_strategy: block_strategy(task),
        wait_timeout_ms: task.spec.wait_timeout_ms,
        priority: run.priority,
        trace: String::new(),
    }
}

/// What the executor itself has to do about earlier runs. Across the app the nodes see to it; the
/// executor then keeps runs apart that it would otherwise let overlap by a moment.
fn block_strategy(task: &Task) -> BlockStrategy {
    use task::BlockStrategy as Asked;
    match (task.spec.block_strategy, task.spec.block_scope) {
        (Asked::Concurrent, _) => BlockStrategy::Concurrent,
        (_, BlockScope::App) | (Asked::Serial, _) => BlockStrategy::Serial,
        (Asked::DiscardLater, BlockScope::Executor) => BlockStrategy::DiscardLater,
        (Asked::CoverEarly, BlockScope::Executor) => BlockStrategy::CoverEarly,
    }
}

/// What became of runs that asked for permits.
pub struct Admitted {
    /// They got one, or need none.
    pub ready: Vec<OutgoingRun>,
    /// They did not.
    pub held_up: Vec<OutgoingRun>,
    /// Why not.
    pub limits: HashMap<LogId, Limit>,
}
