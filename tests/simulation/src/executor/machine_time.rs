//! The clocks of an executor's machine, which go as machines' clocks do.

use crate::SimTime;
use carillon_executor::simulation::TimeSource;
use carillon_protocol::LocalInstant;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// The clocks of one machine.
#[derive(Debug)]
pub struct MachineTime {
    time: Arc<SimTime>,
    /// How far the wall clock is ahead of true time, µs.
    ahead_us: AtomicI64,
    pace: Mutex<Pace>,
}

/// How the monotonic clock goes, since an instant; all µs.
#[derive(Debug, Clone, Copy)]
struct Pace {
    true_us: i64,
    shown_us: i64,
    ppm: i64,
}

impl MachineTime {
    /// A wall clock that lags by `lag_us`; a monotonic clock that is faster than true time by `ppm` parts per million.
    #[must_use]
    pub fn new(time: Arc<SimTime>, lag_us: i64, ppm: i64) -> Self {
        let pace = Mutex::new(Pace { true_us: time.now_us(), shown_us: 0, ppm });
        Self { time, ahead_us: AtomicI64::new(-lag_us), pace }
    }

    /// Sets the wall clock so far ahead of true time.
    pub fn set_wall(&self, ahead_us: i64) {
        self.ahead_us.store(ahead_us, Ordering::Relaxed);
    }

    /// Lets the monotonic clock drift by `ppm` from now on. No more than 100 against the nodes' clocks is allowed for.
    pub fn drift(&self, ppm: i64) {
        let true_us = self.time.now_us();
        let mut pace = self.pace.lock().unwrap();
        *pace = Pace { true_us, shown_us: pace.at(true_us), ppm };
    }
}

impl Pace {
    fn at(self, true_us: i64) -> i64 {
        let passed = true_us - self.true_us;
        self.shown_us + passed + passed * self.ppm / 1_000_000
    }
}

impl TimeSource for MachineTime {
    fn local(&self) -> LocalInstant {
        let us = self.pace.lock().unwrap().at(self.time.now_us());
        LocalInstant { free_us: us, steered_us: us }
    }

    fn wall_ms(&self) -> i64 {
        (self.time.now_us() + self.ahead_us.load(Ordering::Relaxed)).div_euclid(1_000)
    }
}
