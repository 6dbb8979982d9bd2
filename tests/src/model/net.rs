//! The network between nodes and executors: takes a moment, loses messages, is cut in two.

use super::{Dice, SimTime};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// A scheduler node.
    Node(usize),
    /// An executor's machine.
    Executor(usize),
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Arrived,
    /// It is not, and never will be.
    Lost,
    /// The sender will have given up before it arrives, after this time.
    Late(Duration),
    /// There is no way at all.
    Cut,
}

/// The network.
#[derive(Debug)]
pub struct Net {
    time: Arc<SimTime>,
    dice: Arc<Dice>,
    cuts: Mutex<BTreeMap<(Endpoint, Endpoint), i64>>,
    loss_per_mille: AtomicU64,
}

impl Net {
    /// A good network.
    #[must_use]
    pub fn new(time: Arc<SimTime>, dice: Arc<Dice>) -> Arc<Self> {
        Arc::new(Self { time, dice, cuts: Mutex::default(), loss_per_mille: AtomicU64::new(0) })
    }

    /// How many messages (per mille, each way) are lost or come too late.
    pub fn lose(&self, per_mille: u64) {
        self.loss_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Cuts the way between two places, both directions, until then (epoch ms).
    pub fn cut(&self, a: Endpoint, b: Endpoint, until_ms: i64) {
        self.cuts.lock().unwrap().insert((a.min(b), a.max(b)), until_ms);
    }

    /// Mends everything.
    pub fn mend(&self) {
        self.cuts.lock().unwrap().clear();
        self.lose(0);
    }

    /// Carries a message that `what` describes; returns when it is there, or lost.
    pub async fn carry(&self, from: Endpoint, to: Endpoint, what: &str) -> Fate {
        let purpose = format!("{from:?} to {to:?}: {what}");
        let us = self.dice.between(&format!("{purpose} takes"), 100, 5_000);
        tokio::time::sleep(Duration::from_micros(us as u64)).await;
        if self.is_cut(from, to) {
            return Fate::Cut;
        }
        let loss = self.loss_per_mille.load(Ordering::Relaxed);
        if loss == 0 || !self.dice.happens(&purpose, loss) {
            return Fate::Arrived;
        }
        match self.dice.between(&format!("{purpose} comes"), 0, 1) {
            0 => Fate::Lost,
            _ => Fate::Late(Duration::from_millis(self.dice.between(&format!("{purpose} late by"), 50, 6_000) as u64)),
        }
    }

    /// Whether there is no way at present.
    pub fn is_cut(&self, a: Endpoint, b: Endpoint) -> bool {
        let now = self.time.now_ms();
        self.cuts.lock().unwrap().get(&(a.min(b), a.max(b))).is_some_and(|until| now < *until)
    }
}
