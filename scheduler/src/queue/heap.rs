//! The bounded priority queue.

use crate::domain::Run;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Runs by the instant at which the dispatcher should look at them. A waiting dispatcher wakes
/// for an earlier arrival.
pub struct RunQueue {
    inner: Mutex<Inner>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Default)]
struct Inner {
    /// (look at, log id) → position in `runs`: the heap moves small keys, not whole runs.
    order: BinaryHeap<Reverse<(i64, i64)>>,
    runs: BTreeMap<i64, Run>,
    closed: bool,
}

impl RunQueue {
    /// At most `capacity` runs.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new(), capacity }
    }

    /// Runs inside.
    pub fn len(&self) -> usize {
        self.lock().runs.len()
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    /// Adds claimed runs; of a run that is already inside the newer version stays.
    /// The loader asks for no more than [`RunQueue::room`]; what was returned by the dispatcher
    /// has its place in any case.
    pub fn push(&self, runs: impl IntoIterator<Item = Run>) {
        self.push_at(runs.into_iter().map(|run| (run.due_time, run)));
    }

    /// Adds runs to be looked at from given instants (ms) minus the lead on.
    pub fn push_at(&self, runs: impl IntoIterator<Item = (i64, Run)>) {
        let mut inner = self.lock();
        let before = inner.order.peek().map(|Reverse(key)| *key);
        for (at, run) in runs {
            let id = run.id;
            match inner.runs.get(&id) {
                None => {
                    inner.runs.insert(id, run);
                    inner.order.push(Reverse((at, id)));
                }
                // An older copy must not displace the row as it is now.
                Some(inside) if inside.version >= run.version => {}
                Some(_) => drop(inner.runs.insert(id, run)),
            }
        }
        let earlier = inner.order.peek().map(|Reverse(key)| *key) != before;
        drop(inner);
        if earlier {
            self.changed.notify_all();
        }
    }

    /// Takes up to `max` runs to be looked at by `until` (ms), earliest first.
    pub fn take(&self, until: i64, max: usize) -> Vec<Run> {
        self.lock().take(until, max)
    }

    /// Waits until runs are due by the instant that `until` tells (asked again at each wake-up,
    /// at least every 100 ms: the clock behind it may be corrected), then takes up to `max`.
    /// `None` once the queue is closed.
    pub fn wait(&self, until: impl Fn() -> i64, max: usize) -> Option<Vec<Run>> {
        const RECHECK: Duration = Duration::from_millis(100);
        let mut inner = self.lock();
        loop {
            if inner.closed {
                return None;
            }
            let now = until();
            let runs = inner.take(now, max);
            if !runs.is_empty() {
                return Some(runs);
            }
            let wait = inner.order.peek().map_or(RECHECK, |Reverse((at, _))| {
                Duration::from_millis(u64::try_from(at - now).unwrap_or(0)).min(RECHECK)
            });
            inner = self.changed.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Wakes the dispatcher for the last time.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Ids inside.
    pub fn ids(&self) -> HashSet<i64> {
        self.lock().runs.keys().copied().collect()
    }

    /// Empties the queue.
    pub fn drain(&self) -> Vec<Run> {
        self.lock().take(i64::MAX, usize::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every method leaves the two collections in step before it can panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self, until: i64, max: usize) -> Vec<Run> {
        let mut taken = Vec::new();
        while taken.len() < max {
            let Some(Reverse((at, id))) = self.order.peek().copied() else { break };
            if at > until {
                break;
            }
            self.order.pop();
            taken.extend(self.runs.remove(&id));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Reason, Status};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    fn run(id: i64, due_time: i64) -> Run {
        Run {
            id,
            version: 1,
            tenant_id: 1,
            app_id: 1,
            task_id: 1,
            revision: 1,
            parent_id: 0,
            shard_index: 0,
            shard_total: 1,
            fire_time: due_time,
            due_time,
            attempt: 0,
            failures: 0,
            status: Status::Queued,
            reason: Reason::None,
            params: None,
        }
    }

    #[test]
    fn earliest_first_each_once_within_bounds() {
        let queue = RunQueue::new(3);
        queue.push([run(1, 30), run(2, 10), run(3, 20)]);
        queue.push([run(2, 10)]);
        assert_eq!((queue.len(), queue.room()), (3, 0));
        assert_eq!(queue.take(20, 10).iter().map(|r| r.id).collect::<Vec<_>>(), [2, 3]);
        assert!(queue.take(29, 10).is_empty());
        assert_eq!(queue.drain().len(), 1);
    }

    #[test]
    fn an_earlier_arrival_wakes_the_waiting_dispatcher() {
        let queue = Arc::new(RunQueue::new(10));
        let clock = Arc::new(AtomicI64::new(0));
        queue.push([run(1, 1_000_000)]);
        let waiter = {
            let (queue, clock) = (Arc::clone(&queue), Arc::clone(&clock));
            std::thread::spawn(move || queue.wait(|| clock.load(Ordering::Relaxed), 10))
        };
        queue.push([run(2, 0)]);
        let taken = waiter.join().unwrap().unwrap();
        assert_eq!(taken.iter().map(|r| r.id).collect::<Vec<_>>(), [2]);
        queue.close();
        assert!(queue.wait(|| 0, 10).is_none());
    }
}
