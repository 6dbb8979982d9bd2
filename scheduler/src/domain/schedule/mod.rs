//! When a task fires by itself.
//!
//! A [`Schedule`] is a trigger (cron, fixed rate, fixed delay, one-off, or none) with all that bends it: zone,
//! daylight-saving policy, validity window, calendar, spread and jitter. It answers three questions, all pure
//! and without allocating: which fire comes next ([`Schedule::next_after`]), which follows a run that has ended
//! ([`Schedule::next_after_end`]), and when a fire is due ([`Schedule::due_time`]). [`Schedule::preview`] says
//! for people what will fire, what will not, and why; [`Schedule::count`] how much in each minute.
//!
//! All instants are milliseconds since the epoch, UTC. In the order in which they act:
//!
//! 1. The **trigger** names instants of its own; those of cron are local times of the **zone**.
//! 2. The **calendar** takes away those on days that are not working days, or moves them (cron only), and then
//!    takes away those in excluded hours; days and hours are local to the zone.
//! 3. The **daylight-saving policy** decides on local times that do not exist or exist twice (cron only).
//! 4. The **validity window** cuts the row of instants at both ends.
//! 5. The **spread** shifts the whole row by one offset: the row of **fire times** is complete.
//! 6. The **jitter** delays each fire's **due time**; the fire time stays.

mod count;
mod preview;
mod rate;
mod spread;

use std::sync::Arc;

use chrono_tz::Tz;

use super::calendar::Calendar;
use super::cron::{CronSchedule, DstPolicy};
use rate::Row;

pub use super::calendar::CalendarRule;
pub use preview::{Kind, Note, Preview, SkipReason};
pub use rate::NEVER;

/// What makes a task fire by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Timing {
    /// Nothing: it runs only manually.
    None,
    /// Local times by a Quartz expression.
    Cron(Box<CronSchedule>),
    /// At a fixed rate, however long the runs take.
    FixedRate {
        /// Between two fires, ms, from 1.
        interval_ms: i64,
    },
    /// A fixed delay after the end of the last run.
    FixedDelay {
        /// Between the end of a run and the next fire, ms, from 0.
        delay_ms: i64,
    },
    /// Once.
    Once {
        /// Epoch ms.
        at: i64,
    },
}

/// When a task fires by itself. Fields are public because every combination means something; numbers below
/// their range count as the smallest in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What names the instants.
    pub timing: Timing,
    /// The zone of cron's local times, and of the calendar's days and hours.
    pub zone: Tz,
    /// What happens at a daylight-saving change; cron only.
    pub dst: DstPolicy,
    /// Nothing fires before this instant, epoch ms; 0 is no bound. A fixed rate that was started before it
    /// counts from it.
    pub valid_from: i64,
    /// Nothing fires at this instant or later, epoch ms; 0 is no bound.
    pub valid_until: i64,
    /// When the task was started, epoch ms: where fixed rate and fixed delay count from.
    pub anchor: i64,
    /// Days and hours to leave out; a one-off does not ask it.
    pub calendar: Option<Arc<Calendar>>,
    /// What becomes of a fire on a day that is not a working day. Only cron's fires move; the others are
    /// left out (fixed rate) or wait for the first instant that is allowed (fixed delay).
    pub calendar_rule: CalendarRule,
    /// Fires are shifted by an offset that the seed fixes, 0..`spread_ms`; 0 is none. Cron and fixed rate,
    /// and the first fire of a fixed delay.
    pub spread_ms: i64,
    /// Each fire is due up to so much after its fire time, ms; 0 is none.
    pub jitter_ms: i64,
    /// What spread and jitter are drawn from: the task's id.
    pub seed: i64,
}

/// That instant (epoch ms), or the next one if it is a whole second.
#[must_use]
pub fn beside_whole_seconds(at: i64) -> i64 {
    if at.rem_euclid(1_000) == 0 { at + 1 } else { at }
}

impl Schedule {
    /// Only manually.
    #[must_use]
    pub fn none() -> Self {
        Self {
            timing: Timing::None,
            zone: Tz::UTC,
            dst: DstPolicy::default(),
            valid_from: 0,
            valid_until: 0,
            anchor: 0,
            calendar: None,
            calendar_rule: CalendarRule::Skip,
            spread_ms: 0,
            jitter_ms: 0,
            seed: 0,
        }
    }

    /// The first fire time strictly after `after`, or [`NEVER`].
    ///
    /// The fire times make one strictly increasing row that does not depend on `after`. Of a fixed delay only
    /// the first fire is known beforehand; the others come from [`Self::next_after_end`].
    #[must_use]
    pub fn next_after(&self, after: i64) -> i64 {
        let offset = self.spread_offset();
        match self.next_instant(after.saturating_sub(offset)) {
            NEVER => NEVER,
            instant => instant.saturating_add(offset),
        }
    }

    /// The fire times from `from` on and before `until` (epoch ms), the first `limit` of them.
    #[must_use]
    pub fn fires(&self, from: i64, until: i64, limit: usize) -> Vec<i64> {
        let mut found = Vec::new();
        let mut at = self.next_after(from - 1);
        while at != NEVER && at < until && found.len() < limit {
            found.push(at);
            at = self.next_after(at);
        }
        found
    }

    /// Whether `at` (epoch ms) is one of its fire times.
    #[must_use]
    pub fn names(&self, at: i64) -> bool {
        self.next_after(at - 1) == at
    }

    /// The first instant from `at` (epoch ms) on that the schedule does not name, and that is no whole second: a run that
    /// someone requests must not take the instant of a fire that is not written yet. Nor that of one which a later
    /// definition names: cron, and people who name an instant, name whole seconds.
    #[must_use]
    pub fn unnamed_from(&self, mut at: i64) -> i64 {
        at = beside_whole_seconds(at);
        while self.names(at) {
            at = beside_whole_seconds(at + 1);
        }
        at
    }

    /// The fire time that follows a run which ended at `finished_at` (epoch ms), for a fixed delay; [`NEVER`]
    /// for every other trigger. Never before the first fire: what ended before the task was edited or started counts as
    /// ended then. In excluded days or hours it waits for their end, and before the validity
    /// window for its start; after the window there is none.
    #[must_use]
    pub fn next_after_end(&self, finished_at: i64) -> i64 {
        match self.timing {
            Timing::FixedDelay { delay_ms } => self.allowed(self.delayed(finished_at.max(self.anchor), delay_ms)),
            _ => NEVER,
        }
    }

    /// The fire time that follows the run of `fire_time`, as above. What ended so long before its fire time that the chain would go
    /// back, because the clock was set back, counts as ended then: the chain could meet an instant that it had before,
    /// whose row exists, and would end there.
    #[must_use]
    pub fn next_link(&self, fire_time: i64, finished_at: i64) -> i64 {
        let next = self.next_after_end(finished_at);
        if next > fire_time { next } else { self.next_after_end(fire_time) }
    }

    /// Where the link of a fixed delay goes that finds its instant taken: by a run that no schedule named, or by the chain
    /// itself before the clock was set back. [`NEVER`] for every other trigger.
    #[must_use]
    pub fn next_link_instead(&self, fire_time: i64) -> i64 {
        match self.timing {
            Timing::FixedDelay { .. } => self.allowed(fire_time.saturating_add(1)),
            _ => NEVER,
        }
    }

    /// When the fire of `fire_time` is due: up to `jitter_ms` (inclusive) later, always the same for the same
    /// seed and fire time.
    #[must_use]
    pub fn due_time(&self, fire_time: i64) -> i64 {
        fire_time.saturating_add(spread::jitter(self.seed, fire_time, self.jitter_ms))
    }

    /// What is added to every instant, ms.
    fn spread_offset(&self) -> i64 {
        match self.timing {
            Timing::Cron(_) | Timing::FixedRate { .. } | Timing::FixedDelay { .. } => {
                spread::offset(self.seed, self.spread_ms)
            }
            Timing::Once { .. } | Timing::None => 0,
        }
    }

    /// The schedule's own first instant strictly after `after`, before the spread.
    fn next_instant(&self, after: i64) -> i64 {
        let after = after.max(self.earliest().saturating_sub(1));
        let instant = match &self.timing {
            Timing::Cron(cron) => match &self.calendar {
                None => cron.next_after(after, self.zone, self.dst),
                Some(calendar) => cron.next_worked_after(after, self.zone, self.dst, calendar, self.calendar_rule),
            }
            .unwrap_or(NEVER),
            Timing::FixedRate { interval_ms } => {
                let row = self.row(*interval_ms);
                match &self.calendar {
                    None => row.next_after(after),
                    Some(calendar) => row.next_allowed_after(after, calendar, self.zone, self.end()),
                }
            }
            Timing::FixedDelay { delay_ms } => match self.allowed(self.delayed(self.anchor, *delay_ms)) {
                first if first > after => first,
                _ => NEVER,
            },
            Timing::Once { at } if *at > after => *at,
            Timing::Once { .. } | Timing::None => NEVER,
        };
        if instant < self.end() { instant } else { NEVER }
    }

    /// The instants of a fixed rate.
    fn row(&self, interval_ms: i64) -> Row {
        let interval_ms = interval_ms.max(1);
        let first =
            if self.earliest() > self.anchor { self.valid_from } else { self.anchor.saturating_add(interval_ms) };
        Row { first, interval_ms }
    }

    /// `delay_ms` after `from`, but not before the validity window.
    fn delayed(&self, from: i64, delay_ms: i64) -> i64 {
        from.saturating_add(delay_ms.max(0)).max(self.earliest())
    }

    /// The first instant at or after `at` that calendar and validity allow, or [`NEVER`].
    fn allowed(&self, at: i64) -> i64 {
        let allowed = match &self.calendar {
            None => at,
            Some(calendar) => {
                let every_instant = Row { first: at, interval_ms: 1 };
                every_instant.next_allowed_after(at.saturating_sub(1), calendar, self.zone, self.end())
            }
        };
        if allowed < self.end() { allowed } else { NEVER }
    }

    /// The first instant of the validity window.
    fn earliest(&self) -> i64 {
        if self.valid_from == 0 { i64::MIN } else { self.valid_from }
    }

    /// The first instant after the validity window.
    fn end(&self) -> i64 {
        if self.valid_until == 0 { NEVER } else { self.valid_until }
    }
}
