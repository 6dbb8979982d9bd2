//! Single stories of what a node does beside fires: each of its workers, and what people ask of it, put to the test in a world
//! without faults, where it must do exactly what it says. (Random seeds mix all of it with every fault.)

use crate::faults::{Fault, Mishap, Planned};
use crate::operations::{Intended, Operation};
use crate::settings::Shape;
use crate::stories::{TWELVE_SECONDS, assert_kept, at};
use crate::world::{Setup, World};
use carillon::domain::quota::Quotas;
use carillon::domain::rules::WindowAction;
use carillon::domain::statistics::{Figures, Grain, MINUTE_MS};
use carillon::domain::task::ScheduleKind;
use carillon::domain::{LogId, Reason, Status, Trigger};
use carillon_protocol::RunKey;
use carillon_simulation::executor::{Start, Stopped};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes have read new rules this long after they were set, ms.
const RULES_READ_MS: i64 = 3_000;

/// Places of tasks.
const EVERY_SECOND: usize = 0;
const SLOW: usize = 1;
const PAUSES_ITSELF: usize = 14;

/// Tells the story, and holds it to every promise.
fn told(seed: u64, faults: &[Planned], operations: &[Intended]) -> Arc<World> {
    told_by(Shape::default(), seed, faults, operations)
}

fn told_by(shape: Shape, seed: u64, faults: &[Planned], operations: &[Intended]) -> Arc<World> {
    let world = crate::simulate(&Setup {
        seed,
        shape,
        quotas: Quotas::default(),
        faults: Some(faults.to_vec()),
        operations: Some(operations.to_vec()),
        ..Setup::of(seed)
    });
    assert_kept(seed, &world);
    world
}

fn done(at: i64, operation: Operation) -> Intended {
    Intended { at, operation, leaves: None }
}

/// When that operation was done, by true time, ms.
fn begun(world: &World, at: i64) -> i64 {
    world.began + at
}

/// How many of these runs went on at the start of each, that one included. A sharded run counts as one.
fn most_at_once(world: &World, starts: &[&Start]) -> usize {
    let stops: BTreeMap<RunKey, i64> = world.ledger.stops().into_iter().map(|stop| (stop.key, stop.at)).collect();
    let goes_on = |one: &Start, at: i64| one.at <= at && stops.get(&one.key).is_none_or(|end| *end > at);
    world.store.inspect(|state| {
        let counts_as = |one: &Start| {
            let run = &state.logs[&LogId(one.key.0)].run;
            if run.parent_id.is_none() { run.id } else { run.parent_id }
        };
        let beside = |run: &&Start| {
            let going = starts.iter().filter(|other| goes_on(other, run.at));
            going.map(|other| counts_as(other)).collect::<BTreeSet<_>>().len()
        };
        starts.iter().map(beside).max().unwrap_or(0)
    })
}

/// Promise 7.
#[test]
fn a_node_that_is_stopped_gives_back_what_it_holds_and_delays_nothing() {
    for seed in 0..8 {
        let stop = |node, at| Planned { at, fault: Fault::Stop { node, down: 9_000 } };
        let world = told(seed, &[stop(0, 25_300), stop(1, 45_900), stop(0, 65_500)], &[]);
        assert_eq!(world.trace.about(": has left", 9).len(), 3, "seed {seed}");
        let began = begun(&world, 5_000);
        let waits = |start: &Start| {
            world.store.inspect(|state| {
                let spec = &state.tasks[&start.task].view.spec;
                // A child's time is there when it is written.
                spec.needs_permit() || spec.schedule == ScheduleKind::None
            })
        };
        let starts = world.ledger.starts();
        let first = starts.iter().filter(|start| start.key.1 == 1 && start.fire_time > began && !waits(start));
        let late: Vec<&Start> = first.filter(|start| start.at > start.due_time + 25).collect();
        assert!(late.is_empty(), "seed {seed}: {late:#?}");
    }
}

#[test]
fn a_backfill_writes_its_range_a_few_runs_at_a_time() {
    let fill = |at_once, until| Operation::Backfill {
        task: EVERY_SECOND,
        from: 70_000,
        until,
        at_once,
        cancelled_after: None,
    };
    // Fires from before there was a node; and the same again, with those that have run by then.
    let world = told(1, &[], &[done(20_000, fill(3, 40_000)), done(50_000, fill(2, 20_000))]);
    let backfills = world.store.inspect(|state| state.backfills.values().cloned().collect::<Vec<_>>());
    assert_eq!(backfills.len(), 2);
    assert!(backfills.iter().all(|one| one.status == "done"), "{backfills:?}");
    assert_eq!((backfills[0].written, backfills[0].existing), (30, 0));
    assert!(backfills[1].written > 0 && backfills[1].existing > 20, "{backfills:?}");
    let filled = world.store.inspect(|state| {
        let rows = state.logs.values().map(|row| &row.run).filter(|run| run.trigger == Trigger::Backfill);
        rows.map(|run| (run.id, run.status)).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(filled.len() as i64, backfills[0].written + backfills[1].written);
    assert!(filled.values().all(|status| *status == Status::Succeeded));
    let starts = world.ledger.starts();
    let of_fills: Vec<&Start> = starts.iter().filter(|start| filled.contains_key(&LogId(start.key.0))).collect();
    assert!((2..=5).contains(&most_at_once(&world, &of_fills)));
}

#[test]
fn a_backfill_that_is_cancelled_goes_no_further() {
    let operation = Operation::Backfill {
        task: EVERY_SECOND,
        from: 120_000,
        until: 30_000,
        at_once: 1,
        cancelled_after: Some(3_000),
    };
    let world = told(1, &[], &[done(20_000, operation)]);
    let backfill = world.store.inspect(|state| state.backfills.values().next().cloned()).unwrap();
    assert_eq!(backfill.status, "cancelled");
    assert!((1..60).contains(&backfill.written), "{backfill:?}");
}

#[test]
fn statistics_say_what_the_logs_say() {
    let world = told(1, &[], &[]);
    world.store.inspect(|state| {
        let mut minutes = 0;
        for ((grain, start, subject), row) in &state.figures {
            let within = |log: &i64| (*start..*start + MINUTE_MS).contains(log);
            let counted = |of: &dyn Fn(Status) -> bool| {
                let runs = state.logs.values().map(|row| &row.run).filter(|run| run.parent_id == LogId::NONE);
                let runs = runs.filter(|run| *subject == 0 || [run.task_id.0, run.tenant_id.0].contains(subject));
                runs.filter(|run| within(&run.fire_time) && of(run.status)).count() as u64
            };
            let Figures { fires, succeeded, failed, cancelled, open, .. } = row.figures;
            let is_minute = matches!(grain, Grain::TaskMinute | Grain::TenantMinute);
            // What was open when it was counted last may have ended since.
            if is_minute && open == 0 {
                let of = |status: Status| counted(&|found| found == status);
                let rows = [counted(&|_| true), of(Status::Succeeded), of(Status::Failed), of(Status::Cancelled)];
                assert_eq!([fires, succeeded, failed, cancelled], rows, "{grain:?} {start} {subject}");
                minutes += 1;
            }
        }
        assert!(minutes > 10, "{minutes} minutes were counted");
        let everything = state.figures.keys().any(|(grain, _, tenant)| *grain == Grain::TenantMinute && *tenant == 0);
        assert!(everything, "and added up");
    });
}

#[test]
fn retention_takes_what_is_old_and_nothing_else() {
    let world = told(1, &[], &[done(20_000, Operation::History { task: EVERY_SECOND, logs: 2_500 })]);
    assert!(world.trace.about("2500 logs of long ago are there", 2).len() == 1);
    let (old, all) = world.store.inspect(|state| {
        let old = state.logs.values().filter(|row| row.run.fire_time < begun(&world, 0) - 3_600_000).count();
        (old, state.logs.len())
    });
    assert!(old == 0 && all > 300, "{old} old ones are left of {all}");
}

#[test]
fn a_task_that_fails_too_often_in_a_row_pauses_itself() {
    let mut paused = 0;
    for seed in 0..4 {
        let world = told(seed, &[], &[]);
        let task = world.tasks()[PAUSES_ITSELF];
        let by_itself = world.store.inspect(|state| {
            let mut changes = state.changes.iter().filter(|change| change.task == task && !change.started);
            changes.next().filter(|change| change.at < begun(&world, 119_000)).cloned()
        });
        let Some(pause) = by_itself else { continue };
        paused += 1;
        let late = world.ledger.starts().into_iter().find(|start| start.task == task && start.at > pause.at + 3_100);
        assert!(late.is_none(), "seed {seed}: {late:?} after {pause:?}");
        let failed = world.store.inspect(|state| {
            let rows = state.logs.values().filter(|row| row.run.task_id == task && row.run.status == Status::Failed);
            rows.count()
        });
        assert!(failed >= 3, "seed {seed}: {failed} failures");
    }
    assert!(paused > 0, "no seed paused the task");
}

#[test]
fn a_run_that_is_cancelled_ends_wherever_it_is() {
    let cancel = |at| done(at, Operation::Cancel { task: SLOW, newest: at % 2 == 0 });
    let world = told(1, &[], &[cancel(12_001), cancel(22_500), cancel(31_700), cancel(43_003), cancel(52_000)]);
    let rows = world.store.inspect(|state| {
        let rows = state.logs.values().map(|row| &row.run).filter(|run| run.reason == Reason::CancelledManually);
        rows.map(|run| run.id).collect::<Vec<_>>()
    });
    assert!(rows.len() >= 3, "{rows:?}");
    let stopped = world.ledger.stops().into_iter().filter(|stop| rows.contains(&LogId(stop.key.0)));
    assert!(stopped.filter(|stop| stop.how != Stopped::Killed).count() > 0, "one of them was going on");
}

#[test]
fn a_window_holds_back_or_drops_what_is_due_in_it() {
    for action in [WindowAction::Postpone, WindowAction::Skip] {
        let window = Operation::Window { begins_in: 5_000, lasts: 10_000, action, dropped_after: None };
        let world = told(1, &[], &[done(20_000, window)]);
        let (from, until) = (begun(&world, 25_000), begun(&world, 35_000));
        let starts = world.ledger.starts();
        let first = |start: &&Start| start.key.1 == 1 && (from..until).contains(&start.fire_time);
        let within: Vec<&Start> = starts.iter().filter(first).filter(|start| start.at < until).collect();
        let children = |start: &&&Start| start.task == world.tasks()[13];
        assert_eq!(within.iter().filter(|start| !children(start)).count(), 0, "{within:?}");
        let held = world.store.inspect(|state| {
            let rows = state.logs.values().filter(|row| (from..until).contains(&row.run.fire_time));
            let of_task = rows.filter(|row| row.run.task_id == world.tasks()[EVERY_SECOND]);
            of_task.map(|row| row.run.status).collect::<Vec<_>>()
        });
        let expected = match action {
            WindowAction::Skip => Status::Expired,
            WindowAction::Postpone => Status::Succeeded,
        };
        assert_eq!(held, vec![expected; 10]);
    }
}

#[test]
fn a_window_that_is_taken_away_lets_its_runs_go() {
    let action = WindowAction::Postpone;
    let window = Operation::Window { begins_in: 5_000, lasts: 40_000, action, dropped_after: Some(15_000) };
    let world = told(1, &[], &[done(20_000, window)]);
    let (from, dropped) = (begun(&world, 25_000), begun(&world, 35_000));
    let of_task =
        |start: &&Start| start.task == world.tasks()[EVERY_SECOND] && (from..dropped).contains(&start.fire_time);
    let starts = world.ledger.starts();
    let held: Vec<i64> = starts.iter().filter(of_task).map(|start| start.at - dropped).collect();
    assert_eq!(held.len(), 10);
    assert!(held.iter().all(|after| (0..5_000).contains(after)), "{held:?}");
}

#[test]
fn bounds_of_app_and_tenant_hold_while_they_stand() {
    let (most, lasts) = (2, 20_000);
    for operation in [Operation::BoundApp { most, lasts }, Operation::BoundTenant { most, lasts }] {
        let world = told(1, &[], &[done(20_000, operation)]);
        let (from, until) = (begun(&world, 20_000 + RULES_READ_MS), begun(&world, 40_000));
        let starts = world.ledger.starts();
        // What was dispatched before has no permit.
        let marked = |start: &&Start| {
            let mark =
                world.store.inspect(|state| state.dispatch_marks.get(&(LogId(start.key.0), start.key.1)).copied());
            mark.is_some_and(|mark| (from..until).contains(&mark.at)) && start.at < until
        };
        let bounded: Vec<&Start> = starts.iter().filter(marked).collect();
        assert!(bounded.len() > 5, "{}", bounded.len());
        assert_eq!(most_at_once(&world, &bounded), most as usize);
        assert!(world.store.inspect(|state| state.app_bounds.is_empty()));
        let quota = world.store.inspect(|state| state.quotas[&world.tenants[0].owner.tenant_id]);
        assert_eq!(quota.max_concurrent, 0, "and is lifted");
    }
}

/// P2. The node that hears first of each end asks first for the permit that it leaves: what another has claimed must not wait
/// while later fires of the same task go.
#[test]
fn at_a_bound_that_is_always_full_no_node_starves() {
    for operation in [Operation::BoundApp { most: 1, lasts: 60_000 }, Operation::BoundTenant { most: 1, lasts: 60_000 }]
    {
        for seed in 1..4 {
            let shape = Shape { nodes: 2, ..Shape::default() };
            let world = told_by(shape, seed, &[], &[done(20_000, operation.clone())]);
            let (from, until) = (begun(&world, 20_000 + RULES_READ_MS), begun(&world, 80_000));
            let mut starts = world.ledger.starts();
            starts.retain(|start| start.task == world.tasks()[EVERY_SECOND] && (from..until).contains(&start.at));
            starts.sort_by_key(|start| start.at);
            let mut latest = 0;
            let mut passed_by = Vec::new();
            for start in &starts {
                latest = start.due_time.max(latest);
                passed_by.push(latest - start.due_time);
            }
            assert!(starts.len() > 5, "seed {seed}: {}", starts.len());
            assert!(passed_by.iter().all(|ms| *ms <= 5_000), "seed {seed}, {operation:?}: {passed_by:?}");
        }
    }
}

/// One bound is lifted while another begins: what holds afterwards is what the database has, and nothing else is promised.
#[test]
fn a_bound_that_is_lifted_while_another_begins_is_promised_by_nobody() {
    let bound = |of_app, most, lasts| {
        if of_app { Operation::BoundApp { most, lasts } } else { Operation::BoundTenant { most, lasts } }
    };
    for (seed, of_app) in [(1, true), (2, false), (3, true)] {
        let lifted = [done(20_000, bound(of_app, 3, 10_000)), done(29_900, bound(of_app, 1, 20_000))];
        let world = told(seed, &[], &lifted);
        let rebounds = world.store.inspect(|state| state.rebounds.iter().map(|one| one.most).collect::<Vec<_>>());
        assert_eq!(rebounds[rebounds.len() - 4..], [3, 1, 0, 0], "seed {seed}");
        assert_eq!(world.bounds.lock().unwrap().iter().filter(|known| known.bound.most == 3).count(), 1);
    }
}

/// A tenant that has more in a node's memory than it leaves free there: its backfill waits for room, and nothing else does.
#[test]
fn a_backfill_waits_for_room_in_memory() {
    let shape = Shape { nodes: 1, capacity: 72, lead_ms: TWELVE_SECONDS, ..Shape::default() };
    let (from, until) = (110_000, 100_000);
    let fill = Operation::Backfill { task: EVERY_SECOND, from, until, at_once: 1, cancelled_after: None };
    let world = told_by(shape, 1, &[], &[done(30_000, fill)]);
    let filled = world.store.inspect(|state| {
        let rows = state.logs.values().map(|row| &row.run).filter(|run| run.trigger == Trigger::Backfill);
        rows.map(|run| run.id).collect::<BTreeSet<_>>()
    });
    assert_eq!(filled.len(), 10);
    let starts = world.ledger.starts();
    let late = starts.iter().filter(|start| filled.contains(&LogId(start.key.0)) && start.at > start.due_time + 1_600);
    assert!(late.count() > 0, "none waited");
}

/// More runs of a task wait than are looked at at once. When the bound is gone they go out without a permit, and each makes room
/// for the next.
#[test]
fn what_waits_goes_out_when_its_bound_is_lifted() {
    let shape = Shape { nodes: 1, ..Shape::default() };
    let operation = Operation::BoundApp { most: 1, lasts: 60_000 };
    let world = told_by(shape, 1, &[], &[done(20_000, operation)]);
    let lifted = begun(&world, 80_000);
    let starts = world.ledger.starts();
    let waited = starts
        .iter()
        .filter(|start| start.task == world.tasks()[EVERY_SECOND] && start.due_time < lifted && start.at >= lifted);
    assert!(waited.count() > 32, "too few waited");
}

/// The standby knows neither the bound nor that there was one; nodes have seen it. Lifting it is news to them all the same.
#[test]
fn a_bound_that_is_lost_with_the_last_commits_does_not_stay_with_the_nodes() {
    let plan = [at(22_633, Fault::LostCommits { last: 3_115 })];
    for seed in 1..4 {
        let world = told(seed, &plan, &[done(20_949, Operation::BoundApp { most: 1, lasts: 2_540 })]);
        let since = begun(&world, 60_000);
        let late = world.ledger.starts().into_iter().filter(|start| {
            start.task == world.tasks()[EVERY_SECOND] && start.due_time > since && start.at > start.due_time + 50
        });
        assert_eq!(late.count(), 0, "seed {seed}");
    }
}

#[test]
fn a_skipped_fire_does_not_come_unless_it_is_restored() {
    let skip = |restored_after| Operation::Skip { task: EVERY_SECOND, restored_after };
    let world = told(1, &[], &[done(15_000, skip(None)), done(25_300, skip(Some(8_000)))]);
    let of_task = |state: &carillon_simulation::store::State| {
        let rows =
            state.logs.values().map(|row| row.run.clone()).filter(|run| run.task_id == world.tasks()[EVERY_SECOND]);
        rows.filter(|run| run.reason == Reason::CancelledManually).collect::<Vec<_>>()
    };
    let skipped = world.store.inspect(of_task);
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert!(!world.trace.about("its fire", 5).is_empty(), "the other one was restored");
    assert!(!world.ledger.starts().iter().any(|start| start.key.0 == skipped[0].id.0));
}

/// All that is left of a change is the commit of the calendar, and the node that would finish it may die, too.
#[test]
fn a_change_of_a_calendar_that_is_left_half_way_is_finished_once() {
    let version = |at, version, follows| done(at, Operation::Calendar { task: EVERY_SECOND, version, follows });
    for seed in 0..4 {
        let crash = at(36_000, Fault::Crash { node: seed as usize % 2, down: 20_000 });
        let world = told(seed, &[crash], &[version(15_000, 1, true), version(25_000, 2, false)]);
        let planned_by_it = world.store.inspect(|state| {
            assert!(!state.has_changing_calendars(), "seed {seed}");
            let of_task = state.changes.iter().filter(|change| change.task == world.tasks()[EVERY_SECOND]);
            of_task.filter(|change| change.started && !change.spec.calendar.is_empty()).count()
        });
        assert_eq!(planned_by_it, 2, "seed {seed}: it named the calendar, and followed it");
        let world = told(seed, &[], &[version(15_000, 1, true), version(25_000, 2, true), version(25_000, 3, true)]);
        assert!(!world.store.inspect(carillon_simulation::store::State::has_changing_calendars), "seed {seed}");
    }
}

/// A dispatch is lost with all its repetitions, behind more runs that go on than are read at once: the reaper reads on.
#[test]
fn what_is_lost_is_found_behind_what_is_well() {
    let run = |at, task, due_in| done(at, Operation::Run { task, due_in });
    let mut operations: Vec<Intended> = (0..40).map(|_| run(29_000, SLOW, 3_000)).collect();
    operations.push(run(31_000, EVERY_SECOND, 2_000));
    let plan = [at(30_900, Fault::Loss { per_mille: 1_000, down: 3_900 })];
    let late_ms = |seed| {
        let world = told(seed, &plan, &operations);
        let (id, due_time) = world.store.inspect(|state| {
            let mut rows = state.logs.values().map(|row| &row.run).filter(|run| run.trigger == Trigger::Manual);
            rows.find(|run| run.task_id == world.tasks()[EVERY_SECOND]).map(|run| (run.id, run.due_time)).unwrap()
        });
        let start = world.ledger.starts().into_iter().find(|start| start.key.0 == id.0);
        start.map_or(i64::MAX, |start| start.at - due_time)
    };
    // When the next list of its executor comes is a matter of chance; what is 10 s old is looked at in turn, a page at a time.
    let late: Vec<i64> = (0..8).map(late_ms).collect();
    assert!(late.iter().filter(|late| **late < 7_000).count() >= 6, "{late:?} ms late");
}

/// What an executor gives back on leaving, before anyone could ask it to drop that, is not handed to another after a stop:
/// a run that no schedule named no more than others.
#[test]
fn a_stop_ends_what_a_leaving_executor_gives_back() {
    let at = |at, fault| Planned { at, fault };
    let mut given_back = 0;
    for seed in 0..8 {
        let run = |number: i64| done(29_000, Operation::Run { task: SLOW, due_in: 2_500 + number });
        // The question of the stop is lost on its way.
        let cut = |(node, executor)| at(29_600, Fault::Cut { node, executor, down: 150 });
        let leaves = |executor| at(29_760, Fault::Befalls { executor, mishap: Mishap::Drain, down: 500 });
        let mut faults: Vec<Planned> = [(0, 0), (0, 1), (1, 0), (1, 1)].map(cut).into();
        faults.extend([at(29_650, Fault::Restart { task: SLOW, down: 20_000 }), leaves(0), leaves(1)]);
        let world = told(seed, &faults, &(0..6).map(run).collect::<Vec<_>>());
        let stopped = world.store.inspect(|state| {
            let rows = state.logs.values().map(|row| &row.run);
            let by_hand = rows.filter(|run| run.trigger == Trigger::Manual && run.attempt > 0);
            by_hand.map(|run| (run.status, run.reason)).collect::<Vec<_>>()
        });
        given_back += stopped.len();
        assert!(stopped.iter().all(|end| *end == (Status::Cancelled, Reason::TaskStopped)), "seed {seed}: {stopped:?}");
    }
    assert!(given_back > 0, "no executor held such a run");
}
