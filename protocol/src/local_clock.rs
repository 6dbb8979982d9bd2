//! This machine's own clock, as promises need it: it counts the time for which the machine was suspended, and no time
//! service changes its pace.
//!
//! No clock of Linux does both. `CLOCK_MONOTONIC` (which is [`std::time::Instant`]) stands still while the machine is
//! suspended, so that a lease would look valid that has long run out; and a time service slews it by up to 83,333 parts per
//! million. `CLOCK_BOOTTIME` counts suspensions and is slewed alike. `CLOCK_MONOTONIC_RAW` is not slewed and stands still. So
//! the clock here is the raw one, and what boot time is ahead of the monotonic one by: only a suspension changes that.
//!
//! macOS: `CLOCK_MONOTONIC`, which counts suspensions and is slewed. Elsewhere: [`std::time::Instant`].
//!
//! A virtual machine that its host stops, or restores from a snapshot, without telling it is not suspended in this sense:
//! none of its clocks may notice.

mod kernel;

pub use kernel::KernelClocks;

use kernel::Kernel;
use std::sync::atomic::{AtomicI64, Ordering};

/// An instant by this machine, µs, each since an instant of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalInstant {
    /// By the clock that nobody slews. What is promised for a time counts by it.
    pub free_us: i64,
    /// By the clock that the machine's time service steers.
    pub steered_us: i64,
}

/// No suspension is shorter, and no two readings of a kernel's clocks in a row are normally further apart, ns.
const SUSPENSION_MIN_NS: i64 = 1_000_000;

/// How often a difference between two clocks is measured, to be sure that this thread was not interrupted in the middle.
const MEASUREMENTS: usize = 8;

/// This machine's clock.
#[derive(Debug)]
pub struct LocalClock {
    kernel: Box<dyn KernelClocks>,
    /// What boot time is ahead of the monotonic clock by, as far as is known.
    suspended_ns: AtomicI64,
    /// What boot time was ahead of the raw clock by when that was measured. While it is about the same, so is the other, and
    /// the monotonic clock need not be read: a start waits for each reading.
    ahead_ns: AtomicI64,
}

impl LocalClock {
    /// This machine's.
    #[must_use]
    pub fn machine() -> Self {
        Self::over(Kernel::new())
    }

    /// Over these clocks.
    pub fn over(kernel: impl KernelClocks + 'static) -> Self {
        let suspended_ns = AtomicI64::new(measure_suspended_ns(&kernel));
        let ahead_ns = AtomicI64::new(measure_ahead_ns(&kernel));
        Self { kernel: Box::new(kernel), suspended_ns, ahead_ns }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> LocalInstant {
        // The raw clock first: a suspension that comes after it is seen by the other.
        let raw_ns = self.kernel.raw_ns();
        let boot_ns = self.kernel.boot_ns();
        let suspended_ns = self.suspended_ns(boot_ns - raw_ns);
        LocalInstant { free_us: (raw_ns + suspended_ns) / 1_000, steered_us: boot_ns / 1_000 }
    }

    /// How long the machine has been suspended, as of a moment when boot time was ahead of the raw clock by `ahead_ns`.
    fn suspended_ns(&self, ahead_ns: i64) -> i64 {
        // Before the other one, which is set first.
        let is_as_known = (ahead_ns - self.ahead_ns.load(Ordering::Acquire)).abs() < SUSPENSION_MIN_NS;
        let known_ns = self.suspended_ns.load(Ordering::Acquire);
        if is_as_known {
            return known_ns;
        }
        // The machine was suspended, a time service has slewed one of the two, or this thread was interrupted between them. A
        // suspension that comes between these measurements is seen by the next reading.
        let ahead_ns = measure_ahead_ns(&*self.kernel);
        let suspended_ns = self.suspended_at_least(known_ns, measure_suspended_ns(&*self.kernel));
        self.ahead_ns.store(ahead_ns, Ordering::Release);
        suspended_ns
    }

    /// How long the machine has been suspended, by what was known and what was measured since.
    fn suspended_at_least(&self, known_ns: i64, measured_ns: i64) -> i64 {
        if measured_ns < known_ns + SUSPENSION_MIN_NS {
            return known_ns;
        }
        match self.suspended_ns.compare_exchange(known_ns, measured_ns, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => measured_ns,
            Err(by_another) => by_another,
        }
    }
}

/// How long the machine has been suspended, and less by no more than an interruption: boot time is read first.
fn measure_suspended_ns(kernel: &dyn KernelClocks) -> i64 {
    let measurement = || {
        let boot_ns = kernel.boot_ns();
        boot_ns - kernel.monotonic_ns()
    };
    std::iter::repeat_with(measurement).take(MEASUREMENTS).max().unwrap_or(0)
}

/// What boot time is ahead of the raw clock by, and more by no more than an interruption: the raw clock is read first.
fn measure_ahead_ns(kernel: &dyn KernelClocks) -> i64 {
    let measurement = || {
        let raw_ns = kernel.raw_ns();
        kernel.boot_ns() - raw_ns
    };
    std::iter::repeat_with(measurement).take(MEASUREMENTS).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Clocks that are read as the test says: each reading takes the next interruption.
    #[derive(Debug, Default, Clone)]
    struct Machine(Arc<Clocks>);

    #[derive(Debug, Default)]
    struct Clocks {
        awake_ns: AtomicI64,
        suspended_ns: AtomicI64,
        /// By how much the steered clocks are fast, ppm.
        slew_ppm: AtomicI64,
        steered_ns: AtomicI64,
        /// Each reading takes so long.
        reading_ns: AtomicI64,
        /// The n-th reading from now is followed by an interruption of a second.
        interrupted_after: AtomicI64,
    }

    impl Machine {
        fn passes(&self, ns: i64) {
            self.0.awake_ns.fetch_add(ns, Ordering::Relaxed);
            let slewed_ns = ns / 1_000 * self.0.slew_ppm.load(Ordering::Relaxed) / 1_000;
            self.0.steered_ns.fetch_add(ns + slewed_ns, Ordering::Relaxed);
        }

        fn is_read(&self, ns: i64) -> i64 {
            self.passes(self.0.reading_ns.load(Ordering::Relaxed));
            if self.0.interrupted_after.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.passes(1_000_000_000);
            }
            ns
        }
    }

    impl KernelClocks for Machine {
        fn raw_ns(&self) -> i64 {
            self.is_read(self.0.awake_ns.load(Ordering::Relaxed))
        }

        fn monotonic_ns(&self) -> i64 {
            self.is_read(self.0.steered_ns.load(Ordering::Relaxed))
        }

        fn boot_ns(&self) -> i64 {
            let steered_ns = self.0.steered_ns.load(Ordering::Relaxed);
            self.is_read(steered_ns + self.0.suspended_ns.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn suspensions_count_and_slewing_does_not() {
        let machine = Machine::default();
        let clock = LocalClock::over(machine.clone());
        let began = clock.now();
        machine.passes(1_000_000_000);
        machine.0.suspended_ns.fetch_add(60_000_000_000, Ordering::Relaxed);
        assert_eq!(clock.now().free_us - began.free_us, 61_000_000);
        assert_eq!(clock.now().steered_us - began.steered_us, 61_000_000);
        machine.0.slew_ppm.store(50_000, Ordering::Relaxed);
        machine.passes(3_000_000_000);
        assert_eq!(clock.now().free_us - began.free_us, 64_000_000);
        assert_eq!(clock.now().steered_us - began.steered_us, 64_150_000);
        machine.0.suspended_ns.fetch_add(2_000_000, Ordering::Relaxed);
        assert_eq!(clock.now().free_us - began.free_us, 64_002_000);
    }

    #[test]
    fn an_interrupted_reading_is_no_suspension() {
        for interrupted_after in 1..40 {
            let machine = Machine::default();
            machine.0.reading_ns.store(50, Ordering::Relaxed);
            machine.0.interrupted_after.store(interrupted_after, Ordering::Relaxed);
            let clock = LocalClock::over(machine.clone());
            for suspended_us in [0, 0, 7_000_000] {
                machine.0.suspended_ns.fetch_add(suspended_us * 1_000, Ordering::Relaxed);
                let before_us = machine.0.awake_ns.load(Ordering::Relaxed) / 1_000;
                let now = clock.now();
                let after_us = machine.0.awake_ns.load(Ordering::Relaxed) / 1_000;
                let awake_us = now.free_us - machine.0.suspended_ns.load(Ordering::Relaxed) / 1_000;
                // Of measurements that take 50 ns, one is lost to whole µs.
                assert!((before_us - 1..=after_us).contains(&awake_us), "{interrupted_after}: {awake_us}");
            }
        }
    }

    #[test]
    fn this_machine_s_clock_goes_on_with_the_system_s() {
        let clock = LocalClock::machine();
        let (before, began) = (clock.now(), std::time::Instant::now());
        while began.elapsed().as_millis() < 20 {
            std::thread::yield_now();
        }
        let now = clock.now();
        assert!(now.free_us - before.free_us >= 18_000, "{before:?} {now:?}");
        assert!(now.steered_us - before.steered_us >= 18_000, "{before:?} {now:?}");
    }
}
