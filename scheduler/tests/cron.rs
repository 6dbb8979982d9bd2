//! The cron module against Quartz's own answers, and by example. `cron/properties.rs` compares it with other
//! implementations, `cron/command.rs` tests `carillon schedule next`.

#![allow(clippy::unwrap_used)] // a test may fail

#[path = "cron/command.rs"]
mod command;
#[path = "cron/naive.rs"]
pub mod naive;
#[path = "cron/properties.rs"]
mod properties;

use carillon::domain::cron::{CronSchedule, DstPolicy, Field, Gap, Overlap, Reason};
use chrono::{DateTime, SecondsFormat, TimeZone};
use chrono_tz::Tz;
use serde::Deserialize;

/// Made with Quartz 2.3.2.
const VECTORS: &str = include_str!("data/cron-vectors.jsonl");

const AUTO: DstPolicy = policy(Gap::Auto, Overlap::Auto);
const QUARTZ: DstPolicy = policy(Gap::Skip, Overlap::Second);

const fn policy(gap: Gap, overlap: Overlap) -> DstPolicy {
    DstPolicy { gap, overlap }
}

#[derive(Deserialize)]
struct Vector {
    cron: String,
    zone: String,
    after: String,
    #[serde(default)]
    next: Vec<String>,
    #[serde(default)]
    ends: bool,
    #[serde(default)]
    refused: bool,
}

fn vectors() -> impl Iterator<Item = Vector> {
    VECTORS.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn parse(expression: &str) -> CronSchedule {
    CronSchedule::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// A local time as an instant, in milliseconds.
fn instant(zone: Tz, local: &str) -> i64 {
    zone.from_local_datetime(&local.parse().unwrap()).unwrap().timestamp_millis()
}

fn iter(schedule: CronSchedule, after: i64, zone: Tz, dst: DstPolicy) -> impl Iterator<Item = i64> {
    std::iter::successors(schedule.next_after(after, zone, dst), move |after| schedule.next_after(*after, zone, dst))
}

fn show(zone: Tz, fire: i64) -> String {
    let fire = zone.timestamp_millis_opt(fire).unwrap();
    fire.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The fires between two local times, day and time of day with offset, without year and month.
fn fires(expression: &str, zone: Tz, from: &str, to: &str, dst: DstPolicy) -> Vec<String> {
    let to = instant(zone, to);
    iter(parse(expression), instant(zone, from), zone, dst)
        .take_while(|fire| *fire < to)
        .map(|fire| show(zone, fire)[8..].replace(":00+", "+").replace(":00-", "-"))
        .collect()
}

/// New York's clock goes from 02:00 to 03:00 on this day.
fn spring(expression: &str, dst: DstPolicy) -> Vec<String> {
    let zone = Tz::America__New_York;
    let (from, to) = ("2026-03-08T00:00:00", "2026-03-08T05:00:00");
    fires(expression, zone, from, to, dst)
}

/// New York's clock goes back from 02:00 to 01:00 on this day.
fn autumn(expression: &str, dst: DstPolicy) -> Vec<String> {
    let zone = Tz::America__New_York;
    let (from, to) = ("2026-11-01T00:00:00", "2026-11-01T03:00:00");
    fires(expression, zone, from, to, dst)
}

#[test]
fn answers_as_quartz_does() {
    for vector in vectors() {
        let parsed = CronSchedule::parse(&vector.cron);
        assert_eq!(parsed.is_err(), vector.refused, "{}", vector.cron);
        let Ok(schedule) = parsed else { continue };
        let zone = vector.zone.parse().unwrap();
        let after = instant(zone, &vector.after);
        let asked = vector.next.len() + usize::from(vector.ends);
        let got: Vec<_> = iter(schedule, after, zone, QUARTZ).take(asked).map(|fire| show(zone, fire)).collect();
        // The rows for UTC were written with the Z doubled.
        let want: Vec<_> = vector.next.iter().map(|fire| fire.replace("ZZ", "Z")).collect();
        assert_eq!(got, want, "{} {zone}", vector.cron);
    }
    assert_eq!(vectors().count(), 1643);
}

#[test]
fn refuses_with_field_column_and_reason() {
    use Reason as R;
    let cases = [
        ("", Field::Second, 1, R::TooFewFields(0)),
        ("*/5 * * * *", Field::DayOfWeek, 12, R::TooFewFields(5)),
        ("0 0 0 * * ? * 5", Field::Year, 15, R::TooManyFields),
        ("60 * * * * ?", Field::Second, 1, R::OutOfRange(60, 0, 59)),
        ("0 0 24 * * ?", Field::Hour, 5, R::OutOfRange(24, 0, 23)),
        ("0 0 1-24 * * ?", Field::Hour, 7, R::OutOfRange(24, 0, 23)),
        ("0 0 0 ? * 8", Field::DayOfWeek, 11, R::OutOfRange(8, 1, 7)),
        ("0 0 0 ? * 6#6", Field::DayOfWeek, 13, R::OutOfRange(6, 1, 5)),
        ("0 0 0 32W * ?", Field::DayOfMonth, 7, R::OutOfRange(32, 1, 31)),
        ("0 0 0 L-31 * ?", Field::DayOfMonth, 9, R::OutOfRange(31, 0, 30)),
        ("0 0 0 1 1 ? 99999999999", Field::Year, 13, R::OutOfRange(u32::MAX, 1970, 2199)),
        ("0/61 * * * * ?", Field::Second, 3, R::Step(61, 59)),
        ("0 0 */0 * * ?", Field::Hour, 7, R::Step(0, 23)),
        ("0 0 0 1 1 ? 2032-2030", Field::Year, 17, R::YearsReversed),
        ("0 0 0 1 FOO ?", Field::Month, 9, R::UnknownName),
        ("0 0 0 ? * MO", Field::DayOfWeek, 11, R::UnknownName),
        ("0 0 0 ? * 2-FRI", Field::DayOfWeek, 13, R::MixedRange),
        ("0 0 0 ? * MON-FRI/2", Field::DayOfWeek, 18, R::StepAfterName),
        ("0 0 0 1-5W * ?", Field::DayOfMonth, 10, R::NotAlone),
        ("0 0 0 1,15W * ?", Field::DayOfMonth, 11, R::NotAlone),
        ("0 0 0 1,15,L * ?", Field::DayOfMonth, 12, R::NotAlone),
        ("0 0 0 L,1 * ?", Field::DayOfMonth, 8, R::NotAlone),
        ("0 0 0 ? * MON,WED#2", Field::DayOfWeek, 18, R::NotAlone),
        ("0 0 0 ? * 2-6L", Field::DayOfWeek, 14, R::NotAlone),
        ("0 0 0 15 * MON", Field::DayOfWeek, 12, R::BothDays),
        ("0 0 0 ? * ?", Field::DayOfWeek, 11, R::NoDays),
        ("@daily * * * * *", Field::Second, 1, R::Unexpected('@')),
        ("5x 0 0 * * ?", Field::Second, 2, R::Unexpected('x')),
        ("0 \u{e9} 0 * * ?", Field::Minute, 3, R::Unexpected('\u{e9}')),
        ("0 0 ? * * ?", Field::Hour, 5, R::Unexpected('?')),
        ("0 0 1,,2 * * ?", Field::Hour, 7, R::Unexpected(',')),
        ("0 0 1, * * ?", Field::Hour, 7, R::Missing),
        ("0 5/ 0 * * ?", Field::Minute, 5, R::Missing),
    ];
    for (expression, field, column, reason) in cases {
        let error = CronSchedule::parse(expression).unwrap_err();
        let got = (error.field, error.column, error.reason);
        assert_eq!(got, (field, column, reason), "{expression}");
    }
    let error = CronSchedule::parse("0 0 24 * * ?").unwrap_err().to_string();
    let want = "hour (column 5): 24 is not between 0 and 23; allowed: 0-23 and * , - /";
    assert_eq!(error, want);
}

#[test]
fn fixed_and_repeating() {
    for expression in [
        "0 15 2 * * ?",
        "0 0 1,2 * * ?",
        "0 15,45 1,2 * * ?",
        "0 0 5-5 * * ?",
        "0 0 2/23 * * ?",
        "30 0 12 ? * MON-FRI",
        "0 0 0 */2 1-6 ?",
    ] {
        assert!(parse(expression).is_fixed(), "{expression}");
    }
    for expression in [
        "0 */30 * * * ?",
        "*/5 * * * * ?",
        "0 0 * * * ?",
        "0 0 0/2 * * ?",
        "0 0 9-17 * * ?",
        "0 0/10 2 * * ?",
        "0 0 1,3-5 * * ?",
        "0 0 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23 * * ?",
    ] {
        assert!(!parse(expression).is_fixed(), "{expression}");
    }
}

#[test]
fn a_fixed_time_in_a_gap_fires_at_its_end() {
    assert_eq!(spring("0 15 2 * * ?", AUTO), ["08T03:00-04:00"]);
    // Several in one gap, and one right at its end, share one fire.
    assert_eq!(spring("0 15,45 2 * * ?", AUTO), ["08T03:00-04:00"]);
    assert_eq!(spring("0 0 2,3 * * ?", AUTO), ["08T03:00-04:00"]);
    let two = ["08T01:00-05:00", "08T03:00-04:00"];
    assert_eq!(spring("0 0 1,2 * * ?", AUTO), two);
    // Cairo's and Havana's days start at 01:00 then.
    let (from, to) = ("2026-04-23T12:00:00", "2026-04-24T12:00:00");
    let cairo = fires("0 0 0 * * ?", Tz::Africa__Cairo, from, to, AUTO);
    assert_eq!(cairo, ["24T01:00+03:00"]);
    let (from, to) = ("2026-03-07T12:00:00", "2026-03-08T12:00:00");
    let havana = fires("0 0 0 * * ?", Tz::America__Havana, from, to, AUTO);
    assert_eq!(havana, ["08T01:00-04:00"]);
}

#[test]
fn asked_in_the_last_moment_before_the_gap() {
    let zone = Tz::America__New_York;
    let end = instant(zone, "2026-03-08T03:00:00");
    let schedule = parse("0 15 2 * * ?");
    for before in [1, 999, 1000, 1001] {
        assert_eq!(schedule.next_after(end - before, zone, AUTO), Some(end));
    }
    let next = schedule.next_after(end, zone, AUTO);
    assert_eq!(next, Some(instant(zone, "2026-03-09T02:15:00")));
}

#[test]
fn a_fixed_time_in_an_overlap_fires_once() {
    assert_eq!(autumn("0 30 1 * * ?", AUTO), ["01T01:30-04:00"]);
    let two = ["01T01:00-04:00", "01T02:00-05:00"];
    assert_eq!(autumn("0 0 1,2 * * ?", AUTO), two);
}

#[test]
fn a_repeating_schedule_follows_real_time() {
    let hours = ["08T01:00-05:00", "08T03:00-04:00", "08T04:00-04:00"];
    assert_eq!(spring("0 0 * * * ?", AUTO), hours);
    assert_eq!(spring("0 0 0/2 * * ?", AUTO), ["08T04:00-04:00"]);
    assert_eq!(spring("0 0/10 2 * * ?", AUTO), [""; 0]);
    let halves = [
        "01T00:30-04:00",
        "01T01:00-04:00",
        "01T01:30-04:00",
        "01T01:00-05:00",
        "01T01:30-05:00",
        "01T02:00-05:00",
        "01T02:30-05:00",
    ];
    assert_eq!(autumn("0 */30 * * * ?", AUTO), halves);
    let seconds = autumn("*/5 * * * * ?", AUTO);
    assert_eq!(seconds.len(), 4 * 720 - 1);
}

#[test]
fn explicit_policies_override() {
    let fixed = "0 30 2 * * ?";
    assert_eq!(spring(fixed, policy(Gap::Skip, Overlap::Auto)), [""; 0]);
    let after = policy(Gap::After, Overlap::Auto);
    assert_eq!(spring("0 0/10 2 * * ?", after), ["08T03:00-04:00"]);
    let (first, second) = ("01T01:30-04:00", "01T01:30-05:00");
    for expression in ["0 30 1 * * ?", "0 30 1/23 * * ?"] {
        let with = |overlap| autumn(expression, policy(Gap::Auto, overlap));
        assert_eq!(with(Overlap::First), [first]);
        assert_eq!(with(Overlap::Second), [second]);
        assert_eq!(with(Overlap::Both), [first, second]);
    }
}

#[test]
fn the_second_pass_of_the_last_match_counts() {
    let zone = Tz::America__New_York;
    let after = DateTime::parse_from_rfc3339("2026-11-01T01:45:00-04:00").unwrap();
    let schedule = parse("0 30 1 1 11 ? 2026");
    let next = schedule.next_after(after.timestamp_millis(), zone, QUARTZ);
    assert_eq!(next.map(|fire| show(zone, fire)), Some("2026-11-01T01:30:00-05:00".into()));
}

#[test]
fn a_day_a_zone_left_out_has_no_fire() {
    let (from, to) = ("2011-12-29T00:00:00", "2011-12-31T12:00:00");
    for gap in [Gap::Auto, Gap::After] {
        let dst = policy(gap, Overlap::Auto);
        let apia = fires("0 0 9 * * ?", Tz::Pacific__Apia, from, to, dst);
        assert_eq!(apia, ["29T09:00-10:00", "31T09:00+14:00"]);
    }
}

#[test]
fn a_schedule_is_small_and_ends() {
    assert!(size_of::<CronSchedule>() <= 72);
    let never = ["0 0 0 31 2 ?", "0 0 0 29 2 ? 2101", "0 0 0 1 1 ? 1970", "0 0 0 30W 2 ?", "0 0 0 L-30 2 ?"];
    for expression in never {
        let schedule = parse(expression);
        let next = schedule.next_after(0, Tz::America__New_York, AUTO);
        let first = instant(Tz::America__New_York, "1970-01-01T00:00:00");
        assert_eq!(next, (expression == "0 0 0 1 1 ? 1970").then_some(first));
    }
    let every = parse("* * * * * ?");
    let last = instant(Tz::UTC, "2199-12-31T23:59:59");
    assert_eq!(every.next_after(last - 1, Tz::UTC, AUTO), Some(last));
    assert_eq!(every.next_after(last, Tz::UTC, AUTO), None);
    assert_eq!(every.next_after(i64::MAX, Tz::UTC, AUTO), None);
    assert_eq!(every.next_after(i64::MIN, Tz::UTC, AUTO), Some(0));
}

#[test]
fn policy_in_json() {
    let got: DstPolicy = serde_json::from_str(r#"{"gap":"after"}"#).unwrap();
    assert_eq!(got, policy(Gap::After, Overlap::Auto));
    let text = serde_json::to_string(&QUARTZ).unwrap();
    assert_eq!(text, r#"{"gap":"skip","overlap":"second"}"#);
}
