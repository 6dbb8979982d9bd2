//! A run on its way through the dispatcher.

use crate::domain::routing::{Nobody, Routing};
use crate::domain::task::{self, BlockScope, Delivery};
use crate::domain::{Executor, Reason, Run, Status, Task};
use crate::store::RefusedAttempt;
use carillon_protocol::{BlockStrategy, DispatchItem};
use std::sync::Arc;

/// A run on its way, and who has refused it.
pub struct Parcel {
    pub run: Run,
    pub task: Arc<Task>,
    pub refused_by: Vec<i64>,
    /// When it was marked for the executor it goes to, ms; a shard is, in its parent's transaction.
    pub marked_at: Option<i64>,
    /// When it was marked for the one that has just refused it, ms; 0 when that is forgotten.
    pub refused_mark: i64,
    /// Whether it has a permit, which goes back when it does not go out.
    pub has_permit: bool,
}

impl Parcel {
    pub fn new(run: Run, task: Arc<Task>) -> Self {
        Self { run, task, refused_by: Vec::new(), marked_at: None, refused_mark: 0, has_permit: false }
    }

    /// The hand-over that its executor did not take, if it has been handed over.
    pub fn refused_attempt(&self) -> Option<RefusedAttempt> {
        let Run { status, attempt, executor_id, .. } = self.run;
        let (number, dispatched_at) = (attempt, self.refused_mark);
        (status == Status::Dispatched).then_some(RefusedAttempt { number, executor_id, dispatched_at })
    }

    /// Whether executors are asked before one is chosen.
    pub fn asks_first(&self) -> bool {
        matches!(self.task.spec.routing, Routing::Failover | Routing::Busyover) && !self.run.is_parent()
    }
}

/// A run for one executor.
pub struct Addressed {
    pub parcel: Parcel,
    pub executor: Arc<Executor>,
}

/// A run that nobody takes, and why.
pub struct Stranded {
    pub parcel: Parcel,
    pub why: Nobody,
}

impl Stranded {
    /// A run that has been refused often enough.
    pub fn refused(parcel: Parcel) -> Self {
        let (handler, refused) = (parcel.task.spec.handler.clone(), parcel.refused_by.len());
        Self { parcel, why: Nobody::AllRefused { handler, refused } }
    }

    pub fn reason(&self) -> Reason {
        match self.why {
            Nobody::AllRefused { .. } | Nobody::NoAnswer { .. } => Reason::NotAccepted,
            Nobody::NoIdle { .. } => Reason::AllBusy,
            _ => Reason::NoExecutor,
        }
    }
}

/// Whether the definition that is valid now owes a run for an instant that an earlier one gave up
/// for `reason`: it certainly did not start, or nobody knows and the task wants it at least once.
pub fn takes_over(task: &Task, reason: Reason) -> bool {
    match reason {
        Reason::ExecutorGone | Reason::Undelivered | Reason::GivenBack => true,
        Reason::OutcomeUnknown => task.spec.delivery == Delivery::AtLeastOnce,
        _ => false,
    }
}

pub fn refused(parcels: Vec<Parcel>, executor: i64) -> Vec<Parcel> {
    parcels
        .into_iter()
        .map(|mut parcel| {
            parcel.refused_by.push(executor);
            parcel.refused_mark = parcel.marked_at.take().unwrap_or(0);
            parcel
        })
        .collect()
}

pub fn item(parcel: &Parcel, accept_until: i64) -> DispatchItem {
    let Parcel { run, task, .. } = parcel;
    DispatchItem {
        log: run.id,
        attempt: run.attempt,
        task: task.id,
        task_name: task.spec.name.clone(),
        handler: task.spec.handler.clone(),
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
