use super::*;
use crate::domain::cron::CronSchedule;
use crate::domain::schedule::{NEVER, Timing};
use chrono_tz::Tz;
use proptest::prelude::*;
use std::time::Instant;

/// 2026-11-20 10:00:30 UTC, ms.
const NOW: i64 = 1_795_168_830_000;

fn cron(expression: &str) -> Schedule {
    let parsed = CronSchedule::parse(expression).unwrap();
    Schedule { timing: Timing::Cron(Box::new(parsed)), zone: Tz::Europe__Berlin, ..Schedule::none() }
}

fn rate(interval_ms: i64) -> Schedule {
    Schedule { timing: Timing::FixedRate { interval_ms }, anchor: NOW - 7_654_321, ..Schedule::none() }
}

fn whole(schedule: Schedule) -> Firing {
    Firing { schedule, extent: Extent::Unbounded }
}

/// The minutes of one task, fire by fire.
fn plain(task: &Firing, now: i64) -> Vec<u64> {
    let from = now - now.rem_euclid(MINUTE_MS);
    let mut minutes = vec![0; MINUTES];
    let mut left = if let Extent::Left { fires, .. } = task.extent { fires } else { u64::MAX };
    let mut at = task.schedule.next_after(now);
    while at != NEVER && at < from + MINUTES as i64 * MINUTE_MS {
        match task.extent {
            Extent::Until(end) if at >= end => break,
            Extent::Left { from, .. } if at >= from && left == 0 => break,
            Extent::Left { from, .. } if at >= from => left -= 1,
            _ => {}
        }
        minutes[place_of(from, at)] += 1;
        at = task.schedule.next_after(at);
    }
    minutes
}

#[test]
fn tasks_are_summed_and_the_fullest_minutes_named() {
    let spread = Schedule { spread_ms: 300_000, seed: 7, ..cron("* * * * * ?") };
    let mut tasks: Vec<Firing> = [cron("* * * * * ?"), cron("0 0 12 * * ?"), rate(10_000), spread].map(whole).into();
    tasks.extend((0..20).map(|_| whole(cron("0/20 0 12 * * ?"))));
    let told = forecast(&tasks, NOW, Budget::default());
    let mut sums = vec![0; MINUTES];
    for task in &tasks {
        sums.iter_mut().zip(plain(task, NOW)).for_each(|(sum, fires)| *sum += fires);
    }
    assert_eq!((told.from, told.tasks, told.left_out), (NOW - 30_000, 24, 0));
    assert_eq!(told.minutes, sums);
    assert_eq!(told.minutes[0], 29 + 30 + 3, "only what is still to come, of the running minute");
    assert_eq!(told.peaks.len(), PEAKS_MAX);
    let peak = &told.peaks[0];
    assert_eq!((peak.minute, peak.fires), (NOW - 30_000 + 60 * MINUTE_MS, 60 + 60 + 6 + 1 + 60));
    assert_eq!(peak.tasks, [(0, 60), (3, 60), (2, 6), (4, 3), (5, 3)]);
    assert!(told.peaks.windows(2).all(|two| two[0].fires >= two[1].fires));
}

#[test]
fn messages_over_the_budget_are_left_out_whole() {
    let tasks = [cron("0 0 12 * * ?"), cron("* * * * * ?"), cron("0 0 13 * * ?")].map(whole);
    let told = forecast(&tasks, NOW, Budget { of_task: 100, in_all: 1_000 });
    assert_eq!((told.tasks, told.left_out, told.minutes.iter().sum::<u64>()), (2, 1, 2));
    let told = forecast(&tasks, NOW, Budget { of_task: 2_000, in_all: 1_000 });
    assert_eq!((told.tasks, told.left_out), (1, 2));
    assert_eq!(told.peaks.len(), 1);
    assert_eq!(forecast(&[], NOW, Budget::default()).peaks, []);
}

#[test]
#[ignore = "a measurement; says how long the largest forecast takes"]
fn twenty_thousand_tasks() {
    for expression in ["* * * * * ?", "0 * * * * ?", "0 0/5 * * * ?", "0 0 9 * * ?"] {
        let tasks: Vec<Firing> = (0..20_000).map(|_| whole(cron(expression))).collect();
        let begun = Instant::now();
        let told = forecast(&tasks, NOW, Budget::default());
        println!("{expression}: {:?}, {} counted", begun.elapsed(), told.tasks);
    }
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let expressions =
        vec!["* * * * * ?", "0/7 * 1-3 * * ?", "30 30 2 * * ?", "15,45 0/20 * * * ?", "0 0 9 * * MON-FRI"];
    let expressions =
        expressions.into_iter().map(|text| text.replace("* * MON-FRI", "? * MON-FRI")).collect::<Vec<_>>();
    prop_oneof![
        proptest::sample::select(expressions).prop_map(|text| cron(&text)),
        prop_oneof![500..3_000i64, 3_000..10_000_000i64].prop_map(rate),
        (NOW..NOW + 100_000_000).prop_map(|at| Schedule { timing: Timing::Once { at }, ..Schedule::none() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn a_task_is_counted_as_it_fires(
        schedule in schedules(),
        now in NOW..NOW + 200 * 86_400_000,
        ahead in -100_000..200_000i64,
        fires in 0..3_000u64,
        spread_ms in prop_oneof![Just(0), 0..10_000_000i64],
        which in 0..3,
    ) {
        let extent = match which {
            0 => Extent::Unbounded,
            1 => Extent::Left { from: now + ahead, fires },
            _ => Extent::Until(now + ahead),
        };
        let task = Firing { schedule: Schedule { spread_ms, seed: 99, ..schedule }, extent };
        let told = forecast(std::slice::from_ref(&task), now, Budget::default());
        let expected = plain(&task, now);
        for peak in &told.peaks {
            prop_assert_eq!(&peak.tasks, &vec![(0, peak.fires)]);
        }
        prop_assert_eq!(told.minutes, expected);
        prop_assert_eq!((told.tasks, told.left_out), (1, 0));
    }
}
