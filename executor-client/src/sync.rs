//! Small pieces of synchronisation used throughout.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Polling interval for a condition.
const LOOK: Duration = Duration::from_millis(5);

/// Locks `mutex`, even a poisoned one: every critical section here leaves its
/// data consistent at each step, and the supervisor ends the executor after any internal panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condition`, at most until `deadline`. Whether it came true.
pub(crate) async fn until(deadline: Instant, condition: impl Fn() -> bool) -> bool {
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Wakes whoever waits for a change of what a mutex guards: a thread, or, in a simulation, a task.
/// Ringing costs almost nothing while no one waits.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    threads: Condvar,
    tasks: Notify,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.threads.notify_one();
        self.tasks.notify_one();
    }

    /// Lets a thread wait until the bell rings, at most for `limit`.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>, limit: Duration) -> MutexGuard<'a, T> {
        self.threads.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    /// The same for a task; a ring since the last wait counts.
    #[cfg(feature = "simulation")]
    pub(crate) async fn rung(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.tasks.notified()).await;
    }
}

/// A flag that a thread can wait for.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    set: Mutex<bool>,
    changed: Bell,
}

impl Signal {
    /// Sets the flag and wakes the waiting thread.
    pub(crate) fn set(&self) {
        *lock(&self.set) = true;
        self.changed.ring();
    }

    /// Waits until the flag is set or `limit` has passed, and clears it. Whether it was set.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut set = lock(&self.set);
        while !*set {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            set = self.changed.wait(set, left);
        }
        std::mem::take(&mut *set)
    }

    /// The same for a task.
    #[cfg(feature = "simulation")]
    pub(crate) async fn is_set(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while !*lock(&self.set) && Instant::now() < deadline {
            self.changed.rung(deadline - Instant::now()).await;
        }
        std::mem::take(&mut *lock(&self.set))
    }
}
