//! Previews: each reason by example, as people read it.

use carillon::domain::calendar::CalendarRule;
use carillon::domain::cron::{DstPolicy, Gap, Overlap};
use carillon::domain::schedule::{Kind, Note, Preview, Schedule, Timing};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::{compiled, cron, every, ms, show, spec};

/// Day and time, and what happens: `08T03:00 fires after_gap`.
fn lines(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    schedule.preview(ms(after), count).iter().map(|line| text(schedule.zone, line)).collect()
}

fn text(zone: Tz, line: &Preview) -> String {
    let kind = match line.kind {
        Kind::Fires => "fires".to_owned(),
        Kind::Skipped(reason) => serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned(),
    };
    let note = match line.note {
        Some(Note::AfterGap) => " after_gap".to_owned(),
        Some(Note::MovedFrom { day }) => format!(" from {day}"),
        Some(Note::MovedTo { day }) => format!(" to {day}"),
        None => String::new(),
        Some(Note::Postponed) => " postponed".to_owned(),
    };
    let at = |instant| show(zone, instant)[8..16].to_owned();
    let rest = if line.count > 1 { format!(" {} until {}", line.count, at(line.last)) } else { String::new() };
    format!("{} {kind}{note}{rest}{}", at(line.fire_time), if line.more { " and more" } else { "" })
}

#[test]
fn weekends_and_nights() {
    let calendar = Some(compiled(&spec(&["sat", "sun"], &[], &[], &["20:00-08:00"])));
    let daily = Schedule { calendar: calendar.clone(), ..cron("0 0 9 * * ?", Tz::Europe__Berlin) };
    let want = ["20T09:00 fires", "21T09:00 calendar_day", "22T09:00 calendar_day", "23T09:00 fires"];
    assert_eq!(lines(&daily, "2026-11-20T00:00:00+01:00", 2), want);
    let often = Schedule { calendar, ..cron("0 0/30 * * * ?", Tz::Europe__Berlin) };
    let want = [
        "20T19:30 fires",
        "20T20:00 calendar_hours 8 until 20T23:30",
        "21T00:00 calendar_day 48 until 21T23:30",
        "22T00:00 calendar_day 48 until 22T23:30",
        "23T00:00 calendar_hours 16 until 23T07:30",
        "23T08:00 fires",
    ];
    assert_eq!(lines(&often, "2026-11-20T19:00:00+01:00", 2), want);
    let rate = Schedule { timing: Timing::FixedRate { interval_ms: 43_200_000 }, ..often };
    let want = ["20T13:00 fires", "21T01:00 calendar_day 2 until 21T13:00", "22T01:00 calendar_day 2 until 22T13:00"];
    assert_eq!(lines(&rate, "2026-11-20T12:00:00+01:00", 2)[..3], want);
}

#[test]
fn moved_by_the_calendar() {
    let calendar = Some(compiled(&spec(&["sat", "sun"], &["2026-06-01"], &[], &[])));
    let monthly = |calendar_rule| Schedule {
        calendar: calendar.clone(),
        calendar_rule,
        ..cron("0 0 9 1 * ?", Tz::Asia__Shanghai)
    };
    let next = ["01T09:00 fires", "01T09:00 moved_by_calendar to 2026-06-02", "02T09:00 fires from 2026-06-01"];
    assert_eq!(lines(&monthly(CalendarRule::Next), "2026-04-30T00:00:00+08:00", 2), next);
    let previous = ["29T09:00 fires from 2026-06-01", "01T09:00 moved_by_calendar to 2026-05-29", "01T09:00 fires"];
    assert_eq!(lines(&monthly(CalendarRule::Previous), "2026-05-02T00:00:00+08:00", 2), previous);
}

#[test]
fn changes_of_the_clock() {
    let daily =
        |gap, overlap| Schedule { dst: DstPolicy { gap, overlap }, ..cron("0 30 1,2 * * ?", Tz::America__New_York) };
    let spring = "2026-03-08T00:00:00-05:00";
    let skipped = ["08T01:30 fires", "08T03:00 dst_gap", "09T01:30 fires"];
    assert_eq!(lines(&daily(Gap::Skip, Overlap::Auto), spring, 2), skipped);
    let after = ["08T01:30 fires", "08T03:00 fires after_gap"];
    assert_eq!(lines(&daily(Gap::Auto, Overlap::Auto), spring, 2), after);
    let autumn = "2026-11-01T00:00:00-04:00";
    let first = ["01T01:30 fires", "01T01:30 overlap_second_pass", "01T02:30 fires"];
    assert_eq!(lines(&daily(Gap::Auto, Overlap::First), autumn, 2), first);
    let second = ["01T01:30 overlap_first_pass", "01T01:30 fires", "01T02:30 fires"];
    assert_eq!(lines(&daily(Gap::Auto, Overlap::Second), autumn, 2), second);
    assert_eq!(lines(&daily(Gap::Auto, Overlap::Both), autumn, 2), ["01T01:30 fires", "01T01:30 fires"]);
}

#[test]
fn the_window() {
    let schedule = Schedule {
        valid_from: ms("2026-01-05T00:00:00Z"),
        valid_until: ms("2026-01-07T00:00:00Z"),
        ..cron("0 0 9 * * ?", Tz::UTC)
    };
    let want =
        ["01T09:00 before_validity and more", "05T09:00 fires", "06T09:00 fires", "07T09:00 after_validity and more"];
    assert_eq!(lines(&schedule, "2026-01-01T00:00:00Z", 9), want);
    let once = Schedule { timing: Timing::Once { at: ms("2026-01-07T00:00:00Z") }, ..schedule };
    assert_eq!(lines(&once, "2026-01-01T00:00:00Z", 9), ["07T00:00 after_validity"]);
}

#[test]
fn length_and_work_are_bounded() {
    let calendar = Some(compiled(&spec(&["mon", "tue", "wed", "thu", "fri", "sat", "sun"], &[], &["2199-12-31"], &[])));
    for timing in [cron("* * * * * ?", Tz::UTC).timing, every(1_000, 0).timing] {
        let schedule = Schedule { timing, calendar: calendar.clone(), zone: Tz::Europe__Berlin, ..Schedule::none() };
        let preview = schedule.preview(0, 10);
        assert_eq!(preview.len(), 31 + 10);
        assert_eq!((preview[0].count, preview[0].more, preview[30].more), (1_000, true, true));
        assert_eq!(show(Tz::Europe__Berlin, preview[31].fire_time), "2199-12-31T00:00:00+01:00");
    }
    let every_second = Schedule { calendar: None, ..cron("* * * * * ?", Tz::UTC) };
    assert_eq!(every_second.preview(0, 10_000).len(), 10_000);
    assert!(every_second.preview(0, 0).is_empty());
}

#[test]
fn as_json() {
    let calendar = Some(compiled(&spec(&["thu"], &[], &[], &[])));
    let schedule =
        Schedule { calendar, jitter_ms: 0, calendar_rule: CalendarRule::Next, ..cron("0 0 0 1 1 ?", Tz::UTC) };
    let json: Vec<Value> = schedule.preview(-1, 1).iter().map(|line| serde_json::to_value(line).unwrap()).collect();
    let want = [
        json!({"fire_time": 0, "due_time": 0, "kind": "skipped", "reason": "moved_by_calendar",
               "note": {"what": "moved_to", "day": "1970-01-02"}, "count": 1, "last": 0, "more": false}),
        json!({"fire_time": 86_400_000, "due_time": 86_400_000, "kind": "fires",
               "note": {"what": "moved_from", "day": "1970-01-01"}, "count": 1, "last": 86_400_000, "more": false}),
    ];
    assert_eq!(json, want);
}
