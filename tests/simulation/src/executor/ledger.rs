//! What executors really did: the truth that the rows are held against.

use carillon::domain::TaskId;
use carillon_protocol::{RunKey, RunStatus, Verdict};
use std::sync::Mutex;

/// A handler was entered.
#[derive(Debug, Clone)]
pub struct Start {
    /// Which attempt.
    pub key: RunKey,
    /// Task.
    pub task: TaskId,
    /// Where.
    pub executor_id: i64,
    /// The instant that the schedule names, ms.
    pub fire_time: i64,
    /// When it should start, ms.
    pub due_time: i64,
    /// True time, ms.
    pub at: i64,
}

/// How a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// By itself, or stopped by its executor.
    Ended(RunStatus),
    /// With its process.
    Killed,
}

/// A handler ended.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Which attempt.
    pub key: RunKey,
    /// True time, ms.
    pub at: i64,
    /// How.
    pub how: Stopped,
}

/// A node answered a result.
#[derive(Debug, Clone)]
pub struct Ack {
    /// Which attempt.
    pub key: RunKey,
    /// What was reported.
    pub status: RunStatus,
    /// What the node said.
    pub verdict: Verdict,
}

/// Everything that executors did, in order.
#[derive(Debug, Default)]
pub struct Ledger {
    starts: Mutex<Vec<Start>>,
    stops: Mutex<Vec<Stop>>,
    acks: Mutex<Vec<Ack>>,
}

impl Ledger {
    pub(super) fn started(&self, start: Start) {
        self.starts.lock().unwrap().push(start);
    }

    pub(super) fn stopped(&self, key: RunKey, at: i64, how: Stopped) {
        self.stops.lock().unwrap().push(Stop { key, at, how });
    }

    pub(super) fn acknowledged(&self, ack: Ack) {
        self.acks.lock().unwrap().push(ack);
    }

    /// Every start.
    pub fn starts(&self) -> Vec<Start> {
        self.starts.lock().unwrap().clone()
    }

    /// Every end.
    pub fn stops(&self) -> Vec<Stop> {
        self.stops.lock().unwrap().clone()
    }

    /// Every answer that an executor received.
    pub fn acks(&self) -> Vec<Ack> {
        self.acks.lock().unwrap().clone()
    }
}
