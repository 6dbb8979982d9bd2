//! When a task fires.

use super::cron::{CronSchedule, DstPolicy};
use super::task::CalendarRule;
use chrono_tz::Tz;

/// A fire that will not be.
pub const NEVER: i64 = i64::MAX;

/// What names the instants.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// Nothing.
    None,
    /// Quartz cron.
    Cron(Box<CronSchedule>),
    /// Every so often.
    FixedRate { interval_ms: i64 },
    /// After the end of the last run.
    FixedDelay { delay_ms: i64 },
    /// Once.
    Once { at: i64 },
}

/// A schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub trigger: Trigger,
    pub zone: Tz,
    pub dst: DstPolicy,
    pub valid_from: i64,
    pub valid_until: i64,
    pub anchor: i64,
    pub calendar_rule: CalendarRule,
    pub spread_ms: i64,
    pub jitter_ms: i64,
    pub seed: i64,
}

impl Schedule {
    /// Only by hand.
    #[must_use]
    pub fn none() -> Self {
        Self {
            trigger: Trigger::None,
            zone: Tz::UTC,
            dst: DstPolicy::default(),
            valid_from: 0,
            valid_until: 0,
            anchor: 0,
            calendar_rule: CalendarRule::Skip,
            spread_ms: 0,
            jitter_ms: 0,
            seed: 0,
        }
    }

    /// The first fire strictly after `after` (epoch ms), or [`NEVER`].
    #[must_use]
    pub fn next_after(&self, after: i64) -> i64 {
        match &self.trigger {
            Trigger::Cron(cron) => cron.next_after(after, self.zone, self.dst).unwrap_or(NEVER),
            _ => NEVER,
        }
    }

    #[must_use]
    pub fn next_after_end(&self, _finished_at: i64) -> i64 {
        NEVER
    }

    #[must_use]
    pub fn due_time(&self, fire_time: i64) -> i64 {
        fire_time
    }
}
