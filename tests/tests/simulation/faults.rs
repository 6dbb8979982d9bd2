//! What goes wrong in a simulation, chosen by its seed.

use carillon_tests::model::Dice;

/// A fault; lengths in ms.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A node dies and comes back after so long.
    Crash { node: usize, down: i64 },
    /// A node stands still and goes on with what it remembers.
    Pause { node: usize, down: i64 },
    /// Messages are lost or late, so many per mille.
    Loss { per_mille: i64, down: i64 },
    /// The way between a node and an executor is cut.
    Cut { node: usize, executor: usize, down: i64 },
    /// An executor reaches no node.
    Island { executor: usize, down: i64 },
    /// An executor dies and comes back after so long.
    Kill { executor: usize, down: i64 },
    /// The database is away, for one node or for all.
    StoreAway { node: Option<usize>, down: i64 },
    /// What the database does is reported as failed, so many per mille.
    Doubt { node: usize, per_mille: i64, down: i64 },
    /// A task is edited.
    Edit { task: usize },
    /// A task is stopped and started again after so long.
    Restart { task: usize, down: i64 },
    /// A node is stopped in good order and comes back after so long.
    Stop { node: usize, down: i64 },
}

/// A fault and when it happens, ms after the beginning.
#[derive(Debug, Clone)]
pub struct Planned {
    /// When.
    pub at: i64,
    /// What.
    pub fault: Fault,
}

/// The faults of one seed, between `from` and `to`.
pub fn plan(dice: &Dice, from: i64, to: i64, tasks: usize) -> Vec<Planned> {
    let count = dice.between("how many faults", 3, 9);
    let mut planned: Vec<Planned> = (0..count)
        .map(|number| Planned {
            at: dice.between(&format!("when is fault {number}"), from, to),
            fault: choose(dice, &format!("fault {number}"), tasks),
        })
        .collect();
    planned.sort_by_key(|planned| planned.at);
    planned
}

fn choose(dice: &Dice, name: &str, tasks: usize) -> Fault {
    let pick = |what: &str, low: i64, high: i64| dice.between(&format!("{name}: {what}"), low, high);
    let node = pick("node", 0, 1) as usize;
    let executor = pick("executor", 0, 1) as usize;
    let task = pick("task", 0, tasks as i64 - 1) as usize;
    match pick("kind", 0, 15) {
        0 | 1 => Fault::Crash { node, down: pick("down", 500, 15_000) },
        2 => Fault::Pause { node, down: pick("down", 15_000, 30_000) },
        3 => Fault::Loss { per_mille: pick("loss", 50, 500), down: pick("down", 3_000, 15_000) },
        4 => Fault::Cut { node, executor, down: pick("down", 3_000, 30_000) },
        5 => Fault::Island { executor, down: pick("down", 3_000, 35_000) },
        6 | 7 => Fault::Kill { executor, down: pick("down", 500, 30_000) },
        8 => Fault::StoreAway { node: None, down: pick("down", 2_000, 20_000) },
        9 => Fault::StoreAway { node: Some(node), down: pick("down", 2_000, 20_000) },
        10 => Fault::Doubt { node, per_mille: pick("doubt", 50, 400), down: pick("down", 3_000, 15_000) },
        11 | 12 => Fault::Edit { task },
        13 | 14 => Fault::Stop { node, down: pick("down", 500, 15_000) },
        _ => Fault::Restart { task, down: pick("down", 500, 20_000) },
    }
}
