//! A second implementation, as plain as possible: it tries every second of the wall clock and asks chrono
//! which instants that is. Nothing here is shared with the module under test.

use std::collections::BTreeSet;

use carillon::domain::cron::{DstPolicy, Gap, Overlap};
use chrono::{Datelike, LocalResult, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;

/// Whether `value` is in a list of `*`, `*/n`, `a`, `a/n`, `a-b` and `a-b/n`, all numbers.
fn in_list(list: &str, value: u32, (min, max): (u32, u32)) -> bool {
    let number = |text: &str| text.parse::<u32>().unwrap();
    list.split(',').any(|element| {
        let (range, step) = element.split_once('/').map_or((element, None), |(r, s)| (r, Some(number(s))));
        let (mut at, end) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((a, b)) => (number(a), number(b)),
            None if step.is_some() => (number(range), max),
            None => (number(range), number(range)),
        };
        let end = if end < at { end + max + 1 - min } else { end };
        while at <= end {
            let wrapped = if at > max { at - max - 1 + min } else { at };
            if wrapped == value {
                return true;
            }
            at += step.unwrap_or(1);
        }
        false
    })
}

/// The working day nearest to `date` in its month, found by trying the days around it.
fn nearest_working(date: NaiveDate) -> NaiveDate {
    [0, -1, 1, -2, 2]
        .into_iter()
        .map(|days| date + TimeDelta::days(days))
        .find(|day| day.month() == date.month() && day.weekday().number_from_monday() <= 5)
        .unwrap()
}

fn day_matches(day_of_month: &str, day_of_week: &str, date: NaiveDate) -> bool {
    let last = u32::from(date.num_days_in_month());
    let weekday = date.weekday().number_from_sunday();
    if day_of_month != "?" {
        let number = |text: &str| text.parse::<u32>().unwrap();
        let Some(plain) = day_of_month.strip_suffix('W') else {
            return match day_of_month.strip_prefix('L') {
                Some("") => date.day() == last,
                Some(back) => date.day() + number(&back[1..]) == last,
                None => in_list(day_of_month, date.day(), (1, 31)),
            };
        };
        let day = match plain.strip_prefix('L') {
            Some("") => Some(last),
            Some(back) => last.checked_sub(number(&back[1..])),
            None => Some(number(plain)),
        };
        let target = day.and_then(|day| date.with_day(day));
        return target.is_some_and(|target| nearest_working(target) == date);
    }
    if let Some((day, nth)) = day_of_week.split_once('#') {
        return weekday.to_string() == day && ((date.day() - 1) / 7 + 1).to_string() == nth;
    }
    match day_of_week.strip_suffix('L') {
        Some("") => weekday == 7,
        Some(day) => weekday.to_string() == day && date.day() + 7 > last,
        None => in_list(day_of_week, weekday, (1, 7)),
    }
}

/// The fires whose local time is within `days` days from the start of `first`.
pub fn fires(expression: &str, fixed: bool, zone: Tz, first: NaiveDate, days: usize, dst: DstPolicy) -> BTreeSet<i64> {
    let field: Vec<_> = expression.split(' ').collect();
    let members = |field: &str, max| -> Vec<u32> { (0..=max).filter(|n| in_list(field, *n, (0, max))).collect() };
    let (seconds, minutes, hours) = (members(field[0], 59), members(field[1], 59), members(field[2], 23));
    let mut fires = BTreeSet::new();
    for date in first.iter_days().take(days) {
        let year = in_list(field.get(6).unwrap_or(&"*"), date.year().unsigned_abs(), (1970, 2199));
        if !year || !in_list(field[4], date.month(), (1, 12)) || !day_matches(field[3], field[5], date) {
            continue;
        }
        for (hour, minute) in hours.iter().flat_map(|h| minutes.iter().map(move |m| (*h, *m))) {
            for second in &seconds {
                fires.extend(instants(date.and_hms_opt(hour, minute, *second).unwrap(), fixed, zone, dst));
            }
        }
    }
    fires
}

/// The instants at which a match at the local time `local` fires.
pub fn instants(local: NaiveDateTime, fixed: bool, zone: Tz, dst: DstPolicy) -> Vec<i64> {
    let resolved = match zone.from_local_datetime(&local) {
        LocalResult::Single(one) => vec![one],
        LocalResult::Ambiguous(first, second) => match dst.overlap {
            Overlap::Auto if fixed => vec![first],
            Overlap::First => vec![first],
            Overlap::Second => vec![second],
            Overlap::Auto | Overlap::Both => vec![first, second],
        },
        LocalResult::None => match dst.gap {
            Gap::Auto if !fixed => vec![],
            Gap::Skip => vec![],
            Gap::Auto | Gap::After => gap_end(local, zone).into_iter().collect(),
        },
    };
    resolved.into_iter().map(|at| at.timestamp_millis()).collect()
}

/// The end of the gap that `local` is in, found minute by minute; none if the gap takes the whole day.
fn gap_end(local: NaiveDateTime, zone: Tz) -> Option<chrono::DateTime<Tz>> {
    let mut at = local.with_second(0).unwrap();
    let exists = |at: NaiveDateTime| zone.from_local_datetime(&at).earliest();
    if (0..1440).all(|minute| exists(local.date().and_hms_opt(minute / 60, minute % 60, 0).unwrap()).is_none()) {
        return None;
    }
    loop {
        at += TimeDelta::minutes(1);
        if let Some(end) = exists(at) {
            return Some(end);
        }
    }
}
