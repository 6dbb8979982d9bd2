//! Faults as a reader of a failed simulation meets them.

use super::{Fault, Planned};
use std::fmt;

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {}", self.at as f64 / 1_000.0, self.fault)
    }
}

/// Milliseconds as seconds.
struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1_000, self.0 % 1_000)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |ms: &i64| Seconds(*ms);
        match self {
            Self::Crash { node, down } => write!(f, "node {node} dies and is back after {}", s(down)),
            Self::CrashAtCommit { node, kinds, down } => {
                write!(
                    f,
                    "node {node} dies of a commit, the first of the kind number {kinds}, and is back after {}",
                    s(down)
                )
            }
            Self::Stop { node, down } => {
                write!(f, "node {node} is stopped in good order, and started {} after it has left", s(down))
            }
            Self::Pause { node, down } => write!(f, "node {node} stands still for {}", s(down)),
            Self::Loss { per_mille, down } => write!(f, "{per_mille} ‰ of messages are lost or late for {}", s(down)),
            Self::Cut { node, executor, down } => {
                write!(f, "node {node} and executor {executor} do not reach each other for {}", s(down))
            }
            Self::Island { executor, down } => write!(f, "executor {executor} reaches no node for {}", s(down)),
            Self::Kill { executor, down } => write!(f, "executor {executor} dies and is back after {}", s(down)),
            Self::Befalls { executor, mishap, down } => write!(f, "executor {executor} {mishap}, for {}", s(down)),
            Self::Doubled { per_mille, down } => write!(f, "{per_mille} ‰ of requests come twice for {}", s(down)),
            Self::Overtaken { per_mille, down } => {
                write!(f, "{per_mille} ‰ of messages are overtaken by others for {}", s(down))
            }
            Self::StoreAway { node: None, down } => write!(f, "the database is away for {}", s(down)),
            Self::StoreAway { node: Some(node), down } => {
                write!(f, "the database is away for node {node} for {}", s(down))
            }
            Self::ReadOnly { down } => write!(f, "the database is read-only for {}", s(down)),
            Self::Slow { node, up_to, down } => {
                write!(f, "statements of node {node} take up to {up_to} ms for {}", s(down))
            }
            Self::Behind { node, up_to, down } => {
                write!(f, "node {node} reads rows of results as they were up to {up_to} ms ago for {}", s(down))
            }
            Self::Doubt { node, per_mille, down } => {
                write!(f, "{per_mille} ‰ of node {node}'s statements are done and reported as failed for {}", s(down))
            }
            Self::LateCommits { node, per_mille, down } => {
                write!(f, "{per_mille} ‰ of node {node}'s commits come after they failed for {}", s(down))
            }
            Self::GivenUp { node, per_mille, down } => {
                write!(f, "{per_mille} ‰ of node {node}'s statements are given up undone for {}", s(down))
            }
            Self::Deadlocks { node, per_mille, down } => {
                write!(f, "{per_mille} ‰ of node {node}'s statements are deadlocks for {}", s(down))
            }
            Self::LostCommits { last } => write!(f, "a standby takes over without the last {}", s(last)),
            Self::Lag { node, lag_us } => write!(f, "the clock of node {node} lags by {lag_us} µs from now on"),
            Self::Wall { node, by } => {
                write!(f, "the wall clock of node {node} is {by} ms ahead of true time from now on")
            }
            Self::Drift { node, ppm, down } => {
                write!(f, "node {node} drifts by {ppm} ppm from now on, its steered clock slewed for {}", s(down))
            }
            Self::ClockSet { by, undone_after } => {
                let way = if *by < 0 { "back" } else { "forward" };
                write!(f, "the database's clock is set {way} by {}", s(&by.abs()))?;
                undone_after.map_or(Ok(()), |after| write!(f, ", and after {} by as much the other way", s(&after)))
            }
            Self::Edit { task } => write!(f, "task {task} is edited"),
            Self::HalfEdit { task, leaves } => write!(f, "task {task} is edited by one who {leaves}"),
            Self::HalfRestart { task, leaves, down } => {
                write!(f, "task {task} is stopped, and started after {}, each by one who {leaves}", s(down))
            }
            Self::Restart { task, down } => write!(f, "task {task} is stopped, and started after {}", s(down)),
            Self::Burst { tenant, runs } => write!(f, "tenant {tenant} starts {runs} runs at once"),
        }
    }
}
