//! The next local time that matches, by walking bits; zones are none of its business.

use chrono::{Datelike, NaiveDate};

use super::{CronSchedule, Days, FIRST_YEAR, LAST_YEAR};

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;

impl CronSchedule {
    /// The first matching local time at or after `from`, both in seconds since 1970-01-01T00:00:00 on the
    /// wall clock; `None` if none is left up to [`LAST_YEAR`].
    pub(super) fn next_local(&self, from: i64) -> Option<i64> {
        let from = from.max(0);
        let (today, second) = (from.div_euclid(DAY), from.rem_euclid(DAY));
        let mut day = self.next_day(today)?;
        if day == today {
            if let Some(time) = self.next_time(second) {
                return Some(day * DAY + time);
            }
            day = self.next_day(today + 1)?;
        }
        Some(day * DAY + self.next_time(0)?)
    }

    /// The first matching time of a day at or after `from`, in seconds.
    fn next_time(&self, from: i64) -> Option<i64> {
        let (hour, minute, second) = (from / HOUR, from / MINUTE % 60, from % MINUTE);
        let first_second = i64::from(self.seconds.trailing_zeros());
        let first_minute = i64::from(self.minutes.trailing_zeros());
        if self.hours >> hour & 1 == 1 {
            let begun = hour * HOUR;
            if self.minutes >> minute & 1 == 1
                && let Some(second) = next_bit(self.seconds, second)
            {
                return Some(begun + minute * MINUTE + second);
            }
            if let Some(minute) = next_bit(self.minutes, minute + 1) {
                return Some(begun + minute * MINUTE + first_second);
            }
        }
        let hour = next_bit(self.hours, hour + 1)?;
        Some(hour * HOUR + first_minute * MINUTE + first_second)
    }

    /// The first matching day at or after `from`, in days since 1970-01-01.
    fn next_day(&self, from: i64) -> Option<i64> {
        let from = NaiveDate::from_epoch_days(i32::try_from(from).ok()?)?;
        let (mut year, mut month, mut day) = (from.year(), from.month(), from.day());
        loop {
            let next = self.next_year(year)?;
            if next > year {
                (year, month, day) = (next, 1, 1);
            }
            while month <= 12 {
                let Some(next) = next_bit(self.months.into(), month.into()) else {
                    break;
                };
                let next = u32::try_from(next).ok()?;
                if next > month {
                    (month, day) = (next, 1);
                }
                let first = NaiveDate::from_ymd_opt(year, month, 1)?;
                let days = self.days.of(first) & (u32::MAX << day);
                if days != 0 {
                    let day = i64::from(days.trailing_zeros());
                    return Some(i64::from(first.to_epoch_days()) + day - 1);
                }
                (month, day) = (month + 1, 1);
            }
            (year, month, day) = (year + 1, 1, 1);
        }
    }

    /// The first matching year at or after `from`, which is not before [`FIRST_YEAR`].
    fn next_year(&self, from: i32) -> Option<i32> {
        (from..=LAST_YEAR).find(|year| {
            let bit = year.abs_diff(FIRST_YEAR);
            self.years[bit as usize / 64] >> (bit % 64) & 1 == 1
        })
    }
}

impl Days {
    /// The days that match in the month that starts on `first`; bit n stands for day n.
    fn of(self, first: NaiveDate) -> u32 {
        let length = u32::from(first.num_days_in_month());
        let all = u32::MAX >> (31 - length) & !1;
        let bit = |day: Option<u32>| day.map_or(0, |day| 1 << day);
        // Counted from 0 = Sunday.
        let starts_on = || first.weekday().num_days_from_sunday();
        let days = match self {
            Self::OfMonth(days) => days,
            Self::Last { back } => bit(length.checked_sub(back.into())),
            Self::LastWorking { back } => {
                let day = length.checked_sub(back.into());
                bit(day.and_then(|day| nearest_working(day, length, starts_on())))
            }
            Self::NearestWorking(day) => bit(nearest_working(day.into(), length, starts_on())),
            Self::OfWeek(days) => weekly(days, starts_on()),
            Self::LastOfWeek(day) => {
                let days = weekly(1 << day, starts_on()) & all;
                1 << days.ilog2()
            }
            Self::NthOfWeek { day, nth } => {
                let first = 1 + (u32::from(day) + 6 - starts_on()) % 7;
                bit(Some(first + 7 * (u32::from(nth) - 1)).filter(|day| *day <= length))
            }
        };
        days & all
    }
}

/// The working day nearest to `day` in the same month, which has `length` days and starts on the weekday
/// `starts_on` (0 = Sunday); `None` if the month has no such day.
fn nearest_working(day: u32, length: u32, starts_on: u32) -> Option<u32> {
    if day == 0 || day > length {
        return None;
    }
    Some(match (starts_on + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    })
}

/// The days of a month that starts on the weekday `starts_on` (0 = Sunday) which fall on the weekdays `days`
/// (bit 1 = Sunday). Days past the month's end are in it, too.
fn weekly(days: u8, starts_on: u32) -> u32 {
    // The week as it runs from the first of the month, then five times over, from bit 1 on.
    let week = u64::from(days >> 1);
    let turned = (week | week << 7) >> starts_on & 0x7f;
    let weeks = (turned * 0b1_0000001_0000001_0000001_0000001) << 1;
    u32::try_from(weeks & u64::from(u32::MAX)).unwrap_or_default()
}

/// The lowest bit of `bits` that is set, from bit `from` on.
fn next_bit(bits: u64, from: i64) -> Option<i64> {
    let rest = bits & u64::MAX.checked_shl(u32::try_from(from).ok()?)?;
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}
