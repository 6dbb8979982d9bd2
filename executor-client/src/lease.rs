//! Whether this executor may still start its held runs, and continue its running ones.
//!
//! The nodes give an executor's unstarted runs to others when it has been silent for
//! `offline_after_ms`, and count its running ones as dead after `abandon_after_ms`. Both sides
//! count from the instant at which a heartbeat was *sent*, so this side always gives up first.
//!
//! Once the lease has run out, held runs may have been given away. Only an acknowledged
//! heartbeat brings it back, because only its answer names the runs that this executor no
//! longer has; a registration merely extends a valid lease. A "database unavailable" does so too, and is
//! contact only then and only for a while: nobody else hears of it, and nodes that still have their database
//! count from what was written there.

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
    /// When the newest heartbeat or registration was sent that is in the database.
    written_us: AtomicI64,
    /// The lease for running runs counts from here.
    contact_us: AtomicI64,
    offline_after_us: AtomicI64,
    abandon_after_us: AtomicI64,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self {
            confirmed_us: AtomicI64::new(NEVER),
            written_us: AtomicI64::new(NEVER),
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
        self.written(sent_us);
        self.confirmed_us.fetch_max(sent_us, Ordering::AcqRel);
    }

    /// A registration, which says nothing about held runs: extends a valid lease.
    pub(crate) fn registered(&self, sent_us: i64, now_us: i64) {
        self.written(sent_us);
        if self.may_start(now_us) {
            self.confirmed_us.fetch_max(sent_us, Ordering::AcqRel);
        }
    }

    /// A node could not write the heartbeat down: extends a valid lease, by two lengths of it beyond what is written at most,
    /// however many nodes lose their database one after another.
    pub(crate) fn sustain(&self, sent_us: i64, now_us: i64) {
        if self.may_start(now_us) {
            let most = 2 * self.offline_after_us.load(Ordering::Acquire);
            let from = sent_us.min(self.written_us.load(Ordering::Acquire).saturating_add(most));
            self.contact_us.fetch_max(from, Ordering::AcqRel);
            self.confirmed_us.fetch_max(from, Ordering::AcqRel);
        }
    }

    /// What was sent then is in the database.
    pub(crate) fn written(&self, sent_us: i64) {
        self.written_us.fetch_max(sent_us, Ordering::AcqRel);
        self.contact_us.fetch_max(sent_us, Ordering::AcqRel);
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
        lease.registered(20_000_000, 20_000_100);
        assert!(!lease.may_start(20_000_200));
        assert_eq!(lease.until_abandon_us(20_000_200), 19_999_800);
        lease.confirm(21_000_000);
        assert!(lease.may_start(21_000_100));
        lease.suspend();
        lease.registered(21_000_200, 21_000_300);
        assert!(!lease.may_start(21_000_300));
    }

    #[test]
    fn nodes_without_a_database_keep_no_run_going_that_others_count_as_dead() {
        let lease = lease();
        lease.confirm(0);
        // Not heard for as long as the lease holds: what says so now has told nobody.
        lease.sustain(15_000_000, 15_000_100);
        assert!(!lease.may_start(15_000_200));
        assert_eq!(lease.until_abandon_us(20_000_000), 0);

        lease.confirm(30_000_000);
        for sent_us in [35_000_000, 42_000_000, 51_000_000, 58_000_000] {
            lease.sustain(sent_us, sent_us + 100);
        }
        assert!(lease.may_start(59_999_999));
        assert!(!lease.may_start(60_000_000), "two lengths and its own beyond what is written");
        assert_eq!(lease.until_abandon_us(70_000_000), 0);
    }

    #[test]
    fn what_is_written_late_lets_nodes_keep_it_going() {
        let lease = lease();
        lease.confirm(0);
        for sent_us in (2_000_000..60_000_000).step_by(2_000_000) {
            lease.written(sent_us - 4_000_000);
            lease.sustain(sent_us, sent_us + 1_500_000);
            assert!(lease.may_start(sent_us + 1_500_000));
        }
        lease.written(80_000_000);
        assert!(!lease.may_start(80_000_001), "by itself it says nothing about what is held");
        assert!(lease.until_abandon_us(80_000_001) > 0);
    }
}
