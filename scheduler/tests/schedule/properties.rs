//! What must hold for any schedule, whatever it is put together from.

use std::collections::BTreeSet;

use carillon::domain::cron::{DstPolicy, Gap, Overlap};
use carillon::domain::schedule::{Kind, NEVER, Schedule, SkipReason, Timing};
use chrono::{Offset, TimeZone};
use proptest::prelude::*;
use proptest::sample::select;

use super::calendars::{ZONES, policies, rules, specs};
use super::{compiled, cron, fires};

/// 2026-01-01, ms.
const START: i64 = 1_767_225_600_000;
const DAY: i64 = 86_400_000;

fn timing() -> impl Strategy<Value = Timing> {
    let expressions = vec![
        "0 0 * * * ?",
        "0 0/20 1-3 * * ?",
        "0 30 2 * * ?",
        "*/30 * * * * ?",
        "0 15 9,18 ? * MON-FRI",
        "0 0 9 L * ?",
        "0 0 1 15W * ?",
        "0 45 23 ? * 6#2",
        "0 0 0 29 2 ?",
        "0 30 1 * 3,10,11 ?",
    ];
    prop_oneof![
        6 => select(expressions).prop_map(|text| cron(text, chrono_tz::Tz::UTC).timing),
        3 => (1_000..200_000_000i64).prop_map(|interval_ms| Timing::FixedRate { interval_ms }),
        2 => select(vec![60_000, 3_600_000, DAY, 7 * DAY]).prop_map(|interval_ms| Timing::FixedRate { interval_ms }),
        1 => (0..100 * DAY).prop_map(|delay_ms| Timing::FixedDelay { delay_ms }),
        1 => (START..START + 200 * DAY).prop_map(|at| Timing::Once { at }),
    ]
}

fn window() -> impl Strategy<Value = (i64, i64)> {
    let bound = || prop_oneof![2 => Just(0), 1 => START..START + 300 * DAY];
    (bound(), bound())
}

pub fn schedule() -> impl Strategy<Value = Schedule> {
    let calendar = prop_oneof![1 => Just(None), 2 => specs(2026).prop_map(|spec| Some(compiled(&spec)))];
    let lengths = || prop_oneof![1 => Just(0), 1 => 0..100_000_000i64];
    let zone = (select(ZONES.to_vec()), policies());
    let drawn = (lengths(), lengths(), any::<i64>());
    (timing(), zone, window(), START - DAY..START + 30 * DAY, calendar, rules(), drawn).prop_map(
        |(
            timing,
            (zone, dst),
            (valid_from, valid_until),
            anchor,
            calendar,
            calendar_rule,
            (spread_ms, jitter_ms, seed),
        )| {
            Schedule {
                timing,
                zone,
                dst,
                valid_from,
                valid_until,
                anchor,
                calendar,
                calendar_rule,
                spread_ms,
                jitter_ms,
                seed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Strictly increasing, and the same from wherever one asks.
    #[test]
    fn the_fires_make_one_row(schedule in schedule(), after in START - DAY..START + 300 * DAY, part in 0.0..1.0f64) {
        let row = fires(&schedule, after, 60);
        let mut last = after;
        for at in row {
            prop_assert!(at > last);
            let between = last + ((at - last) as f64 * part) as i64;
            for from in [between.min(at - 1), at - 1, last] {
                prop_assert_eq!(schedule.next_after(from), at, "from {}", from);
            }
            last = at;
        }
    }

    /// Window, calendar, spread and jitter are kept.
    #[test]
    fn every_fire_is_allowed(schedule in schedule(), after in START - DAY..START + 300 * DAY) {
        let plain = Schedule { spread_ms: 0, ..schedule.clone() };
        for (at, spread) in fires(&plain, i64::MIN, 3).into_iter().zip(fires(&schedule, i64::MIN, 3)) {
            let once = matches!(schedule.timing, Timing::Once { .. });
            let most = if once { 1 } else { schedule.spread_ms.max(1) };
            prop_assert!((0..most).contains(&(spread - at)), "{} {}", spread, at);
        }
        for at in fires(&plain, after, 60) {
            prop_assert!(at >= schedule.valid_from || schedule.valid_from == 0);
            prop_assert!(at < schedule.valid_until || schedule.valid_until == 0);
            if let (Some(calendar), false) = (&schedule.calendar, matches!(schedule.timing, Timing::Once { .. })) {
                let local = schedule.zone.timestamp_millis_opt(at).unwrap();
                let local = at.div_euclid(1_000) + i64::from(local.offset().fix().local_minus_utc());
                prop_assert!(calendar.allows(local), "{}", at);
            }
            let due = schedule.due_time(at);
            prop_assert!((0..=schedule.jitter_ms).contains(&(due - at)));
            prop_assert_eq!(due, schedule.due_time(at));
        }
    }

    #[test]
    fn a_run_that_ended_is_followed_by_an_allowed_instant(schedule in schedule(), finished in START..START + 300 * DAY) {
        let next = schedule.next_after_end(finished);
        let Timing::FixedDelay { delay_ms } = schedule.timing else {
            prop_assert_eq!(next, NEVER);
            return Ok(());
        };
        if next != NEVER {
            prop_assert!(next >= finished + delay_ms && next >= schedule.valid_from);
            prop_assert!(next < schedule.valid_until || schedule.valid_until == 0);
        } else if schedule.calendar.is_none() {
            prop_assert!(schedule.valid_until > 0);
        }
    }

    /// Whatever the trigger alone would name either fires or is explained, unless the preview says that there is more.
    #[test]
    fn the_preview_is_complete(schedule in schedule(), after in START - DAY..START + 300 * DAY, count in 1..12usize) {
        let schedule = Schedule { spread_ms: 0, valid_from: 0, valid_until: 0, ..schedule };
        let everything = Schedule {
            calendar: None,
            dst: DstPolicy { gap: Gap::After, overlap: Overlap::Both },
            ..schedule.clone()
        };
        let preview = schedule.preview(after, count);
        let end = preview.last().map_or(after, |line| line.last);
        prop_assume!(preview.iter().all(|line| !line.more));
        let fires: BTreeSet<i64> =
            preview.iter().filter(|line| line.kind == Kind::Fires).map(|line| line.fire_time).collect();
        let named = super::fires(&everything, after, 40_000);
        let left_out = named.iter().filter(|at| **at <= end && !fires.contains(at)).count();
        let explained: u32 = preview.iter().filter(|line| line.kind != Kind::Fires).map(|line| line.count).sum();
        prop_assert_eq!(left_out, explained as usize);
    }

    /// The preview's fires are the fires, its lines are in order, and what it calls skipped does not fire.
    #[test]
    fn the_preview_tells_the_truth(schedule in schedule(), after in START - DAY..START + 300 * DAY, count in 0..12usize) {
        let preview = schedule.preview(after, count);
        let (fire, skipped): (Vec<_>, Vec<_>) = preview.iter().partition(|line| line.kind == Kind::Fires);
        let times: Vec<i64> = fire.iter().map(|line| line.fire_time).collect();
        prop_assert_eq!(&times, &fires(&schedule, after, count));
        prop_assert!(fire.iter().all(|line| line.due_time == schedule.due_time(line.fire_time) && line.count == 1));
        prop_assert!(skipped.len() <= 31 * (count + 1));
        let mut last = after;
        for line in &preview {
            prop_assert!(line.fire_time > last && line.last >= line.fire_time, "{:?}", line);
            last = line.last;
        }
        for line in skipped {
            for at in [line.fire_time, line.last] {
                prop_assert_ne!(schedule.next_after(at - 1), at);
            }
            let outside = match line.kind {
                Kind::Skipped(SkipReason::BeforeValidity) => schedule.valid_from > 0,
                Kind::Skipped(SkipReason::AfterValidity) => schedule.valid_until > 0,
                Kind::Skipped(SkipReason::CalendarDay | SkipReason::CalendarHours | SkipReason::MovedByCalendar) => {
                    schedule.calendar.is_some()
                }
                _ => matches!(schedule.timing, Timing::Cron(_)),
            };
            prop_assert!(outside, "{:?}", line);
        }
    }
}
