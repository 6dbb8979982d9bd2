//! Single stories of the database's clock, which somebody sets. Each of them was first found by a random seed.

use crate::faults::{Fault, Planned};
use crate::settings::LEAD_MS;
use crate::stories::{SEEDS, TWELVE_SECONDS, at, holds, simulate};
use carillon::domain::ExecutorId;
use std::collections::BTreeSet;

/// The database's clock is set back beyond the start of all tasks, while runs with a delay go on.
#[test]
fn a_delay_goes_on_when_the_clock_is_set_back() {
    for seed in 0..SEEDS {
        holds(seed, LEAD_MS, &[at(13_051, Fault::ClockSet { by: -19_321, undone_after: Some(9_633) })]);
    }
}

/// The database's clock is set forward, and back again; meanwhile executors turn to another node. What they said to the first one
/// when the clock was ahead was not said after what is dispatched now, though its time is later.
#[test]
fn a_list_from_before_the_clock_was_set_back_vouches_for_nothing() {
    let round = |from| {
        let cut = |executor| at(from + 3_000, Fault::Cut { node: 0, executor, down: 5_000 });
        [at(from, Fault::ClockSet { by: 15_000, undone_after: Some(4_000) }), cut(0), cut(1)]
    };
    let plan: Vec<Planned> = [18_145, 38_145, 58_145].into_iter().flat_map(round).collect();
    for seed in 0..SEEDS {
        holds(seed, LEAD_MS, &plan);
    }
}

/// An executor is silent when the clock is set back: a node reads that while it judges whose silence has been too long. What the
/// executor said by the time before was not said long ago.
#[test]
fn a_clock_that_is_set_back_during_a_judgement_makes_no_executor_dead() {
    for seed in [6_128, 1] {
        for set_back_at in [60_028, 60_228] {
            let plan = [
                at(50_590, Fault::Island { executor: 0, down: 11_169 }),
                at(set_back_at, Fault::ClockSet { by: -14_008, undone_after: Some(14_699) }),
            ];
            holds(seed, TWELVE_SECONDS, &plan);
        }
    }
}

/// For a second the database's clock is behind by more than anyone may be silent. What executors wrote in that second makes none
/// of them dead, at a node that did not read the clock meanwhile.
#[test]
fn a_second_of_another_time_makes_no_executor_dead() {
    let back = |from| at(from, Fault::ClockSet { by: -34_325, undone_after: Some(1_098) });
    for seed in [20_061, 1, 2, 3, 4, 5] {
        holds(seed, LEAD_MS, &[back(40_295), back(60_295)]);
    }
}

/// What is dispatched while the database's clock is far ahead, to executors that die, does not wait until the clock is there again.
#[test]
fn what_is_lost_while_the_clock_is_ahead_is_found() {
    let plan = [
        at(50_000, Fault::ClockSet { by: 136_179, undone_after: Some(9_437) }),
        at(58_800, Fault::Kill { executor: 0, down: 2_000 }),
        at(59_000, Fault::Kill { executor: 1, down: 3_000 }),
    ];
    for seed in 0..SEEDS {
        holds(seed, LEAD_MS, &plan);
    }
}

/// The database's clock is set back by about as much as a node stood still: to the node all seems to be as it was. What it hears
/// then was said before.
#[test]
fn a_clock_that_is_set_back_hides_no_pause() {
    let plan = [
        at(43_033, Fault::Pause { node: 0, down: 19_086 }),
        at(61_862, Fault::ClockSet { by: -16_097, undone_after: Some(13_776) }),
    ];
    for seed in [20_284, 1, 2, 3, 4, 5] {
        holds(seed, LEAD_MS, &plan);
    }
}

/// A node stands still with a heartbeat that was sent while the clock was ahead, and hears it when it is back. Its list was not taken
/// after what is dispatched since, though its time is later.
#[test]
fn a_list_that_a_node_stood_still_with_vouches_for_nothing() {
    let plan = [
        at(38_145, Fault::ClockSet { by: 14_764, undone_after: Some(10_649) }),
        at(46_209, Fault::Pause { node: 0, down: 22_737 }),
        at(62_705, Fault::Island { executor: 1, down: 28_532 }),
    ];
    for seed in [33, 1, 2, 3, 4, 5] {
        holds(seed, LEAD_MS, &plan);
    }
}

/// The clock is set back while the database is away. By the time before, what is due in some seconds would be: it is not discarded
/// as blocked by what executors could not report yet.
#[test]
fn nothing_is_discarded_by_the_time_before_an_outage() {
    let away = |from| {
        let set_back = Fault::ClockSet { by: -9_845, undone_after: None };
        [at(from, Fault::StoreAway { node: None, down: 15_491 }), at(from + 2_260, set_back)]
    };
    for seed in [20_508, 20_621, 1, 2, 3, 4, 5] {
        holds(seed, LEAD_MS, &away(35_460));
    }
}

/// For a second the database's clock is behind by a minute. Executors that take it from a node in that second sign what they say
/// next with earlier times than what they have said: they are told the right one.
#[test]
fn who_learns_a_wrong_time_in_a_moment_is_told_the_right_one() {
    for seed in [109_263, 1, 2, 3, 4, 5] {
        holds(seed, LEAD_MS, &[at(38_913, Fault::ClockSet { by: -52_711, undone_after: Some(972) })]);
    }
}

/// While the clock is far ahead, runs that wait for others of their task are put off for a moment. When it is set back, that moment
/// is far, and what is due then holds up what is due now.
#[test]
fn what_waits_while_the_clock_is_ahead_goes_on_when_it_is_back() {
    for seed in [1_726, 1, 2, 8, 9, 18, 22] {
        for from in [19_017, 39_017, 55_002] {
            let plan = [at(from, Fault::ClockSet { by: 131_949, undone_after: Some(2_384) })];
            holds(seed, TWELVE_SECONDS, &plan);
        }
    }
}

/// An executor dies, and then the clock is set back: its last heartbeat lies ahead, and is none of one that lives when its time comes.
#[test]
fn who_died_before_the_clock_was_set_back_gets_no_more_runs() {
    for by in [-30_000, -50_000] {
        let plan = [
            at(29_500, Fault::Kill { executor: 0, down: 60_000 }),
            at(30_000, Fault::ClockSet { by, undone_after: None }),
        ];
        for seed in 0..SEEDS {
            let world = simulate(seed, LEAD_MS, &plan);
            let (from, until) = (world.began + 56_000, world.began + 83_000);
            let takers: BTreeSet<ExecutorId> = world.store.inspect(|state| {
                let marks = state.dispatch_marks.values().filter(|mark| (from..until).contains(&mark.at));
                marks.map(|mark| mark.executor_id).filter(|id| !id.is_none()).collect()
            });
            assert_eq!(takers.len(), 1, "seed {seed}, {by} ms");
        }
    }
}
