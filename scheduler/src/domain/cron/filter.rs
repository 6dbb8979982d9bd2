//! Which local times of a schedule count: all of them, or those a calendar leaves.
//!
//! The search is compiled once for each kind of filter, so that a schedule without a calendar pays nothing.

use super::CronSchedule;
use super::next::DAY;
use crate::domain::calendar::{Calendar, CalendarRule, MOVE_DAYS_MAX};

/// Which local times count. All times are in seconds since 1970-01-01T00:00:00 on the wall clock.
pub(super) trait Filter {
    /// The first one at or after `from`.
    fn next_local(&self, cron: &CronSchedule, from: i64) -> Option<i64>;

    /// Whether a fire that a gap has moved to `local` may fire there.
    fn allows(&self, local: i64) -> bool;
}

/// All that the schedule names.
#[derive(Clone, Copy)]
pub(super) struct Unfiltered;

impl Filter for Unfiltered {
    #[inline]
    fn next_local(&self, cron: &CronSchedule, from: i64) -> Option<i64> {
        cron.next_local(from)
    }

    #[inline]
    fn allows(&self, _local: i64) -> bool {
        true
    }
}

/// Those that a calendar leaves, and those it has moved.
#[derive(Clone, Copy)]
pub(super) struct Worked<'a> {
    pub calendar: &'a Calendar,
    pub rule: CalendarRule,
}

impl Filter for Worked<'_> {
    fn next_local(&self, cron: &CronSchedule, from: i64) -> Option<i64> {
        let from = from.max(0);
        let (today, second) = (from.div_euclid(DAY), from.rem_euclid(DAY));
        // Every day has the same times, so a day without one left is followed by one that has all of them.
        let first = self.next_time(cron, 0)?;
        let mut day = self.next_day(cron, today)?;
        if day == today {
            if let Some(time) = self.next_time(cron, second) {
                return Some(day * DAY + time);
            }
            day = self.next_day(cron, today + 1)?;
        }
        Some(day * DAY + first)
    }

    fn allows(&self, local: i64) -> bool {
        self.calendar.allows(local)
    }
}

impl Worked<'_> {
    /// The first time of day at or after `from` that is named and not excluded, in seconds.
    fn next_time(self, cron: &CronSchedule, mut from: i64) -> Option<i64> {
        // Each turn passes one excluded stretch of the day, of which there are few.
        loop {
            let time = cron.next_time(from)?;
            from = self.calendar.next_allowed_time(time)?;
            if from == time {
                return Some(time);
            }
        }
    }

    /// The first working day at or after `from` that has fires, its own or moved ones, in days since
    /// 1970-01-01.
    fn next_day(self, cron: &CronSchedule, from: i64) -> Option<i64> {
        let calendar = self.calendar;
        match self.rule {
            CalendarRule::Skip => cron.next_day(from, |first| calendar.month(first)),
            CalendarRule::Next => {
                // All that is named after the last working day before `from` moves to `from` or later, and
                // what is named earlier never moves past what is named later.
                let mut named = calendar.previous_working(from - 1).map_or(0, |day| day + 1);
                loop {
                    named = cron.next_day(named, |_| u32::MAX)?;
                    if let Some(day) = calendar.moved(self.rule, named) {
                        return Some(day);
                    }
                    named = calendar.next_working(named)? - MOVE_DAYS_MAX;
                }
            }
            CalendarRule::Previous => {
                let mut working = calendar.next_working(from)?;
                loop {
                    let named = cron.next_day(working, |_| u32::MAX)?;
                    if let Some(day) = calendar.moved(self.rule, named) {
                        return Some(day);
                    }
                    working = calendar.next_working(named)?;
                }
            }
        }
    }
}
