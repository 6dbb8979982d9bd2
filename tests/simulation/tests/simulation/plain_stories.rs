//! Stories of plain executors (of xxl-job), which a node stands in for. All promises are kept in each.

use crate::faults::{Fault, Mishap, Planned};
use crate::report::report;
use crate::settings::Shape;
use crate::stories::{assert_kept, at};
use crate::world::{Setup, World};
use carillon::domain::task::{BlockStrategy, Delivery};
use carillon::domain::{LogId, Reason};
use carillon_protocol::{RunKey, RunStatus};
use carillon_simulation::executor::{Stop, Stopped};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Seeds that tell each story: chance decides who is hit.
const SEEDS: u64 = 4;

fn shape() -> Shape {
    Shape { plain_executors: 2, ..Shape::default() }
}

/// A world whose first tenant has plain executors only.
fn simulate(seed: u64, faults: &[Planned]) -> Arc<World> {
    let faults = Some(faults.to_vec());
    crate::simulate(&Setup { shape: shape(), faults, operations: Some(Vec::new()), ..Setup::of(seed) })
}

#[test]
fn in_a_calm_world_they_start_everything_in_time_and_once() {
    for seed in 0..SEEDS {
        let world = simulate(seed, &[]);
        assert_kept(seed, &world);
        let starts = world.ledger.starts();
        assert!(starts.len() > 200, "seed {seed}: {}\n{}", starts.len(), report(&world, &[]));
        assert!(world.ledger.tellings().len() > 200, "seed {seed}");
    }
}

/// Of a message that may have arrived nobody knows whether it did: it is not sent again.
#[test]
fn a_run_whose_answer_is_lost_is_started_once() {
    let loss = |from| at(from, Fault::Loss { per_mille: 300, down: 12_000 });
    let mut unknown = 0;
    for seed in 0..SEEDS {
        let world = simulate(seed, &[loss(15_000), loss(45_000)]);
        assert_kept(seed, &world);
        unknown += world.trace.about("Unknown(\"no answer\")", usize::MAX).len();
    }
    assert!(unknown > 20, "{unknown} answers were lost");
}

/// A process is killed and another one listens at its address before anyone could miss it. What it ran is found by asking, and ends by
/// its policy.
#[test]
fn what_a_killed_process_ran_is_found_by_asking() {
    let kill = |executor, from| at(from, Fault::Kill { executor, down: 200 });
    let mut found = 0;
    for seed in 0..SEEDS {
        let world = simulate(seed, &[kill(0, 20_400), kill(1, 30_400), kill(0, 40_400), kill(1, 50_400)]);
        assert_kept(seed, &world);
        let killed = world.ledger.stops().into_iter().filter(|stop| stop.how == Stopped::Killed);
        for stop in killed {
            let (end, covers) = world.store.inspect(|state| {
                let log = LogId(stop.key.0);
                let spec = &state.tasks[&state.logs[&log].run.task_id].view.spec;
                (state.ends[&(log, stop.key.1)], spec.block_strategy == BlockStrategy::CoverEarly)
            });
            // A later run has it stopped meanwhile.
            if covers {
                continue;
            }
            assert_eq!(end.reason, Reason::Abandoned, "seed {seed}: {stop:?}\n{}", report(&world, &[]));
            // It has time to tell of it.
            assert!(end.at >= stop.at + 40_000, "seed {seed}: {stop:?}: {end:?}");
            found += 1;
        }
    }
    assert!(found > 5, "{found} runs were killed");
}

/// A node dies with runs that it has recorded and holds until they are due: nobody has them. Their executors have no log of them.
#[test]
fn what_a_node_recorded_and_did_not_send_is_found_by_asking() {
    let mut unsent = 0;
    for seed in 0..2 * SEEDS {
        let crash = |node, from| at(from, Fault::Crash { node, down: 4_000 });
        let world = simulate(seed, &[crash(0, 29_900), crash(1, 44_900), crash(0, 59_950)]);
        assert_kept(seed, &world);
        let starts: BTreeSet<RunKey> = world.ledger.starts().iter().map(|start| start.key).collect();
        world.store.inspect(|state| {
            let marks = state.dispatch_marks.iter().filter(|((log, _), _)| !state.logs[log].run.is_parent());
            for ((log, attempt), _) in marks.filter(|((log, attempt), _)| !starts.contains(&RunKey(log.0, *attempt))) {
                let once = state.tasks[&state.logs[log].run.task_id].view.spec.delivery == Delivery::AtMostOnce;
                let end = state.ends[&(*log, *attempt)];
                let reason = if once { Reason::Abandoned } else { Reason::GivenBack };
                unsent += usize::from(end.reason == reason);
            }
        });
    }
    assert!(unsent > 3, "{unsent} runs were recorded and not sent");
}

/// A process leaves in good order: it registers no more and listens no more, and what it runs goes on for a moment. Nobody repeats that
/// meanwhile, and how it ended counts.
#[test]
fn who_leaves_in_good_order_may_end_what_it_runs() {
    let leaves = |executor, from| at(from, Fault::Befalls { executor, mishap: Mishap::Drain, down: 9_000 });
    let mut told = 0;
    for seed in 0..SEEDS {
        let world = simulate(seed, &[leaves(0, 20_700), leaves(1, 37_700), leaves(0, 54_700)]);
        assert_kept(seed, &world);
        let left: Vec<i64> = world.ledger.ends().into_iter().map(|end| end.at).collect();
        let is_late = |stop: &&Stop| left.iter().any(|at| (at - 5_000..=*at).contains(&stop.at));
        let succeeded =
            world.ledger.stops().into_iter().filter(|stop| stop.how == Stopped::Ended(RunStatus::Succeeded));
        told += succeeded.collect::<Vec<_>>().iter().filter(is_late).count();
    }
    assert!(told > 5, "{told} runs ended while their process left");
}
