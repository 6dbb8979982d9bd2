//! Calendars: which days are working days, and which hours of a day are left out.
//!
//! A tenant keeps calendars under names and in versions; a task names one and says by a [`CalendarRule`] what
//! becomes of its fires on other days. [`CalendarSpec`] is what people write; [`Calendar`] is the same as sets of
//! bits, one for each day from 1970 to 2199 and one for each minute of a day, so that every question is answered
//! in a few nanoseconds. Days and hours are local to the zone of the task.

mod spec;

use std::fmt;

use super::choice::choice;

pub use spec::{CalendarSpec, DAYS_MAX, DESCRIPTION_CHARS_MAX, HOUR_RANGES_MAX};

/// In seconds.
const DAY: i64 = 86_400;

/// 1970-01-01 to 2199-12-31.
const DAYS: i64 = 84_006;

/// Minutes of a day.
const MINUTES: usize = 1_440;

/// Words of 64 days; one more than needed, so that a month can always be read from two words.
const DAY_WORDS: usize = DAYS as usize / 64 + 2;

const MINUTE_WORDS: usize = MINUTES.div_ceil(64);

/// A fire is moved by so many days at most; one that would have to move further is left out.
pub const MOVE_DAYS_MAX: i64 = 400;

choice! {
    /// What becomes of a fire on a day that is not a working day.
    CalendarRule {
        /// It is skipped.
        Skip,
        /// It moves to the next working day, at the same local time; for cron schedules only.
        Next,
        /// It moves to the previous working day, at the same local time; for cron schedules only.
        Previous,
    }
}

/// A version of a calendar, ready to be asked. No working day lies before 1970 or after 2199.
#[derive(Clone, PartialEq, Eq)]
pub struct Calendar {
    /// Its name within the tenant.
    pub name: String,
    /// Which version it is, from 1.
    pub version: i64,
    /// Bit n stands for day n since 1970-01-01 and is set for working days.
    working: Box<[u64]>,
    /// Bit n stands for minute n of a day and is set for those that are not excluded.
    allowed: [u64; MINUTE_WORDS],
    /// Whether any minute is excluded.
    excludes_hours: bool,
}

impl Calendar {
    /// Whether `day`, in days since 1970-01-01, is a working day.
    #[must_use]
    pub fn is_working(&self, day: i64) -> bool {
        (0..DAYS).contains(&day) && self.working[day as usize / 64] >> (day % 64) & 1 == 1
    }

    /// The first working day at or after `day`, in days since 1970-01-01.
    #[must_use]
    pub fn next_working(&self, day: i64) -> Option<i64> {
        let day = day.max(0);
        let first = (day < DAYS).then_some(day as usize / 64)?;
        let mut mask = u64::MAX << (day % 64);
        for (word, bits) in self.working.iter().enumerate().skip(first) {
            let bits = bits & mask;
            if bits != 0 {
                return Some(word as i64 * 64 + i64::from(bits.trailing_zeros()));
            }
            mask = u64::MAX;
        }
        None
    }

    /// The last working day at or before `day`, in days since 1970-01-01.
    #[must_use]
    pub fn previous_working(&self, day: i64) -> Option<i64> {
        let day = day.min(DAYS - 1);
        let last = usize::try_from(day).ok()? / 64;
        let mut mask = u64::MAX >> (63 - day % 64);
        for (word, bits) in self.working.iter().enumerate().take(last + 1).rev() {
            let bits = bits & mask;
            if bits != 0 {
                return Some(word as i64 * 64 + i64::from(bits.ilog2()));
            }
            mask = u64::MAX;
        }
        None
    }

    /// Where a fire of `day` moves by `rule`: to the day itself if it is a working day. `None` if it is left out.
    #[must_use]
    pub fn moved(&self, rule: CalendarRule, day: i64) -> Option<i64> {
        let to = match rule {
            CalendarRule::Skip => return self.is_working(day).then_some(day),
            CalendarRule::Next => self.next_working(day)?,
            CalendarRule::Previous => self.previous_working(day)?,
        };
        (to.abs_diff(day) <= MOVE_DAYS_MAX.unsigned_abs()).then_some(to)
    }

    /// The working days among the 31 from `first` on, in days since 1970-01-01; bit n stands for the n-th.
    pub(super) fn month(&self, first: i64) -> u32 {
        let (word, bit) = ((first / 64) as usize, first % 64);
        let days = match (self.working.get(word), self.working.get(word + 1)) {
            (Some(low), Some(high)) => (u128::from(*high) << 64 | u128::from(*low)) >> bit,
            _ => 0,
        };
        (days << 1) as u32
    }

    /// Whether any hours are excluded.
    #[must_use]
    pub fn excludes_hours(&self) -> bool {
        self.excludes_hours
    }

    /// The first time of day at or after `time` that is not excluded, both in seconds, 0..86400.
    #[must_use]
    pub fn next_allowed_time(&self, time: i64) -> Option<i64> {
        if !self.excludes_hours {
            return (0..DAY).contains(&time).then_some(time);
        }
        let minute = usize::try_from(time / 60).ok().filter(|minute| *minute < MINUTES)?;
        let mut mask = u64::MAX << (minute % 64);
        for (word, bits) in self.allowed.iter().enumerate().skip(minute / 64) {
            let bits = bits & mask;
            if bits != 0 {
                let next = word * 64 + bits.trailing_zeros() as usize;
                return Some(if next == minute { time } else { next as i64 * 60 });
            }
            mask = u64::MAX;
        }
        None
    }

    /// Whether a local time, in seconds since 1970-01-01T00:00:00 on the wall clock, is on a working day and
    /// not in excluded hours.
    #[must_use]
    pub fn allows(&self, local: i64) -> bool {
        self.is_working(local.div_euclid(DAY)) && self.allows_time(local.rem_euclid(DAY))
    }

    /// Whether a time of day, in seconds, is not in excluded hours.
    #[must_use]
    pub fn allows_time(&self, time: i64) -> bool {
        !self.excludes_hours || self.next_allowed_time(time) == Some(time)
    }

    /// The first local time at or after `local` that is on a working day and not in excluded hours, both in
    /// seconds since 1970-01-01T00:00:00 on the wall clock.
    #[must_use]
    pub fn next_allowed(&self, local: i64) -> Option<i64> {
        let today = local.div_euclid(DAY);
        if self.is_working(today)
            && let Some(time) = self.next_allowed_time(local.rem_euclid(DAY))
        {
            return Some(today * DAY + time);
        }
        let day = self.next_working(today.saturating_add(1))?;
        Some(day * DAY + self.next_allowed_time(0)?)
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calendar").field("name", &self.name).field("version", &self.version).finish_non_exhaustive()
    }
}
