//! The bounded queue that the loader fills and the dispatcher empties.

use super::batch::Batch;
use super::blocked::BlockedRuns;
use super::fair_queue::Admission;
use super::shared::{Inner, Shared};
use crate::domain::{LogId, Run};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The clock behind a wait may be corrected: it is asked again after this long.
const RECHECK: Duration = Duration::from_millis(100);

/// Runs by the instant at which the dispatcher should look at them; what is due leaves in turns of
/// its tenants. A waiting dispatcher wakes for an earlier arrival, and when a tenant that had its
/// share under way may go on.
pub struct RunQueue {
    shared: Arc<Shared>,
    capacity: usize,
    recheck: Duration,
    /// Runs that wait for others to end, beside the order.
    pub blocked: BlockedRuns,
}

/// What a look at the queue found.
enum Look {
    /// Runs to dispatch.
    Found(Batch),
    /// None for so long, unless the queue changes.
    Nothing(Duration),
    /// That it is over.
    Closed,
}

impl RunQueue {
    /// At most `capacity` runs, those under way included.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { shared: Arc::default(), capacity, recheck: RECHECK, blocked: BlockedRuns::default() }
    }

    /// Runs inside, those that wait for others included.
    pub fn len(&self) -> usize {
        self.shared.lock().order.len() + self.blocked.len()
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.shared.lock().order.held() + self.blocked.len())
    }

    /// How long the longest waiting run has been ready for its dispatch at `until` (ms), ms. Runs that wait for others, or
    /// for their tenant's share of what is under way, do not count.
    pub fn ready_for_ms(&self, until: i64) -> i64 {
        self.shared.lock().order.oldest_ready(until).map_or(0, |at| until - at)
    }

    /// Which of `runs` their tenants may claim: see [`FairQueue::admit`].
    pub(super) fn admit(&self, runs: Vec<Run>) -> Admission {
        let blocked = self.blocked.by_tenant();
        self.shared.lock().order.admit(self.capacity, &blocked, runs)
    }

    /// Adds claimed runs; of a run that is already inside the newer version stays.
    /// The loader asks for no more than [`RunQueue::room`]; what was returned by the dispatcher
    /// has its place in any case.
    pub fn push(&self, runs: impl IntoIterator<Item = Run>) {
        self.push_at(runs.into_iter().map(|run| (run.due_time, run)));
    }

    /// Adds runs to be looked at from given instants (ms) minus the lead on.
    pub fn push_at(&self, runs: impl IntoIterator<Item = (i64, Run)>) {
        let mut inner = self.shared.lock();
        let before = inner.order.next_look();
        for (at, run) in runs {
            inner.order.push(at, run);
        }
        let after = inner.order.next_look();
        drop(inner);
        if after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.shared.changed.notify();
        }
    }

    /// Takes up to `max` runs to be looked at by `until` (ms): a few of each tenant in turn, and
    /// of one tenant the higher priority first, then the earlier due time.
    pub fn take(&self, until: i64, max: usize) -> Batch {
        self.batch(&mut self.shared.lock(), until, max)
    }

    /// Lets the thread wait until runs can be taken by the instant that `until` tells (asked again at each
    /// wake-up, at least every 100 ms), then takes up to `max`. `None` once the queue is closed.
    pub fn wait(&self, until: impl Fn() -> i64, max: usize) -> Option<Batch> {
        let mut inner = self.shared.lock();
        loop {
            match self.look(&mut inner, until(), max) {
                Look::Found(batch) => return Some(batch),
                Look::Nothing(wait) => inner = self.shared.changed.block(inner, wait),
                Look::Closed => return None,
            }
        }
    }

    /// The same for a task.
    pub async fn ready(&self, until: impl Fn() -> i64, max: usize) -> Option<Batch> {
        loop {
            let looked = self.look(&mut self.shared.lock(), until(), max);
            match looked {
                Look::Found(batch) => return Some(batch),
                Look::Nothing(wait) => self.shared.changed.wait(wait).await,
                Look::Closed => return None,
            }
        }
    }

    fn look(&self, inner: &mut Inner, until: i64, max: usize) -> Look {
        if inner.closed {
            return Look::Closed;
        }
        let batch = self.batch(inner, until, max);
        if !batch.runs.is_empty() {
            return Look::Found(batch);
        }
        Look::Nothing(
            inner.order.next_look().map_or(self.recheck, |at| {
                Duration::from_millis(u64::try_from(at - until).unwrap_or(0)).min(self.recheck)
            }),
        )
    }

    fn batch(&self, inner: &mut Inner, until: i64, max: usize) -> Batch {
        let (runs, passed_over) = inner.order.take(until, max);
        inner.passed_over = passed_over;
        inner.under_way.begin(&runs);
        // An empty batch would lock the queue again when it is dropped.
        if runs.is_empty() { Batch::default() } else { Batch::of(runs, &self.shared) }
    }

    /// Wakes the dispatcher for the last time.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify();
    }

    /// Whether this run is inside or under way, at least as new.
    pub(super) fn holds(&self, run: &Run) -> bool {
        let is_inside = {
            let inner = self.shared.lock();
            let queued = inner.order.runs().get(&run.id).map(|inside| inside.version);
            queued.max(inner.under_way.version_of(run.id)).is_some_and(|version| version >= run.version)
        };
        is_inside || self.blocked.holds(run)
    }

    /// What is inside or under way, each with its newest version.
    pub(super) fn versions(&self) -> HashMap<LogId, i64> {
        let mut versions = HashMap::new();
        let blocked = self.blocked.copies().into_iter().map(|(id, version, _)| (id, version));
        let inner = self.shared.lock();
        let queued = inner.order.runs().values().map(|run| (run.id, run.version));
        for (id, version) in blocked.chain(queued).chain(inner.under_way.versions()) {
            versions.entry(id).and_modify(|newest| *newest = version.max(*newest)).or_insert(version);
        }
        versions
    }

    /// What has left and is not decided yet.
    pub fn under_way(&self) -> HashSet<LogId> {
        self.shared.lock().under_way.versions().map(|(id, _)| id).collect()
    }

    /// Empties the queue.
    pub fn drain(&self) -> Vec<Run> {
        self.blocked.clear();
        self.shared.lock().order.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{UnderWay, run};
    use super::*;
    use crate::domain::TenantId;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
    use std::sync::mpsc;

    /// A queue whose waiter never polls by itself.
    fn patient(capacity: usize) -> Arc<RunQueue> {
        Arc::new(RunQueue { recheck: Duration::from_hours(1), ..RunQueue::new(capacity) })
    }

    fn ids(batch: &Batch) -> Vec<i64> {
        batch.runs.iter().map(|run| run.id.0).collect()
    }

    /// A thread that waits once, having looked at the queue before this returns.
    fn waiting(queue: &Arc<RunQueue>) -> mpsc::Receiver<Option<Batch>> {
        let (sender, receiver) = mpsc::channel();
        let looks = Arc::new(AtomicUsize::new(0));
        let (source, looked) = (Arc::clone(queue), Arc::clone(&looks));
        std::thread::spawn(move || {
            let until = || {
                looked.fetch_add(1, Ordering::SeqCst);
                0
            };
            sender.send(source.wait(until, 500))
        });
        while looks.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        receiver
    }

    fn woken(waiter: &mpsc::Receiver<Option<Batch>>) -> Option<Batch> {
        waiter.recv_timeout(Duration::from_secs(20)).expect("the waiter wakes")
    }

    #[test]
    fn earliest_first_each_once_within_bounds() {
        let queue = RunQueue::new(3);
        queue.push([run(1, 30), run(2, 10), run(3, 20)]);
        queue.push([run(2, 10)]);
        assert_eq!((queue.len(), queue.room()), (3, 0));
        let batch = queue.take(20, 10);
        assert_eq!(ids(&batch), [2, 3]);
        assert_eq!((queue.len(), queue.room()), (1, 0), "what is under way has its place");
        drop(batch);
        assert_eq!(queue.room(), 2);
        assert!(queue.take(29, 10).runs.is_empty());
        assert_eq!(queue.drain().len(), 1);
    }

    #[test]
    fn an_older_copy_does_not_displace_a_newer_one() {
        let queue = RunQueue::new(3);
        for version in [1, 3, 2] {
            queue.push([Run { version, ..run(1, 0) }]);
        }
        assert!(queue.holds(&Run { version: 3, ..run(1, 0) }));
        assert!(!queue.holds(&Run { version: 4, ..run(1, 0) }) && !queue.holds(&run(2, 0)));
        assert_eq!(queue.take(0, 10).runs.iter().map(|run| run.version).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn an_earlier_arrival_wakes_the_waiting_dispatcher() {
        let queue = patient(10);
        queue.push([run(1, 1_000_000)]);
        let waiter = waiting(&queue);
        queue.push([run(2, 0)]);
        assert_eq!(ids(&woken(&waiter).unwrap()), [2]);
    }

    #[test]
    fn closing_wakes_it_for_the_last_time() {
        let queue = patient(10);
        let waiter = waiting(&queue);
        queue.close();
        assert!(woken(&waiter).is_none());
        assert!(queue.wait(|| 0, 10).is_none());
    }

    #[tokio::test]
    async fn a_task_waits_as_a_thread_does() {
        let queue = patient(10);
        queue.push([run(1, 1_000_000)]);
        let waits = |queue: &Arc<RunQueue>| {
            let source = Arc::clone(queue);
            tokio::spawn(async move { source.ready(|| 0, 10).await })
        };
        let waiter = waits(&queue);
        tokio::task::yield_now().await;
        queue.push([run(2, 0)]);
        assert_eq!(ids(&waiter.await.unwrap().unwrap()), [2], "an earlier arrival wakes it");
        let waiter = waits(&queue);
        tokio::task::yield_now().await;
        queue.close();
        assert!(waiter.await.unwrap().is_none(), "and the end does");
        let clock = AtomicI64::new(0);
        let queue = RunQueue::new(10);
        queue.push([run(1, 1_000_000)]);
        let corrected = queue.ready(|| clock.fetch_add(999_999, Ordering::Relaxed), 10);
        assert_eq!(ids(&corrected.await.unwrap()), [1], "the clock is asked again");
    }

    #[test]
    fn the_clock_is_asked_again() {
        let queue = RunQueue::new(10);
        queue.push([run(1, 1_000_000)]);
        let clock = AtomicI64::new(0);
        // It was corrected: the run is due long before the time that was left for it.
        assert_eq!(ids(&queue.wait(|| clock.fetch_add(999_999, Ordering::Relaxed), 10).unwrap()), [1]);
    }

    #[test]
    fn a_batch_that_finishes_wakes_the_dispatcher_for_a_tenant_that_had_its_share() {
        let queue = patient(50_000);
        queue.push((0..20_000).map(|id| run(id, 0)));
        let mut hanging: Vec<Batch> = Vec::new();
        loop {
            let batch = queue.take(0, 500);
            if batch.runs.is_empty() {
                break;
            }
            hanging.push(batch);
        }
        let waiter = waiting(&queue);
        hanging.pop();
        assert!(!woken(&waiter).unwrap().runs.is_empty());
    }

    #[test]
    fn runs_count_as_under_way_until_their_guard_is_dropped_also_by_a_panic() {
        let queue = RunQueue::new(100);
        let of = |tenant_id, id| Run { tenant_id, ..run(id, 0) };
        queue.push((0..10).map(|id| of(TenantId(1), id)).chain((10..14).map(|id| of(TenantId(2), id))));
        let Batch { runs, mut under_way } = queue.take(0, 100);
        assert_eq!((runs.len(), queue.room()), (14, 86));
        let part = under_way.part((0..7).map(LogId));
        drop(under_way);
        assert_eq!(queue.room(), 93, "three of tenant 1 and tenant 2's have finished");
        assert_eq!(queue.under_way(), (0..7).map(LogId).collect());
        let hung = std::panic::catch_unwind(move || {
            let _part: UnderWay = part;
            panic!("as a dispatcher might");
        });
        assert!(hung.is_err());
        assert_eq!(queue.room(), 100);
    }

    #[test]
    fn a_part_is_never_more_than_there_is() {
        let queue = RunQueue::new(100);
        queue.push([run(1, 0)]);
        let mut under_way = queue.take(0, 100).under_way;
        drop((under_way.part([LogId(1), LogId(1), LogId(50)]), under_way.part([LogId(1)])));
        assert_eq!(queue.room(), 100);
        drop(under_way);
        assert_eq!(queue.room(), 100);
    }
}
