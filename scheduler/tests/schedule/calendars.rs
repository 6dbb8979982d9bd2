//! Calendars: what is refused, what the rules mean, and both against a reference that goes day by day.

use std::collections::BTreeSet;

use carillon::domain::calendar::{CalendarRule, CalendarSpec};
use carillon::domain::cron::{DstPolicy, Gap, Overlap};
use carillon::domain::schedule::{NEVER, Schedule};
use chrono::{Datelike, NaiveDate, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{compiled, cron, fires, list, ms, shown, spec};
use crate::cron::naive;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

#[test]
fn each_bad_field_is_refused_by_name() {
    let refused = |spec: &CalendarSpec| -> Vec<String> {
        spec.compile("x", 1).unwrap_err().into_iter().map(|error| error.field).collect()
    };
    let wrong = spec(
        &["sat", "caturday", "Sunday"],
        &["10-01", "2026-13-01", "2023-02-29", "2026-1-1", "1969-12-31", "2200-01-01", "+026-01-01", "", "02-30"],
        &["2026/01/01"],
        &[
            "22:00-06:00",
            "25:00-26:00",
            "08:00",
            "08:00-08:00",
            "24:00-08:00",
            "0:00-8:00",
            "00:00-24:00",
            "08:60-09:00",
        ],
    );
    let mut want = list(&["excluded_weekdays[1]", "excluded_weekdays[2]"]);
    want.extend((1..9).map(|n| format!("excluded_days[{n}]")));
    want.push("workdays[0]".into());
    want.extend((1..8).map(|n| format!("excluded_hours[{n}]")));
    assert_eq!(refused(&wrong), want);
    let many = |count| spec(&[], &vec!["10-01"; count], &[], &[]);
    assert!(many(2_000).compile("x", 1).is_ok());
    assert_eq!(refused(&many(2_001)), ["excluded_days"]);
    let hours = |count| spec(&[], &[], &[], &vec!["10:00-11:00"; count]);
    assert!(hours(64).compile("x", 1).is_ok());
    assert_eq!(refused(&hours(65)), ["excluded_hours"]);
    let long = CalendarSpec { description: "x".repeat(1_001), ..CalendarSpec::default() };
    assert_eq!(refused(&long), ["description"]);
    // A hundred wrong days are not a hundred messages.
    assert_eq!(refused(&spec(&[], &["x"; 100], &[], &[])).len(), 11);
    let error = &spec(&[], &["10-32"], &[], &[]).compile("x", 1).unwrap_err()[0];
    let text = "excluded_days[0]: `10-32` is not a day; allowed: one day from 1970-01-01 to 2199-12-31, such as \
                2026-10-01, or a day of every year, such as 10-01";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_calendar_that_leaves_nothing_is_refused() {
    let all = spec(&WEEKDAYS, &[], &[], &[]);
    assert_eq!(all.compile("x", 1).unwrap_err()[0].field, "excluded_weekdays");
    let hours = spec(&[], &[], &[], &["00:00-12:00", "11:00-00:00"]);
    assert_eq!(hours.compile("x", 1).unwrap_err()[0].field, "excluded_hours");
    // One is enough.
    assert!(spec(&WEEKDAYS, &[], &["2026-10-10"], &[]).compile("x", 1).is_ok());
    assert!(spec(&[], &[], &[], &["00:00-12:00", "11:00-23:59"]).compile("x", 1).is_ok());
}

#[test]
fn json_is_read_strictly_with_everything_optional() {
    let read = |text: &str| serde_json::from_str::<CalendarSpec>(text);
    assert_eq!(read("{}").unwrap(), CalendarSpec::default());
    assert_eq!(read(r#"{"excluded_weekdays":["sat"]}"#).unwrap(), spec(&["sat"], &[], &[], &[]));
    assert!(read(r#"{"excluded_weekday":["sat"]}"#).is_err());
    assert_eq!(serde_json::to_string(&CalendarRule::Previous).unwrap(), r#""previous""#);
}

/// Golden Week 2026 in China: from Thursday the 1st to Wednesday the 7th of October, with make-up days.
fn golden_week(expression: &str, calendar_rule: CalendarRule) -> Schedule {
    let days = ["2026-10-01", "2026-10-02", "2026-10-05", "2026-10-06", "2026-10-07"];
    let calendar = compiled(&spec(&["sat", "sun"], &days, &["2026-09-27", "2026-10-10"], &[]));
    Schedule { calendar: Some(calendar), calendar_rule, ..cron(expression, Tz::Asia__Shanghai) }
}

#[test]
fn skip_leaves_out_and_make_up_days_count() {
    let daily = golden_week("0 0 9 * * ?", CalendarRule::Skip);
    let days = shown(&daily, "2026-09-25T12:00:00+08:00", 8);
    let want = ["09-27", "09-28", "09-29", "09-30", "10-08", "10-09", "10-10", "10-12"];
    assert_eq!(days, want.map(|day| format!("2026-{day}T09:00:00+08:00")));
}

#[test]
fn next_and_previous_move_and_meet() {
    // The first and the third: both in the holiday, so they are one fire.
    let next = golden_week("0 0 9 1,3 * ?", CalendarRule::Next);
    let want = ["2026-09-01T09:00:00+08:00", "2026-09-03T09:00:00+08:00", "2026-10-08T09:00:00+08:00"];
    assert_eq!(shown(&next, "2026-08-31T12:00:00+08:00", 3), want);
    let previous = golden_week("0 0 9,18 1,3 * ?", CalendarRule::Previous);
    let want = ["2026-09-30T09:00:00+08:00", "2026-09-30T18:00:00+08:00", "2026-10-30T09:00:00+08:00"];
    assert_eq!(shown(&previous, "2026-09-03T18:00:00+08:00", 3), want);
    // A daily schedule has its own fires on working days; none is added.
    for rule in [CalendarRule::Next, CalendarRule::Previous] {
        let moved = fires(&golden_week("0 0 9 * * ?", rule), ms("2026-08-01T00:00:00Z"), 200);
        let skipped = fires(&golden_week("0 0 9 * * ?", CalendarRule::Skip), ms("2026-08-01T00:00:00Z"), 200);
        assert_eq!(moved, skipped);
    }
}

#[test]
fn a_fire_does_not_move_by_years() {
    let calendar = compiled(&spec(&WEEKDAYS, &[], &["2030-06-01"], &[]));
    let with = |expression, calendar_rule, after: &str| {
        let schedule = Schedule { calendar: Some(calendar.clone()), calendar_rule, ..cron(expression, Tz::UTC) };
        shown(&schedule, after, 5)
    };
    let only = ["2030-06-01T09:00:00Z"];
    for rule in [CalendarRule::Skip, CalendarRule::Next, CalendarRule::Previous] {
        assert_eq!(with("0 0 9 * * ?", rule, "1999-01-01T00:00:00Z"), only);
        assert_eq!(with("0 0 9 * * ?", rule, "2030-06-01T09:00:00Z"), [""; 0]);
    }
    // 400 days, no more: 2029-04-27 moves on, 2029-04-26 does not.
    assert_eq!(with("0 0 9 27 4 ? 2029", CalendarRule::Next, "1999-01-01T00:00:00Z"), only);
    assert_eq!(with("0 0 9 26 4 ? 2029", CalendarRule::Next, "1999-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(with("0 0 9 6 7 ? 2031", CalendarRule::Previous, "1999-01-01T00:00:00Z"), only);
    assert_eq!(with("0 0 9 7 7 ? 2031", CalendarRule::Previous, "1999-01-01T00:00:00Z"), [""; 0]);
}

#[test]
fn excluded_hours_wrap_and_apply_after_moving() {
    let calendar = compiled(&spec(&["sat", "sun"], &[], &[], &["22:00-06:00", "12:00-12:30"]));
    let hourly = Schedule { calendar: Some(calendar), ..cron("0 0/30 * ? * *", Tz::UTC) };
    let monday: Vec<_> = shown(&hourly, "2026-11-22T00:00:00Z", 31).iter().map(|at| at[8..16].to_owned()).collect();
    assert_eq!(
        (&*monday[0], &*monday[11], &*monday[12], &*monday[30]),
        ("23T06:00", "23T11:30", "23T12:30", "23T21:30")
    );
    let moved = Schedule { calendar_rule: CalendarRule::Next, ..hourly };
    assert_eq!(shown(&moved, "2026-11-22T00:00:00Z", 1), ["2026-11-23T06:00:00Z"]);
    let night = Schedule { timing: cron("0 0 23 * * ?", Tz::UTC).timing, ..moved };
    assert_eq!(night.next_after(0), NEVER);
}

/// What the gap makes of a fire must be allowed, too.
#[test]
fn a_gap_does_not_lead_into_excluded_hours() {
    let zone = Tz::America__New_York;
    for (hours, want) in [("03:00-04:00", "2026-03-09T02:30:00-04:00"), ("04:00-05:00", "2026-03-08T03:00:00-04:00")] {
        let calendar = Some(compiled(&spec(&[], &[], &[], &[hours])));
        let schedule = Schedule { calendar, ..cron("0 30 2 * * ?", zone) };
        assert_eq!(shown(&schedule, "2026-03-08T00:00:00-05:00", 1), [want]);
    }
}

/// Whether the text of a calendar makes `date` a working day.
fn works(spec: &CalendarSpec, date: NaiveDate) -> bool {
    let names = [date.format("%Y-%m-%d").to_string(), date.format("%m-%d").to_string()];
    let weekday = WEEKDAYS[date.weekday().num_days_from_monday() as usize].to_owned();
    let listed = |days: &[String]| names.iter().any(|name| days.contains(name));
    listed(&spec.workdays) || !(spec.excluded_weekdays.contains(&weekday) || listed(&spec.excluded_days))
}

/// Whether the text of a calendar allows a time of day, written 07:30.
fn open(spec: &CalendarSpec, time: &str) -> bool {
    !spec.excluded_hours.iter().any(|range| {
        let (from, until) = range.split_once('-').unwrap();
        if from < until { from <= time && time < until } else { from <= time || time < until }
    })
}

/// A schedule whose days are known without asking cron.
#[derive(Debug, Clone)]
struct Simple {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    /// Days of the month, or else of the week with 1 = Sunday.
    days: Result<Vec<u32>, Vec<u32>>,
}

impl Simple {
    fn expression(&self) -> String {
        let join = |list: &[u32]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let (month, week) = match &self.days {
            Ok(days) => (join(days), "?".to_owned()),
            Err(days) => ("?".to_owned(), join(days)),
        };
        format!("0 {} {} {month} * {week}", join(&self.minutes), join(&self.hours))
    }

    fn names_day(&self, date: NaiveDate) -> bool {
        match &self.days {
            Ok(days) => days.contains(&date.day()),
            Err(days) => days.contains(&date.weekday().number_from_sunday()),
        }
    }
}

/// All fires on local days of `days` days from `first`, found by moving every single day by hand.
fn reference(
    simple: &Simple,
    spec: &CalendarSpec,
    rule: CalendarRule,
    (zone, dst): (Tz, DstPolicy),
    (first, days): (NaiveDate, i64),
) -> BTreeSet<i64> {
    const REACH: i64 = 400;
    let date = |day: i64| first + TimeDelta::days(day);
    let working: Vec<bool> = (-2 * REACH..days + 2 * REACH).map(|day| works(spec, date(day))).collect();
    let works_on = |day: i64| working[(day + 2 * REACH) as usize];
    let mut fire_days = BTreeSet::new();
    for day in (-REACH..days + REACH).filter(|day| simple.names_day(date(*day))) {
        let step = match rule {
            CalendarRule::Skip => 0,
            CalendarRule::Next => 1,
            CalendarRule::Previous => -1,
        };
        let found = (0..=REACH).map(|distance| day + step * distance).find(|day| works_on(*day));
        fire_days.extend(found.filter(|day| (0..days).contains(day)));
    }
    let fixed = cron_is_fixed(&simple.expression());
    let mut fires = BTreeSet::new();
    for day in fire_days {
        for (hour, minute) in
            simple.hours.iter().flat_map(|hour| simple.minutes.iter().map(move |minute| (hour, minute)))
        {
            if !open(spec, &format!("{hour:02}:{minute:02}")) {
                continue;
            }
            let local = date(day).and_hms_opt(*hour, *minute, 0).unwrap();
            fires.extend(naive::instants(local, fixed, zone, dst).into_iter().filter(|at| {
                let shown = zone.timestamp_millis_opt(*at).unwrap().naive_local();
                works(spec, shown.date()) && open(spec, &format!("{:02}:{:02}", shown.hour(), shown.minute()))
            }));
        }
    }
    fires
}

fn cron_is_fixed(expression: &str) -> bool {
    carillon::domain::cron::CronSchedule::parse(expression).unwrap().is_fixed()
}

fn simple() -> impl Strategy<Value = Simple> {
    let some = |values: std::ops::RangeInclusive<u32>, most: usize| subsequence(values.collect::<Vec<_>>(), 1..=most);
    let days = prop_oneof![some(1..=31, 3).prop_map(Ok), some(1..=7, 4).prop_map(Err), some(1..=31, 31).prop_map(Ok)];
    let minutes = prop_oneof![Just(vec![0]), some(0..=59, 3)];
    (minutes, some(0..=23, 4), days).prop_map(|(minutes, hours, days)| Simple { minutes, hours, days })
}

pub fn specs(year: i32) -> impl Strategy<Value = CalendarSpec> {
    let days = move || {
        let one = (0..366i64, prop::bool::weighted(0.3)).prop_map(move |(day, yearly)| {
            let date = NaiveDate::from_ymd_opt(year, 1, 1).unwrap() + TimeDelta::days(day);
            date.format(if yearly { "%m-%d" } else { "%Y-%m-%d" }).to_string()
        });
        prop::collection::vec(one, 0..40)
    };
    let hours = (0..1_440u32, 1..1_000u32).prop_map(|(from, length)| {
        let until = (from + length) % 1_440;
        format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, until / 60, until % 60)
    });
    let weekdays = prop_oneof![4 => Just(vec!["sat", "sun"]), 2 => subsequence(WEEKDAYS.to_vec(), 0..=7)];
    (weekdays, days(), days(), prop::collection::vec(hours, 0..3))
        .prop_map(|(weekdays, excluded_days, workdays, excluded_hours)| CalendarSpec {
            excluded_days,
            workdays,
            excluded_hours,
            ..spec(&weekdays, &[], &[], &[])
        })
        .prop_filter("leaves something", |spec| spec.compile("x", 1).is_ok())
}

pub fn policies() -> impl Strategy<Value = DstPolicy> {
    let gap = select(vec![Gap::Auto, Gap::Skip, Gap::After]);
    let overlap = select(vec![Overlap::Auto, Overlap::First, Overlap::Second, Overlap::Both]);
    (gap, overlap).prop_map(|(gap, overlap)| DstPolicy { gap, overlap })
}

pub fn rules() -> impl Strategy<Value = CalendarRule> {
    select(vec![CalendarRule::Skip, CalendarRule::Next, CalendarRule::Previous])
}

pub const ZONES: [Tz; 8] = [
    Tz::UTC,
    Tz::Africa__Cairo,
    Tz::America__New_York,
    Tz::America__Nuuk,
    Tz::America__Havana,
    Tz::Asia__Shanghai,
    Tz::Australia__Lord_Howe,
    Tz::Europe__London,
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(160) })]

    #[test]
    fn calendars_do_what_going_day_by_day_does(
        simple in simple(),
        spec in specs(2026),
        rule in rules(),
        zone in select(ZONES.to_vec()),
        dst in policies(),
        start in 0..300i64,
    ) {
        let first = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap() + TimeDelta::days(start);
        let all = reference(&simple, &spec, rule, (zone, dst), (first, 124));
        // Two days clear of both ends, so that no local day that was not tried belongs here.
        let day = |n: i64| (first + TimeDelta::days(n)).and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp_millis();
        let (after, end) = (day(2), day(122));
        let want: Vec<i64> = all.range(after + 1..end).copied().collect();
        let schedule = Schedule {
            dst,
            calendar: Some(compiled(&spec)),
            calendar_rule: rule,
            ..cron(&simple.expression(), zone)
        };
        let got: Vec<i64> = fires(&schedule, after, 100_000).into_iter().take_while(|at| *at < end).collect();
        prop_assert_eq!(got, want, "{} {:?} {:?} {} {:?}", simple.expression(), spec, rule, zone, dst);
    }
}
