//! The network between nodes and executors: takes a moment, loses messages, doubles them, lets one overtake another, is
//! cut in two.

use super::{Dice, SimTime};
use carillon_protocol::exchange::Answer;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// An end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// A scheduler node.
    Node(usize),
    /// An executor's machine.
    Executor(usize),
}

/// Why there is no answer, where that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The machine says that nothing listens there.
    Refused,
    /// The process ended while it was asked.
    Reset,
    /// No connection is made.
    NoWay,
}

/// An answer on its way back.
type Back = oneshot::Sender<Result<Answer, Broken>>;

/// The network.
#[derive(Debug)]
pub struct Net {
    time: Arc<SimTime>,
    dice: Arc<Dice>,
    cuts: Mutex<BTreeMap<(Endpoint, Endpoint), i64>>,
    unheard: Mutex<BTreeMap<usize, i64>>,
    loss_per_mille: AtomicU64,
    doubled_per_mille: AtomicU64,
    delayed_per_mille: AtomicU64,
}

impl Net {
    /// A good network.
    #[must_use]
    pub fn new(time: Arc<SimTime>, dice: Arc<Dice>) -> Arc<Self> {
        Arc::new(Self {
            time,
            dice,
            cuts: Mutex::default(),
            unheard: Mutex::default(),
            loss_per_mille: AtomicU64::new(0),
            doubled_per_mille: AtomicU64::new(0),
            delayed_per_mille: AtomicU64::new(0),
        })
    }

    /// How many messages (per mille, each way) are lost or come late.
    pub fn lose(&self, per_mille: u64) {
        self.loss_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// How many requests (per mille) come twice.
    pub fn double(&self, per_mille: u64) {
        self.doubled_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// How many messages (per mille, each way) are overtaken by others.
    pub fn reorder(&self, per_mille: u64) {
        self.delayed_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Cuts the way between two places, both directions, until then (epoch ms).
    pub fn cut(&self, a: Endpoint, b: Endpoint, until_ms: i64) {
        self.cuts.lock().unwrap().insert((a.min(b), a.max(b)), until_ms);
    }

    /// Swallows the results of an executor, and nothing else of it, until then (epoch ms).
    pub fn swallow_results(&self, executor: usize, until_ms: i64) {
        self.unheard.lock().unwrap().insert(executor, until_ms);
    }

    /// Whether results of an executor are swallowed at present.
    pub fn swallows_results_of(&self, executor: usize) -> bool {
        let now = self.time.now_ms();
        self.unheard.lock().unwrap().get(&executor).is_some_and(|until| now < *until)
    }

    /// Mends everything.
    pub fn mend(&self) {
        self.cuts.lock().unwrap().clear();
        self.unheard.lock().unwrap().clear();
        self.lose(0);
        self.double(0);
        self.reorder(0);
    }

    /// Whether there is no way at present.
    pub fn is_cut(&self, a: Endpoint, b: Endpoint) -> bool {
        let now = self.time.now_ms();
        self.cuts.lock().unwrap().get(&(a.min(b), a.max(b))).is_some_and(|until| now < *until)
    }

    /// Takes a request that `what` describes to the other end, which acts by `deliver`, and its answer back. Does not
    /// return when either is lost: the caller has a time-out. What is on its way arrives, whatever becomes of the caller.
    ///
    /// # Errors
    /// When it shows that there will be no answer.
    pub async fn exchange<D, W>(
        self: &Arc<Self>,
        from: Endpoint,
        to: Endpoint,
        what: &str,
        deliver: D,
    ) -> Result<Answer, Broken>
    where
        D: Fn() -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Answer, Broken>> + Send + 'static,
    {
        self.carry((from, to), what, true, deliver).await
    }

    /// The same of a request that comes no more than once, as over one connection without anybody in between who repeats it.
    ///
    /// # Errors
    /// As [`Net::exchange`].
    pub async fn exchange_once<D, W>(
        self: &Arc<Self>,
        from: Endpoint,
        to: Endpoint,
        what: &str,
        deliver: D,
    ) -> Result<Answer, Broken>
    where
        D: Fn() -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Answer, Broken>> + Send + 'static,
    {
        self.carry((from, to), what, false, deliver).await
    }

    async fn carry<D, W>(
        self: &Arc<Self>,
        ends: (Endpoint, Endpoint),
        what: &str,
        may_be_doubled: bool,
        deliver: D,
    ) -> Result<Answer, Broken>
    where
        D: Fn() -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Answer, Broken>> + Send + 'static,
    {
        let (back, answer) = oneshot::channel();
        let purpose = format!("{:?} to {:?}: {what}", ends.0, ends.1);
        tokio::spawn(self.clone().there_and_back(ends, may_be_doubled, purpose, deliver, back));
        match answer.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }

    async fn there_and_back<D, W>(
        self: Arc<Self>,
        (from, to): (Endpoint, Endpoint),
        may_be_doubled: bool,
        purpose: String,
        deliver: D,
        back: Back,
    ) where
        D: Fn() -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Answer, Broken>> + Send + 'static,
    {
        self.take_a_moment(&purpose).await;
        if self.is_cut(from, to) {
            // A new connection is not made, an old one says nothing.
            if self.dice.happens(&format!("{purpose} needs a connection"), 500) {
                tokio::time::sleep(CONNECT_TIMEOUT).await;
                drop(back.send(Err(Broken::NoWay)));
            }
            return;
        }
        if self.is_lost(&purpose).await {
            return;
        }
        if may_be_doubled && self.chance(&self.doubled_per_mille, &purpose, "is doubled") {
            let after = self.dice.between(&format!("{purpose} comes again after"), 1, 4_000) as u64;
            let again = deliver.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(after)).await;
                drop(again().await);
            });
        }
        let answer = deliver().await;
        let purpose = format!("answer to {purpose}");
        self.take_a_moment(&purpose).await;
        if !self.is_cut(from, to) && !self.is_lost(&purpose).await {
            drop(back.send(answer));
        }
    }

    async fn take_a_moment(&self, purpose: &str) {
        let us = self.dice.between(&format!("{purpose} takes"), 100, 5_000);
        tokio::time::sleep(Duration::from_micros(us as u64)).await;
        if self.chance(&self.delayed_per_mille, purpose, "is overtaken") {
            let ms = self.dice.between(&format!("{purpose} is overtaken for"), 5, 400);
            tokio::time::sleep(Duration::from_millis(ms as u64)).await;
        }
    }

    /// Whether the message is lost; waits for one that is late.
    async fn is_lost(&self, purpose: &str) -> bool {
        if !self.chance(&self.loss_per_mille, purpose, "is lost") {
            return false;
        }
        if self.dice.between(&format!("{purpose} comes"), 0, 1) == 0 {
            return true;
        }
        let ms = self.dice.between(&format!("{purpose} late by"), 50, 6_000);
        tokio::time::sleep(Duration::from_millis(ms as u64)).await;
        false
    }

    fn chance(&self, per_mille: &AtomicU64, purpose: &str, what: &str) -> bool {
        let per_mille = per_mille.load(Ordering::Relaxed);
        per_mille > 0 && self.dice.happens(&format!("{purpose} {what}"), per_mille)
    }
}
