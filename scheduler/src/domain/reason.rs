//! Why a task log is in its state: one stable word per cause, for the console, for tests and for
//! the person who asks "why did this not run?".

/// Machine-readable cause of a state. Stored as its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing to explain.
    None,
    /// The handler returned an error.
    HandlerFailed,
    /// The handler returned an error and asked not to be retried.
    HandlerFailedForGood,
    /// The handler panicked.
    HandlerPanicked,
    /// The run's time-out passed.
    TimedOut,
    /// No online executor of the app has the handler and the tags.
    NoExecutor,
    /// Every suitable executor refused the run or could not be reached.
    NotAccepted,
    /// The dispatch never reached the executor; it was certainly not started.
    Undelivered,
    /// The executor gave the run back unstarted.
    GivenBack,
    /// The executor went offline before the run was due; it was never started.
    ExecutorGone,
    /// The executor went offline after the run was due; whether it ran is unknown.
    OutcomeUnknown,
    /// The executor stopped the run because it lost every node, or was shut down.
    Abandoned,
    /// The task was stopped.
    TaskStopped,
    /// The task was edited.
    TaskEdited,
    /// The task was deleted.
    TaskDeleted,
    /// A person cancelled this run.
    CancelledManually,
    /// Later than the task's expiry time, and the task discards what is late.
    Expired,
    /// Missed during downtime; the task skips missed fires, or another run covers it.
    MisfireSkipped,
    /// The task was paused, by a person or after failures in a row.
    TaskPaused,
    /// Its due time lay in a maintenance window of the tenant.
    Maintenance,
    /// An earlier run of the task was still running when it was due, and the task discards later ones.
    Blocked,
    /// A later run of the task replaced it.
    Covered,
    /// It could not start within the task's time-out for waiting.
    WaitTimedOut,
    /// Every suitable executor was busy with the task.
    AllBusy,
    /// At least one shard did not succeed.
    ShardFailed,
    /// The tenant's quota of fires in a minute delays it, or has no room for it in time.
    OverQuota,
    /// Its task has reached its limit of concurrent runs.
    TaskLimit,
    /// Its app has reached its limit of concurrent runs.
    AppLimit,
    /// Its tenant has reached its limit of concurrent runs.
    TenantLimit,
    /// It may have run before the database was restored from a backup, and an operator had it skipped.
    Restored,
    /// The task is a script, and its app does not allow scripts.
    ScriptsNotAllowed,
}

/// Every reason with its word.
pub const REASONS: [(Reason, &str); 31] = [
    (Reason::None, ""),
    (Reason::HandlerFailed, "handler_failed"),
    (Reason::HandlerFailedForGood, "handler_failed_for_good"),
    (Reason::HandlerPanicked, "handler_panicked"),
    (Reason::TimedOut, "timed_out"),
    (Reason::NoExecutor, "no_executor"),
    (Reason::NotAccepted, "not_accepted"),
    (Reason::Undelivered, "undelivered"),
    (Reason::GivenBack, "given_back"),
    (Reason::ExecutorGone, "executor_gone"),
    (Reason::OutcomeUnknown, "outcome_unknown"),
    (Reason::Abandoned, "abandoned"),
    (Reason::TaskStopped, "task_stopped"),
    (Reason::TaskEdited, "task_edited"),
    (Reason::TaskDeleted, "task_deleted"),
    (Reason::CancelledManually, "cancelled_manually"),
    (Reason::Expired, "expired"),
    (Reason::MisfireSkipped, "misfire_skipped"),
    (Reason::TaskPaused, "task_paused"),
    (Reason::Maintenance, "maintenance"),
    (Reason::Blocked, "blocked"),
    (Reason::Covered, "covered"),
    (Reason::WaitTimedOut, "wait_timed_out"),
    (Reason::AllBusy, "all_busy"),
    (Reason::ShardFailed, "shard_failed"),
    (Reason::OverQuota, "over_quota"),
    (Reason::TaskLimit, "task_limit"),
    (Reason::AppLimit, "app_limit"),
    (Reason::TenantLimit, "tenant_limit"),
    (Reason::Restored, "restored"),
    (Reason::ScriptsNotAllowed, "scripts_not_allowed"),
];

impl Reason {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        REASONS.iter().find(|(r, _)| *r == self).map_or("", |(_, word)| word)
    }

    /// The reason of that word; an unknown word (written by a newer version) reads as none.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        REASONS.iter().find(|(_, w)| *w == word).map_or(Self::None, |(r, _)| *r)
    }
}

impl Reason {
    /// Whether a definition gave the run up: the next one may take its instant over.
    #[must_use]
    pub fn is_given_up(self) -> bool {
        matches!(self, Self::TaskEdited | Self::TaskStopped | Self::TaskPaused)
    }

    /// Whether a change of the task's definition revokes runs for it: what has not started, not what is under way.
    #[must_use]
    pub fn is_revocation(self) -> bool {
        self.is_given_up() || self == Self::TaskDeleted
    }

    /// Whether it says what a queued run waits for.
    #[must_use]
    pub fn is_wait(self) -> bool {
        matches!(self, Self::TaskLimit | Self::AppLimit | Self::TenantLimit)
    }
}
