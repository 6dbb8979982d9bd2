//! The clocks of a machine, which go as machines' clocks do: those of nodes and of executors.

use crate::{Dice, SimTime};
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
    paces: Mutex<Paces>,
}

/// How its clocks for times go.
#[derive(Debug, Clone, Copy)]
struct Paces {
    free: Pace,
    /// Of the one that a time service slews.
    steered: Pace,
}

/// A crystal is off by so much at most, ppm.
const CRYSTAL_PPM: i64 = 50;

/// By how much more the steered clock is fast while it is slewed, ppm. chrony slews by up to 83,333.
const SLEW_PPM: i64 = 50_000;

/// How a clock goes, since an instant; all µs.
#[derive(Debug, Clone, Copy)]
struct Pace {
    true_us: i64,
    shown_us: i64,
    ppm: i64,
}

impl MachineTime {
    /// A wall clock that lags by `lag_us`; clocks for times that are faster than true time by `ppm` parts per million.
    #[must_use]
    pub fn new(time: Arc<SimTime>, lag_us: i64, ppm: i64) -> Self {
        let pace = Pace { true_us: time.now_us(), shown_us: 0, ppm };
        let paces = Mutex::new(Paces { free: pace, steered: pace });
        Self { time, ahead_us: AtomicI64::new(-lag_us), paces }
    }

    /// The clocks of this machine, whose crystal is off by chance, and whose wall clock lags by `lag_us`.
    #[must_use]
    pub fn of(machine: &str, dice: &Dice, time: Arc<SimTime>, lag_us: i64) -> Self {
        Self::new(time, lag_us, dice.between(&format!("{machine} drifts"), -CRYSTAL_PPM, CRYSTAL_PPM))
    }

    /// Sets the wall clock so far ahead of true time.
    pub fn set_wall(&self, ahead_us: i64) {
        self.ahead_us.store(ahead_us, Ordering::Relaxed);
    }

    /// Lets the free-running clock drift by `ppm` from now on, no more than 100 against the database's clock being allowed for,
    /// and the steered one be slewed fast.
    pub fn drift(&self, ppm: i64) {
        self.go_on(ppm, ppm + SLEW_PPM);
    }

    /// Lets the steered clock go as the free-running one does from now on, though it stays ahead.
    pub fn end_slew(&self) {
        let ppm = self.paces.lock().unwrap().free.ppm;
        self.go_on(ppm, ppm);
    }

    fn go_on(&self, free_ppm: i64, steered_ppm: i64) {
        let true_us = self.time.now_us();
        let mut paces = self.paces.lock().unwrap();
        let goes_on = |pace: Pace, ppm| Pace { true_us, shown_us: pace.at(true_us), ppm };
        *paces = Paces { free: goes_on(paces.free, free_ppm), steered: goes_on(paces.steered, steered_ppm) };
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
        let (paces, true_us) = (*self.paces.lock().unwrap(), self.time.now_us());
        LocalInstant { free_us: paces.free.at(true_us), steered_us: paces.steered.at(true_us) }
    }

    fn wall_ms(&self) -> i64 {
        (self.time.now_us() + self.ahead_us.load(Ordering::Relaxed)).div_euclid(1_000)
    }
}
