//! Stories of executors and of the wire to them: the faults that reach into the SDK itself.

use crate::promises::{self, Broken};
use crate::report;
use crate::world::World;
use carillon_tests::model::SimExecutor;
use std::sync::Arc;
use std::time::Duration;

/// The default, ms.
const LEAD_MS: i64 = 3_000;

/// Longer than the offline time-out, as promise 10 wants it, ms.
const LONG_LEAD_MS: i64 = 12_000;

/// Seeds that tell each story: chance decides who is hit.
const SEEDS: u64 = 4;

/// Tells a story under several seeds: `happens` is called each second, with its number, before everything is mended. All
/// promises are kept, and the events have `what` in them.
fn keeps_all(lead_ms: i64, what: &str, happens: impl Fn(&World, i64) + Copy + Send + 'static) {
    for seed in 0..SEEDS {
        let world = tell(seed, lead_ms, happens);
        let broken: Vec<Broken> = promises::check(&world);
        assert!(broken.is_empty(), "{}", report(seed, &world, &broken));
        assert!(!world.trace.about(what, 1).is_empty(), "seed {seed}: `{what}` did not come about");
    }
}

fn tell(seed: u64, lead_ms: i64, happens: impl Fn(&World, i64) + Send + 'static) -> Arc<World> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(seed, Some(lead_ms)).await;
        let hit = world.clone();
        tokio::spawn(async move {
            for second in 1..=80 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                happens(&hit, second);
            }
        });
        world.run(Vec::new()).await;
        world
    })
}

/// Every so many seconds, one executor after the other.
fn hit(world: &World, second: i64, every: i64) -> Option<&Arc<SimExecutor>> {
    (second % every == 0).then(|| &world.executors[(second / every) as usize % world.executors.len()])
}

/// What comes twice is done once: dispatches, cancels, heartbeats and results are admitted by their nonce.
#[test]
fn doubled_and_overtaken_messages_change_nothing() {
    keeps_all(LEAD_MS, "answered 401", |world, second| {
        world.net.double(if second < 70 { 300 } else { 0 });
        world.net.reorder(if second < 70 { 200 } else { 0 });
    });
}

/// A rolling deploy: what an executor holds goes to another, what it runs ends there.
#[test]
fn a_graceful_stop_loses_nothing() {
    keeps_all(LONG_LEAD_MS, "process ends: Ok", |world, second| {
        world.executors.iter().for_each(SimExecutor::start);
        if let Some(executor) = hit(world, second, 12) {
            executor.drain();
        }
    });
}

/// Executors that take no more runs for now.
#[test]
fn a_busy_executor_delays_runs_and_loses_none() {
    keeps_all(LEAD_MS, "Busy by", |world, second| {
        world.executors.iter().for_each(SimExecutor::start);
        let held_max = if second < 60 { 2 } else { 1_000 };
        world.executors.iter().for_each(|executor| executor.limit(100, held_max));
        if second == 8 || second == 62 {
            world.executors.iter().for_each(|executor| executor.kill());
        }
    });
}

/// An executor without a handler that it had: its runs go to the other.
#[test]
fn a_handler_that_is_missing_after_a_restart_is_found_elsewhere() {
    keeps_all(LONG_LEAD_MS, "executor-0-1 starts", |world, second| {
        world.executors.iter().for_each(SimExecutor::start);
        world.executors[0].lack(if second < 60 { &["quick", "steady"] } else { &[] });
        if second == 20 || second == 62 {
            world.executors[0].kill();
        }
    });
}

/// Executors that stand still, for less and for more than their lease.
#[test]
fn a_paused_executor_starts_nothing_that_was_given_away() {
    keeps_all(LONG_LEAD_MS, "STARTS", |world, second| {
        let length_ms = if second % 2 == 0 { 4_000 } else { 14_000 };
        if let Some(executor) = hit(world, second, 17).filter(|_| second < 60) {
            executor.pause(world.time.now_ms() + length_ms);
        }
    });
}

/// What was synced is there after a loss of power; results that were not come from runs that nobody was told of.
#[test]
fn a_torn_journal_doubles_nothing_that_may_not_be() {
    keeps_all(LEAD_MS, "is killed", |world, second| {
        world.executors.iter().for_each(SimExecutor::start);
        if let Some(executor) = hit(world, second, 10) {
            executor.lose_power();
        }
    });
}

/// A journal that is lost or damaged while no process runs: what the runs came to is unknown, and the task decides.
#[test]
fn a_lost_or_damaged_journal_leaves_no_run_behind() {
    keeps_all(LEAD_MS, "is killed", |world, second| {
        world.executors.iter().for_each(SimExecutor::start);
        let Some(executor) = hit(world, second, 10) else { return };
        executor.kill();
        if second % 20 == 0 {
            executor.disk().wipe();
        } else {
            executor.disk().corrupt(&world.dice, "disk");
        }
    });
}

/// A full disk: results are sent all the same, and nothing more is taken meanwhile.
#[test]
fn a_full_disk_loses_no_result_of_a_process_that_lives() {
    keeps_all(LEAD_MS, "Busy by", |world, second| {
        world.executors[0].disk().fill((20..35).contains(&second));
        world.executors[1].disk().fill((40..55).contains(&second));
    });
}

/// Clocks of executors that drift as far as is allowed for, and wall clocks that are far off.
#[test]
fn clocks_that_drift_start_nothing_early() {
    keeps_all(LEAD_MS, "STARTS", |world, second| {
        let [one, other] = [0, 1].map(|index| world.executors[index].clock());
        if second % 20 == 1 {
            let ppm = if second % 40 == 1 { 100 } else { -100 };
            one.drift(ppm);
            other.drift(-ppm);
            one.set_wall(400_000_000);
        }
    });
}
