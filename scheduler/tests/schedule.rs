//! Schedules and calendars: each trigger by example, daylight saving against Python's zoneinfo, calendars against a
//! reference that goes day by day, and what must hold for any schedule.

#![allow(clippy::unwrap_used)] // a test may fail

#[path = "schedule/calendars.rs"]
mod calendars;
#[path = "schedule/counts.rs"]
mod counts;
#[path = "schedule/daylight_saving.rs"]
mod daylight_saving;
#[path = "schedule/previews.rs"]
mod previews;
#[path = "schedule/properties.rs"]
mod properties;
#[path = "schedule/triggers.rs"]
mod triggers;

use std::sync::Arc;

use carillon::domain::calendar::{Calendar, CalendarSpec};
use carillon::domain::cron::CronSchedule;
use carillon::domain::schedule::{NEVER, Schedule, Timing};
use chrono::{DateTime, SecondsFormat, TimeZone};
use chrono_tz::Tz;

fn cron(expression: &str, zone: Tz) -> Schedule {
    let parsed = CronSchedule::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    Schedule { timing: Timing::Cron(Box::new(parsed)), zone, ..Schedule::none() }
}

fn every(interval_ms: i64, anchor: i64) -> Schedule {
    Schedule { timing: Timing::FixedRate { interval_ms }, anchor, ..Schedule::none() }
}

/// An RFC 3339 time as epoch ms.
fn ms(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
}

fn show(zone: Tz, instant: i64) -> String {
    if instant == NEVER {
        return "never".into();
    }
    let instant = zone.timestamp_millis_opt(instant).unwrap();
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The fires after `after` up to NEVER, `count` at most.
fn fires(schedule: &Schedule, after: i64, count: usize) -> Vec<i64> {
    std::iter::successors(Some(schedule.next_after(after)), |at| Some(schedule.next_after(*at)))
        .take_while(|at| *at != NEVER)
        .take(count)
        .collect()
}

/// The fires after an RFC 3339 time as local times.
fn shown(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    fires(schedule, ms(after), count).into_iter().map(|at| show(schedule.zone, at)).collect()
}

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// A calendar without weekdays, days, make-up days and hours.
fn spec(weekdays: &[&str], days: &[&str], workdays: &[&str], hours: &[&str]) -> CalendarSpec {
    CalendarSpec {
        excluded_weekdays: list(weekdays),
        excluded_days: list(days),
        workdays: list(workdays),
        excluded_hours: list(hours),
        description: String::new(),
    }
}

fn compiled(spec: &CalendarSpec) -> Arc<Calendar> {
    Arc::new(spec.compile("test", 1).unwrap_or_else(|errors| panic!("{errors:?}")))
}
