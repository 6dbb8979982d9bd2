//! What follows an attempt that did not succeed.

use super::reason::Reason;
use super::task::{Delivery, FailureStrategy, Task};
use super::task_log::Status;

/// Hand-overs at most, whatever the task says: a handler that kills every executor that it
/// meets must not circle for ever.
pub const ATTEMPTS_MAX: i32 = 2_000;

/// Attempts whose outcome is unknown that an `at_least_once` task with failure strategy
/// `discard` gets before it counts as failed.
const UNKNOWN_OUTCOMES_MAX: i32 = 5;

/// The state that a run goes to, and when it is due again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// `Retry`, `Failed`, `Discarded` or `Cancelled`.
    pub status: Status,
    /// When the next attempt should start, epoch ms; unchanged for an end.
    pub due_time: i64,
    /// Failed attempts so far, this one counted where it counts.
    pub failures: i32,
}

/// Where a run stood when its attempt ended badly.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Number of this attempt.
    pub attempt: i32,
    /// Failed ones before it.
    pub failures: i32,
    /// When it was due, epoch ms.
    pub due_time: i64,
}

/// Decides after an attempt that failed for `reason` at `now` (epoch ms).
#[must_use]
pub fn after(task: &Task, run: Attempt, reason: Reason, now: i64) -> Next {
    let end = |status| Next { status, due_time: run.due_time, failures: run.failures + 1 };
    if reason == Reason::CancelledByHand {
        return Next { failures: run.failures, ..end(Status::Cancelled) };
    }
    if run.attempt >= ATTEMPTS_MAX {
        return end(Status::Failed);
    }
    let again = Next { status: Status::Retry, due_time: run.due_time, failures: run.failures };
    match reason {
        // Never started: another executor takes it at once, and it does not count.
        Reason::GivenBack | Reason::ExecutorGone | Reason::Undelivered => again,
        // Nobody takes it: until it is due that is not a failure yet.
        Reason::NoExecutor | Reason::NotAccepted if now < run.due_time => again,
        Reason::OutcomeUnknown | Reason::Abandoned if task.delivery == Delivery::AtMostOnce => end(Status::Failed),
        Reason::OutcomeUnknown | Reason::Abandoned if task.failure_strategy == FailureStrategy::Discard => {
            if run.failures + 1 >= UNKNOWN_OUTCOMES_MAX {
                end(Status::Failed)
            } else {
                Next { status: Status::Retry, due_time: now, failures: run.failures + 1 }
            }
        }
        Reason::HandlerFailedForGood => end(match task.failure_strategy {
            FailureStrategy::Discard => Status::Discarded,
            FailureStrategy::Retry => Status::Failed,
        }),
        _ => match task.failure_strategy {
            FailureStrategy::Discard => end(Status::Discarded),
            FailureStrategy::Retry if run.failures >= task.max_retries => end(Status::Failed),
            FailureStrategy::Retry => {
                Next { status: Status::Retry, due_time: now + task.retry_interval_ms, failures: run.failures + 1 }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task::{ExpiredStrategy, MisfireStrategy, Routing, Schedule};

    fn task(failure_strategy: FailureStrategy, delivery: Delivery) -> Task {
        Task {
            id: 1,
            tenant_id: 1,
            app_id: 1,
            revision: 1,
            name: String::new(),
            handler: String::new(),
            params: String::new(),
            schedule: Schedule::None,
            next_fire_at: 0,
            written_until: 0,
            routing: Routing::Random,
            tags: Vec::new(),
            failure_strategy,
            max_retries: 2,
            retry_interval_ms: 1_000,
            expired_strategy: ExpiredStrategy::Execute,
            expire_after_ms: 0,
            misfire_strategy: MisfireStrategy::FireOnce,
            timeout_ms: 0,
            delivery,
        }
    }

    /// (strategy, delivery, failures before, reason) at `now` = 500, due at 100 → (status, due, failures)
    #[test]
    fn table() {
        use Delivery::{AtLeastOnce, AtMostOnce};
        use FailureStrategy::{Discard, Retry};
        let rows = [
            (Retry, AtLeastOnce, 0, Reason::HandlerFailed, (Status::Retry, 1_500, 1)),
            (Retry, AtLeastOnce, 1, Reason::TimedOut, (Status::Retry, 1_500, 2)),
            (Retry, AtLeastOnce, 2, Reason::HandlerFailed, (Status::Failed, 100, 3)),
            (Retry, AtLeastOnce, 0, Reason::HandlerFailedForGood, (Status::Failed, 100, 1)),
            (Discard, AtLeastOnce, 0, Reason::HandlerFailed, (Status::Discarded, 100, 1)),
            (Discard, AtLeastOnce, 0, Reason::OutcomeUnknown, (Status::Retry, 500, 1)),
            (Discard, AtLeastOnce, 4, Reason::OutcomeUnknown, (Status::Failed, 100, 5)),
            (Retry, AtLeastOnce, 0, Reason::OutcomeUnknown, (Status::Retry, 1_500, 1)),
            (Retry, AtMostOnce, 0, Reason::OutcomeUnknown, (Status::Failed, 100, 1)),
            (Retry, AtMostOnce, 0, Reason::Abandoned, (Status::Failed, 100, 1)),
            (Retry, AtMostOnce, 0, Reason::ExecutorGone, (Status::Retry, 100, 0)),
            (Discard, AtMostOnce, 0, Reason::Undelivered, (Status::Retry, 100, 0)),
            (Retry, AtLeastOnce, 0, Reason::NoExecutor, (Status::Retry, 1_500, 1)),
            (Discard, AtLeastOnce, 0, Reason::NoExecutor, (Status::Discarded, 100, 1)),
            (Retry, AtLeastOnce, 1, Reason::CancelledByHand, (Status::Cancelled, 100, 1)),
        ];
        for (strategy, delivery, failures, reason, expected) in rows {
            let run = Attempt { attempt: 1, failures, due_time: 100 };
            let next = after(&task(strategy, delivery), run, reason, 500);
            assert_eq!(
                (next.status, next.due_time, next.failures),
                expected,
                "{strategy:?} {delivery:?} {failures} {reason:?}"
            );
        }
    }

    #[test]
    fn before_it_is_due_a_run_that_nobody_takes_has_not_failed() {
        let run = Attempt { attempt: 1, failures: 0, due_time: 900 };
        let next = after(&task(FailureStrategy::Discard, Delivery::AtMostOnce), run, Reason::NotAccepted, 500);
        assert_eq!((next.status, next.due_time, next.failures), (Status::Retry, 900, 0));
    }

    #[test]
    fn attempts_end() {
        let run = Attempt { attempt: ATTEMPTS_MAX, failures: 0, due_time: 100 };
        let next = after(&task(FailureStrategy::Retry, Delivery::AtLeastOnce), run, Reason::Undelivered, 500);
        assert_eq!(next.status, Status::Failed);
    }
}
