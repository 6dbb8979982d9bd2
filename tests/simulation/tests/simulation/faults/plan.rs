//! The faults that a seed chooses.

use super::{Fault, Mishap, Planned, of_executors};
use crate::node::Leaves;
use crate::settings::Shape;
use carillon_protocol::DRIFT_PPM;
use carillon_simulation::Dice;
use std::ops::Range;

/// The faults of one seed, between `from` and `to`.
pub fn plan(dice: &Dice, shape: &Shape, from: i64, to: i64, tasks: usize) -> Vec<Planned> {
    // Where little is out of order, little is excused.
    let is_quiet = dice.happens("hardly any faults", 200);
    let count = if is_quiet { dice.between("how few faults", 0, 1) } else { dice.between("how many faults", 1, 9) };
    let mut planned: Vec<Planned> = (0..count)
        .map(|number| Planned {
            at: dice.between(&format!("when is fault {number}"), from, to),
            fault: choose(dice, shape, &format!("fault {number}"), tasks),
        })
        .collect();
    // What such a switch-over may break is not promised, so it has seeds of its own.
    if dice.happens("commits are lost", 40) {
        let (at, last) = (dice.between("when commits are lost", from, to), dice.between("which are lost", 20, 5_000));
        planned.push(Planned { at, fault: Fault::LostCommits { last } });
    }
    if dice.happens("nobody is there", 100) {
        planned.extend(outage(dice, shape, from));
    }
    if dice.happens("the database's clock is set", 150) {
        let at = dice.between("when the clock is set", from, to);
        planned.push(Planned { at, fault: clock_set(dice) });
    }
    if shape.long_runs && dice.happens("an executor is cut off for long", 600) {
        let island = |executor, down| Fault::Island { executor, down };
        planned.push(for_long(dice, shape, from, "is cut off", island));
    }
    if shape.long_runs && dice.happens("an executor stands still for long", 300) {
        // What it ran goes on when it is back, until it is told to stop.
        let freeze = |executor, down| Fault::Befalls { executor, mishap: Mishap::Freeze, down };
        planned.push(for_long(dice, shape, from, "stands still", freeze));
    }
    if shape.has_small_queues() && dice.happens("a burst fills the queues", 700) {
        planned.push(full_queues(dice, shape, from, to));
    }
    if dice.happens("a node's clock is slewed", 300) {
        planned.push(drift(dice, shape, from, to));
    }
    if dice.happens("a node reads what was", 200) {
        planned.push(behind(dice, shape, from, to));
    }
    if dice.happens("a node's wall clock is set", 250) {
        planned.push(wall_set(dice, shape, from, to));
    }
    if dice.happens("nodes die of commits", 350) {
        let count = dice.between("how many die of commits", 1, 3);
        planned.extend((0..count).flat_map(|number| crash_at_commit(dice, shape, number, from..to, tasks)));
    }
    planned.sort_by_key(|planned| planned.at);
    planned
}

/// Often while the node serves a change of a task: of that there is more than one commit.
fn crash_at_commit(dice: &Dice, shape: &Shape, number: i64, when: Range<i64>, tasks: usize) -> Vec<Planned> {
    let pick = |what: &str, low: i64, high: i64| dice.between(&format!("crash at commit {number}: {what}"), low, high);
    let (at, down) = (pick("when", when.start, when.end), pick("down", 500, 13_000));
    let task = pick("task", 0, tasks as i64 - 1) as usize;
    let change = match pick("change", 0, 3) {
        0 => Some(Fault::Edit { task }),
        1 => Some(Fault::Restart { task, down: pick("stopped", 500, 15_000) }),
        _ => None,
    };
    let (node, kinds) = match change {
        // The node that is asked first.
        Some(_) => (task % shape.nodes, pick("of few kinds", 1, 4)),
        None => (pick("node", 0, shape.nodes as i64 - 1) as usize, pick("kinds", 1, 12)),
    };
    let crash = Planned { at, fault: Fault::CrashAtCommit { node, kinds: kinds as usize, down } };
    std::iter::once(crash).chain(change.map(|fault| Planned { at: at + 1, fault })).collect()
}

/// By little, or by more than lies between a dispatch and its result.
fn behind(dice: &Dice, shape: &Shape, from: i64, to: i64) -> Planned {
    let node = dice.between("who reads what was", 0, shape.nodes as i64 - 1) as usize;
    let up_to = dice.between("how old it is", 20, 6_000);
    let down = dice.between("for how long it reads that", 3_000, 20_000);
    Planned { at: dice.between("when it reads what was", from, to), fault: Fault::Behind { node, up_to, down } }
}

/// By some seconds, or by hours.
fn wall_set(dice: &Dice, shape: &Shape, from: i64, to: i64) -> Planned {
    let node = dice.between("whose wall clock is set", 0, shape.nodes as i64 - 1) as usize;
    let most = if dice.happens("it is set far", 500) { 3 * 3_600_000 } else { 30_000 };
    let by = dice.between("by how much the wall clock is set", -most, most);
    Planned { at: dice.between("when the wall clock is set", from, to), fault: Fault::Wall { node, by } }
}

/// Something befalls an executor of the first tenant until what it ran is given up, and repeated elsewhere.
fn for_long(dice: &Dice, shape: &Shape, from: i64, what: &str, fault: impl FnOnce(usize, i64) -> Fault) -> Planned {
    let executor = dice.between(&format!("who {what} for long"), 0, shape.own_executors as i64 - 1) as usize;
    let at = dice.between(&format!("when it {what}"), from, 30_000);
    let down = dice.between(&format!("how long it {what}"), 42_000, 60_000);
    Planned { at, fault: fault(executor, down) }
}

/// More runs of one task cannot be started at once.
const BURST_MAX: i64 = 900;

/// A tenant starts more than all nodes have room for, or as many as can be.
fn full_queues(dice: &Dice, shape: &Shape, from: i64, to: i64) -> Planned {
    let tenant = dice.between("who fills the queues", 0, shape.tenants as i64 - 1) as usize;
    let room = (shape.capacity * shape.nodes) as i64;
    let runs = dice.between("with how many runs", room, 2 * room).min(BURST_MAX) as usize;
    Planned { at: dice.between("when the queues are filled", from, to), fault: Fault::Burst { tenant, runs } }
}

/// As much as is allowed for, either way.
fn drift(dice: &Dice, shape: &Shape, from: i64, to: i64) -> Planned {
    let node = dice.between("whose clock is slewed", 0, shape.nodes as i64 - 1) as usize;
    let ppm = if dice.happens("its crystal is fast", 500) { DRIFT_PPM } else { -DRIFT_PPM };
    let (at, down) =
        (dice.between("when it is slewed", from, to), dice.between("for how long it is slewed", 2_000, 15_000));
    Planned { at, fault: Fault::Drift { node, ppm, down } }
}

/// No node can work for so long that fires are missed: all of them die, or the database is away.
fn outage(dice: &Dice, shape: &Shape, from: i64) -> Vec<Planned> {
    let (at, down) = (dice.between("when nobody is there", from, 20_000), dice.between("for how long", 32_000, 64_000));
    if dice.happens("the database is not there", 500) {
        return vec![Planned { at, fault: Fault::StoreAway { node: None, down } }];
    }
    (0..shape.nodes).map(|node| Planned { at, fault: Fault::Crash { node, down } }).collect()
}

/// Mostly by some seconds. What a step forward leaves unwritten, and counts as missed, has a row for each of the latest 100
/// fires only: it is no further.
fn clock_set(dice: &Dice) -> Fault {
    let far = dice.happens("the clock is set far", 300);
    let (least, most) = if far { (20_000, 150_000) } else { (1_000, 20_000) };
    let by = dice.between("by how much the clock is set", least, most);
    let by = if dice.happens("the clock is set back", 500) { -by } else { by };
    let is_undone = dice.happens("the clock is set once more", 400);
    let undone_after = is_undone.then(|| dice.between("when the clock is set once more", 500, 19_000));
    Fault::ClockSet { by, undone_after }
}

/// One who goes away in the middle of a call.
pub fn leaves(dice: &Dice, name: &str) -> Leaves {
    let after = dice.between(&format!("{name}: goes away"), 0, 40);
    Leaves { after, ends_it: dice.happens(&format!("{name}: it ends with that"), 500) }
}

fn choose(dice: &Dice, shape: &Shape, name: &str, tasks: usize) -> Fault {
    let pick = |what: &str, low: i64, high: i64| dice.between(&format!("{name}: {what}"), low, high);
    let node = pick("node", 0, shape.nodes as i64 - 1) as usize;
    // Most of the first tenant, whose tasks are of all kinds.
    let of = if pick("tenant", 0, 4) > 0 { shape.own_executors } else { shape.executors() };
    let executor = pick("executor", 0, of as i64 - 1) as usize;
    let task = pick("task", 0, tasks as i64 - 1) as usize;
    let down = |low: i64, high: i64| pick("down", low, high);
    match pick("kind", 0, 36) {
        0 | 1 => Fault::Crash { node, down: down(500, 15_000) },
        2 => Fault::Pause { node, down: down(15_000, 30_000) },
        3 => Fault::Pause { node, down: down(200, 15_000) },
        4 => Fault::Loss { per_mille: pick("loss", 50, 500), down: down(3_000, 15_000) },
        5 => Fault::Cut { node, executor, down: down(3_000, 30_000) },
        6 => Fault::Island { executor, down: down(3_000, 35_000) },
        7 | 8 => Fault::Kill { executor, down: down(500, 30_000) },
        9 => Fault::StoreAway { node: None, down: down(2_000, 20_000) },
        10 => Fault::StoreAway { node: Some(node), down: down(2_000, 20_000) },
        11 => Fault::ReadOnly { down: down(1_000, 20_000) },
        12 => Fault::Slow { node, up_to: pick("slow", 50, 2_000), down: down(3_000, 15_000) },
        13 => Fault::Doubt { node, per_mille: pick("doubt", 50, 400), down: down(3_000, 15_000) },
        14 | 15 => Fault::LateCommits { node, per_mille: pick("late", 20, 300), down: down(3_000, 15_000) },
        16 => Fault::GivenUp { node, per_mille: pick("given up", 20, 300), down: down(3_000, 15_000) },
        17 => Fault::Deadlocks { node, per_mille: pick("deadlocks", 50, 500), down: down(3_000, 15_000) },
        18 => Fault::Lag { node, lag_us: pick("lag", 0, crate::world::LAG_US) },
        19 | 20 => Fault::Edit { task },
        21 => Fault::HalfEdit { task, leaves: leaves(dice, name) },
        22 => Fault::Burst {
            tenant: pick("bursts", 0, shape.tenants as i64 - 1) as usize,
            runs: pick("runs", 20, 300) as usize,
        },
        23 | 24 => Fault::Stop { node, down: down(500, 15_000) },
        25 => Fault::Restart { task, down: down(500, 20_000) },
        26 => Fault::HalfRestart { task, leaves: leaves(dice, name), down: down(500, 20_000) },
        27 => Fault::Doubled { per_mille: pick("doubled", 50, 400), down: down(3_000, 15_000) },
        28 => Fault::Overtaken { per_mille: pick("overtaken", 50, 400), down: down(3_000, 15_000) },
        _ => Fault::Befalls { executor, mishap: of_executors::choose(dice, name), down: down(500, 19_000) },
    }
}
