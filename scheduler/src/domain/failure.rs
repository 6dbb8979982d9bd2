//! What follows an attempt that did not succeed.

use super::LogId;
use super::reason::Reason;
use super::stable_random::stable_random;
use super::task::{Delivery, FailureStrategy, RetryBackoff, Task, TaskSpec};
use super::task_log::{Run, Status};

/// Most dispatches, whatever the task says: a handler that kills every executor that it reaches must
/// not circulate forever.
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
    /// Task log id.
    pub id: LogId,
    /// Number of this attempt.
    pub attempt: i32,
    /// Failed ones before it.
    pub failures: i32,
    /// When it was due, epoch ms.
    pub due_time: i64,
}

impl Attempt {
    /// The last attempt of `run`.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self { id: run.id, attempt: run.attempt, failures: run.failures, due_time: run.due_time }
    }
}

/// Decides after an attempt that failed for `reason` at `now` (epoch ms).
#[must_use]
pub fn after(task: &Task, run: Attempt, reason: Reason, now: i64) -> Next {
    let spec = &task.spec;
    let end = |status| Next { status, due_time: run.due_time, failures: run.failures + 1 };
    let unfailed = |status| Next { failures: run.failures, ..end(status) };
    match reason {
        Reason::CancelledManually | Reason::Covered => return unfailed(Status::Cancelled),
        Reason::Blocked => return unfailed(Status::Discarded),
        _ if run.attempt >= ATTEMPTS_MAX => return end(Status::Failed),
        // Never started: another executor takes it at once, and it does not count.
        Reason::GivenBack | Reason::ExecutorGone | Reason::Undelivered => return unfailed(Status::Retry),
        // No executor takes it: until its wait ends, that is not a failure yet.
        Reason::NoExecutor | Reason::NotAccepted | Reason::AllBusy if now < patience(spec, run.due_time, reason) => {
            return unfailed(Status::Retry);
        }
        _ => {}
    }
    let is_unknown = matches!(reason, Reason::OutcomeUnknown | Reason::Abandoned);
    if is_unknown && spec.delivery == Delivery::AtMostOnce {
        return end(Status::Failed);
    }
    if spec.failure_strategy == FailureStrategy::Discard {
        // At least once outranks discard: an unknown outcome is no failure yet.
        if !is_unknown {
            return end(Status::Discarded);
        }
        if run.failures + 1 >= UNKNOWN_OUTCOMES_MAX {
            return end(Status::Failed);
        }
        return Next { status: Status::Retry, due_time: now, failures: run.failures + 1 };
    }
    let counts = TaskSpec::class_of(reason).is_some_and(|class| spec.retry_on.contains(&class));
    if !counts || run.failures >= spec.max_retries {
        return end(Status::Failed);
    }
    // What ended before it was due, because all trace of its executor is gone, is not due earlier for that.
    let due_time = (now + retry_after(spec, run)).max(run.due_time);
    Next { status: Status::Retry, due_time, failures: run.failures + 1 }
}

/// The instant from which it counts as a failure that no executor takes a run, for `reason`, epoch ms.
fn patience(spec: &TaskSpec, due_time: i64, reason: Reason) -> i64 {
    let wait = if reason == Reason::NoExecutor { spec.no_executor_timeout_ms } else { 0 };
    due_time.saturating_add(wait)
}

/// Until when a run waits for an executor, epoch ms. One that has failed for want of one has waited.
#[must_use]
pub fn waits_for_executor_until(spec: &TaskSpec, run: &Run) -> i64 {
    if run.failures > 0 && run.reason == Reason::NoExecutor {
        return run.due_time;
    }
    patience(spec, run.due_time, Reason::NoExecutor)
}

/// The pause before the next attempt, ms: doubled with each failure when the task asks for it,
/// up to its bound, and scattered by its jitter.
fn retry_after(spec: &TaskSpec, run: Attempt) -> i64 {
    let base = spec.retry_interval_ms;
    let grown = match spec.retry_backoff {
        RetryBackoff::Fixed => base,
        RetryBackoff::Exponential => {
            let factor = 1i64.checked_shl(run.failures.clamp(0, 40).cast_unsigned()).unwrap_or(i64::MAX);
            base.saturating_mul(factor).min(spec.retry_max_interval_ms.max(base))
        }
    };
    let width =
        grown / 100 * i64::from(spec.retry_jitter_percent) + grown % 100 * i64::from(spec.retry_jitter_percent) / 100;
    if width == 0 {
        return grown;
    }
    // Runs that failed together must not come back together.
    let seed = run.id.0.cast_unsigned() ^ (u64::from(run.failures.cast_unsigned()) << 48);
    let offset = stable_random(seed) % (2 * width.cast_unsigned() + 1);
    grown - width + offset.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task::FailureClass;
    use crate::domain::task::test::task_of;

    fn task(failure_strategy: FailureStrategy, delivery: Delivery) -> Task {
        task_of(TaskSpec {
            failure_strategy,
            delivery,
            max_retries: 2,
            retry_interval_ms: 1_000,
            no_executor_timeout_ms: 0,
            ..TaskSpec::default()
        })
    }

    fn attempt(attempt: i32, failures: i32, due_time: i64) -> Attempt {
        Attempt { id: LogId(77), attempt, failures, due_time }
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
            (Retry, AtLeastOnce, 1, Reason::CancelledManually, (Status::Cancelled, 100, 1)),
            (Retry, AtLeastOnce, 1, Reason::Covered, (Status::Cancelled, 100, 1)),
            (Retry, AtLeastOnce, 0, Reason::Blocked, (Status::Discarded, 100, 0)),
            (Retry, AtLeastOnce, 0, Reason::WaitTimedOut, (Status::Retry, 1_500, 1)),
            (Discard, AtLeastOnce, 0, Reason::WaitTimedOut, (Status::Discarded, 100, 1)),
        ];
        for (strategy, delivery, failures, reason, expected) in rows {
            let run = attempt(1, failures, 100);
            let next = after(&task(strategy, delivery), run, reason, 500);
            assert_eq!(
                (next.status, next.due_time, next.failures),
                expected,
                "{strategy:?} {delivery:?} {failures} {reason:?}"
            );
        }
    }

    #[test]
    fn a_run_that_still_waits_for_an_executor_has_not_failed() {
        let mut task = task(FailureStrategy::Discard, Delivery::AtMostOnce);
        task.spec.no_executor_timeout_ms = 400;
        let ended = |now| {
            let next = after(&task, attempt(0, 0, 100), Reason::NoExecutor, now);
            (next.status, next.failures)
        };
        assert_eq!(ended(499), (Status::Retry, 0));
        assert_eq!(ended(500), (Status::Discarded, 1));
    }

    #[test]
    fn a_refused_run_has_not_failed_before_it_is_due() {
        let run = attempt(1, 0, 900);
        let next = after(&task(FailureStrategy::Discard, Delivery::AtMostOnce), run, Reason::NotAccepted, 500);
        assert_eq!((next.status, next.due_time, next.failures), (Status::Retry, 900, 0));
    }

    #[test]
    fn attempts_end() {
        let run = attempt(ATTEMPTS_MAX, 0, 100);
        let next = after(&task(FailureStrategy::Retry, Delivery::AtLeastOnce), run, Reason::Undelivered, 500);
        assert_eq!(next.status, Status::Failed);
    }

    #[test]
    fn only_the_failures_that_count_are_retried() {
        let rows = [
            (FailureClass::Failed, Reason::HandlerPanicked),
            (FailureClass::TimedOut, Reason::TimedOut),
            (FailureClass::Lost, Reason::OutcomeUnknown),
            (FailureClass::NotSent, Reason::NoExecutor),
        ];
        for (class, _) in rows {
            let mut task = task(FailureStrategy::Retry, Delivery::AtLeastOnce);
            task.spec.retry_on = vec![class];
            for (other, reason) in rows {
                let status = after(&task, attempt(1, 0, 100), reason, 500).status;
                let expected = if class == other { Status::Retry } else { Status::Failed };
                assert_eq!(status, expected, "{class:?} {reason:?}");
            }
        }
    }

    #[test]
    fn the_interval_doubles_up_to_its_bound() {
        let mut task = task(FailureStrategy::Retry, Delivery::AtLeastOnce);
        task.spec.max_retries = 1_000;
        task.spec.retry_backoff = RetryBackoff::Exponential;
        task.spec.retry_max_interval_ms = 7_000;
        let waits = [0, 1, 2, 3, 4, 500].map(|n| after(&task, attempt(1, n, 0), Reason::TimedOut, 0).due_time);
        assert_eq!(waits, [1_000, 2_000, 4_000, 7_000, 7_000, 7_000]);
        // A bound below the interval does not shorten it.
        task.spec.retry_max_interval_ms = 10;
        assert_eq!(after(&task, attempt(1, 3, 0), Reason::TimedOut, 0).due_time, 1_000);
    }

    proptest::proptest! {
        #[test]
        fn jitter_stays_in_its_window_and_scatters(percent in 1i32..=100, base in 100i64..1_000_000) {
            let mut task = task(FailureStrategy::Retry, Delivery::AtLeastOnce);
            task.spec.retry_interval_ms = base;
            task.spec.retry_jitter_percent = percent;
            let mut seen = std::collections::HashSet::new();
            for id in 0..50 {
                let run = Attempt { id: LogId(id), ..attempt(1, 0, 0) };
                let wait = after(&task, run, Reason::HandlerFailed, 0).due_time;
                let width = base * i64::from(percent) / 100;
                proptest::prop_assert!((base - width - 1..=base + width + 1).contains(&wait));
                seen.insert(wait);
            }
            proptest::prop_assert!(seen.len() > 1);
        }
    }
}
