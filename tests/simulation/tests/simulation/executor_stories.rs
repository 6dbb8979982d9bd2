//! Stories of executors and of the wire to them: the faults that reach into the SDK itself. All promises are kept in each.

use crate::faults::{Fault, Mishap, Planned};
use crate::report::report;
use crate::settings::{LEAD_MS, Shape};
use crate::stories::{TWELVE_SECONDS, assert_kept, at, simulate};
use crate::world::Setup;
use carillon::domain::{LogId, Reason, Status};
use carillon_protocol::{RunKey, RunStatus};
use carillon_simulation::executor::Stopped;
use std::collections::{HashMap, HashSet};

/// Seeds that tell each story: chance decides who is hit.
const SEEDS: u64 = 4;

/// Tells a story under several seeds. What happens in it has `what` in it.
fn keeps_all(lead_ms: i64, what: &str, faults: &[Planned]) {
    for seed in 0..SEEDS {
        let world = simulate(seed, lead_ms, faults);
        assert_kept(seed, &world);
        assert!(!world.trace.about(what, 1).is_empty(), "seed {seed}: `{what}` did not come about");
    }
}

/// The same happens to one executor after the other.
fn in_turn(mishap: &Mishap, every: i64, down: i64) -> Vec<Planned> {
    let round = |number: i64| Fault::Befalls { executor: number as usize % 2, mishap: mishap.clone(), down };
    let planned = (1..80_000 / every).map(|number| at(number * every, round(number)));
    planned.take_while(|planned| planned.until() < 80_000).collect()
}

/// What comes twice is done once: dispatches, cancels, heartbeats and results are admitted by their nonce.
#[test]
fn doubled_and_overtaken_messages_change_nothing() {
    let down = 62_000;
    let plan = [
        at(8_000, Fault::Doubled { per_mille: 300, down }),
        at(8_000, Fault::Overtaken { per_mille: 200, down }),
        at(30_000, Fault::Edit { task: 0 }),
    ];
    keeps_all(LEAD_MS, "answered 401", &plan);
}

/// A rolling deploy: what an executor holds goes to another, what it runs ends there.
#[test]
fn a_graceful_stop_loses_nothing() {
    keeps_all(TWELVE_SECONDS, "process ends: Ok", &in_turn(&Mishap::Drain, 12_000, 500));
}

/// What an executor could not deliver before it left is in its journal: the next process delivers it before the nodes take
/// what the first one ran for lost.
#[test]
fn what_succeeded_before_a_graceful_stop_is_not_repeated() {
    // A second longer than the drain time-out.
    let down = 31_000;
    let plan = [at(20_000, Fault::Befalls { executor: 0, mishap: Mishap::LeavesUnheard, down })];
    for seed in 0..SEEDS {
        let world = simulate(seed, TWELVE_SECONDS, &plan);
        let left = world.trace.about("process ends: Ok", 1);
        assert!(!left.is_empty(), "seed {seed}");
        let mut succeeded: HashMap<i64, i32> = HashMap::new();
        for stop in world.ledger.stops() {
            if stop.how == Stopped::Ended(RunStatus::Succeeded) {
                let before = succeeded.insert(stop.key.0, stop.key.1);
                assert_eq!(before, None, "seed {seed}: {:?} succeeded once more\n{}", stop.key, report(&world, &[]));
            }
        }
        assert_kept(seed, &world);
    }
}

/// The same of a process that reaches nobody and is killed: what its handlers came to is in its journal, and the next one tells it
/// before the nodes give up.
#[test]
fn what_succeeded_before_a_kill_is_told_by_the_next_process() {
    let unheard = Fault::Island { executor: 0, down: 6_500 };
    let plan = [at(30_000, unheard), at(36_000, Fault::Kill { executor: 0, down: 1_000 })];
    for seed in 0..SEEDS {
        let world = simulate(seed, TWELVE_SECONDS, &plan);
        let unheard = world.began + 31_000..world.began + 35_500;
        let stops = world.ledger.stops();
        let succeeded = stops.iter().filter(|stop| {
            stop.machine == 0 && unheard.contains(&stop.at) && stop.how == Stopped::Ended(RunStatus::Succeeded)
        });
        let succeeded: Vec<RunKey> = succeeded.map(|stop| stop.key).collect();
        assert!(!succeeded.is_empty(), "seed {seed}");
        for key in succeeded {
            let end = world.store.inspect(|state| state.ends.get(&(LogId(key.0), key.1)).copied());
            let is_told = end.is_some_and(|end| end.to == Status::Succeeded);
            assert!(is_told, "seed {seed}: the row of {key:?} says {end:?}\n{}", report(&world, &[]));
        }
        assert_kept(seed, &world);
    }
}

/// Executors that take no more runs for now.
#[test]
fn a_busy_executor_delays_runs_and_loses_none() {
    let busy = |executor| at(8_000, Fault::Befalls { executor, mishap: Mishap::Busy { held_max: 2 }, down: 52_000 });
    keeps_all(LEAD_MS, "Busy by", &[busy(0), busy(1)]);
}

/// An executor without a handler that it had: its runs go to the other.
#[test]
fn a_handler_that_is_missing_after_a_restart_is_found_elsewhere() {
    let lacks = |unsaid| Fault::Befalls { executor: 0, mishap: Mishap::Lacks { unsaid }, down: 42_000 };
    keeps_all(TWELVE_SECONDS, "executor-0-1 starts", &[at(20_000, lacks(false))]);
    keeps_all(LEAD_MS, "HandlerMissing by executor-0-1", &[at(20_000, lacks(true))]);
}

/// Dispatches that reach an executor while it drains go to another.
#[test]
fn what_an_executor_refuses_on_leaving_goes_to_another() {
    let mut plan = in_turn(&Mishap::Drain, 12_000, 500);
    plan.push(at(8_000, Fault::Overtaken { per_mille: 800, down: 62_000 }));
    keeps_all(LEAD_MS, "ShuttingDown by", &plan);
}

/// Executors that stand still, for less and for more than their lease.
#[test]
fn a_paused_executor_starts_nothing_that_was_given_away() {
    keeps_all(TWELVE_SECONDS, "STARTS", &in_turn(&Mishap::Freeze, 17_000, 4_000));
    keeps_all(TWELVE_SECONDS, "STARTS", &in_turn(&Mishap::Freeze, 17_000, 14_000));
}

/// An executor that reaches nobody stops what it runs before the nodes give that to another, serial runs too.
#[test]
fn what_runs_without_contact_is_stopped_before_it_is_repeated() {
    let plan = [at(16_000, Fault::Island { executor: 0, down: 58_000 })];
    let shape = Shape { long_runs: true, ..Shape::default() };
    let mut repeated = 0;
    for seed in 0..2 * SEEDS {
        let faults = Some(plan.to_vec());
        let world = crate::simulate(&Setup { shape: shape.clone(), faults, ..Setup::of(seed) });
        assert_kept(seed, &world);
        let stops = world.ledger.stops();
        let stopped = stops.iter().filter(|stop| stop.how == Stopped::Ended(RunStatus::Abandoned));
        let starts: HashSet<RunKey> = world.ledger.starts().iter().map(|start| start.key).collect();
        let is_repeated = |key: &RunKey| {
            let end = world.store.inspect(|state| state.ends.get(&(LogId(key.0), key.1)).copied());
            let given_up = end.is_some_and(|end| end.reason == Reason::OutcomeUnknown);
            given_up && starts.contains(&RunKey(key.0, key.1 + 1))
        };
        repeated += stopped.map(|stop| stop.key).filter(is_repeated).count();
    }
    assert!(repeated > 2, "{repeated} runs were given up and repeated");
}

/// What was synced is there after a loss of power; results that were not come from runs that nobody was told of.
#[test]
fn a_torn_journal_doubles_nothing_that_may_not_be() {
    keeps_all(LEAD_MS, "is killed", &in_turn(&Mishap::PowerLoss, 10_000, 700));
}

/// A journal that is lost or damaged while no process runs: what the runs came to is unknown, and the task decides.
#[test]
fn a_lost_or_damaged_journal_leaves_no_run_behind() {
    for mishap in [Mishap::JournalLost, Mishap::JournalDamaged] {
        keeps_all(LEAD_MS, "is killed", &in_turn(&mishap, 10_000, 700));
    }
}

/// A full disk: results are sent all the same, and nothing more is taken meanwhile.
#[test]
fn a_full_disk_loses_no_result_of_a_process_that_lives() {
    keeps_all(LEAD_MS, "Busy by", &in_turn(&Mishap::DiskFull, 20_000, 15_000));
}

/// Clocks of executors that drift as far as is allowed for, and wall clocks that are far off.
#[test]
fn clocks_that_drift_start_nothing_early() {
    let drift = |executor, ppm| Fault::Befalls { executor, mishap: Mishap::Drift { ppm }, down: 0 };
    let plan = [at(1_000, drift(0, 100)), at(1_000, drift(1, -100)), at(40_000, drift(0, -100))];
    keeps_all(LEAD_MS, "STARTS", &plan);
}
