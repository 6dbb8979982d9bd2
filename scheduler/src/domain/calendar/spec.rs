//! A calendar as people write it, and what is wrong with it.

use chrono::{Datelike, NaiveDate, Weekday};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Calendar, DAY_WORDS, DAYS, MINUTE_WORDS, MINUTES};
use crate::domain::field_error::FieldError;
use crate::domain::refusal::FieldRefusal;

/// Most days that a calendar may list, `excluded_days` and `workdays` together.
pub const DAYS_MAX: usize = 2_000;

/// Most ranges of hours that a calendar may list.
pub const HOUR_RANGES_MAX: usize = 64;

/// Most characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// Of more errors than this in one field the rest is not listed.
const ERRORS_MAX: usize = 10;

/// Any leap year: every day of a year occurs in it.
const LEAP_YEAR: i32 = 2000;

/// What a calendar excludes, and the exceptions. An empty one excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Calendar)]
#[serde(default, deny_unknown_fields)]
pub struct CalendarSpec {
    /// Days of the week that are not working days: `"sat"`, `"sun"`.
    #[schema(required)]
    pub excluded_weekdays: Vec<String>,
    /// Days that are not working days: one of them (`"2026-10-01"`) or the same of every year (`"10-01"`).
    #[schema(required)]
    pub excluded_days: Vec<String>,
    /// Days that are working days although they are excluded above: make-up days, written as above.
    #[schema(required)]
    pub workdays: Vec<String>,
    /// Times of day at which nothing fires, from (inclusive) until (exclusive), local to the task's zone:
    /// `"12:00-13:30"`; one that ends before it starts continues past midnight: `"22:00-06:00"`.
    #[schema(required)]
    pub excluded_hours: Vec<String>,
    /// For people.
    #[schema(required)]
    pub description: String,
}

impl CalendarSpec {
    /// Makes it ready to be asked.
    ///
    /// # Errors
    /// Every field that is wrong, with what is allowed; also a calendar that leaves no working day or no hour.
    pub fn compile(&self, name: &str, version: i64) -> Result<Calendar, Vec<FieldError>> {
        let mut errors = Vec::new();
        self.check_bounds(&mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let excluded_weekdays = read("excluded_weekdays", &self.excluded_weekdays, weekday, &mut errors);
        let excluded_days = read("excluded_days", &self.excluded_days, day, &mut errors);
        let workdays = read("workdays", &self.workdays, day, &mut errors);
        let hour_ranges = read("excluded_hours", &self.excluded_hours, hours, &mut errors);
        let mut working = all_days();
        for weekday in excluded_weekdays {
            // 1970 started on a Thursday.
            let first = (i64::from(weekday.num_days_from_sunday()) + 3) % 7;
            (first..DAYS).step_by(7).for_each(|day| set(&mut working, day, false));
        }
        for (days, to) in [(excluded_days, false), (workdays, true)] {
            for day in days {
                day.each(|day| set(&mut working, day, to));
            }
        }
        let mut allowed = [0; MINUTE_WORDS];
        (0..MINUTES).for_each(|minute| allowed[minute / 64] |= 1 << (minute % 64));
        for (from, until) in &hour_ranges {
            let length = (until + MINUTES - from) % MINUTES;
            for minute in (*from..from + length).map(|minute| minute % MINUTES) {
                allowed[minute / 64] &= !(1 << (minute % 64));
            }
        }
        if errors.is_empty() && working.iter().all(|word| *word == 0) {
            let field = if self.excluded_days.is_empty() { "excluded_weekdays" } else { "excluded_days" };
            errors.push(FieldError::new(field, FieldRefusal::NoDayLeft));
        }
        if errors.is_empty() && allowed.iter().all(|word| *word == 0) {
            errors.push(FieldError::new("excluded_hours", FieldRefusal::NoMinuteLeft));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let excludes_hours = !hour_ranges.is_empty();
        Ok(Calendar { name: name.to_owned(), version, working, allowed, excludes_hours })
    }

    fn check_bounds(&self, errors: &mut Vec<FieldError>) {
        let days = self.excluded_days.len() + self.workdays.len();
        for (field, count, most) in [
            ("excluded_weekdays", self.excluded_weekdays.len(), 7),
            ("excluded_days", days, DAYS_MAX),
            ("excluded_hours", self.excluded_hours.len(), HOUR_RANGES_MAX),
        ] {
            if count > most {
                let (given, most) = (count as i64, most as i64);
                errors.push(FieldError::new(field, FieldRefusal::TooManyGiven { given, most }));
            }
        }
        if self.description.chars().count() > DESCRIPTION_CHARS_MAX {
            errors.push(FieldError::too_long("description", DESCRIPTION_CHARS_MAX));
        }
    }
}

/// One day, or the same day of every year.
#[derive(Clone, Copy)]
enum Day {
    /// In days since 1970-01-01.
    Once(i64),
    /// Month and day.
    Yearly(u32, u32),
}

impl Day {
    fn each(self, mut then: impl FnMut(i64)) {
        match self {
            Self::Once(day) => then(day),
            Self::Yearly(month, day) => (crate::domain::cron::FIRST_YEAR..=crate::domain::cron::LAST_YEAR)
                .filter_map(|year| NaiveDate::from_ymd_opt(year, month, day))
                .for_each(|date| then(date.to_epoch_days().into())),
        }
    }
}

/// Why an entry is refused, made of the entry.
type Wrong = fn(String) -> FieldRefusal;

/// Every entry of a list that can be read; what is wrong with the others goes to `errors`.
fn read<T>(
    field: &str,
    list: &[String],
    one: impl Fn(&str) -> Result<T, Wrong>,
    errors: &mut Vec<FieldError>,
) -> Vec<T> {
    let mut values = Vec::with_capacity(list.len());
    let mut wrong = 0;
    for (place, text) in list.iter().enumerate() {
        match one(text) {
            Ok(value) => values.push(value),
            Err(refusal) if wrong < ERRORS_MAX => {
                let given = text.chars().take(40).collect();
                errors.push(FieldError::new(format!("{field}[{place}]"), refusal(given)));
                wrong += 1;
            }
            Err(_) => wrong += 1,
        }
    }
    if wrong > ERRORS_MAX {
        errors.push(FieldError::new(field, FieldRefusal::MoreWrong { count: (wrong - ERRORS_MAX) as i64 }));
    }
    values
}

fn weekday(text: &str) -> Result<Weekday, Wrong> {
    let wrong: Wrong = |given| FieldRefusal::WrongWeekday { given };
    if text.len() == 3 { text.parse().map_err(|_| wrong) } else { Err(wrong) }
}

fn day(text: &str) -> Result<Day, Wrong> {
    let wrong: Wrong = |given| FieldRefusal::WrongDay { given };
    let date = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).ok_or(wrong);
    let parts: Vec<_> = text.split('-').collect();
    match parts[..] {
        [month, day] => {
            let date = date(LEAP_YEAR, number(month, 2).ok_or(wrong)?, number(day, 2).ok_or(wrong)?)?;
            Ok(Day::Yearly(date.month(), date.day()))
        }
        [year, month, day] => {
            let year = number(year, 4).ok_or(wrong)?.cast_signed();
            let date = date(year, number(month, 2).ok_or(wrong)?, number(day, 2).ok_or(wrong)?)?;
            let day = i64::from(date.to_epoch_days());
            if (0..DAYS).contains(&day) { Ok(Day::Once(day)) } else { Err(wrong) }
        }
        _ => Err(wrong),
    }
}

/// From and until, in minutes.
fn hours(text: &str) -> Result<(usize, usize), Wrong> {
    let wrong: Wrong = |given| FieldRefusal::WrongHours { given };
    let (from, until) = text.split_once('-').ok_or(wrong)?;
    let (from, until) = (minutes(from).ok_or(wrong)?, minutes(until).ok_or(wrong)?);
    if from == until || from == MINUTES {
        return Err(wrong);
    }
    // A whole day would look like an empty range below.
    if until - until.min(from) == MINUTES {
        return Err(|given| FieldRefusal::WholeDay { given });
    }
    Ok((from, until))
}

/// A time of day up to 24:00, in minutes.
fn minutes(text: &str) -> Option<usize> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (number(hour, 2)?, number(minute, 2)?);
    let minutes = (hour * 60 + minute) as usize;
    (minute < 60 && minutes <= MINUTES).then_some(minutes)
}

/// Exactly `digits` digits as a number.
fn number(text: &str, digits: usize) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Every day from 1970 to 2199.
fn all_days() -> Box<[u64]> {
    let mut days = vec![0; DAY_WORDS].into_boxed_slice();
    (0..DAYS).for_each(|day| set(&mut days, day, true));
    days
}

fn set(days: &mut [u64], day: i64, to: bool) {
    let (word, bit) = (day as usize / 64, 1 << (day % 64));
    if to { days[word] |= bit } else { days[word] &= !bit }
}
