//! Whether this executor may still start its held runs, and continue its running ones.
//!
//! The nodes give an executor's unstarted runs to others when it has been silent for
//! `offline_after_ms`, and count its running ones as dead after `abandon_after_ms`. Both sides
//! count from the instant at which a heartbeat was *sent*, so this side always gives up first.
//!
//! Once the lease has run out, held runs may have been given away. Only an acknowledged
//! heartbeat brings it back, because only its answer names the runs that this executor no
//! longer has; a registration or a "database unavailable" merely extends a valid lease.

use carillon_protocol::ExecutorSettings;
use std::sync::atomic::{AtomicI64, Ordering};

/// Before the first contact. Far in the past, yet safe to add a period to.
const NEVER: i64 = i64::MIN / 4;

/// All instants are microseconds of this machine's free-running clock, which goes on while the machine is suspended.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // the unit belongs to the name of every instant
pub(crate) struct Lease {
    /// The lease for starting runs counts from here.
    confirmed_us: AtomicI64,
    /// The lease for running runs counts from here.
    contact_us: AtomicI64,
    offline_after_us: AtomicI64,
    abandon_after_us: AtomicI64,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self {
            confirmed_us: AtomicI64::new(NEVER),
            contact_us: AtomicI64::new(NEVER),
            offline_after_us: AtomicI64::new(0),
            abandon_after_us: AtomicI64::new(0),
        }
    }

    /// Takes the periods that a node set.
    pub(crate) fn configure(&self, settings: &ExecutorSettings) {
        let us = |ms: u64| i64::try_from(ms.saturating_mul(1_000)).unwrap_or(i64::MAX / 4);
        self.offline_after_us.store(us(settings.offline_after_ms), Ordering::Release);
        self.abandon_after_us.store(us(settings.abandon_after_ms), Ordering::Release);
    }

    /// An acknowledged heartbeat whose cancel list has been carried out, or a registration
    /// while nothing is held.
    pub(crate) fn confirm(&self, sent_us: i64) {
        self.contact_us.fetch_max(sent_us, Ordering::AcqRel);
        self.confirmed_us.fetch_max(sent_us, Ordering::AcqRel);
    }

    /// Contact that says nothing about held runs: only extends a valid lease.
    pub(crate) fn sustain(&self, sent_us: i64, now_us: i64) {
        self.contact_us.fetch_max(sent_us, Ordering::AcqRel);
        if self.may_start(now_us) {
            self.confirmed_us.fetch_max(sent_us, Ordering::AcqRel);
        }
    }

    /// A node no longer knows this executor: held runs may have been given away.
    pub(crate) fn suspend(&self) {
        self.confirmed_us.store(NEVER, Ordering::Release);
    }

    /// Whether a held run may start now.
    pub(crate) fn may_start(&self, now_us: i64) -> bool {
        let confirmed = self.confirmed_us.load(Ordering::Acquire);
        now_us < confirmed.saturating_add(self.offline_after_us.load(Ordering::Acquire))
    }

    /// How long contact may still fail before running handlers are stopped, µs; not positive
    /// when they must be.
    pub(crate) fn until_abandon_us(&self, now_us: i64) -> i64 {
        let contact = self.contact_us.load(Ordering::Acquire);
        contact.saturating_add(self.abandon_after_us.load(Ordering::Acquire)) - now_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> Lease {
        let lease = Lease::new();
        lease.configure(&ExecutorSettings {
            heartbeat_interval_ms: 3_000,
            metadata_interval_ms: 30_000,
            offline_after_ms: 10_000,
            abandon_after_ms: 20_000,
        });
        lease
    }

    #[test]
    fn nothing_may_start_before_the_first_contact() {
        assert!(!lease().may_start(0));
    }

    #[test]
    fn a_lease_that_ran_out_comes_back_only_by_a_heartbeat() {
        let lease = lease();
        lease.confirm(0);
        assert!(lease.may_start(9_999_999));
        lease.sustain(9_000_000, 9_500_000);
        assert!(lease.may_start(18_999_999));
        assert!(!lease.may_start(19_000_000));
        lease.sustain(20_000_000, 20_000_100);
        assert!(!lease.may_start(20_000_200));
        assert!(lease.until_abandon_us(20_000_200) > 0);
        lease.confirm(21_000_000);
        assert!(lease.may_start(21_000_100));
        lease.suspend();
        lease.sustain(21_000_200, 21_000_300);
        assert!(!lease.may_start(21_000_300));
    }
}
