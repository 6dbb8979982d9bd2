//! The clocks of the kernel that this runs on.

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
use rustix::time::ClockId;
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

/// The kernel's clocks.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
#[derive(Debug)]
pub(super) struct Kernel;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
impl Kernel {
    pub(super) fn new() -> Self {
        Self
    }

    fn read_ns(clock: ClockId) -> i64 {
        let time = rustix::time::clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl KernelClocks for Kernel {
    fn raw_ns(&self) -> i64 {
        Self::read_ns(ClockId::MonotonicRaw)
    }

    fn monotonic_ns(&self) -> i64 {
        Self::read_ns(ClockId::Monotonic)
    }

    fn boot_ns(&self) -> i64 {
        Self::read_ns(ClockId::Boottime)
    }
}

/// There the monotonic clock counts suspensions; it alone is asked.
#[cfg(target_vendor = "apple")]
impl KernelClocks for Kernel {
    fn raw_ns(&self) -> i64 {
        Self::read_ns(ClockId::Monotonic)
    }

    fn monotonic_ns(&self) -> i64 {
        self.raw_ns()
    }

    fn boot_ns(&self) -> i64 {
        self.raw_ns()
    }
}

/// What the standard library offers.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
#[derive(Debug)]
pub(super) struct Kernel(std::time::Instant);

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
impl Kernel {
    pub(super) fn new() -> Self {
        Self(std::time::Instant::now())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
impl KernelClocks for Kernel {
    fn raw_ns(&self) -> i64 {
        i64::try_from(self.0.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn monotonic_ns(&self) -> i64 {
        self.raw_ns()
    }

    fn boot_ns(&self) -> i64 {
        self.raw_ns()
    }
}
