//! `next_after` allocates nothing, whatever is asked. A test binary of its own, because it counts in the allocator.

#![allow(clippy::unwrap_used)] // a test may fail

use std::hint::black_box;
use std::sync::Arc;

use carillon::domain::calendar::{CalendarRule, CalendarSpec};
use carillon::domain::cron::{CronSchedule, DstPolicy, Gap, Overlap};
use carillon::domain::schedule::{Schedule, Timing};
use chrono_tz::TZ_VARIANTS;

/// 2025-12-31, ms.
const START: i64 = 1_767_139_200_000;

#[test]
fn asking_allocates_nothing() {
    let expressions =
        ["0 0 * * * ?", "0 30 2 * * ?", "*/7 * * * * ?", "0 0 0 29 2 ? 2101", "0 0 9 LW * ?", "0 0 10 ? * 6#5"];
    let parsed = expressions.map(|text| Timing::Cron(Box::new(CronSchedule::parse(text).unwrap())));
    let others =
        [Timing::FixedRate { interval_ms: 1_000_000 }, Timing::FixedDelay { delay_ms: 5 }, Timing::Once { at: START }];
    let spec = CalendarSpec {
        excluded_weekdays: vec!["sat".into(), "sun".into()],
        excluded_hours: vec!["22:00-06:00".into()],
        ..CalendarSpec::default()
    };
    let calendar = Arc::new(spec.compile("office", 1).unwrap());
    let mut schedules = Vec::new();
    for timing in parsed.into_iter().chain(others) {
        for (calendar, calendar_rule) in [
            (None, CalendarRule::Skip),
            (Some(&calendar), CalendarRule::Skip),
            (Some(&calendar), CalendarRule::Next),
            (Some(&calendar), CalendarRule::Previous),
        ] {
            let dst = DstPolicy { gap: Gap::After, overlap: Overlap::Second };
            let bent = Schedule { spread_ms: 1_000_000, jitter_ms: 5_000, seed: 7, anchor: START, ..Schedule::none() };
            schedules.push(Schedule {
                timing: timing.clone(),
                dst,
                calendar: calendar.cloned(),
                calendar_rule,
                ..bent
            });
        }
    }
    // Every zone, from the first question in it on.
    let counted = allocation_counter::measure(|| {
        for zone in TZ_VARIANTS {
            for schedule in &mut schedules {
                schedule.zone = zone;
                let mut after = START;
                for _ in 0..5 {
                    after = black_box(schedule.next_after(after));
                    black_box(schedule.next_after_end(after));
                    black_box(schedule.due_time(after));
                }
            }
        }
    });
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
}
