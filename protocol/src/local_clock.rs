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

use kernel::Kernel;
use std::fmt::Debug;

/// The clocks of a kernel, ns, each since an instant of its own.
pub trait KernelClocks: Debug + Send + Sync {
    /// Is not slewed; stands still while the machine is suspended.
    fn raw_ns(&self) -> i64;

    /// Is slewed; stands still while the machine is suspended.
    fn monotonic_ns(&self) -> i64;

    /// Is slewed as the monotonic one, and goes on while the machine is suspended.
    fn boot_ns(&self) -> i64;
}

/// An instant by this machine, µs, each since an instant of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalInstant {
    /// By the clock that nobody slews. What is promised for a time counts by it.
    pub free_us: i64,
    /// By the clock that the machine's time service steers.
    pub steered_us: i64,
}

/// This machine's clock.
#[derive(Debug)]
pub struct LocalClock {
    kernel: Box<dyn KernelClocks>,
}

impl LocalClock {
    /// This machine's.
    #[must_use]
    pub fn machine() -> Self {
        Self::over(Kernel::new())
    }

    /// Over these clocks.
    pub fn over(kernel: impl KernelClocks + 'static) -> Self {
        Self { kernel: Box::new(kernel) }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> LocalInstant {
        let us = self.kernel.monotonic_ns() / 1_000;
        LocalInstant { free_us: us, steered_us: us }
    }
}
