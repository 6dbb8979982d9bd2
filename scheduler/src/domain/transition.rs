//! A guarded step of a run from one state to another.

use super::failure::{self, Attempt};
use super::rate_limit::{DelayedRun, SlotRequest};
use super::{AppId, LogId, Reason, Run, Status, Task};

/// The attempt that a step ends without ending its run: it is kept beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its number.
    pub number: i32,
    /// When it should have started, ms: the row tells of the next one then.
    pub due_time: i64,
}

impl LastAttempt {
    /// That of `run`, if a step to `to` ends it so.
    fn ended_by(run: &Run, to: Status) -> Option<Self> {
        let is_over = run.status == Status::Dispatched && to == Status::Retry;
        is_over.then_some(Self { number: run.attempt, due_time: run.due_time })
    }
}

/// One guarded step to a state in which no executor runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Task log id.
    pub id: LogId,
    /// Version that the row must have.
    pub version: i64,
    /// The run's app, for the metrics; 0 where it does not end.
    pub app_id: AppId,
    /// New state.
    pub to: Status,
    /// When it is due again; unchanged for an end.
    pub due_time: i64,
    /// Failed attempts so far.
    pub failures: i32,
    /// Why.
    pub reason: Reason,
    /// For people; empty keeps what is there.
    pub message: String,
    /// When the handler was entered, 0 when unknown or never.
    pub started_at: i64,
    /// When it ended, 0 when it has not.
    pub finished_at: i64,
    /// What it ends of a run that goes on.
    pub ended: Option<LastAttempt>,
}

impl Transition {
    /// A step of `run` that changes nothing but its state.
    #[must_use]
    pub fn of(run: &Run, to: Status, reason: Reason) -> Self {
        Self {
            id: run.id,
            version: run.version,
            app_id: run.app_id,
            to,
            due_time: run.due_time,
            failures: run.failures,
            reason,
            message: String::new(),
            started_at: 0,
            finished_at: 0,
            ended: LastAttempt::ended_by(run, to),
        }
    }

    /// What the task's definition has follow on an attempt of `run` that failed for `reason` at `now` (epoch ms).
    #[must_use]
    pub fn after_failure(task: &Task, run: &Run, reason: Reason, now: i64) -> Self {
        let next = failure::after(task, Attempt::of(run), reason, now);
        Self {
            due_time: next.due_time,
            failures: next.failures,
            finished_at: if next.status.is_terminal() { now } else { 0 },
            ..Self::of(run, next.status, reason)
        }
    }

    /// The step with which a run waits for its slot at `due_time` (ms) in the rate of a tenant that
    /// may have `per_minute` fires in a minute.
    #[must_use]
    pub fn delayed(ask: &SlotRequest, due_time: i64, per_minute: i32) -> Self {
        Self {
            id: ask.id,
            version: ask.version,
            app_id: AppId::NONE,
            to: ask.back_to,
            due_time,
            failures: ask.failures,
            reason: Reason::OverQuota,
            message: format!(
                "delayed by {} ms: the tenant may have {per_minute} fires in a minute (its quota max_fires_per_minute)",
                due_time - ask.at
            ),
            started_at: 0,
            finished_at: 0,
            ended: None,
        }
    }

    /// The step of a run that waits for its slot and has changed it with a more urgent one.
    #[must_use]
    pub fn overtaken(run: &DelayedRun) -> Self {
        Self {
            id: run.id,
            version: run.version,
            app_id: AppId::NONE,
            to: Status::Init,
            due_time: run.due_time,
            failures: run.failures,
            reason: Reason::OverQuota,
            message: "a more urgent run of the tenant took its slot (quota max_fires_per_minute)".to_owned(),
            started_at: 0,
            finished_at: 0,
            ended: None,
        }
    }
}
