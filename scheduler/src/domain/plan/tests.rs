use super::*;
use crate::domain::LogId;
use crate::domain::task::{ScheduleKind, TaskSpec, test::task_of};
use proptest::prelude::*;

fn task(cron: &str, next_fire_at: i64, misfire_strategy: MisfireStrategy) -> Task {
    let schedule = ScheduleKind::Cron;
    let spec = TaskSpec { schedule, cron: cron.to_owned(), misfire_strategy, ..TaskSpec::default() };
    Task { next_fire_at, ..task_of(spec) }
}

fn window(now: i64) -> Window {
    Window { now, until: now + 180_000, misfire_after_ms: 30_000, fires_max: 1_000, doubted_until: i64::MIN }
}

fn planned_in(task: &Task, window: Window) -> Option<Plan> {
    let mut id = 0;
    plan(task, window, || {
        id += 1;
        LogId(id)
    })
}

fn planned(task: &Task, now: i64) -> Option<Plan> {
    planned_in(task, window(now))
}

#[test]
fn nothing_in_the_window_is_no_plan() {
    assert_eq!(planned(&task("* * * * * ?", NEVER, MisfireStrategy::Skip), 0), None);
    assert_eq!(planned(&task("* * * * * ?", 180_001, MisfireStrategy::Skip), 0), None);
}

#[test]
fn a_fire_a_little_late_is_an_ordinary_fire() {
    let plan = planned(&task("0 * * * * ?", 60_000, MisfireStrategy::Skip), 90_000).unwrap();
    assert_eq!(plan.fires[0].fire_time, 60_000);
    let first = &plan.fires[0];
    assert_eq!((first.status, first.reason, first.trigger), (Status::Init, Reason::None, Trigger::Schedule));
}

/// Also if an edit, or a start after a pause, has given it a watermark.
#[test]
fn a_fixed_delay_without_a_fire_left_ends() {
    let (schedule, max_fires) = (ScheduleKind::FixedDelay, 3);
    let spec = TaskSpec { schedule, interval_ms: 1_000, max_fires, ..TaskSpec::default() };
    let delayed = |fires, next_fire_at| Task { next_fire_at, fires, ..task_of(spec.clone()) };
    for next_fire_at in [500, 2_000] {
        let plan = planned(&delayed(3, next_fire_at), 1_000).unwrap();
        assert_eq!((plan.fires.len(), plan.to), (0, NEVER));
    }
    let last = planned(&delayed(2, 2_000), 1_000).unwrap();
    assert_eq!((last.fires.len(), last.to, last.instead), (1, NEVER, 2_001));
    let mut skips = delayed(2, 2_000);
    skips.spec.misfire_strategy = MisfireStrategy::Skip;
    let none = planned(&skips, 100_000).unwrap();
    assert_eq!((none.fires[0].status, none.to, none.instead), (Status::Expired, 101_000, NEVER));
    let hourly = planned(&task("0 0 * * * ?", 3_600_000, MisfireStrategy::Skip), 3_500_000).unwrap();
    assert_eq!((hourly.fires.len(), hourly.instead), (1, NEVER), "its instants are its own");
}

/// H3, H4: every missed fire leaves a row that says why, the last hundred one each, and
/// policy says which of them run.
#[test]
fn missed_fires_leave_rows_and_run_by_policy() {
    let now = 3_600_000;
    for (strategy, expected) in
        [(MisfireStrategy::Skip, 0), (MisfireStrategy::FireOnce, 1), (MisfireStrategy::FireAll, 10)]
    {
        let plan = planned(&task("* * * * * ?", 1_000, strategy), now).unwrap();
        let missed: Vec<&Fire> = plan.fires.iter().filter(|fire| fire.trigger == Trigger::Misfire).collect();
        assert_eq!(missed.len(), 100, "{strategy:?}");
        assert!(missed.windows(2).all(|pair| pair[0].fire_time + 1_000 == pair[1].fire_time));
        assert_eq!(missed[99].fire_time, 3_569_000);
        assert!(missed[0].message.contains("3469 more before it were missed, too"), "{}", missed[0].message);
        let (run, left_out): (Vec<&Fire>, Vec<&Fire>) = missed.iter().partition(|fire| fire.status == Status::Init);
        assert_eq!(run.len(), expected);
        assert!(run.iter().all(|fire| fire.due_time == now && fire.fire_time > 3_569_000 - 1_000 * 10));
        assert!(left_out.iter().all(|fire| fire.reason == Reason::MisfireSkipped && fire.status == Status::Expired));
        assert_eq!(plan.fires[100].fire_time, 3_570_000);
        assert_eq!((plan.fires[100].trigger, plan.to), (Trigger::Schedule, now + 181_000));
    }
}

/// In a time that the database has lost they may have run: due then, they are held, or end, with what was written then.
#[test]
fn what_is_made_up_for_a_doubted_time_is_due_then() {
    let now = 3_600_000;
    let missed = task("* * * * * ?", 1_000, MisfireStrategy::FireAll);
    let plan = plan(&missed, Window { doubted_until: 3_565_000, ..window(now) }, || LogId(1)).unwrap();
    let run = plan.fires.iter().filter(|fire| fire.trigger == Trigger::Misfire && fire.status == Status::Init);
    let due: Vec<(i64, i64)> = run.map(|fire| (fire.fire_time, fire.due_time)).collect();
    let expected = |at| (at, if at <= 3_565_000 { at } else { now });
    assert_eq!(due, (0..10).map(|n| expected(3_560_000 + n * 1_000)).collect::<Vec<_>>());
}

#[test]
fn fire_all_is_bounded_in_number_and_lateness() {
    let mut all = task("0 * * * * ?", 60_000, MisfireStrategy::FireAll);
    all.spec.misfire_max = 1_000;
    all.spec.misfire_max_late_ms = 300_000;
    let now = 3_600_000;
    let plan = planned(&all, now).unwrap();
    let run: Vec<i64> = plan
        .fires
        .iter()
        .filter(|f| f.trigger == Trigger::Misfire && f.status == Status::Init)
        .map(|f| f.fire_time)
        .collect();
    assert_eq!(run, [3_300_000, 3_360_000, 3_420_000, 3_480_000, 3_540_000]);
    let why = &plan.fires[0].message;
    assert!(why.contains("more than 300000 ms late"), "{why}");
}

#[test]
fn rows_of_missed_fires_are_bounded_per_pass_and_go_on_in_the_next() {
    let mut at = task("* * * * * ?", 1_000, MisfireStrategy::FireOnce);
    let small = Window { fires_max: 7, until: 3_569_500, ..window(3_600_000) };
    let mut rows = Vec::new();
    while let Some(plan) = planned_in(&at, small) {
        assert!(plan.fires.len() <= 7);
        rows.extend(plan.fires);
        at.next_fire_at = plan.to;
    }
    assert_eq!(rows.len(), 100);
    assert_eq!(rows.iter().filter(|fire| fire.status == Status::Init).count(), 1);
    assert_eq!(rows[99].status, Status::Init);
}

#[test]
fn missed_fires_are_counted_with_a_bound() {
    let year = 365 * 86_400_000;
    let plan = planned(&task("* * * * * ?", 1_000, MisfireStrategy::FireOnce), year).unwrap();
    assert!(plan.fires[0].message.contains("at least 99900"), "{}", plan.fires[0].message);
    assert_eq!(plan.fires[99].fire_time, year - 31_000);
    assert_eq!(plan.fires[100].fire_time, year - 30_000);
}

/// What a person cancelled is not the run that stands for the others, and has its row already.
#[test]
fn a_cancelled_fire_stands_for_no_missed_one() {
    let hourly = task("0 0 * * * ?", 3_600_000, MisfireStrategy::FireOnce);
    let mut id = 0;
    let now = 4 * 3_600_000 + 60_000;
    let plan = plan_besides(&hourly, window(now), &[3_600_000, 4 * 3_600_000], || {
        id += 1;
        LogId(id)
    });
    let fires: Vec<_> = plan.unwrap().fires.into_iter().map(|fire| (fire.fire_time, fire.status)).collect();
    assert_eq!(fires, [(2 * 3_600_000, Status::Expired), (3 * 3_600_000, Status::Init)]);
}

#[test]
fn a_schedule_that_ends_is_planned_to_its_end_and_no_further() {
    let plan = planned(&task("30 0 0 1 1 ? 1970", 30_000, MisfireStrategy::Skip), 0).unwrap();
    assert_eq!((plan.fires.len(), plan.to), (1, NEVER));
}

#[test]
fn max_fires_ends_the_schedule() {
    let mut bounded = task("* * * * * ?", 1_000, MisfireStrategy::Skip);
    (bounded.spec.max_fires, bounded.fires, bounded.turn) = (10, 7, 40);
    let plan = planned(&bounded, 0).unwrap();
    assert_eq!((plan.fires.len(), plan.counted(), plan.to), (3, 3, NEVER));
    assert_eq!(plan.fires.iter().map(|fire| fire.seq).collect::<Vec<_>>(), [41, 42, 43]);
}

#[test]
fn a_fixed_delay_goes_on_after_a_fire_that_was_skipped() {
    let spec = TaskSpec {
        schedule: ScheduleKind::FixedDelay,
        interval_ms: 5_000,
        misfire_strategy: MisfireStrategy::Skip,
        ..TaskSpec::default()
    };
    let late = Task { next_fire_at: 5_000, ..task_of(spec) };
    let plan = planned(&late, 100_000).unwrap();
    assert_eq!((plan.fires.len(), plan.fires[0].status, plan.to), (1, Status::Expired, 105_000));
    let in_time = planned(&Task { next_fire_at: 99_000, ..late }, 100_000).unwrap();
    assert_eq!((in_time.fires[0].status, in_time.to), (Status::Init, NEVER));
}

/// The end of a run from before the last start, or edit, is told late: one chain goes on, from that start.
#[test]
fn a_fixed_delay_has_one_chain_after_an_end_that_is_told_late() {
    let spec = TaskSpec { schedule: ScheduleKind::FixedDelay, interval_ms: 5_000, ..TaskSpec::default() };
    let schedule = spec.to_schedule(100_000, TaskId(1)).unwrap();
    let first = schedule.next_after(0);
    assert_eq!((first, schedule.next_after(first)), (105_000, NEVER));
    for finished_at in [90_000, 99_999, 100_000] {
        assert_eq!(schedule.next_after_end(finished_at), first);
    }
    assert_eq!(schedule.next_after_end(101_000), 106_000);
}

#[test]
fn instants_that_an_earlier_revision_may_have_written_are_taken_over() {
    let old = Task { written_until: 5_000, ..task("* * * * * ?", 4_000, MisfireStrategy::Skip) };
    assert!(planned(&old, 0).unwrap().takes_over);
    assert!(!planned(&Task { next_fire_at: 5_000, ..old }, 0).unwrap().takes_over);
}

proptest! {
    /// Pass after pass, whatever the bounds: every fire once, in order, none left out.
    #[test]
    fn passes_join_without_a_gap(step in 1usize..50, start in 0i64..100_000) {
        let mut at = task("0/7 * * * * ?", NEVER, MisfireStrategy::Skip);
        at.next_fire_at = at.schedule.next_after(start);
        let mut fires = Vec::new();
        let first = at.next_fire_at;
        while let Some(plan) = plan(&at, Window { fires_max: step, ..window(start) }, || LogId(1)) {
            fires.extend(plan.fires.iter().map(|fire| fire.fire_time));
            at.next_fire_at = plan.to;
        }
        let mut expected = Vec::new();
        let mut next = first;
        while next <= start + 180_000 {
            expected.push(next);
            next = at.schedule.next_after(next);
        }
        prop_assert_eq!(fires, expected);
    }
}
