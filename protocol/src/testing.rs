//! A machine whose clocks a test turns.

use crate::KernelClocks;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// True time when everything begins, epoch µs.
pub const EPOCH_US: i64 = 1_767_225_600_000_000;

/// A second, µs.
pub const SECOND_US: i64 = 1_000_000;

/// A machine's clocks, and the true time. Clones are the same machine.
#[derive(Debug, Default, Clone)]
pub struct TestMachine(Arc<Clocks>);

#[derive(Debug, Default)]
struct Clocks {
    true_us: AtomicI64,
    raw_ns: AtomicI64,
    monotonic_ns: AtomicI64,
    boot_ns: AtomicI64,
    slew_ppm: AtomicI64,
}

impl KernelClocks for TestMachine {
    fn raw_ns(&self) -> i64 {
        self.0.raw_ns.load(Relaxed)
    }

    fn monotonic_ns(&self) -> i64 {
        self.0.monotonic_ns.load(Relaxed)
    }

    fn boot_ns(&self) -> i64 {
        self.0.boot_ns.load(Relaxed)
    }
}

impl TestMachine {
    /// So much time passes, µs.
    pub fn passes(&self, us: i64) {
        let steered_ns = us * 1_000 + us * self.0.slew_ppm.load(Relaxed) / 1_000;
        self.0.true_us.fetch_add(us, Relaxed);
        self.0.raw_ns.fetch_add(us * 1_000, Relaxed);
        self.0.monotonic_ns.fetch_add(steered_ns, Relaxed);
        self.0.boot_ns.fetch_add(steered_ns, Relaxed);
    }

    /// It is suspended for so long, µs.
    pub fn is_suspended_for(&self, us: i64) {
        self.0.true_us.fetch_add(us, Relaxed);
        self.0.boot_ns.fetch_add(us * 1_000, Relaxed);
    }

    /// From now on a time service lets the steered clocks be fast by so much, ppm.
    pub fn is_slewed_by(&self, ppm: i64) {
        self.0.slew_ppm.store(ppm, Relaxed);
    }

    /// True time, epoch µs.
    #[must_use]
    pub fn true_us(&self) -> i64 {
        EPOCH_US + self.0.true_us.load(Relaxed)
    }
}
