//! What must hold for any schedule, in any zone, at any time.

use std::str::FromStr;

use carillon::domain::cron::{CronSchedule, DstPolicy, Gap, Overlap};
use chrono::{DateTime, NaiveDate, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use proptest::prelude::*;
use proptest::sample::select;

use super::{AUTO, iter, naive, parse};

/// Zones with everything that is odd about zones, and some without.
const ZONES: &[Tz] = &[
    Tz::UTC,
    Tz::Africa__Cairo,
    Tz::Africa__Casablanca,
    Tz::America__Havana,
    Tz::America__New_York,
    Tz::America__Nuuk,
    Tz::America__Sao_Paulo,
    Tz::America__St_Johns,
    Tz::Antarctica__Troll,
    Tz::Asia__Gaza,
    Tz::Asia__Kathmandu,
    Tz::Asia__Shanghai,
    Tz::Asia__Tehran,
    Tz::Australia__Lord_Howe,
    Tz::Europe__London,
    Tz::Pacific__Apia,
    Tz::Pacific__Kiritimati,
];

/// In milliseconds.
const DAY: i64 = 86_400_000;

/// The start of a day in UTC, in milliseconds.
fn midnight(date: NaiveDate) -> i64 {
    date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis()
}

fn offset(zone: Tz, instant: i64) -> i32 {
    let utc = DateTime::from_timestamp(instant, 0).unwrap().naive_utc();
    zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()
}

/// Days on which the offset of a zone of [`ZONES`] changes, and one of no interest for each.
fn days_of_interest() -> Vec<(Tz, NaiveDate)> {
    let date = |day: i64| DateTime::from_timestamp(day * 86_400, 0).unwrap().date_naive();
    let mut days = Vec::new();
    for zone in ZONES {
        days.push((*zone, date(20_000)));
        let changes = (1_000..30_000).filter(|day| offset(*zone, day * 86_400) != offset(*zone, (day + 1) * 86_400));
        days.extend(changes.map(|day| (*zone, date(day))));
    }
    days
}

/// A field of plain values, or any field.
fn field(min: u32, max: u32) -> BoxedStrategy<String> {
    let value = min..=max;
    let element = prop_oneof![
        4 => value.clone().prop_map(|a| a.to_string()),
        1 => Just("*".to_owned()),
        1 => (1..=max).prop_map(|n| format!("*/{n}")),
        1 => (value.clone(), 1..=max).prop_map(|(a, n)| format!("{a}/{n}")),
        1 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (value.clone(), value, 1..=max).prop_map(|(a, b, n)| format!("{a}-{b}/{n}")),
    ];
    prop::collection::vec(element, 1..3).prop_map(|list| list.join(",")).boxed()
}

fn one_of(texts: &'static [&str]) -> impl Strategy<Value = String> {
    select(texts).prop_map(str::to_owned)
}

fn days() -> BoxedStrategy<(String, String)> {
    let of_month = prop_oneof![
        6 => Just("*".to_owned()),
        2 => field(1, 31),
        1 => one_of(&["L", "LW", "L-3", "L-30", "L-3W", "L-29W", "1W", "15W", "31W"]),
    ];
    let of_week = prop_oneof![
        2 => field(1, 7),
        1 => one_of(&["L", "1L", "6L", "2#1", "1#5", "7#4"]),
    ];
    let other = || "?".to_owned();
    prop_oneof![of_month.prop_map(move |m| (m, other())), of_week.prop_map(move |w| (other(), w))].boxed()
}

/// Mostly whole minutes in the small hours, where clocks are changed.
fn expression() -> impl Strategy<Value = String> {
    let second = prop_oneof![3 => Just("0".to_owned()), 1 => field(0, 59)];
    let hour = prop_oneof![one_of(&["0", "1", "2", "1,2", "0,1,2,3", "23"]), field(0, 23)];
    let month = prop_oneof![3 => Just("*".to_owned()), 1 => field(1, 12)];
    (second, field(0, 59), hour, days(), month)
        .prop_map(|(second, minute, hour, (day, week), month)| format!("{second} {minute} {hour} {day} {month} {week}"))
}

fn policies() -> impl Strategy<Value = DstPolicy> {
    let gap = select(vec![Gap::Auto, Gap::Skip, Gap::After]);
    let overlap = select(vec![Overlap::Auto, Overlap::First, Overlap::Second, Overlap::Both]);
    (gap, overlap).prop_map(|(gap, overlap)| DstPolicy { gap, overlap })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(config(400))]

    /// Around each change of the clock the fires are those the naive implementation finds: none skipped, none
    /// added, strictly in order.
    #[test]
    fn finds_what_trying_every_second_finds(
        expression in expression(),
        (zone, date) in select(days_of_interest()),
        dst in policies(),
        start in 0..172_800_000i64,
    ) {
        let schedule = parse(&expression);
        let first = date - chrono::TimeDelta::days(3);
        let all = naive::fires(&expression, schedule.is_fixed(), zone, first, 8, dst);
        // Two days clear of both ends, so that no local time that was not tried belongs here.
        let after = midnight(first) + 2 * DAY + start;
        let end = after + 3 * DAY - start;
        let want: Vec<_> = all.range(after + 1..end).copied().take(5000).collect();
        let got: Vec<_> = iter(schedule, after, zone, dst)
            .take_while(|fire| *fire < end)
            .take(5000)
            .collect();
        prop_assert_eq!(got, want, "{} {} {} {:?}", expression, zone, date, dst);
    }

    /// The days that match are those the naive implementation finds, over years.
    #[test]
    fn finds_the_days_that_trying_every_day_finds(
        (day, week) in days(),
        month in field(1, 12),
        year in 1970..2190,
    ) {
        let expression = format!("0 0 12 {day} {month} {week}");
        let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap();
        let want = naive::fires(&expression, true, Tz::UTC, first, 2000, AUTO);
        let after = midnight(first);
        let end = after + 2000 * DAY;
        let got = iter(parse(&expression), after, Tz::UTC, AUTO).take_while(|fire| *fire < end);
        prop_assert!(got.eq(want), "{}", expression);
    }

    /// The crate `cron` reads a part of the syntax the same way; in UTC it finds the same fires.
    #[test]
    fn agrees_with_the_cron_crate(
        second in simple(0, 59),
        minute in simple(0, 59),
        hour in simple(0, 23),
        day in simple(1, 31),
        month in simple(1, 12),
        week in simple(1, 7),
        weekly: bool,
        after in 0..4_000_000_000i64,
    ) {
        let (day, week) = if weekly { ("?".to_owned(), week) } else { (day, "?".to_owned()) };
        let expression = format!("{second} {minute} {hour} {day} {month} {week}");
        let other = cron::Schedule::from_str(&expression).unwrap();
        let start = DateTime::from_timestamp(after, 0).unwrap();
        // It stops at the end of 2100.
        let end = 4_100_000_000_000;
        let want = other.after(&start).map(|at| at.timestamp_millis());
        let want = want.take(5).take_while(|at| *at < end);
        let got = iter(parse(&expression), after * 1000, Tz::UTC, AUTO);
        let got = got.take(5).take_while(|at| *at < end);
        prop_assert!(got.eq(want), "{}", expression);
    }

    #[test]
    fn always_moves_on(
        expression in expression(),
        after: i64,
        zone in select(TZ_VARIANTS.to_vec()),
        dst in policies(),
    ) {
        if let Some(next) = parse(&expression).next_after(after, zone, dst) {
            prop_assert!(next > after);
        }
    }

    #[test]
    fn never_panics_on_any_text(
        text in ".*",
        odd in "[-0-9*?,/LW#A-Za-z ]{0,40}",
        year in "[-0-9*/,]{1,9}",
    ) {
        let day = format!("0 0 0 {odd}");
        let week = format!("0 0 0 ? * {odd}");
        let year = format!("0 0 0 1 * ? {year}");
        for text in [text, odd, day, week, year] {
            if let Err(error) = CronSchedule::parse(&text) {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.column));
            }
        }
    }
}

/// A field both implementations read alike: no range wraps.
fn simple(min: u32, max: u32) -> BoxedStrategy<String> {
    prop_oneof![
        1 => Just("*".to_owned()),
        2 => prop::collection::vec(min..=max, 1..4).prop_map(|list| {
            list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        }),
        1 => (min..max, 1..=max).prop_map(|(a, n)| format!("{a}/{n}")),
        1 => (min..max, min..max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b) + 1)),
    ]
    .boxed()
}

/// The fires of a daily schedule are one for each calendar day that there was, at the day's first such local
/// time or at the end of the gap it is in.
fn check_daily(zone: Tz, hour: u32, minute: u32, years: std::ops::Range<i32>) {
    let schedule = parse(&format!("0 {minute} {hour} * * ?"));
    let first = NaiveDate::from_ymd_opt(years.start, 1, 1).unwrap();
    let mut after = midnight(first) - 3 * DAY;
    for date in first.iter_days().take_while(|date| chrono::Datelike::year(date) < years.end) {
        let local = date.and_hms_opt(hour, minute, 0).unwrap();
        let Some(want) = naive::instants(local, true, zone, AUTO).first().copied() else {
            continue;
        };
        assert!(after < want, "{zone} {local}");
        while after < want {
            let next = schedule.next_after(after, zone, AUTO).unwrap();
            let is_before = date == first && next < want;
            assert!(next == want || is_before, "{zone} {local}: {next} instead of {want}");
            after = next;
        }
    }
}

#[test]
fn a_daily_time_fires_once_each_calendar_day() {
    for zone in ZONES {
        for (hour, minute) in [(0, 0), (0, 30), (2, 15), (23, 45)] {
            check_daily(*zone, hour, minute, 1975..2060);
        }
    }
}

#[test]
fn a_daily_time_fires_once_each_calendar_day_in_every_zone() {
    for zone in TZ_VARIANTS {
        check_daily(zone, 2, 30, 2025..2027);
        check_daily(zone, 0, 0, 2025..2026);
    }
}

/// What the search for changes of offset relies on: no two of them are close to each other, and no overlap
/// is long.
#[test]
fn changes_of_offset_are_far_apart_and_overlaps_short() {
    for zone in TZ_VARIANTS {
        let (mut last, mut changed) = (offset(zone, -10 * 86_400), -10);
        for day in -10..48_000i64 {
            let now = offset(zone, day * 86_400);
            if now != last {
                assert!(changed == -10 || day - changed > 4, "{zone} day {day}");
                assert!(last - now < 12 * 3600, "{zone} day {day}");
                (last, changed) = (now, day);
            }
        }
    }
}
