//! A task: what an admin defines ([`TaskSpec`]), and what the engine needs of it ([`Task`]).
//! Pure values; the words are those of API and console.

mod check;
mod diff;
mod field;
mod fields;
pub mod file;
mod policy;
mod read;
mod spec;
mod table;
mod warning;

pub use check::check_params;
pub use diff::{FieldChange, diff};
pub use field::{Allowed, Choices, Field, INSTANT_MAX, NAME_MAX, PARENTS_MAX, TAGS_MAX, Unit};
pub use policy::{
    BlockScope, BlockStrategy, Delivery, ExpiredStrategy, FailureClass, FailureStrategy, Maintenance, MisfireStrategy,
    ParentOutcome, ParentRule, RetryBackoff, ScheduleKind,
};
pub use spec::{EVERY_FAILURE, ParentLink, SPAN_MS_MAX, TaskSpec, params_text};
pub(crate) use table::task_fields;
pub use warning::TaskWarning;

pub use super::calendar::CalendarRule;
pub use super::routing::Routing;
use super::routing::Tags;
pub use super::schedule::NEVER;
use super::schedule::Schedule;
use super::task_log::Run;
use super::{AppId, Reason, TaskId, TenantId, Trigger};

/// Short texts of a task and what its schedule was read into, bytes.
const REST_BYTES: usize = 512;

/// A task as the engine plans, routes and judges its runs by it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Id.
    pub id: TaskId,
    /// Tenant id.
    pub tenant_id: TenantId,
    /// App id.
    pub app_id: AppId,
    /// Grows with every edit, start and stop.
    pub revision: i64,
    /// The definition.
    pub spec: TaskSpec,
    /// When it fires, read from the definition.
    pub schedule: Schedule,
    /// What executors must have, read from the definition.
    pub tags: Tags,
    /// Watermark: no log is written yet for this instant and later, epoch ms; [`NEVER`] when
    /// stopped or exhausted.
    pub next_fire_at: i64,
    /// Logs of earlier revisions may exist up to this instant, epoch ms.
    pub written_until: i64,
    /// Fires of the schedule written so far, for `max_fires`.
    pub fires: i64,
    /// Number of its last run, whatever made it.
    pub turn: i64,
    /// Whether other tasks run after it.
    pub has_children: bool,
    /// Whether it runs by itself: by its schedule, or after its parents.
    pub is_started: bool,
    /// The version of the script that its runs are; 0 where they are calls of its handler.
    pub script: i64,
}

impl Task {
    /// Whether `run` is too late at `now` (epoch ms) and must end as expired. Only an ordinary
    /// fire that was never dispatched expires: a misfire, a run started manually or by a parent,
    /// a backfill and a retry are late on purpose.
    #[must_use]
    pub fn is_expired(&self, run: &Run, now: i64) -> bool {
        now >= self.expires_at(run)
    }

    /// The instant from which `run` is too late, epoch ms.
    #[must_use]
    pub fn expires_at(&self, run: &Run) -> i64 {
        let expires = self.spec.expired_strategy == ExpiredStrategy::Discard
            && self.spec.expire_after_ms > 0
            && run.attempt == 0
            && run.trigger == Trigger::Schedule;
        if expires { run.due_time.saturating_add(self.spec.expire_after_ms).saturating_add(1) } else { i64::MAX }
    }

    /// Whether the end of its runs has consequences beyond the runs themselves.
    #[must_use]
    pub fn has_outbox_entry(&self) -> bool {
        self.has_children || self.spec.needs_outbox()
    }

    /// What it takes in memory, bytes: an estimate from what varies most.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        let TaskSpec { name, handler, description, params, tags, tags_any, tags_none, .. } = &self.spec;
        let texts = name.len() + handler.len() + description.len() + params.len();
        let tags = [tags, tags_any, tags_none].into_iter().flatten().map(|tag| tag.len() + size_of::<String>());
        // Tags stand in it twice; the rest of its texts, and what the schedule was read into, are short.
        size_of::<Self>() + REST_BYTES + texts + 2 * tags.sum::<usize>()
    }

    /// The handler that its runs call. A script calls none: plain executors alone, which tell no handlers, take such a run.
    #[must_use]
    pub fn handler(&self) -> &str {
        if self.script == 0 { &self.spec.handler } else { "" }
    }

    /// Fires of the schedule that may still be written.
    #[must_use]
    pub fn fires_left(&self) -> i64 {
        if self.spec.max_fires > 0 { (self.spec.max_fires - self.fires).max(0) } else { i64::MAX }
    }

    /// Whether its runs need a permit before they are dispatched.
    #[must_use]
    pub fn needs_permit(&self) -> bool {
        self.spec.needs_permit()
    }

    /// Whether earlier runs anywhere in the app hold a run up.
    #[must_use]
    pub fn blocks_app(&self) -> bool {
        self.spec.blocks_app()
    }
}

impl TaskSpec {
    /// Whether the end of a run moves the task itself: its next fire, or its pause.
    #[must_use]
    pub fn needs_outbox(&self) -> bool {
        self.schedule == ScheduleKind::FixedDelay || self.pause_after_failures > 0
    }

    /// Whether `other` fires at the same instants, as far as the definitions go.
    #[must_use]
    pub fn fires_like(&self, other: &Self) -> bool {
        let when = |spec: &Self| {
            (
                (spec.schedule, spec.cron.clone(), spec.time_zone.clone(), spec.interval_ms, spec.fire_at),
                (spec.valid_from, spec.valid_until, spec.dst_gap, spec.dst_overlap),
                (spec.calendar.clone(), spec.calendar_rule, spec.spread_ms),
            )
        };
        self.schedule != ScheduleKind::FixedDelay && when(self) == when(other)
    }

    /// Whether runs need a permit before they are dispatched: a bound on runs at once, or a block
    /// strategy across the app.
    #[must_use]
    pub fn needs_permit(&self) -> bool {
        self.max_concurrent > 0 || self.blocks_app()
    }

    /// Whether earlier runs anywhere in the app hold a run up.
    #[must_use]
    pub fn blocks_app(&self) -> bool {
        self.block_scope == BlockScope::App && self.block_strategy != BlockStrategy::Concurrent
    }

    /// The policy's class of a failure; `None` for one that no policy asks about.
    #[must_use]
    pub fn class_of(reason: Reason) -> Option<FailureClass> {
        match reason {
            Reason::HandlerFailed | Reason::HandlerPanicked => Some(FailureClass::Failed),
            Reason::TimedOut | Reason::WaitTimedOut => Some(FailureClass::TimedOut),
            Reason::OutcomeUnknown | Reason::Abandoned => Some(FailureClass::Lost),
            Reason::NoExecutor | Reason::NotAccepted | Reason::AllBusy => Some(FailureClass::NotSent),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod test {
    use super::{Tags, Task, TaskId, TaskSpec};
    use crate::domain::{AppId, TenantId};

    /// A task with this definition and nothing special else.
    pub fn task_of(spec: TaskSpec) -> Task {
        Task {
            id: TaskId(1),
            tenant_id: TenantId(1),
            app_id: AppId(1),
            revision: 3,
            schedule: spec.to_schedule(0, TaskId(1)).unwrap(),
            tags: Tags { all: spec.tags.clone(), any: spec.tags_any.clone(), none: spec.tags_none.clone() },
            spec,
            next_fire_at: 0,
            written_until: 0,
            fires: 0,
            turn: 0,
            has_children: false,
            is_started: true,
            script: 0,
        }
    }
}
