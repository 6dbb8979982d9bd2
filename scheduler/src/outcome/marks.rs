//! When runs were marked as dispatched, where the cluster clock says that this is still to come: it was set back since.

use crate::domain::LogId;
use crate::store::Suspect;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is further ahead was marked by a clock that has been set back since, ms: servers of one database may differ by less.
const TO_COME_MS: i64 = 1_000;

/// Most marks that are remembered; of others nothing is said meanwhile.
const MARKS_MAX: usize = 100_000;

/// An instant of the cluster clock, epoch ms, and how often that had been set by then.
type Known = (i64, u64);

/// Marks that are still to come.
#[derive(Debug)]
pub(super) struct Marks {
    /// By log and version, and when each was found.
    found: Mutex<HashMap<(LogId, i64), Known>>,
    /// How long its message may be on its way, whatever an executor's clock says of it, ms.
    on_its_way_ms: i64,
}

impl Marks {
    /// Of executors whose leases by the clock as it was last for so long, ms: none of them accepts a message by it after that.
    pub fn new(on_its_way_ms: i64) -> Self {
        Self { found: Mutex::default(), on_its_way_ms }
    }

    /// When the suspect was marked at the latest, by the clock as it is `now`, epoch ms: when it says, or long after it was
    /// found if that is still to come. The largest instant if too many are.
    pub fn known_since(&self, suspect: &Suspect, now: Known) -> i64 {
        if suspect.dispatched_at <= now.0 + TO_COME_MS {
            return suspect.dispatched_at;
        }
        let mut marks = self.lock();
        let mark = (suspect.log, suspect.version);
        if marks.len() >= MARKS_MAX && !marks.contains_key(&mark) {
            return i64::MAX / 2;
        }
        let found = marks.entry(mark).or_insert(now);
        // By another clock that instant says nothing.
        if found.1 != now.1 {
            *found = now;
        }
        found.0 + self.on_its_way_ms
    }

    /// Forgets those that were found long before `now`, epoch ms: they have been judged, or are found again.
    pub fn forget(&self, now: i64) {
        const KEPT_MS: i64 = 600_000;
        self.lock().retain(|_, (found_at, _)| (*found_at..*found_at + KEPT_MS).contains(&now));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(LogId, i64), Known>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ExecutorId;

    fn suspect(log: i64, version: i64, dispatched_at: i64) -> Suspect {
        let executor_id = ExecutorId(1);
        Suspect { log: LogId(log), version, attempt: 1, due_time: dispatched_at, executor_id, dispatched_at }
    }

    #[test]
    fn a_mark_that_is_to_come_counts_from_when_it_was_found() {
        let marks = Marks::new(20_000);
        assert_eq!(marks.known_since(&suspect(1, 3, 51_000), (50_000, 1)), 51_000, "servers may differ");
        assert_eq!(marks.known_since(&suspect(1, 3, 90_000), (50_000, 1)), 70_000);
        assert_eq!(marks.known_since(&suspect(1, 3, 90_000), (55_000, 1)), 70_000);
        assert_eq!(marks.known_since(&suspect(1, 4, 90_000), (55_000, 1)), 75_000, "another mark");
        assert_eq!(marks.known_since(&suspect(1, 3, 90_000), (30_000, 2)), 50_000, "set once more");
        assert_eq!(marks.known_since(&suspect(1, 3, 90_000), (90_000, 2)), 90_000, "no longer to come");
    }

    #[test]
    fn marks_are_forgotten() {
        let marks = Marks::new(20_000);
        marks.known_since(&suspect(1, 3, 90_000_000), (50_000, 1));
        marks.forget(649_999);
        assert_eq!(marks.known_since(&suspect(1, 3, 90_000_000), (650_000, 1)), 70_000);
        marks.forget(650_000);
        assert_eq!(marks.known_since(&suspect(1, 3, 90_000_000), (650_000, 1)), 670_000);
    }
}
