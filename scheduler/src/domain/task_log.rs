//! A task log: one run of a task, from the moment it is written ahead to its end.
//!
//! ```text
//! INIT ── claimed ──▶ QUEUED ── dispatched ──▶ DISPATCHED ──▶ SUCCEEDED
//!                       ▲                           │
//! INIT, QUEUED, RETRY ─▶ CANCELLED                  ├──▶ RETRY ─ claimed ─▶ QUEUED
//! INIT, QUEUED, RETRY ─▶ EXPIRED                    ├──▶ FAILED
//! QUEUED ─▶ RETRY, FAILED, DISCARDED (no executor took it)└──▶ DISCARDED, CANCELLED
//! QUEUED ─▶ INIT, RETRY (given back)
//! CANCELLED by an edit or a stop ─▶ INIT (the new definition fires at the same instant)
//! CANCELLED by an edit or a stop ─▶ EXPIRED (it would have, but missed it)
//! EXPIRED, never dispatched ─▶ INIT (a backfill makes up for it)
//! ```
//!
//! The last arrows exist because there is one log per (task, fire time, shard): the fire of the
//! new definition takes over the row that the old one gave up, under a new version.

use super::reason::Reason;
use super::trigger::Trigger;
use super::{AppId, ExecutorId, LogId, Owner, TaskId, TenantId};
use std::cmp::Reverse;

/// State of a task log. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Status {
    /// Written ahead; without an owner yet.
    Init = 0,
    /// In the memory queue of one node.
    Queued = 1,
    /// Dispatched to an executor. For a sharded parent, its shards are.
    Dispatched = 2,
    /// Failed or not taken; will be claimed again at its due time.
    Retry = 3,
    /// Succeeded.
    Succeeded = 10,
    /// Failed with no attempts left.
    Failed = 11,
    /// Failed, and the task discards failures.
    Discarded = 12,
    /// Too late, and the task discards what is late.
    Expired = 13,
    /// Task stopped or edited, or cancelled manually.
    Cancelled = 14,
}

/// Every status with its word in the API.
pub const STATUSES: [(Status, &str); 9] = [
    (Status::Init, "init"),
    (Status::Queued, "queued"),
    (Status::Dispatched, "dispatched"),
    (Status::Retry, "retry"),
    (Status::Succeeded, "succeeded"),
    (Status::Failed, "failed"),
    (Status::Discarded, "discarded"),
    (Status::Expired, "expired"),
    (Status::Cancelled, "cancelled"),
];

impl Status {
    /// The word in API and console.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        STATUSES.iter().find(|(s, _)| *s == self).map_or("", |(_, word)| word)
    }

    /// The status of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        STATUSES.iter().find(|(_, w)| *w == word).map(|(s, _)| *s)
    }

    /// The status of that stored number.
    #[must_use]
    pub fn from_number(number: i16) -> Option<Self> {
        STATUSES.iter().find(|(s, _)| *s as i16 == number).map(|(s, _)| *s)
    }

    /// Whether nothing more will happen to the run.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self as i16 >= Self::Succeeded as i16
    }

    /// Whether a loader may claim it.
    #[must_use]
    pub fn is_claimable(self) -> bool {
        matches!(self, Self::Init | Self::Retry)
    }

    /// Whether the state machine allows the step from `self` to `to` for `reason`.
    #[must_use]
    pub fn may_become(self, to: Self, reason: Reason) -> bool {
        use Status::{Cancelled, Discarded, Dispatched, Expired, Failed, Init, Queued, Retry, Succeeded};
        match self {
            Init | Retry => matches!(to, Queued | Cancelled | Expired),
            Queued => matches!(to, Dispatched | Init | Retry | Failed | Discarded | Expired | Cancelled),
            Dispatched => matches!(to, Succeeded | Retry | Failed | Discarded | Cancelled | Expired),
            Cancelled => matches!(to, Init | Expired) && reason.is_given_up(),
            // A backfill fills in a fire that never ran.
            Expired => to == Init,
            Succeeded | Failed | Discarded => false,
        }
    }
}

/// Index of a sharded run's parent row; its shards count from 0.
pub const PARENT_SHARD: i32 = -1;

/// What a node knows about a run that it claims and dispatches. Small: thousands are in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Task log id.
    pub id: LogId,
    /// Optimistic version of the row.
    pub version: i64,
    /// Owner of everything.
    pub tenant_id: TenantId,
    /// Kind of executor.
    pub app_id: AppId,
    /// Definition.
    pub task_id: TaskId,
    /// Revision of the definition that this run was written for.
    pub revision: i64,
    /// The parent's id when this is a shard, else 0.
    pub parent_id: LogId,
    /// Shard from 0, or [`PARENT_SHARD`].
    pub shard_index: i32,
    /// Shards in all; 1 when not sharded, 0 for a parent whose shards are not made yet.
    pub shard_total: i32,
    /// The instant that the schedule names, epoch ms. Never changes.
    pub fire_time: i64,
    /// When the next attempt should start, epoch ms.
    pub due_time: i64,
    /// Dispatches so far.
    pub attempt: i32,
    /// Failed attempts so far.
    pub failures: i32,
    /// Current state.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// Parameters of this run alone (started manually, or a parent's output), else the task's.
    pub params: Option<String>,
    /// What made it.
    pub trigger: Trigger,
    /// Number of the run within its task, growing; what round-robin goes by.
    pub seq: i64,
    /// 1..=9, 9 is the most urgent of its tenant; 0 for a backfill, after all others.
    pub priority: i32,
    /// Executor of the last attempt, 0 before the first.
    pub executor_id: ExecutorId,
    /// When a node claimed it last, ms; 0 before that.
    pub queued_at: i64,
    /// Whether this node has taken a place for it in the tenant's rate; no row says so.
    pub has_rate_slot: bool,
}

/// Priority of a run whose task names none.
pub const PRIORITY_DEFAULT: i32 = 5;

/// Which of two runs of a tenant goes first: the one with the higher priority, then the one that is due earlier (ms).
pub type Urgency = (Reverse<i32>, (i64, LogId));

impl Run {
    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { tenant_id: self.tenant_id, app_id: self.app_id }
    }

    /// Its place among those that want the same.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        (Reverse(self.priority), (self.due_time, self.id))
    }

    /// Whether this is the row that stands for all shards of one fire.
    #[must_use]
    pub fn is_parent(&self) -> bool {
        self.shard_index == PARENT_SHARD
    }

    /// Shard `index` of `total` of this parent, with the row's id, as it is dispatched to an executor.
    #[must_use]
    pub fn shard(&self, id: LogId, index: i32, total: i32, executor_id: ExecutorId) -> Self {
        Self {
            id,
            version: 1,
            parent_id: self.id,
            shard_index: index,
            shard_total: total,
            attempt: 1,
            failures: 0,
            status: Status::Dispatched,
            reason: Reason::None,
            executor_id,
            ..self.clone()
        }
    }
}

#[cfg(test)]
pub(crate) mod test {
    use super::{AppId, ExecutorId, LogId, PRIORITY_DEFAULT, Reason, Run, Status, TaskId, TenantId, Trigger};

    /// A queued run that is nothing special.
    pub fn run_of(id: i64, due_time: i64) -> Run {
        Run {
            id: LogId(id),
            version: 1,
            tenant_id: TenantId(1),
            app_id: AppId(1),
            task_id: TaskId(1),
            revision: 1,
            parent_id: LogId::NONE,
            shard_index: 0,
            shard_total: 1,
            fire_time: due_time,
            due_time,
            attempt: 0,
            failures: 0,
            status: Status::Queued,
            reason: Reason::None,
            params: None,
            trigger: Trigger::Schedule,
            seq: 0,
            priority: PRIORITY_DEFAULT,
            executor_id: ExecutorId::NONE,
            queued_at: 0,
            has_rate_slot: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reason::REASONS;
    use crate::domain::trigger::TRIGGERS;
    use proptest::prelude::*;

    /// Nodes of an earlier release skip a run whose status they do not know, but read a trigger of which they do not know as the schedule's,
    /// and a reason as none: they would, for one, forget that it is to be stopped. So a new word comes with a step of `migrations`
    /// that raises `schema_support.oldest`, and with another number here.
    #[test]
    fn nodes_of_every_supported_schema_know_the_words_of_a_run() {
        let words = (STATUSES.len(), TRIGGERS.len(), REASONS.len());
        assert_eq!(words, (9, 5, 31));
    }

    fn any_status() -> impl Strategy<Value = Status> {
        prop::sample::select(STATUSES.map(|(s, _)| s).to_vec())
    }

    proptest! {
        /// No walk through allowed steps leaves a terminal state, save a cancelled row that a
        /// new definition takes over and one that expired and is filled in, and from every state some terminal one can be reached.
        #[test]
        fn terminal_states_are_left_only_by_a_new_definition(from in any_status(), to in any_status()) {
            for (reason, _) in super::super::reason::REASONS {
                if from.is_terminal() && from.may_become(to, reason) {
                    let by_backfill = (from, to) == (Status::Expired, Status::Init);
                    let by_definition = from == Status::Cancelled
                        && matches!(to, Status::Init | Status::Expired)
                        && reason.is_given_up();
                    prop_assert!(by_backfill || by_definition, "{from:?} to {to:?} for {reason:?}");
                }
            }
        }

        #[test]
        fn no_state_is_a_trap(start in any_status()) {
            let mut reached = vec![start];
            let mut at = 0;
            while at < reached.len() {
                let here = reached[at];
                for (next, _) in STATUSES {
                    if here.may_become(next, Reason::None) && !reached.contains(&next) {
                        reached.push(next);
                    }
                }
                at += 1;
            }
            prop_assert!(reached.iter().any(|s| s.is_terminal()));
        }

        #[test]
        fn only_a_claim_leads_to_queued_and_only_queued_is_dispatched(from in any_status()) {
            prop_assert_eq!(from.may_become(Status::Queued, Reason::None), from.is_claimable());
            prop_assert_eq!(
                from.may_become(Status::Dispatched, Reason::None),
                from == Status::Queued
            );
        }
    }

    #[test]
    fn numbers_and_words_are_stable() {
        for (status, word) in STATUSES {
            assert_eq!(Status::from_number(status as i16), Some(status));
            assert_eq!(Status::parse(word), Some(status));
        }
        assert_eq!(Status::from_number(99), None);
    }
}
