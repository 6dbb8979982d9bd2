//! Runs that a change of their task's definition took back before they started.

use super::reason::Reason;
use super::task::{Delivery, Routing, ScheduleKind, Task};
use super::task_log::{Run, Status};

/// What becomes of such a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// It goes on under the definition that is valid now, due at this instant, epoch ms.
    GoesOn(i64),
    /// It ends as CANCELLED.
    Ends(Reason),
}

impl Revoked {
    /// Of `run`, whose present attempt has certainly not started, under `task` as it is now; `None`: it was deleted.
    /// `stopping` is what its row says of the change that revoked it, or of why it must stop in any case (as that of its parent
    /// may do): no change of the task takes that back.
    ///
    /// An edit loses no fire: what the new definition names as well, it takes over. A scheduled run that is to be repeated
    /// does not go on, as those that no executor held were cancelled with the edit. Nothing outlives a stop.
    #[must_use]
    pub fn of(run: &Run, stopping: Reason, task: Option<&Task>) -> Self {
        if stopping != Reason::None && !stopping.is_revocation() {
            return Self::Ends(stopping);
        }
        let Some(task) = task else { return Self::Ends(Reason::TaskDeleted) };
        let reason = match stopping {
            reason if reason.is_revocation() => reason,
            // It had started before, and is to be repeated; an edit adopts what no schedule named.
            _ if !task.is_started => Reason::TaskStopped,
            _ => Reason::TaskEdited,
        };
        let follows = task.spec.schedule == ScheduleKind::FixedDelay;
        let fits = (is_sharded(run) == (task.spec.routing == Routing::Sharding)) || follows;
        if reason != Reason::TaskEdited || !fits {
            return Self::Ends(reason);
        }
        if !run.trigger.is_scheduled() {
            return Self::GoesOn(run.due_time);
        }
        if !task.is_started || !is_owed(task, run) {
            return Self::Ends(reason);
        }
        if follows {
            // The next run of a fixed delay comes after its end.
            return Self::GoesOn(run.due_time);
        }
        if task.schedule.names(run.fire_time) {
            return Self::GoesOn(task.schedule.due_time(run.fire_time));
        }
        Self::Ends(reason)
    }
}

/// Whether it is the parent of shards, or one of them.
#[must_use]
pub fn is_sharded(run: &Run) -> bool {
    run.is_parent() || !run.parent_id.is_none()
}

/// Whether its fire is still to come: it was not tried, or what became of it is not known and the task wants it at least
/// once.
fn is_owed(task: &Task, run: &Run) -> bool {
    let is_unknown = run.status == Status::Queued && run.reason == Reason::OutcomeUnknown;
    run.failures == 0 || (is_unknown && task.spec.delivery == Delivery::AtLeastOnce)
}
