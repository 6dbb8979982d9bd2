//! Fires by the minute against the fires themselves, for any schedule.

use std::collections::BTreeMap;

use carillon::domain::schedule::{NEVER, Schedule};
use proptest::prelude::*;

use super::properties::schedule;
use super::{cron, ms};

fn counted(schedule: &Schedule, after: i64, until: i64) -> BTreeMap<i64, u64> {
    let mut minutes = BTreeMap::new();
    let is_whole = schedule.count(after, until, &mut 1_000_000, |minute, fires| {
        *minutes.entry(minute).or_default() += fires;
        true
    });
    assert!(is_whole);
    minutes
}

fn walked(schedule: &Schedule, after: i64, until: i64) -> BTreeMap<i64, u64> {
    let mut minutes = BTreeMap::new();
    let mut at = schedule.next_after(after);
    while at != NEVER && at < until {
        *minutes.entry(at - at.rem_euclid(60_000)).or_default() += 1;
        at = schedule.next_after(at);
    }
    minutes
}

/// Over every change of these clocks, half-hour ones among them, in one step a minute but for the change itself.
#[test]
fn changes_of_the_clock_are_counted_as_they_fire() {
    let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"];
    for zone in zones.map(|zone| zone.parse().unwrap()) {
        for expression in ["* * * * * ?", "30 30 2 * * ?", "7/9 0/10 1,2 * * ?", "5,55 15,45 1-3 * * ?"] {
            let schedule = Schedule { spread_ms: 500_000, seed: 5, ..cron(expression, zone) };
            for day in ["2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31"] {
                let after = ms(&format!("{day}T13:00:12.345Z"));
                let until = after + 86_400_000;
                assert_eq!(
                    counted(&schedule, after, until),
                    walked(&schedule, after, until),
                    "{zone} {expression} {day}"
                );
            }
        }
    }
    let every_second = cron("* * * * * ?", "Europe/Berlin".parse().unwrap());
    let mut steps = 10_000;
    every_second.count(ms("2026-03-28T13:00:00Z"), ms("2026-03-29T13:00:00Z"), &mut steps, |_, _| true);
    assert!((1_440..1_560).contains(&(10_000 - steps)), "{}", 10_000 - steps);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_schedule_is_counted_as_it_fires(
        schedule in schedule(),
        after in 1_767_225_600_000i64..1_790_000_000_000,
        length in 0..200_000_000i64,
    ) {
        let until = after + length;
        prop_assert_eq!(counted(&schedule, after, until), walked(&schedule, after, until));
    }
}
