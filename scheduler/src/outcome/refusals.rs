//! Addresses of silent plain executors at which nothing listens. Such a process has no lease and lists nothing: a connection that
//! is refused once may be one of a process that is just being restarted, or closes its door before it ends.

use crate::domain::ExecutorId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two refusals so far apart prove that a process is gone, ms: it has ended by then, and told what it had to tell.
const APART_MS: i64 = 15_000;

/// A first refusal is forgotten after so long without another, ms.
const KEPT_MS: i64 = 120_000;

/// First refusals that are remembered at most; of others nothing is proved meanwhile.
const REFUSALS_MAX: usize = 10_000;

/// When connections were first refused, by executor: the first time and the last, ms by this machine's own clock.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<ExecutorId, (i64, i64)>>);

impl Refusals {
    /// Notes that nothing listens at the executor's address at `now` (ms by the machine's own clock); answers whether that has been
    /// so for long enough.
    pub fn note(&self, id: ExecutorId, now: i64) -> bool {
        let mut refusals = self.lock();
        if refusals.len() >= REFUSALS_MAX && !refusals.contains_key(&id) {
            return false;
        }
        let (first, last) = refusals.entry(id).or_insert((now, now));
        *last = now;
        now - *first >= APART_MS
    }

    /// Something listens there, or that is not certain.
    pub fn end(&self, id: ExecutorId) {
        self.lock().remove(&id);
    }

    /// Forgets what has not been refused again for long at `now`, ms by the machine's own clock.
    pub fn forget(&self, now: i64) {
        self.lock().retain(|_, (_, last)| now - *last < KEPT_MS);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutorId, (i64, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_refusals_far_apart_prove_that_a_process_is_gone() {
        let refusals = Refusals::default();
        let id = ExecutorId(7);
        assert!(!refusals.note(id, 1_000));
        assert!(!refusals.note(id, 15_999));
        assert!(refusals.note(id, 16_000));
        refusals.end(id);
        assert!(!refusals.note(id, 17_000), "somebody listened there in between");
        refusals.forget(136_999);
        assert!(refusals.note(id, 136_999));
        refusals.forget(400_000);
        assert!(!refusals.note(id, 400_000), "long ago");
    }
}
