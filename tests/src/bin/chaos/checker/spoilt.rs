//! A good history, spoilt in each known way: the checker must name each of them, and nothing in the good one.

use super::{Broken, check};
use crate::history::{Attempt, Bound, History, ManualRun, Row, Schedule, Span, Task, Trouble, Visit, Yields, status};

/// The first fire, epoch ms.
const T0: i64 = 1_700_000_000_000;

/// Everything is mended.
const MENDED: i64 = T0 + 20_000;

/// The tasks are stopped.
const STOPPED: i64 = T0 + 90_000;

/// Tasks of the good history.
const PLAIN: i64 = 1;
const ONCE: i64 = 2;
const SERIAL: i64 = 3;
const RATE: i64 = 4;
const DELAY: i64 = 5;
const CHILD: i64 = 6;
const EDITED: i64 = 7;
const SHARDED: i64 = 8;
const FLAKY: i64 = 9;

fn task(id: i64, name: &str, schedule: Schedule) -> Task {
    Task {
        id,
        name: name.to_owned(),
        schedule,
        is_at_most_once: false,
        bound: None,
        is_sharded: false,
        succeed_at: 1,
        attempts_max: 6,
        timeout_ms: 0,
        expire_after_ms: 0,
        yields: None,
        is_edited: false,
        is_plain: false,
    }
}

/// A good history in the making.
#[derive(Default)]
struct Good(History);

impl Good {
    /// A run that succeeds at its first attempt.
    fn run(&mut self, task: i64, fire: i64, trigger: &str) -> i64 {
        let id = self.row(task, fire, trigger);
        self.visit(id, 1, fire + 2, fire + 50, "ok");
        id
    }

    fn row(&mut self, task: i64, fire: i64, trigger: &str) -> i64 {
        let id = 1_000 + self.0.rows.len() as i64;
        self.0.rows.push(Row {
            id,
            task,
            shard_total: 1,
            fire_time: fire,
            due_time: fire,
            status: status::SUCCEEDED,
            attempt: 1,
            started_at: fire + 2,
            finished_at: fire + 50,
            trigger: trigger.to_owned(),
            ..Row::default()
        });
        id
    }

    fn visit(&mut self, log: i64, attempt: i32, start: i64, end: i64, outcome: &str) {
        let row = self.0.rows.iter().find(|row| row.id == log).unwrap();
        self.0.visits.push(Visit {
            log,
            attempt,
            task: row.task,
            fire_time: row.fire_time,
            due_time: row.fire_time,
            pid: 10,
            start_us: start * 1_000,
            start_mono: (start - T0) * 1_000,
            end_us: end * 1_000,
            end_mono: (end - T0) * 1_000,
            outcome: outcome.to_owned(),
        });
    }
}

fn span(task: i64, from: i64, until: i64, every_ms: Option<i64>) -> Span {
    let until_us = if until == i64::MAX { until } else { until * 1_000 };
    Span { task, from_us: from * 1_000, until_us, every_ms, unreachable: Vec::new() }
}

/// Ninety seconds in which everything is as it should be.
fn good() -> History {
    let mut good = Good::default();
    let cron = Schedule::Cron(1_000);
    let mut tasks = vec![
        Task { is_plain: true, ..task(PLAIN, "plain", cron) },
        Task { is_at_most_once: true, ..task(ONCE, "once", Schedule::Cron(5_000)) },
        Task { bound: Some(Bound { most: 1, in_process: false }), ..task(SERIAL, "serial", Schedule::Cron(2_000)) },
        task(RATE, "rate", Schedule::Rate(3_000)),
        task(DELAY, "delay", Schedule::Delay(1_000)),
        task(CHILD, "child", Schedule::After(SERIAL, None)),
        Task { is_edited: true, ..task(EDITED, "edited", cron) },
        Task { is_sharded: true, ..task(SHARDED, "sharded", Schedule::Cron(10_000)) },
        Task { succeed_at: 2, ..task(FLAKY, "flaky", Schedule::Cron(10_000)) },
    ];
    tasks.push(Task { yields: Some(Yields::Later), ..task(10, "never", Schedule::AfterAll) });
    good.0.tasks = tasks;
    for (task, every) in [(PLAIN, 1_000), (ONCE, 5_000), (SERIAL, 2_000), (SHARDED, 10_000), (FLAKY, 10_000)] {
        good.0.spans.push(span(task, T0 - 500, i64::MAX, Some(every)));
    }
    for at in 0..90 {
        let fire = T0 + at * 1_000;
        good.run(PLAIN, fire, "schedule");
        if at % 5 == 0 {
            good.run(ONCE, fire, "schedule");
        }
        if at % 2 == 0 {
            good.run(SERIAL, fire, "schedule");
            good.run(CHILD, fire + 60, "parent");
        }
        if at % 3 == 0 {
            good.run(RATE, fire + 333, "schedule");
        }
        if at % 10 == 0 {
            sharded(&mut good, fire);
            flaky(&mut good, fire);
        }
    }
    for number in 0..84 {
        good.run(DELAY, T0 + number * 1_050, "schedule");
    }
    edited(&mut good);
    let mut history = good.0;
    history.troubles = vec![Trouble { name: "pause-node".to_owned(), from_us: T0 * 1_000, until_us: MENDED * 1_000 }];
    (history.mended_us, history.stopped_us) = (MENDED * 1_000, STOPPED * 1_000);
    history.visits.sort_by_key(|visit| visit.start_mono);
    history
}

fn sharded(good: &mut Good, fire: i64) {
    let parent = good.row(SHARDED, fire, "schedule");
    let row = good.0.rows.last_mut().unwrap();
    (row.shard_index, row.shard_total) = (-1, 2);
    for shard in 0..2 {
        let id = good.row(SHARDED, fire, "schedule");
        let row = good.0.rows.last_mut().unwrap();
        (row.parent, row.shard_index, row.shard_total) = (parent, shard, 2);
        good.visit(id, 1, fire + 2, fire + 50, "ok");
    }
}

fn flaky(good: &mut Good, fire: i64) {
    let id = good.row(FLAKY, fire, "schedule");
    let row = good.0.rows.last_mut().unwrap();
    (row.attempt, row.failures, row.finished_at) = (2, 1, fire + 1_100);
    good.visit(id, 1, fire + 2, fire + 50, "failed");
    good.visit(id, 2, fire + 1_060, fire + 1_100, "ok");
    let reason = "handler_failed".to_owned();
    good.0.attempts.push(Attempt { log: id, attempt: 1, finished_at: fire + 50, status: 3, reason });
}

/// Every second for 30 s, then stopped for 10 s, then every two seconds; and a run by hand.
fn edited(good: &mut Good) {
    let (stop, start) = (T0 + 30_200, T0 + 40_200);
    good.0.spans.extend([
        span(EDITED, T0 - 500, stop - 100, Some(1_000)),
        span(EDITED, stop, start - 100, None),
        span(EDITED, start, i64::MAX, Some(2_000)),
    ]);
    for at in (0..90).filter(|at| *at <= 30 || (*at > 40 && *at % 2 == 0)) {
        good.run(EDITED, T0 + at * 1_000, "schedule");
    }
    // Written ahead, and cancelled by the stop.
    for at in 31..40 {
        let id = good.row(EDITED, T0 + at * 1_000, "schedule");
        let row = good.0.rows.iter_mut().find(|row| row.id == id).unwrap();
        (row.status, row.attempt, row.finished_at) = (status::CANCELLED, 0, stop);
        "task_stopped".clone_into(&mut row.reason);
    }
    let by_hand = good.run(EDITED, T0 + 35_123, "manual");
    good.0.manual_runs.push(ManualRun { task: EDITED, key: "key".to_owned(), logs: vec![by_hand] });
}

/// The run of a task at its n-th row.
fn nth(history: &mut History, task: i64, n: usize) -> &mut Row {
    history.rows.iter_mut().filter(|row| row.task == task).nth(n).unwrap()
}

fn visits_of(history: &mut History, log: i64) -> impl Iterator<Item = &mut Visit> {
    history.visits.iter_mut().filter(move |visit| visit.log == log)
}

/// The kinds that are named after this was done to the good history.
fn named(spoil: impl FnOnce(&mut History)) -> Vec<&'static str> {
    let mut history = good();
    spoil(&mut history);
    let mut names: Vec<_> = check(&history).iter().map(|broken| broken.what).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A second visit like the first of a run.
fn again(history: &mut History, log: i64, attempt: i32, after_ms: i64) {
    let mut visit = history.visits.iter().find(|visit| visit.log == log).unwrap().clone();
    visit.attempt = attempt;
    for (at, by) in
        [(&mut visit.start_us, 1), (&mut visit.end_us, 1), (&mut visit.start_mono, 1), (&mut visit.end_mono, 1)]
    {
        *at += after_ms * 1_000 * by;
    }
    history.visits.push(visit);
}

#[test]
fn a_good_history_breaks_nothing() {
    let broken: Vec<Broken> = check(&good());
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn rows_that_are_missing_or_too_many_are_named() {
    let lose = |task| {
        move |history: &mut History| {
            let id = nth(history, task, 3).id;
            history.rows.retain(|row| row.id != id);
            history.visits.retain(|visit| visit.log != id);
        }
    };
    assert_eq!(named(lose(PLAIN)), ["lost"]);
    assert_eq!(named(lose(RATE)), ["lost"]);
    assert_eq!(named(lose(EDITED)), ["lost"]);
    assert_eq!(named(lose(CHILD)), ["lost_follower"]);
    let double = |history: &mut History| {
        let row = nth(history, CHILD, 3).clone();
        again(history, row.id, 1, 0);
        history.visits.last_mut().unwrap().log = 9;
        history.rows.push(Row { id: 9, fire_time: row.fire_time + 1, ..row });
    };
    assert_eq!(named(double), ["doubled_follower"]);
    let same = |history: &mut History| {
        let row = nth(history, PLAIN, 3).clone();
        history.visits.push(Visit { log: 9, ..history.visits.iter().find(|v| v.log == row.id).unwrap().clone() });
        history.rows.push(Row { id: 9, ..row });
    };
    assert_eq!(named(same), ["doubled_row"]);
    assert_eq!(named(|history| nth(history, PLAIN, 3).fire_time += 500), ["lost", "unnamed_fire"]);
    assert_eq!(
        named(|history| history.rows.retain(|row| row.task != SHARDED || row.shard_index != 1)),
        ["lost_shard", "start_without_row"]
    );
    assert_eq!(
        named(|history| history.rows.retain(|row| row.task != RATE || row.fire_time < MENDED)),
        ["lost", "start_without_row"]
    );
}

#[test]
fn runs_that_are_early_or_never_end_are_named() {
    let early = |history: &mut History| {
        let id = nth(history, PLAIN, 3).id;
        visits_of(history, id).for_each(|visit| visit.start_us = visit.fire_time * 1_000 - 1);
    };
    assert_eq!(named(early), ["early"]);
    for open in [0, 1, 2, 3] {
        assert_eq!(named(|history| nth(history, PLAIN, 3).status = open), ["stuck"]);
    }
    let late = |history: &mut History| {
        let id = nth(history, PLAIN, 80).id;
        visits_of(history, id).for_each(|visit| visit.start_us += 11_000_000);
    };
    assert_eq!(named(late), ["not_recovered"]);
    let endless = |history: &mut History| {
        let id = nth(history, PLAIN, 3).id;
        visits_of(history, id).for_each(|visit| "unknown".clone_into(&mut visit.outcome));
    };
    assert_eq!(named(endless), ["endless_handler", "invented_success"]);
}

#[test]
fn ends_that_nothing_explains_are_named() {
    let end = |task: i64, state: i32, reason: &'static str| {
        move |history: &mut History| {
            let row = nth(history, task, 3);
            (row.status, row.reason) = (state, reason.to_owned());
        }
    };
    for (state, reason) in [
        (status::FAILED, "outcome_unknown"),
        (status::FAILED, "handler_failed"),
        (status::FAILED, "no_executor"),
        (status::DISCARDED, "blocked"),
        (status::EXPIRED, "expired"),
        (status::EXPIRED, "misfire_skipped"),
        (status::CANCELLED, "task_stopped"),
        (status::CANCELLED, "covered"),
        (status::CANCELLED, ""),
    ] {
        let names = named(end(PLAIN, state, reason));
        assert!(names.contains(&"wrong_end"), "{state} {reason}: {names:?}");
    }
    assert!(named(end(ONCE, status::FAILED, "outcome_unknown")).is_empty());
    let unseen = |history: &mut History| {
        let id = nth(history, PLAIN, 3).id;
        history.visits.retain(|visit| visit.log != id);
    };
    assert_eq!(named(unseen), ["invented_success"]);
    let failed = |history: &mut History| {
        let id = nth(history, PLAIN, 3).id;
        visits_of(history, id).for_each(|visit| "failed".clone_into(&mut visit.outcome));
    };
    assert_eq!(named(failed), ["invented_success"]);
}

#[test]
fn starts_beyond_the_delivery_or_against_the_row_are_named() {
    let twice = |history: &mut History| {
        let id = nth(history, PLAIN, 3).id;
        again(history, id, 1, 400);
    };
    assert_eq!(named(twice), ["doubled_attempt"]);
    let beyond = |history: &mut History| {
        let id = nth(history, PLAIN, 3).id;
        history.deaths.insert(10, 0);
        again(history, id, 2, 400);
    };
    assert_eq!(named(beyond), ["repeated_without_reason", "start_beyond_row"]);
    // A second attempt, after the first ended for this reason.
    let repeated = |task: i64, reason: &'static str, after_ms: i64| {
        move |history: &mut History| {
            let row = nth(history, task, 3);
            row.attempt = 2;
            let (log, finished_at) = (row.id, row.finished_at);
            history.deaths.insert(10, 0);
            history.attempts.push(Attempt { log, attempt: 1, finished_at, status: 3, reason: reason.to_owned() });
            again(history, log, 2, after_ms);
        }
    };
    assert!(named(repeated(PLAIN, "outcome_unknown", 400)).is_empty());
    assert_eq!(named(repeated(ONCE, "outcome_unknown", 400)), ["at_most_once_twice"]);
    assert_eq!(named(repeated(ONCE, "undelivered", 400)), ["at_most_once_twice", "started_though_unstarted"]);
    assert_eq!(named(repeated(PLAIN, "undelivered", 400)), ["repeated_without_reason", "started_though_unstarted"]);
    assert_eq!(named(repeated(PLAIN, "outcome_unknown", 20)), ["attempts_side_by_side"]);
    let alive = |history: &mut History| {
        repeated(PLAIN, "outcome_unknown", 400)(history);
        history.deaths.clear();
    };
    assert_eq!(named(alive), ["repeated_success"]);
    let dead = |history: &mut History| {
        repeated(PLAIN, "outcome_unknown", 900)(history);
        let id = nth(history, PLAIN, 3).id;
        visits_of(history, id).take(1).for_each(|visit| visit.end_us += 700_000);
    };
    assert_eq!(named(dead), ["ran_though_dead"]);
    let untold = |history: &mut History| {
        let id = nth(history, FLAKY, 3).id;
        history.attempts.retain(|kept| kept.log != id);
    };
    assert_eq!(named(untold), ["attempt_without_end", "repeated_without_reason"]);
    let disordered = |history: &mut History| {
        let id = nth(history, FLAKY, 3).id;
        for visit in visits_of(history, id).filter(|visit| visit.attempt == 1) {
            (visit.start_mono, visit.end_mono) = (visit.start_mono + 5_000_000, visit.end_mono + 5_000_000);
        }
    };
    assert!(named(disordered).contains(&"attempts_out_of_order"));
    let rowless = |history: &mut History| history.visits[7].log = 9;
    assert!(named(rowless).contains(&"start_without_row"));
}

#[test]
fn turns_that_are_not_kept_are_named() {
    let overlap = |history: &mut History| {
        let id = nth(history, SERIAL, 3).id;
        visits_of(history, id).for_each(|visit| visit.end_mono += 2_000_000);
    };
    assert_eq!(named(overlap), ["overlap"]);
    let bound = |history: &mut History| {
        history.tasks[2].bound = Some(Bound { most: 2, in_process: false });
        for n in [3, 4] {
            let id = nth(history, SERIAL, n).id;
            visits_of(history, id).for_each(|visit| visit.end_mono += 4_500_000);
        }
    };
    assert_eq!(named(bound), ["bound_exceeded"]);
    // Two processes may, if each counts by itself.
    let apart = |history: &mut History| {
        overlap(history);
        history.tasks[2].bound = Some(Bound { most: 1, in_process: true });
        let id = nth(history, SERIAL, 4).id;
        visits_of(history, id).for_each(|visit| visit.pid = 11);
    };
    assert!(named(apart).is_empty());
}

#[test]
fn chains_that_break_or_hurry_are_named() {
    assert_eq!(named(|history| nth(history, DELAY, 3).finished_at += 200), ["delay_too_short"]);
    let breaks = |history: &mut History| {
        let ids: Vec<i64> =
            history.rows.iter().filter(|row| row.task == DELAY && row.fire_time > MENDED).map(|row| row.id).collect();
        history.rows.retain(|row| !ids.contains(&row.id));
        history.visits.retain(|visit| !ids.contains(&visit.log));
    };
    assert_eq!(named(breaks), ["lost_follower"]);
}

#[test]
fn definitions_that_are_not_kept_are_named() {
    let after_the_stop = |history: &mut History| {
        let row = nth(history, EDITED, 30);
        let log = row.id;
        visits_of(history, log).for_each(|visit| visit.start_us += 400_000);
    };
    assert_eq!(named(after_the_stop), ["old_definition"]);
    let named_one = |history: &mut History| {
        after_the_stop(history);
        let log = nth(history, EDITED, 30).id;
        history.spans.iter_mut().filter(|span| span.every_ms.is_none()).for_each(|span| span.unreachable.push(log));
    };
    assert!(named(named_one).is_empty());
    let lost = |history: &mut History| {
        let row = history.rows.iter_mut().find(|row| row.task == EDITED && row.fire_time == T0 + 50_000).unwrap();
        (row.status, row.attempt, row.finished_at) = (status::CANCELLED, 0, T0 + 30_150);
        row.reason = "task_stopped".to_owned();
        let id = row.id;
        history.visits.retain(|visit| visit.log != id);
    };
    assert_eq!(named(lost), ["lost_by_edit"]);
    assert_eq!(named(|history| history.manual_runs[0].logs.push(4)), ["wrong_run_by_hand"]);
    let twice = |history: &mut History| {
        let row = history.rows.iter().find(|row| row.trigger == "manual").unwrap().clone();
        history.visits.push(Visit { log: 9, ..history.visits.iter().find(|v| v.log == row.id).unwrap().clone() });
        history.rows.push(Row { id: 9, fire_time: row.fire_time + 1, ..row });
    };
    assert_eq!(named(twice), ["doubled_run_by_hand"]);
    assert_eq!(named(|history| history.incidents.push("a panic".to_owned())), ["incident"]);
}
