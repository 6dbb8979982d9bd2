//! One source of time for all; the database's clock, which people set; and the nodes' clocks, which follow that, carried on by
//! the clocks of machines, none of which is right.

use crate::MachineTime;
use async_trait::async_trait;
use carillon::cluster::{Clock, ClusterClock};
use carillon::store::{ClusterStore, Result};
use carillon_executor::simulation::TimeSource as _;
use carillon_protocol::{KernelClocks, LocalClock};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Where virtual time begins: 2026-01-01T00:00:00Z, epoch µs.
const VIRTUAL_EPOCH_US: i64 = 1_767_225_600_000_000;

/// True time. Follows tokio's clock, so a paused runtime makes it virtual. The database's clock goes as it does, and is
/// ahead of it or behind.
#[derive(Debug)]
pub struct SimTime {
    origin: Instant,
    base_us: i64,
    /// How far the database's clock is ahead of true time, ms.
    ahead_ms: AtomicI64,
    steps: Mutex<Vec<ClockStep>>,
}

/// The database's clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// When, true time, ms.
    pub at: i64,
    /// How far it is ahead of true time from then on, ms.
    pub ahead_ms: i64,
}

impl SimTime {
    /// Time that begins at a fixed instant.
    #[must_use]
    pub fn simulated() -> Arc<Self> {
        Self::from(VIRTUAL_EPOCH_US)
    }

    /// Time that goes on from this instant, epoch µs.
    #[must_use]
    pub fn from(base_us: i64) -> Arc<Self> {
        Arc::new(Self { origin: Instant::now(), base_us, ahead_ms: AtomicI64::new(0), steps: Mutex::default() })
    }

    /// Epoch µs.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        self.base_us + i64::try_from(self.origin.elapsed().as_micros()).expect("fits for 290,000 years")
    }

    /// Epoch ms.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// What the database's clock says, epoch µs.
    #[must_use]
    pub fn database_us(&self) -> i64 {
        self.now_us() + self.ahead_ms() * 1_000
    }

    /// What the database's clock says, epoch ms.
    #[must_use]
    pub fn database_ms(&self) -> i64 {
        self.now_ms() + self.ahead_ms()
    }

    /// How far the database's clock is ahead of true time, ms.
    #[must_use]
    pub fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Sets the database's clock forward, or back.
    pub fn set_database_clock(&self, by_ms: i64) {
        let ahead_ms = self.ahead_ms.fetch_add(by_ms, Ordering::Relaxed) + by_ms;
        self.steps.lock().unwrap().push(ClockStep { at: self.now_ms(), ahead_ms });
    }

    /// When the database's clock was set, in order.
    #[must_use]
    pub fn steps(&self) -> Vec<ClockStep> {
        self.steps.lock().unwrap().clone()
    }

    /// Milliseconds since the beginning: what a trace prints.
    #[must_use]
    pub fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_millis()).expect("fits for 290,000 years")
    }

    /// Sleeps until that instant, epoch ms.
    pub async fn until_ms(&self, at: i64) {
        let wait_us = at.saturating_mul(1_000) - self.now_us();
        if wait_us > 0 {
            tokio::time::sleep(std::time::Duration::from_micros(wait_us as u64)).await;
        }
    }
}

/// The kernel of a node's machine, which is never suspended.
#[derive(Debug)]
struct Machine(Arc<MachineTime>);

impl KernelClocks for Machine {
    fn raw_ns(&self) -> i64 {
        self.0.local().free_us * 1_000
    }

    fn monotonic_ns(&self) -> i64 {
        self.0.local().steered_us * 1_000
    }

    fn boot_ns(&self) -> i64 {
        self.monotonic_ns()
    }
}

/// A node's clock: the product's, of the process that runs at present, which (perhaps) lags by a little more.
#[derive(Debug)]
pub struct SimClock {
    time: Arc<SimTime>,
    machine: Arc<MachineTime>,
    lag_us: AtomicI64,
    of_process: Mutex<Option<Arc<ClusterClock>>>,
}

impl SimClock {
    /// A clock over those of a machine, which lags.
    #[must_use]
    pub fn new(time: Arc<SimTime>, machine: MachineTime, lag_us: i64) -> Self {
        let (machine, lag_us) = (Arc::new(machine), AtomicI64::new(lag_us.max(0)));
        Self { time, machine, lag_us, of_process: Mutex::default() }
    }

    /// The clocks of its machine, to let them drift.
    #[must_use]
    pub fn machine(&self) -> &MachineTime {
        &self.machine
    }

    /// Lets it lag by so much from now on, µs.
    pub fn set_lag(&self, lag_us: i64) {
        self.lag_us.store(lag_us.max(0), Ordering::Relaxed);
    }

    /// A process begins, and takes its first readings.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn begin(&self, store: &dyn ClusterStore) -> Result<()> {
        let machine = LocalClock::over(Machine(Arc::clone(&self.machine)));
        let clock = ClusterClock::synchronised_over(machine, store).await?;
        *self.of_process.lock().unwrap() = Some(Arc::new(clock));
        Ok(())
    }

    fn of_process(&self) -> Option<Arc<ClusterClock>> {
        self.of_process.lock().unwrap().clone()
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now_us(&self) -> i64 {
        let now = self.of_process().map_or_else(|| self.time.database_us(), |clock| clock.now_us());
        now - self.lag_us.load(Ordering::Relaxed)
    }

    fn times_set(&self) -> u64 {
        self.of_process().map_or(0, |clock| clock.times_set())
    }

    fn set_back_from(&self) -> i64 {
        self.of_process().map_or(0, |clock| clock.set_back_from())
    }

    fn here_us(&self) -> i64 {
        self.machine.wall_ms() * 1_000
    }

    fn uncertainty_us(&self) -> Option<i64> {
        Some(self.of_process()?.uncertainty_us()? + self.lag_us.load(Ordering::Relaxed))
    }

    fn local_us(&self) -> i64 {
        self.machine.local().free_us
    }

    async fn observe(&self, store: &dyn ClusterStore) -> Result<()> {
        match self.of_process() {
            Some(clock) => clock.observe(store).await,
            None => Ok(()),
        }
    }

    async fn refresh(&self, store: &dyn ClusterStore) -> Result<()> {
        match self.of_process() {
            Some(clock) => clock.refresh(store).await,
            None => Ok(()),
        }
    }
}
