//! The choices of a task. API, console and task file use the same words.

use crate::domain::choice::choice;

choice! {
    /// Kind of schedule by which a task fires by itself.
    ScheduleKind {
        /// No schedule: the task runs manually, or after its parents.
        None,
        /// The expression in `cron`.
        Cron,
        /// Every `interval_ms`, counted from its start.
        FixedRate,
        /// `interval_ms` after the end of the last run.
        FixedDelay,
        /// Once, at `fire_at`.
        Once,
    }
}

choice! {
    /// What follows a failed attempt.
    FailureStrategy {
        /// Another attempt, up to `max_retries`.
        Retry,
        /// Nothing.
        Discard,
    }
}

choice! {
    /// How the interval between attempts grows.
    RetryBackoff {
        /// It does not.
        Fixed,
        /// It doubles with each failure, up to `retry_max_interval_ms`.
        Exponential,
    }
}

choice! {
    /// Kinds of failures, for `retry_on`. A handler that asks not to be retried never is.
    FailureClass {
        /// The handler returned an error or panicked.
        Failed,
        /// The time-out for running or for waiting passed.
        TimedOut,
        /// Its executor went away, and it is unknown whether it ran.
        Lost,
        /// No executor took it.
        NotSent,
    }
}

choice! {
    /// What happens to a run that is later than the task's expiry time.
    ExpiredStrategy {
        /// It runs anyway: a late payroll is better than none.
        Execute,
        /// It ends as expired.
        Discard,
    }
}

choice! {
    /// What happens to fires that were missed while nothing ran.
    MisfireStrategy {
        /// The last one runs on behalf of all of them.
        FireOnce,
        /// They are skipped.
        Skip,
        /// Each runs, up to `misfire_max` and not later than `misfire_max_late_ms`.
        FireAll,
    }
}

choice! {
    /// How to treat an unknown outcome.
    Delivery {
        /// Another attempt, once the old one is known to be dead.
        AtLeastOnce,
        /// A failure, never a second run.
        AtMostOnce,
    }
}

choice! {
    /// What happens to a run that is due while an earlier one of the task is still running.
    BlockStrategy {
        /// It runs beside it.
        Concurrent,
        /// It waits for its end.
        Serial,
        /// It ends as discarded.
        DiscardLater,
        /// The earlier one is stopped, and it starts when that has ended.
        CoverEarly,
    }
}

choice! {
    /// Where the block strategy looks for earlier runs.
    BlockScope {
        /// On the executor that the run goes to.
        Executor,
        /// On all executors of the app.
        App,
    }
}

choice! {
    /// What a maintenance window of the tenant does to the task's runs.
    Maintenance {
        /// The window's action.
        Obey,
        /// Nothing.
        Ignore,
    }
}

choice! {
    /// Which outcome of a parent starts a child.
    ParentOutcome {
        /// It succeeded.
        Success,
        /// It ended otherwise (failed, discarded, expired, cancelled manually).
        Failure,
        /// Either.
        Always,
    }
}

choice! {
    /// How many parents must have ended for the child to run.
    ParentRule {
        /// Each of them, since the child's last run.
        All,
        /// Any one.
        Any,
    }
}
