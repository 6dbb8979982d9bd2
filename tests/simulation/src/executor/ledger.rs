//! What executors really did: the truth that the rows are held against.

use carillon::domain::TaskId;
use carillon_protocol::{RunKey, RunStatus, Verdict};
use std::collections::HashSet;
use std::sync::Mutex;

/// A handler was entered.
#[derive(Debug, Clone)]
pub struct Start {
    /// Which attempt.
    pub key: RunKey,
    /// Task.
    pub task: TaskId,
    /// Number of the machine.
    pub machine: usize,
    /// Its executor, as the nodes know it.
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
    /// Number of the machine.
    pub machine: usize,
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

/// A node has taken how a run on a plain executor ended. It does not say what it made of that.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which attempt.
    pub key: RunKey,
    /// How it had ended.
    pub status: RunStatus,
    /// When the executor knew, true time, ms.
    pub at: i64,
}

/// Something of a machine's, by true time, ms.
#[derive(Debug, Clone, Copy)]
pub struct OfMachine {
    /// Number of the machine.
    pub machine: usize,
    /// When.
    pub at: i64,
}

/// Everything that executors did, in order.
#[derive(Debug, Default)]
pub struct Ledger {
    starts: Mutex<Vec<Start>>,
    stops: Mutex<Vec<Stop>>,
    acks: Mutex<Vec<Ack>>,
    told: Mutex<Vec<Told>>,
    contacts: Mutex<Vec<OfMachine>>,
    ends: Mutex<Vec<OfMachine>>,
    off_the_list: Mutex<HashSet<RunKey>>,
}

impl Ledger {
    pub(crate) fn started(&self, start: Start) {
        self.starts.lock().unwrap().push(start);
    }

    pub(crate) fn stopped(&self, key: RunKey, machine: usize, at: i64, how: Stopped) {
        self.stops.lock().unwrap().push(Stop { key, machine, at, how });
    }

    pub(super) fn acknowledged(&self, ack: Ack) {
        self.acks.lock().unwrap().push(ack);
    }

    pub(crate) fn told(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }

    /// A plain executor that was told to stop a run, or to cover it, does not count it any more, while its handler comes to its end.
    pub(crate) fn taken_off_the_list(&self, key: RunKey) {
        self.off_the_list.lock().unwrap().insert(key);
    }

    /// Whether it was taken off.
    pub fn is_off_the_list(&self, key: RunKey) -> bool {
        self.off_the_list.lock().unwrap().contains(&key)
    }

    /// A node has acknowledged a heartbeat, or has asked a plain executor for a sign of life.
    pub(crate) fn heard(&self, machine: usize, at: i64) {
        self.contacts.lock().unwrap().push(OfMachine { machine, at });
    }

    /// A process is gone.
    pub(crate) fn gone(&self, machine: usize, at: i64) {
        self.ends.lock().unwrap().push(OfMachine { machine, at });
    }

    /// Every acknowledged heartbeat, when its sender knew.
    pub fn contacts(&self) -> Vec<OfMachine> {
        self.contacts.lock().unwrap().clone()
    }

    /// When processes ended, in good order or not.
    pub fn ends(&self) -> Vec<OfMachine> {
        self.ends.lock().unwrap().clone()
    }

    /// Every start.
    pub fn starts(&self) -> Vec<Start> {
        self.starts.lock().unwrap().clone()
    }

    /// Every end.
    pub fn stops(&self) -> Vec<Stop> {
        self.stops.lock().unwrap().clone()
    }

    /// Everything that plain executors have told.
    pub fn tellings(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// Every answer that an executor received.
    pub fn acks(&self) -> Vec<Ack> {
        self.acks.lock().unwrap().clone()
    }
}
