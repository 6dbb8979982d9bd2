//! A good history, spoilt in each known way: the checker must name each of them, and nothing in the good one.

use super::good::{BOTH, CHILD, DELAY, EDITED, FLAKY, MENDED, ONCE, PLAIN, RATE, SERIAL, SHARDED, T0, WELL, good};
use super::{Broken, check};
use crate::history::{Attempt, Bound, History, Misfire, Row, Trouble, Visit, Yields, status};

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
    let double = |task| {
        move |history: &mut History| {
            let row = nth(history, task, 3).clone();
            again(history, row.id, 1, 0);
            history.visits.last_mut().unwrap().log = 9;
            history.rows.push(Row { id: 9, fire_time: row.fire_time + 1, ..row });
        }
    };
    assert_eq!(named(double(CHILD)), ["doubled_follower"]);
    assert_eq!(named(double(BOTH)), ["doubled_follower"]);
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
    let late_beside = |others: f64| {
        move |history: &mut History| {
            late(history);
            history.others = (0..70).map(|s| ((MENDED + s * 1_000) * 1_000, others)).collect();
        }
    };
    assert_eq!(named(late_beside(0.1)), ["not_recovered"]);
    assert!(named(late_beside(0.3)).is_empty(), "the machine had other work");
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
        (status::FAILED, "not_accepted"),
        (status::EXPIRED, "expired"),
        (status::EXPIRED, "misfire_skipped"),
        (status::CANCELLED, "task_stopped"),
        (status::CANCELLED, "covered"),
        (status::CANCELLED, ""),
    ] {
        let names = named(end(PLAIN, state, reason));
        assert!(names.contains(&"wrong_end"), "{state} {reason}: {names:?}");
    }
    // While a fault lasts no executor may take a run, and its task discards what fails.
    let refused = |n: usize| {
        move |history: &mut History| {
            let row = nth(history, PLAIN, n);
            (row.status, row.reason) = (status::DISCARDED, "not_accepted".to_owned());
        }
    };
    assert!(!named(refused(3)).contains(&"wrong_end"));
    assert!(named(refused(40)).contains(&"wrong_end"));
    // A row that was written as missed, so long after its time.
    let written_as_missed = |after_ms: i64| {
        move |history: &mut History| {
            let row = nth(history, PLAIN, 3);
            let run = row.id;
            (row.status, row.attempt, row.finished_at) = (status::EXPIRED, 0, row.fire_time + after_ms);
            (row.reason, row.trigger) = ("misfire_skipped".to_owned(), "misfire".to_owned());
            history.visits.retain(|visit| visit.log != run);
        }
    };
    assert!(named(written_as_missed(31_000)).is_empty());
    assert_eq!(named(written_as_missed(20_000)), ["wrong_end"]);
    assert_eq!(named(|history| nth(history, PLAIN, 3).finished_at = 0), ["wrong_end"]);
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
fn ends_that_nobody_knows_without_a_fault_are_named() {
    // The n-th run was lost, in this process.
    let lost = |reason: &'static str, n: usize, pid: u32| {
        move |history: &mut History| {
            let row = nth(history, ONCE, n);
            (row.status, row.reason) = (status::FAILED, reason.to_owned());
            let log = row.id;
            visits_of(history, log).for_each(|visit| visit.pid = pid);
        }
    };
    assert!(named(lost("outcome_unknown", 3, 10)).is_empty());
    assert_eq!(named(lost("outcome_unknown", 10, 10)), ["wrong_end"], "long after the fault");
    assert_eq!(named(lost("outcome_unknown", 3, WELL)), ["wrong_end"], "its executor was well");
    assert!(named(lost("abandoned", 3, WELL)).is_empty(), "the nodes were not");
    assert_eq!(named(lost("abandoned", 10, WELL)), ["wrong_end"]);
    let only_late = |history: &mut History| {
        lost("outcome_unknown", 3, 10)(history);
        history.troubles[1].name = "slow-executor".to_owned();
    };
    assert_eq!(named(only_late), ["wrong_end"]);
    let leaves = |history: &mut History| {
        lost("outcome_unknown", 3, 10)(history);
        history.troubles[1].name = "restart-executor".to_owned();
    };
    assert_eq!(named(leaves), ["wrong_end"], "what has begun is told on leaving");
    // It was written down too late for an executor that had left.
    let unwritten = |history: &mut History| {
        leaves(history);
        let id = nth(history, ONCE, 3).id;
        history.visits.retain(|visit| visit.log != id);
    };
    assert!(named(unwritten).is_empty());
    let without_need = |history: &mut History| {
        unwritten(history);
        history.troubles.remove(0);
    };
    assert_eq!(named(without_need), ["wrong_end"]);
}

#[test]
fn runs_that_yield_to_none_are_named() {
    // One was discarded since an earlier one, or stopped since a later one, was there.
    let blocked = |n: usize, by_ms: i64| {
        move |history: &mut History| {
            history.tasks[0].yields = Some(Yields::Later);
            nth(history, PLAIN, n - 1).finished_at += by_ms;
            let row = nth(history, PLAIN, n);
            (row.status, row.reason, row.attempt) = (status::DISCARDED, "blocked".to_owned(), 0);
            let log = row.id;
            history.visits.retain(|visit| visit.log != log);
        }
    };
    assert!(named(blocked(50, 1_500)).is_empty());
    assert_eq!(named(blocked(50, 0)), ["wrong_end"]);
    assert!(named(blocked(3, 0)).is_empty(), "the earlier one's result may be kept back");
    let cut_off_just_after = |history: &mut History| {
        blocked(50, 0)(history);
        let from_us = nth(history, PLAIN, 49).finished_at * 1_000 + 9_000;
        let until_us = nth(history, PLAIN, 50).finished_at * 1_000;
        let (name, target) = ("partition-executor".to_owned(), "executor-0".to_owned());
        history.troubles.push(Trouble { name, target, from_us, until_us });
    };
    assert!(named(cut_off_just_after).is_empty(), "the earlier one's result may be lost on its way");
    let covered = |after_ms: i64| {
        move |history: &mut History| {
            history.tasks[0].yields = Some(Yields::Earlier);
            let row = nth(history, PLAIN, 3);
            (row.status, row.reason) = (status::CANCELLED, "covered".to_owned());
            row.finished_at = row.fire_time + after_ms;
        }
    };
    assert!(named(covered(1_100)).is_empty());
    assert_eq!(named(covered(50)), ["wrong_end"]);
}

#[test]
fn missed_fires_that_are_not_made_up_for_are_named() {
    // Some fires in a row are left out as missed, half a second after the last of them could be.
    let left_out = |misfire: Misfire, count: usize, stand_ins: usize| {
        move |history: &mut History| {
            history.tasks[0].misfire = misfire;
            let last = nth(history, PLAIN, 3 + count - 1).fire_time;
            for n in 3..3 + count - stand_ins {
                let row = nth(history, PLAIN, n);
                (row.status, row.attempt, row.finished_at) = (status::EXPIRED, 0, last + 30_500);
                "misfire_skipped".clone_into(&mut row.reason);
                let log = row.id;
                history.visits.retain(|visit| visit.log != log);
            }
        }
    };
    assert_eq!(named(left_out(Misfire::FireOnce, 5, 0)), ["wrong_end"]);
    assert!(named(left_out(Misfire::FireOnce, 5, 1)).is_empty());
    assert!(named(left_out(Misfire::Skip, 5, 0)).is_empty());
    assert_eq!(named(left_out(Misfire::FireAll(3), 5, 2)), ["wrong_end"]);
    assert!(named(left_out(Misfire::FireAll(3), 5, 3)).is_empty());
    // Some fires in a row are written as missed, and run.
    let made_up_for = |misfire: Misfire, count: usize| {
        move |history: &mut History| {
            history.tasks[0].misfire = misfire;
            let due = nth(history, PLAIN, 3).fire_time + 40_000;
            for n in 3..3 + count {
                let row = nth(history, PLAIN, n);
                (row.due_time, row.started_at, row.finished_at) = (due, due + 2, due + 50);
                "misfire".clone_into(&mut row.trigger);
            }
        }
    };
    assert!(named(made_up_for(Misfire::FireOnce, 1)).is_empty());
    assert_eq!(named(made_up_for(Misfire::FireOnce, 2)), ["ran_though_missed"]);
    assert_eq!(named(made_up_for(Misfire::Skip, 1)), ["ran_though_missed"]);
    assert!(named(made_up_for(Misfire::FireAll(3), 3)).is_empty());
    assert_eq!(named(made_up_for(Misfire::FireAll(3), 4)), ["ran_though_missed"]);
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
        again(history, id, 2, 400);
    };
    assert_eq!(named(beyond), ["repeated_without_reason", "start_beyond_row"]);
    // A second attempt, after the first ended for this reason.
    let repeated = |task: i64, reason: &'static str, after_ms: i64| {
        move |history: &mut History| {
            let row = nth(history, task, 3);
            row.attempt = 2;
            let (log, due_time, finished_at) = (row.id, row.due_time, row.finished_at);
            history.attempts.push(Attempt {
                log,
                attempt: 1,
                due_time,
                finished_at,
                status: 3,
                reason: reason.to_owned(),
            });
            again(history, log, 2, after_ms);
        }
    };
    assert!(named(repeated(PLAIN, "outcome_unknown", 400)).is_empty());
    assert_eq!(named(repeated(ONCE, "outcome_unknown", 400)), ["at_most_once_twice"]);
    assert_eq!(named(repeated(ONCE, "undelivered", 400)), ["at_most_once_twice", "started_though_unstarted"]);
    assert_eq!(named(repeated(PLAIN, "undelivered", 400)), ["repeated_without_reason", "started_though_unstarted"]);
    assert_eq!(named(repeated(PLAIN, "outcome_unknown", 20)), ["attempts_side_by_side"]);
    let well = |history: &mut History| {
        repeated(PLAIN, "outcome_unknown", 400)(history);
        let log = nth(history, PLAIN, 3).id;
        visits_of(history, log).take(1).for_each(|visit| visit.pid = WELL);
    };
    assert_eq!(named(well), ["lost_without_reason", "repeated_success"]);
    let dead = |history: &mut History| {
        repeated(PLAIN, "outcome_unknown", 900)(history);
        let id = nth(history, PLAIN, 3).id;
        visits_of(history, id).take(1).for_each(|visit| visit.end_us += 700_000);
    };
    assert_eq!(named(dead), ["ran_though_dead"]);
    // As rows have it: nothing says when, and the next attempt was due some time after.
    let timeless = |history: &mut History| {
        repeated(PLAIN, "outcome_unknown", 400)(history);
        history.attempts.last_mut().unwrap().finished_at = 0;
        nth(history, PLAIN, 3).due_time += 400;
    };
    assert!(named(timeless).is_empty());
    let timeless_and_dead = |history: &mut History| {
        timeless(history);
        let id = nth(history, PLAIN, 3).id;
        visits_of(history, id).take(1).for_each(|visit| visit.end_us += 700_000);
    };
    assert_eq!(named(timeless_and_dead), ["ran_though_dead"]);
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
fn executors_of_others_are_named() {
    let of_others = |history: &mut History| history.tenants.values_mut().for_each(|tenant| *tenant = 1);
    assert_eq!(named(of_others), ["foreign_executor"]);
}

/// An attempt of which nobody knows how it ended has no time; where an edit had the run go on, it is due as it was.
#[test]
fn what_is_called_lost_is_so_by_the_next_start() {
    let lost = |after_ms: i64| {
        move |history: &mut History| {
            let row = nth(history, PLAIN, 0);
            row.attempt = 2;
            let (log, due_time, reason) = (row.id, row.due_time, "outcome_unknown".to_owned());
            history.attempts.push(Attempt { log, attempt: 1, due_time, finished_at: 0, status: 3, reason });
            again(history, log, 2, after_ms);
            history.visits.retain(|visit| (visit.log, visit.attempt) != (log, 1));
            // It was due before anything was out of order.
            let partition = history.troubles.iter_mut().find(|trouble| trouble.name == "partition-executor").unwrap();
            (partition.from_us, partition.until_us) = ((T0 + 4_000) * 1_000, (T0 + 6_000) * 1_000);
        }
    };
    assert!(!named(lost(10_000)).contains(&"lost_without_reason"));
    assert!(named(lost(1_000)).contains(&"lost_without_reason"));
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
    let breaks = |task: i64| {
        move |history: &mut History| {
            let is_lost = |row: &&Row| row.task == task && row.fire_time > MENDED;
            let ids: Vec<i64> = history.rows.iter().filter(is_lost).map(|row| row.id).collect();
            history.rows.retain(|row| !ids.contains(&row.id));
            history.visits.retain(|visit| !ids.contains(&visit.log));
        }
    };
    assert_eq!(named(breaks(DELAY)), ["lost_follower"]);
    assert_eq!(named(breaks(BOTH)), ["lost_follower"]);
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
    let in_vain = |history: &mut History| {
        named_one(history);
        history.troubles.clear();
    };
    assert_eq!(named(in_vain), ["old_definition"], "everything could be reached");
    let elsewhere = |history: &mut History| {
        named_one(history);
        history.troubles.remove(0);
        history.troubles[0].until_us = history.mended_us;
        let log = nth(history, EDITED, 30).id;
        visits_of(history, log).for_each(|visit| visit.pid = WELL);
    };
    assert_eq!(named(elsewhere), ["old_definition"], "its executor could be reached");
    let runs = |history: &mut History| {
        in_vain(history);
        let answered = history.spans.iter().find(|span| span.every_ms.is_none()).unwrap().from_us;
        let log = nth(history, EDITED, 30).id;
        visits_of(history, log).for_each(|visit| visit.start_us = answered);
    };
    assert!(named(runs).is_empty(), "it had started");
    // Due while the task is stopped: only what an executor holds that cannot be reached.
    let held = |is_named: bool| {
        move |history: &mut History| {
            let stopped = history.spans.iter_mut().find(|span| span.every_ms.is_none()).unwrap();
            let fire_time = stopped.from_us / 1_000 + 900;
            if is_named {
                stopped.unreachable.push(9);
            }
            let row = Row { id: 9, fire_time, due_time: fire_time, ..nth(history, EDITED, 30).clone() };
            history.rows.push(Row { started_at: fire_time + 2, finished_at: fire_time + 50, ..row });
            let mut visit = history.visits.iter().find(|visit| visit.task == EDITED).unwrap().clone();
            (visit.log, visit.fire_time, visit.due_time) = (9, fire_time, fire_time);
            let later = fire_time * 1_000 + 2_000 - visit.start_us;
            for instant in [&mut visit.start_us, &mut visit.start_mono, &mut visit.end_us, &mut visit.end_mono] {
                *instant += later;
            }
            history.visits.push(visit);
        }
    };
    assert_eq!(named(held(false)), ["old_definition", "unnamed_fire"]);
    assert!(named(held(true)).is_empty());
    let lost = |history: &mut History| {
        let row = history.rows.iter_mut().find(|row| row.task == EDITED && row.fire_time == T0 + 50_000).unwrap();
        (row.status, row.attempt, row.finished_at) = (status::CANCELLED, 0, T0 + 30_150);
        row.reason = "task_stopped".to_owned();
        let id = row.id;
        history.visits.retain(|visit| visit.log != id);
    };
    assert_eq!(named(lost), ["lost_by_edit"]);
    let given_up = |at: i64| {
        move |history: &mut History| {
            let row = history.rows.iter_mut().find(|row| row.task == EDITED && row.fire_time == at).unwrap();
            (row.status, row.attempt, row.finished_at) = (status::CANCELLED, 0, at + 10);
            row.reason = "task_stopped".to_owned();
            let id = row.id;
            history.visits.retain(|visit| visit.log != id);
        }
    };
    assert!(named(given_up(T0 + 42_000)).is_empty());
    assert_eq!(named(given_up(T0 + 80_000)), ["wrong_end"], "long after every change");
    assert_eq!(named(given_up(T0 + 10_000)), ["wrong_end"], "before every change");
    assert_eq!(named(|history| history.manual_runs[0].logs.push(4)), ["wrong_run_by_hand"]);
    let twice = |history: &mut History| {
        let row = history.rows.iter().find(|row| row.trigger == "manual").unwrap().clone();
        history.visits.push(Visit { log: 9, ..history.visits.iter().find(|v| v.log == row.id).unwrap().clone() });
        history.rows.push(Row { id: 9, fire_time: row.fire_time + 1, ..row });
    };
    assert_eq!(named(twice), ["doubled_run_by_hand"]);
    assert_eq!(named(|history| history.incidents.push("a panic".to_owned())), ["incident"]);
}
