//! Each trigger, the validity window, spread and jitter, by example.

use carillon::domain::schedule::{NEVER, Schedule, Timing};
use chrono::{TimeZone, Timelike};
use chrono_tz::Tz;

use super::{compiled, cron, every, fires, ms, shown, spec};

const DAY: i64 = 86_400_000;

#[test]
fn none_never_fires() {
    let schedule = Schedule::none();
    for instant in [i64::MIN, 0, i64::MAX] {
        assert_eq!((schedule.next_after(instant), schedule.next_after_end(instant)), (NEVER, NEVER));
    }
    assert!(schedule.preview(0, 5).is_empty());
}

#[test]
fn a_fixed_rate_counts_from_its_start() {
    let schedule = every(1_500, 10_000);
    for (after, want) in [(i64::MIN, 11_500), (0, 11_500), (11_499, 11_500), (11_500, 13_000), (12_999, 13_000)] {
        assert_eq!(schedule.next_after(after), want, "{after}");
    }
    assert_eq!(schedule.next_after(i64::MAX - 1), NEVER);
    assert_eq!(schedule.next_after(i64::MAX), NEVER);
    assert_eq!(schedule.next_after_end(50_000), NEVER);
    let far = schedule.next_after(9_000_000_000_000_000_000);
    assert_eq!((far - 10_000) % 1_500, 0);
}

#[test]
fn a_fixed_rate_that_becomes_valid_later_counts_from_there() {
    let schedule = Schedule { valid_from: 20_300, valid_until: 24_000, ..every(1_500, 10_000) };
    assert_eq!(fires(&schedule, 0, 9), [20_300, 21_800, 23_300]);
    // Started when the window began, or after that: it counts from the start.
    for valid_from in [9_000, 10_000] {
        let schedule = Schedule { valid_from, ..every(1_500, 10_000) };
        assert_eq!(fires(&schedule, 0, 2), [11_500, 13_000]);
    }
}

#[test]
fn a_fixed_rate_jumps_over_what_the_calendar_excludes() {
    let office = spec(&["sat", "sun"], &[], &[], &["00:00-09:00", "17:00-24:00"]);
    let schedule = Schedule {
        zone: Tz::Europe__Berlin,
        calendar: Some(compiled(&office)),
        ..every(100 * 60_000, ms("2026-11-20T00:00:00+01:00"))
    };
    let want = [
        "2026-11-20T10:00:00+01:00",
        "2026-11-20T11:40:00+01:00",
        "2026-11-20T13:20:00+01:00",
        "2026-11-20T15:00:00+01:00",
        "2026-11-20T16:40:00+01:00",
        "2026-11-23T09:40:00+01:00",
    ];
    assert_eq!(shown(&schedule, "2026-11-20T00:00:00+01:00", 6), want);
    // Every instant of every day is excluded: a day is a day but at changes of the clock, which move it only an hour.
    let never = Schedule { timing: Timing::FixedRate { interval_ms: DAY }, ..schedule };
    assert_eq!(never.next_after(0), NEVER);
}

/// However long it takes to come to an allowed time of day, and where it never does, by trying every instant.
#[test]
fn a_fixed_rate_that_drifts_comes_to_an_allowed_time() {
    const MINUTE: i64 = 60_000;
    let intervals = [DAY + MINUTE, DAY - 7 * MINUTE, DAY + 1_000, DAY / 2, DAY, 37 * MINUTE, 90 * MINUTE, 5_000_007];
    for (hours, zone) in [("06:30-06:00", Tz::UTC), ("08:20-07:40", Tz::Europe__Berlin)] {
        let spec = spec(&[], &[], &[], &[hours]);
        let calendar = compiled(&spec);
        for (interval_ms, start) in intervals.into_iter().flat_map(|one| [(one, 0), (one, 7 * 60 + 50)]) {
            let anchor = ms("2025-12-31T00:00:00Z") + start * MINUTE;
            let schedule = Schedule { zone, calendar: Some(calendar.clone()), ..every(interval_ms, anchor) };
            let allowed = |at: &i64| {
                let local = zone.timestamp_millis_opt(*at).unwrap();
                calendar.allows_time(local.time().num_seconds_from_midnight().into())
            };
            let end = anchor + 1_000 * DAY;
            let want: Vec<i64> =
                (1..).map(|k| anchor + k * interval_ms).take_while(|at| *at < end).filter(allowed).take(200).collect();
            let got: Vec<i64> = fires(&schedule, 0, 200).into_iter().filter(|at| *at < end).collect();
            assert_eq!(got, want, "{hours} {zone} {interval_ms} {start}");
        }
    }
}

#[test]
fn a_fixed_delay_starts_once_and_then_follows_its_runs() {
    let delay = |anchor, delay_ms| Schedule { timing: Timing::FixedDelay { delay_ms }, anchor, ..Schedule::none() };
    let schedule = delay(10_000, 5_000);
    assert_eq!(fires(&schedule, 0, 9), [15_000]);
    assert_eq!(schedule.next_after(14_999), 15_000);
    assert_eq!(schedule.next_after(15_000), NEVER);
    assert_eq!(schedule.next_after_end(15_700), 20_700);
    let window = Schedule { valid_from: 18_000, valid_until: 30_000, ..schedule };
    assert_eq!(fires(&window, 0, 9), [18_000]);
    assert_eq!(window.next_after_end(24_999), 29_999);
    assert_eq!(window.next_after_end(25_000), NEVER);
    assert_eq!(window.next_after_end(1_000), 18_000);
    assert_eq!(window.next_after_end(i64::MAX), NEVER);
}

#[test]
fn a_fixed_delay_waits_for_the_end_of_what_is_excluded() {
    let office = spec(&["sat", "sun"], &[], &[], &["22:00-06:00"]);
    let schedule = Schedule {
        timing: Timing::FixedDelay { delay_ms: 3_600_000 },
        zone: Tz::America__New_York,
        calendar: Some(compiled(&office)),
        anchor: ms("2026-03-06T21:30:00-05:00"),
        ..Schedule::none()
    };
    // Friday evening to Monday morning, over a change of the clock.
    let monday = ms("2026-03-09T06:00:00-04:00");
    assert_eq!(fires(&schedule, 0, 9), [monday]);
    assert_eq!(schedule.next_after_end(monday + 1), monday + 3_600_001);
    assert_eq!(schedule.next_after_end(ms("2026-03-09T21:00:00.500-04:00")), ms("2026-03-10T06:00:00-04:00"));
    let closed = Schedule { valid_until: monday, ..schedule };
    assert_eq!(closed.next_after(0), NEVER);
}

#[test]
fn once_is_once() {
    let once = |at| Schedule { timing: Timing::Once { at }, ..Schedule::none() };
    assert_eq!(fires(&once(5_000), 0, 9), [5_000]);
    assert_eq!(once(5_000).next_after(5_000), NEVER);
    // Neither the spread nor the calendar has a say, the window and the jitter have.
    let nothing = spec(&[], &[], &["1970-01-02"], &["00:00-23:59"]);
    let bent = Schedule { spread_ms: DAY, calendar: Some(compiled(&nothing)), jitter_ms: 50, ..once(5_000) };
    assert_eq!(bent.next_after(0), 5_000);
    assert!((5_000..=5_050).contains(&bent.due_time(5_000)));
    for (valid_from, valid_until, want) in [(5_000, 5_001, 5_000), (5_001, 0, NEVER), (0, 5_000, NEVER)] {
        assert_eq!(Schedule { valid_from, valid_until, ..once(5_000) }.next_after(0), want);
    }
}

#[test]
fn the_window_cuts_a_cron_at_both_ends() {
    let schedule = Schedule { valid_from: 10 * DAY, valid_until: 12 * DAY, ..cron("0 0 0 * * ?", Tz::UTC) };
    assert_eq!(fires(&schedule, 0, 9), [10 * DAY, 11 * DAY]);
    assert_eq!(fires(&schedule, i64::MIN, 9).len(), 2);
    assert_eq!(schedule.next_after(10 * DAY), 11 * DAY);
    // It is the schedule's own instant that must be inside, not the one that the spread makes of it.
    let spread = Schedule { spread_ms: DAY, seed: 3, ..schedule };
    let offset = spread.next_after(0) - 10 * DAY;
    assert!((0..DAY).contains(&offset));
    assert_eq!(fires(&spread, 0, 9), [10 * DAY + offset, 11 * DAY + offset]);
}

#[test]
fn ten_thousand_hourly_tasks_spread_evenly() {
    const HOUR: i64 = 3_600_000;
    let mut minutes = [0; 60];
    for id in 0..10_000 {
        // Ids as nodes make them: close to each other.
        let seed = 731_234_567_890_123_456 + id * 7;
        let schedule = Schedule { spread_ms: HOUR, seed, ..cron("0 0 * * * ?", Tz::UTC) };
        let at = schedule.next_after(0);
        assert_eq!(at, fires(&schedule, 0, 30)[29] - 29 * HOUR, "the offset is one");
        minutes[(at.rem_euclid(HOUR) / 60_000) as usize] += 1;
    }
    // 167 are expected in each minute; a minute with a fifth more or less than six deviations would be odd.
    assert!(minutes.iter().all(|count| (90..=245).contains(count)), "{minutes:?}");
}

#[test]
fn jitter_is_even_and_stays() {
    let schedule = Schedule { jitter_ms: 9, seed: 42, ..cron("* * * * * ?", Tz::UTC) };
    let mut delays = [0; 10];
    for at in fires(&schedule, 0, 10_000) {
        let delay = schedule.due_time(at) - at;
        assert_eq!(schedule.due_time(at), at + delay);
        delays[delay as usize] += 1;
    }
    assert!(delays.iter().all(|count| (850..1_150).contains(count)), "{delays:?}");
    assert_eq!(Schedule { jitter_ms: 0, ..schedule }.due_time(77), 77);
}

#[test]
fn numbers_out_of_range_do_no_harm() {
    for interval_ms in [i64::MIN, -1, 0, 1, i64::MAX] {
        for anchor in [i64::MIN, -1, 0, i64::MAX] {
            let rate = Schedule { jitter_ms: interval_ms, spread_ms: anchor, ..every(interval_ms, anchor) };
            let delay = Schedule { timing: Timing::FixedDelay { delay_ms: interval_ms }, ..rate.clone() };
            let bounded = Schedule { valid_from: anchor, valid_until: interval_ms, ..rate.clone() };
            let office = Some(compiled(&spec(&["sun"], &[], &[], &["10:00-11:00"])));
            for schedule in [&rate, &delay, &bounded, &Schedule { calendar: office, ..delay.clone() }] {
                for after in [i64::MIN, -1, 0, 1, i64::MAX - 1, i64::MAX] {
                    let next = schedule.next_after(after);
                    assert!(next > after || next == NEVER, "{schedule:?} {after}");
                    assert!(schedule.due_time(after) >= after || schedule.jitter_ms <= 0);
                    assert!(schedule.next_after_end(after) >= after);
                    assert!(schedule.preview(after, 2).len() < 70);
                }
            }
        }
    }
}
