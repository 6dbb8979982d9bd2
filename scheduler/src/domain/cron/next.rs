//! The next local time that matches, by walking bits; zones are none of its business.

use super::{CronSchedule, Days, FIRST_YEAR};

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
pub(super) const DAY: i64 = 86_400;

/// The last day of [`super::LAST_YEAR`], in days since 1970-01-01.
pub(super) const LAST_DAY: i64 = 84_005;

impl CronSchedule {
    /// The first matching local time at or after `from`, both in seconds since 1970-01-01T00:00:00 on the
    /// wall clock; `None` if none is left up to [`super::LAST_YEAR`].
    pub(in crate::domain) fn next_local(&self, from: i64) -> Option<i64> {
        let from = from.max(0);
        let (today, second) = (from.div_euclid(DAY), from.rem_euclid(DAY));
        let mut day = self.next_day(today, |_| u32::MAX)?;
        if day == today {
            if let Some(time) = self.next_time(second) {
                return Some(day * DAY + time);
            }
            day = self.next_day(today + 1, |_| u32::MAX)?;
        }
        Some(day * DAY + self.next_time(0)?)
    }

    /// The first matching time of a day at or after `from`, in seconds.
    #[inline]
    pub(super) fn next_time(&self, from: i64) -> Option<i64> {
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

    /// The first matching day at or after `from`, in days since 1970-01-01. Only days count that are also in
    /// the set which `among` names for the month that starts on a given day; bit n stands for day n.
    #[inline]
    pub(super) fn next_day(&self, from: i64, among: impl Fn(i64) -> u32) -> Option<i64> {
        if from > LAST_DAY {
            return None;
        }
        let (mut year, mut month, mut day) = date(from);
        loop {
            let next = self.next_year(year)?;
            if next > year {
                (year, month, day) = (next, 1, 1);
            }
            while let Some(next) = next_bit(self.months.into(), month) {
                if next > month {
                    (month, day) = (next, 1);
                }
                let first = first_of_month(year, month);
                let days = self.days.of(first, length_of_month(year, month)) & among(first) & (u32::MAX << day);
                if days != 0 {
                    return Some(first + i64::from(days.trailing_zeros()) - 1);
                }
                (month, day) = (month + 1, 1);
            }
            (year, month, day) = (year + 1, 1, 1);
        }
    }

    /// The first matching year at or after `from`, which is not before [`FIRST_YEAR`].
    #[inline]
    fn next_year(&self, from: i64) -> Option<i64> {
        let bit = from - i64::from(FIRST_YEAR);
        let (first, bit) = (bit / 64, bit % 64);
        if self.years.get(first as usize)? >> bit & 1 == 1 {
            return Some(from);
        }
        for (word, years) in (0..).zip(self.years).skip(first as usize) {
            if let Some(bit) = next_bit(years, if word == first { bit } else { 0 }) {
                return Some(i64::from(FIRST_YEAR) + word * 64 + bit);
            }
        }
        None
    }
}

/// Year, month and day of a day that is given in days since 1970-01-01, and is not before it.
#[inline]
fn date(day: i64) -> (i64, i64, i64) {
    // The civil calendar repeats after 400 years of 146,097 days; its years are counted here from March, so
    // that the leap day comes last.
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (era * 400 + year, month, day)
}

/// The first day of a month, in days since 1970-01-01.
#[inline]
fn first_of_month(year: i64, month: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year / 400, year % 400);
    era * 146_097 + 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 - 719_468
}

/// How many days a month has.
#[inline]
fn length_of_month(year: i64, month: i64) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 30,
    }
}

impl Days {
    /// The days that match in the month of `length` days that starts on `first`, in days since 1970-01-01; bit
    /// n stands for day n.
    #[inline]
    fn of(self, first: i64, length: u32) -> u32 {
        let all = u32::MAX >> (31 - length) & !1;
        let bit = |day: Option<u32>| day.map_or(0, |day| 1 << day);
        // Counted from 0 = Sunday; 1970 started on a Thursday.
        let starts_on = || ((first + 4) % 7) as u32;
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
#[inline]
fn next_bit(bits: u64, from: i64) -> Option<i64> {
    let rest = bits & u64::MAX.checked_shl(u32::try_from(from).ok()?)?;
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}
