//! What goes wrong in a simulation.

mod of_executors;
mod plan;
mod words;

pub use of_executors::Mishap;
pub use plan::{leaves, plan};

use crate::node::Leaves;

/// A fault; lengths in ms.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// A node dies and comes back after so long.
    Crash { node: usize, down: i64 },
    /// A node dies right after the first commit of the `kinds`-th kind from now on, and comes back after so long.
    CrashAtCommit { node: usize, kinds: usize, down: i64 },
    /// A node is stopped in good order and comes back after so long.
    Stop { node: usize, down: i64 },
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
    /// Something befalls an executor, and is over after so long.
    Befalls { executor: usize, mishap: Mishap, down: i64 },
    /// Requests come twice, so many per mille.
    Doubled { per_mille: i64, down: i64 },
    /// Messages are overtaken by others, so many per mille.
    Overtaken { per_mille: i64, down: i64 },
    /// The database is away, for one node or for all.
    StoreAway { node: Option<usize>, down: i64 },
    /// The database can be read and not written.
    ReadOnly { down: i64 },
    /// Each statement of a node takes up to so long.
    Slow { node: usize, up_to: i64, down: i64 },
    /// A node reads rows of results as they were up to so long ago.
    Behind { node: usize, up_to: i64, down: i64 },
    /// What the database does is reported as failed, so many per mille.
    Doubt { node: usize, per_mille: i64, down: i64 },
    /// What the database does is reported as failed and carried out only then, so many per mille.
    LateCommits { node: usize, per_mille: i64, down: i64 },
    /// Statements are given up on the way, at a BEGIN or a PREPARE, so many per mille.
    GivenUp { node: usize, per_mille: i64, down: i64 },
    /// Statements are refused as a deadlock's victim, so many per mille.
    Deadlocks { node: usize, per_mille: i64, down: i64 },
    /// A standby takes over that lacks the commits of so long.
    LostCommits { last: i64 },
    /// A node's clock lags by so much from now on, µs.
    Lag { node: usize, lag_us: i64 },
    /// The wall clock of a node's machine is ahead of true time by so much from now on, behind if that is negative.
    Wall { node: usize, by: i64 },
    /// The crystal of a node's machine is off by so many parts per million from now on, and a time service slews the clock that it
    /// steers for so long.
    Drift { node: usize, ppm: i64, down: i64 },
    /// The database's clock is set by so much, back if that is negative; and (perhaps) after so long by as much the other way.
    ClockSet { by: i64, undone_after: Option<i64> },
    /// A task is edited.
    Edit { task: usize },
    /// A task is edited, and the caller goes away before the answer.
    HalfEdit { task: usize, leaves: Leaves },
    /// A task is stopped and started again after so long.
    Restart { task: usize, down: i64 },
    /// The same by people who go away before the answers.
    HalfRestart { task: usize, leaves: Leaves, down: i64 },
    /// A tenant starts so many runs at once.
    Burst { tenant: usize, runs: usize },
}

/// A fault and when it happens, ms after the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// When.
    pub at: i64,
    /// What.
    pub fault: Fault,
}

impl Planned {
    /// When it is over, ms after the beginning.
    pub fn until(&self) -> i64 {
        match self.fault {
            Fault::Crash { down, .. }
            | Fault::Stop { down, .. }
            | Fault::Pause { down, .. }
            | Fault::Loss { down, .. }
            | Fault::Cut { down, .. }
            | Fault::Island { down, .. }
            | Fault::Kill { down, .. }
            | Fault::Befalls { down, .. }
            | Fault::Doubled { down, .. }
            | Fault::Overtaken { down, .. }
            | Fault::StoreAway { down, .. }
            | Fault::ReadOnly { down }
            | Fault::Slow { down, .. }
            | Fault::Behind { down, .. }
            | Fault::Doubt { down, .. }
            | Fault::LateCommits { down, .. }
            | Fault::GivenUp { down, .. }
            | Fault::Deadlocks { down, .. }
            | Fault::Drift { down, .. }
            | Fault::Restart { down, .. }
            | Fault::HalfRestart { down, .. } => self.at + down,
            Fault::CrashAtCommit { down, .. } => self.at + COMMITS_WITHIN_MS + down,
            Fault::LostCommits { .. } => self.at + SWITCH_OVER_MS,
            Fault::ClockSet { undone_after, .. } => self.at + undone_after.unwrap_or(0),
            Fault::Lag { .. }
            | Fault::Wall { .. }
            | Fault::Edit { .. }
            | Fault::HalfEdit { .. }
            | Fault::Burst { .. } => self.at,
        }
    }

    /// Whether something is out of order meanwhile: a change of a task and many runs of another tenant are not.
    pub fn disturbs(&self) -> bool {
        !matches!(
            self.fault,
            Fault::Lag { .. }
                | Fault::Wall { .. }
                | Fault::Drift { .. }
                | Fault::Befalls { mishap: Mishap::Drift { .. }, .. }
                | Fault::Edit { .. }
                | Fault::HalfEdit { .. }
                | Fault::Restart { .. }
                | Fault::HalfRestart { .. }
                | Fault::Burst { .. }
        )
    }

    /// Whether it hits executors alone, or the ways to them.
    pub fn hits_executors(&self) -> bool {
        let hits_one = self.executor().is_some();
        hits_one || matches!(self.fault, Fault::Loss { .. } | Fault::Doubled { .. } | Fault::Overtaken { .. })
    }

    /// The executor that alone is hit by it, with the ways to it.
    pub fn executor(&self) -> Option<usize> {
        match self.fault {
            Fault::Cut { executor, .. }
            | Fault::Island { executor, .. }
            | Fault::Kill { executor, .. }
            | Fault::Befalls { executor, .. } => Some(executor),
            _ => None,
        }
    }

    /// The node that alone is hit by it, without a fault of anything else.
    pub fn node_that_dies(&self) -> Option<usize> {
        match self.fault {
            Fault::Crash { node, .. } | Fault::CrashAtCommit { node, .. } | Fault::Pause { node, .. } => Some(node),
            _ => None,
        }
    }
}

/// A node that is to die of a commit dies within this time, be it of none, ms.
pub const COMMITS_WITHIN_MS: i64 = 6_000;

/// How long a standby takes to take over, ms.
pub const SWITCH_OVER_MS: i64 = 2_000;
