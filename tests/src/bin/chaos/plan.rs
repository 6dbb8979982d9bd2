//! What breaks when, and what is edited: all of it follows from the seed.

use carillon_simulation::Dice;
use carillon_tests::proxy::{Action, Place, Point, Trap};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// Nodes, and executors.
pub const NODES: usize = 3;
pub const EXECUTORS: usize = 3;

/// The first fault comes when everything goes on for so long, ms.
const CALM_BEFORE_MS: u64 = 10_000;

/// Between two faults, ms.
const BETWEEN_MS: (i64, i64) = (7_000, 13_000);

/// What was mended gets so long before it breaks again, ms.
const REST_MS: u64 = 3_000;

/// How often another fault is drawn where the drawn one would hit what is broken already.
const DRAWS_MAX: usize = 30;

/// What a fault is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A node, with its ways.
    Node(usize),
    /// An executor, with its ways.
    Executor(usize),
    /// A database server.
    Database(usize),
}

impl Target {
    /// As files call it.
    pub fn name(self) -> String {
        match self {
            Self::Node(number) => format!("node-{number}"),
            Self::Executor(number) => format!("executor-{number}"),
            Self::Database(number) => format!("database-{number}"),
        }
    }
}

/// How it breaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Break {
    /// `kill -9`; it starts again when the fault ends.
    Kill,
    /// SIGSTOP until the fault ends.
    Pause,
    /// SIGTERM, and a new start.
    Restart,
    /// Its machine is gone without closing anything; another one of its name comes when the fault ends.
    Vanish,
    /// Nothing passes to it or from it until the fault ends, between nodes, executors and the database. Calls of the API do.
    Partition,
    /// Of an executor: the same for connections that nodes make to it (`inbound`), or for those that it makes, and not for
    /// the others.
    OneWay { inbound: bool },
    /// A node's connections to the database, or all between an executor and the nodes, are closed, or end with an error.
    Cut { by_error: bool },
    /// Each piece takes so much longer: between a node and the database, or between an executor and the nodes.
    Slow { by_ms: u64 },
    /// Something happens at a statement.
    Trap { point: Point, place: Place, action: Action, times: usize },
}

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// After the start, ms.
    pub at_ms: u64,
    /// How long it lasts, ms.
    pub for_ms: u64,
    /// What is broken.
    pub target: Target,
    /// How.
    pub what: Break,
}

impl Fault {
    /// As `--only` names it.
    pub fn name(&self) -> String {
        let what = match &self.what {
            Break::Kill => "kill",
            Break::Pause => "pause",
            Break::Restart => "restart",
            Break::Vanish => "vanish",
            Break::Partition => "partition",
            Break::OneWay { .. } => "one-way",
            Break::Cut { .. } => "cut",
            Break::Slow { .. } => "slow",
            Break::Trap { .. } => "trap",
        };
        let target = match self.target {
            Target::Node(_) => "node",
            Target::Executor(_) => "executor",
            Target::Database(_) => "database",
        };
        format!("{what}-{target}")
    }

    /// For files and people.
    pub fn to_json(&self) -> Value {
        json!({
            "at_ms": self.at_ms, "for_ms": self.for_ms, "name": self.name(),
            "target": format!("{:?}", self.target), "what": format!("{:?}", self.what),
        })
    }

    /// What is broken as a whole by it: of a cluster, one member at a time.
    fn whole(&self) -> Target {
        if let Target::Database(_) = self.target { Target::Database(0) } else { self.target }
    }

    /// The trap that it sets.
    pub fn trap(&self) -> Option<Trap> {
        match self.what {
            Break::Trap { point, place, action, times } => Some(Trap { point, place, action, times }),
            _ => None,
        }
    }

    /// Whether `--only` lets it through.
    fn is_wanted(&self, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|begin| self.name().starts_with(begin.as_str()))
    }
}

/// The faults of a seed, in their order.
pub fn faults(seed: u64, seconds: u32, members: usize, only: &[String]) -> Vec<Fault> {
    let dice = Dice::new(seed);
    let mut faults = Vec::new();
    let mut free_at: HashMap<Target, u64> = HashMap::new();
    let mut at_ms = CALM_BEFORE_MS;
    while at_ms < u64::from(seconds) * 1_000 {
        for _ in 0..DRAWS_MAX {
            let fault = draw(&dice, at_ms, members);
            let is_free = free_at.get(&fault.whole()).is_none_or(|free| *free <= at_ms);
            if is_free && fault.is_wanted(only) {
                free_at.insert(fault.whole(), at_ms + fault.for_ms + REST_MS);
                faults.push(fault);
                break;
            }
        }
        at_ms += dice.between("pause between faults", BETWEEN_MS.0, BETWEEN_MS.1) as u64;
    }
    faults
}

fn draw(dice: &Dice, at_ms: u64, members: usize) -> Fault {
    let node = Target::Node(dice.between("node", 0, NODES as i64 - 1) as usize);
    let executor = Target::Executor(dice.between("executor", 0, EXECUTORS as i64 - 1) as usize);
    let database = Target::Database(dice.between("member", 0, members as i64 - 1) as usize);
    let (target, what, ms) = match dice.between("fault", 0, 99) {
        0..7 => (node, Break::Kill, (500, 12_000)),
        7..16 => (node, Break::Pause, (2_000, 25_000)),
        16..21 => (node, Break::Restart, (0, 0)),
        21..26 => (node, Break::Vanish, (3_000, 25_000)),
        26..31 => (node, Break::Partition, (2_000, 25_000)),
        31..37 => (executor, Break::Kill, (500, 12_000)),
        37..43 => (executor, Break::Pause, (2_000, 25_000)),
        43..47 => (executor, Break::Restart, (0, 0)),
        47..52 => (executor, Break::Vanish, (3_000, 25_000)),
        // Half of them are long enough for what it runs to be given up.
        52..59 => (executor, Break::Partition, (2_000, 60_000)),
        59..62 => (executor, Break::OneWay { inbound: dice.happens("inbound", 500) }, (2_000, 40_000)),
        62..65 => (executor, Break::Cut { by_error: dice.happens("by error", 500) }, (0, 0)),
        65..69 => (executor, Break::Slow { by_ms: dice.between("slower by", 5, 400) as u64 }, (3_000, 15_000)),
        69..73 => (database, Break::Kill, (500, 10_000)),
        73..77 => (database, Break::Pause, (2_000, 25_000)),
        77..81 => (node, Break::Cut { by_error: dice.happens("by error", 500) }, (0, 0)),
        81..84 => (node, Break::Slow { by_ms: dice.between("slower by", 5, 150) as u64 }, (3_000, 15_000)),
        _ => (node, trap(dice), (15_000, 15_000)),
    };
    Fault { at_ms, for_ms: dice.between("length", ms.0, ms.1) as u64, target, what }
}

fn trap(dice: &Dice) -> Break {
    let points = [Point::Begin, Point::Lock, Point::Commit, Point::Prepare];
    let point = points[dice.between("point", 0, 3) as usize];
    let place = if dice.happens("place", 500) { Place::Before } else { Place::After };
    let hold = Duration::from_millis(dice.between("hold", 1_000, 20_000) as u64);
    let action = match dice.between("action", 0, 9) {
        0..4 => Action::Hold(hold),
        4..6 => Action::Cut,
        6 => Action::Reset,
        7 => Action::Lose,
        _ => Action::Vanish,
    };
    let times = if action == Action::Vanish { 1 } else { dice.between("times", 1, 4) as usize };
    Break::Trap { point, place, action, times }
}

/// One change of a task, or a run by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// Not before this time after the start, ms.
    pub at_ms: u64,
    /// Which of the tasks that are edited.
    pub task: usize,
    /// The node that is asked first.
    pub node: usize,
    /// What happens to a task that is started.
    pub what: Change,
}

/// What is done to a task that is started; one that is stopped is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is stopped.
    Stop,
    /// It fires every so many seconds from now on.
    Every(i64),
    /// What handlers get is another text, and it fires as before.
    Params(u64),
    /// A run by hand, with a key of its own.
    Run(u64),
}

/// The edits of a seed, in their order.
pub fn edits(seed: u64, seconds: u32, tasks: usize) -> Vec<Edit> {
    let dice = Dice::new(seed ^ 0x00ed_17ed);
    let mut edits = Vec::new();
    let mut at_ms = CALM_BEFORE_MS / 2;
    while at_ms < u64::from(seconds) * 1_000 {
        let what = match dice.between("edit", 0, 9) {
            0..3 => Change::Stop,
            3..6 => Change::Every(dice.between("every", 1, 3)),
            6..8 => Change::Params(at_ms),
            _ => Change::Run(at_ms),
        };
        let task = dice.between("edited task", 0, tasks as i64 - 1) as usize;
        edits.push(Edit { at_ms, task, node: dice.between("asked node", 0, NODES as i64 - 1) as usize, what });
        at_ms += dice.between("pause between edits", 500, 2_500) as u64;
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is silent for so long is taken for dead, ms: `executors.abandon_after` and `executors.offline_after`, and some.
    const GIVEN_UP_MS: u64 = 35_000;

    #[test]
    fn the_same_seed_is_the_same_plan_and_another_seed_another() {
        let plan = |seed| (faults(seed, 300, 1, &[]), edits(seed, 300, 8));
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
    }

    #[test]
    fn a_fault_comes_every_ten_seconds_and_nothing_breaks_twice_at_once() {
        for seed in 1..50 {
            let faults = faults(seed, 300, 3, &[]);
            assert!((24..36).contains(&faults.len()), "{} faults", faults.len());
            for (place, fault) in faults.iter().enumerate() {
                let beside = faults[..place].iter().filter(|other| other.at_ms + other.for_ms > fault.at_ms);
                assert!(beside.filter(|other| other.target == fault.target).count() == 0, "{fault:?}");
            }
        }
    }

    #[test]
    fn every_kind_of_fault_comes_and_only_what_is_asked_for() {
        let all: Vec<Fault> = (1..40).flat_map(|seed| faults(seed, 300, 3, &[])).collect();
        let mut names: Vec<String> = all.iter().map(Fault::name).collect();
        names.sort_unstable();
        names.dedup();
        let mut known = Vec::new();
        for what in ["kill", "pause", "restart", "vanish", "partition", "cut", "slow"] {
            known.extend([format!("{what}-node"), format!("{what}-executor")]);
        }
        known.extend(["trap-node", "one-way-executor", "kill-database", "pause-database"].map(str::to_owned));
        known.sort_unstable();
        assert_eq!(names, known);
        let is_long = |fault: &&Fault| fault.name() == "partition-executor" && fault.for_ms > GIVEN_UP_MS;
        assert!(all.iter().filter(is_long).count() > 10, "partitions in which what an executor runs is given up");
        for point in [Point::Begin, Point::Lock, Point::Commit, Point::Prepare] {
            assert!(all.iter().any(|fault| fault.trap().is_some_and(|trap| trap.point == point)), "{point:?}");
        }
        let only = ["pause-node".to_owned()];
        assert!(faults(1, 300, 1, &only).iter().all(|fault| fault.name() == "pause-node"));
        assert!(faults(1, 300, 1, &["none".to_owned()]).is_empty());
    }
}
