//! Two small pieces of thread synchronisation used throughout.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks `mutex`, even a poisoned one: every critical section here leaves its
/// data consistent at each step, and the supervisor ends the executor after any internal panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A flag that a thread can wait for; setting it costs almost nothing while no thread waits.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Sets the flag and wakes the waiting thread.
    pub(crate) fn set(&self) {
        *lock(&self.set) = true;
        self.changed.notify_one();
    }

    /// Waits until the flag is set or `limit` has passed, and clears it. Whether it was set.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let (mut set, _) = self
            .changed
            .wait_timeout_while(lock(&self.set), limit, |set| !*set)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *set)
    }
}
