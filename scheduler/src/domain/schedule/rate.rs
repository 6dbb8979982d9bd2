//! Evenly spaced instants, and which of them a calendar leaves.

use chrono_tz::Tz;

use crate::domain::calendar::Calendar;
use crate::domain::cron::Stretch;

/// The fire time of what does not fire (again).
pub const NEVER: i64 = i64::MAX;

/// In milliseconds.
const DAY: i64 = 86_400_000;

/// After so many excluded instants in one stretch of a zone's time it is looked at whether any can be allowed.
const PATIENCE: u32 = 100;

/// A row that comes across so many excluded stretches in a row has no further instant. With intervals of whole
/// seconds the end of the calendar (2199) comes first.
const JUMPS_MAX: u32 = 1_000_000;

/// `first`, `first + interval_ms`, and so on; all in milliseconds.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub first: i64,
    /// From 1.
    pub interval_ms: i64,
}

impl Row {
    /// The first instant strictly after `after`, or [`NEVER`].
    pub(super) fn next_after(self, after: i64) -> i64 {
        if after < self.first {
            return self.first;
        }
        let next = || {
            let steps = after.checked_sub(self.first)? / self.interval_ms;
            steps.checked_add(1)?.checked_mul(self.interval_ms)?.checked_add(self.first)
        };
        next().unwrap_or(NEVER)
    }

    /// The first instant strictly after `after` and before `end` that `calendar` allows in `zone`, or [`NEVER`].
    /// It jumps from the start of an excluded stretch to its end, however many instants lie in it.
    pub(super) fn next_allowed_after(self, after: i64, calendar: &Calendar, zone: Tz, end: i64) -> i64 {
        let mut at = self.next_after(after);
        let mut stretch = Stretch::at(zone, at.div_euclid(1000));
        let mut excluded = 0;
        for _ in 0..JUMPS_MAX {
            if at >= end {
                return NEVER;
            }
            let second = at.div_euclid(1000);
            if second >= stretch.end() {
                stretch = Stretch::at(zone, second);
                excluded = 0;
            }
            let local = second + stretch.offset();
            let resume = match calendar.next_allowed(local) {
                None => return NEVER,
                Some(allowed) if allowed == local => return at,
                Some(allowed) => (allowed - stretch.offset()).min(stretch.end()),
            };
            excluded += 1;
            let hopeless = excluded == PATIENCE && !self.reaches_allowed_time(at, calendar, stretch.offset());
            let resume = if hopeless { stretch.end() } else { resume };
            let resume = resume.saturating_mul(1000);
            // One step is often enough, and cheaper than a division.
            let step = at.saturating_add(self.interval_ms);
            at = if step >= resume { step } else { self.next_after(resume - 1) };
        }
        NEVER
    }

    /// Whether some instant of the row, `at` being one of them, can have an allowed time of day while the offset
    /// stays as it is.
    fn reaches_allowed_time(self, at: i64, calendar: &Calendar, offset: i64) -> bool {
        // The times of day that the row comes to, sooner or later, are this far apart.
        let apart = greatest_common_divisor(self.interval_ms, DAY);
        if apart < 60_000 {
            return true; // what is allowed is at least a minute long
        }
        let first = (at + offset * 1000).rem_euclid(apart);
        (0..DAY / apart).any(|n| calendar.allows_time((first + n * apart) / 1000))
    }
}

fn greatest_common_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
