//! Heartbeats of executors, committed together: those that arrive while others are committed, or shortly after, share the
//! next transaction. Each is answered after its commit. What keeps a batch from being committed keeps none of the others:
//! then each is committed alone.

use crate::domain::{ExecutorId, Owner};
use crate::store::{
    BATCH_MAX, ExecutorHeartbeat, ExecutorStore, HeartbeatVerdict, Result, SignedHeartbeat, Signer, StoreError,
    StoreErrorKind,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// After a commit others are gathered for so long. A heartbeat that comes after a pause waits for nothing.
const GATHER: Duration = Duration::from_millis(20);

/// Heartbeats that wait at most; more are told that the database is away. Of as many executors it is remembered
/// what was committed.
const WAITING_MAX: usize = 20_000;

const ACTION: &str = "commit a heartbeat";

/// Commits heartbeats.
pub(super) struct GroupCommit {
    store: Arc<dyn ExecutorStore>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Whether someone commits what waits.
    is_served: bool,
    /// The newest heartbeat of each executor that was committed: whose, of which process, and its
    /// [`carillon_protocol::Heartbeat::made_us`].
    committed: HashMap<ExecutorId, (Owner, String, i64)>,
}

struct Waiting {
    beat: SignedHeartbeat,
    /// [`carillon_protocol::Heartbeat::made_us`].
    made_us: i64,
    answer: oneshot::Sender<Result<HeartbeatVerdict>>,
}

impl Queue {
    /// What nobody waits for is not committed when its executor has sent a newer one: while a database is slower than executors
    /// send, it would come ever later.
    fn forget_overtaken(&mut self) {
        let (mut newer, mut kept) = (HashSet::new(), VecDeque::with_capacity(self.waiting.len()));
        while let Some(waiting) = self.waiting.pop_back() {
            let is_newest = newer.insert(waiting.beat.heartbeat.executor_id);
            if is_newest || !waiting.answer.is_closed() {
                kept.push_front(waiting);
            }
        }
        self.waiting = kept;
    }

    fn note(&mut self, beat: SignedHeartbeat, made_us: i64) {
        let ExecutorHeartbeat { executor_id, instance, .. } = beat.heartbeat;
        if self.committed.len() >= WAITING_MAX && !self.committed.contains_key(&executor_id) {
            self.committed.clear();
        }
        self.committed.insert(executor_id, (beat.owner, instance, made_us));
    }
}

/// Whoever commits what waits. If it goes before its time, the next heartbeat finds the place free, and those that
/// waited know nothing of theirs.
struct Served<'a>(&'a GroupCommit);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        *self.0.lock() = Queue::default();
    }
}

impl GroupCommit {
    pub fn new(store: Arc<dyn ExecutorStore>) -> Arc<Self> {
        Arc::new(Self { store, queue: Mutex::default() })
    }

    /// When the newest heartbeat of a process was made that has been committed here, by that process's own clock.
    pub fn committed(&self, owner: Owner, executor: ExecutorId, instance: &str) -> Option<i64> {
        let queue = self.lock();
        let (_, _, made_us) =
            queue.committed.get(&executor).filter(|(whose, of, _)| (*whose, of.as_str()) == (owner, instance))?;
        Some(*made_us)
    }

    /// Commits a heartbeat, with others if there are some. It is committed even if the caller stops waiting, unless a later
    /// one of the same executor comes before its turn.
    pub async fn commit(self: &Arc<Self>, beat: SignedHeartbeat, made_us: i64) -> Result<HeartbeatVerdict> {
        let (answer, answered) = oneshot::channel();
        let is_served = {
            let mut queue = self.lock();
            if queue.waiting.len() >= WAITING_MAX {
                return Err(unavailable("too many heartbeats wait to be committed"));
            }
            queue.waiting.push_back(Waiting { beat, made_us, answer });
            std::mem::replace(&mut queue.is_served, true)
        };
        if !is_served {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.serve().await });
        }
        answered.await.unwrap_or_else(|_| Err(unavailable("what became of it is not known")))
    }

    /// Commits until nothing waits.
    async fn serve(&self) {
        let served = Served(self);
        while let Some(batch) = self.next_batch() {
            self.commit_all(batch).await;
            tokio::time::sleep(GATHER).await;
        }
        // Nothing waits, and the place is free already.
        std::mem::forget(served);
    }

    /// The first that wait, at most one of each executor. Leaves the place when there are none.
    fn next_batch(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.lock();
        if queue.waiting.is_empty() {
            queue.is_served = false;
            return None;
        }
        queue.forget_overtaken();
        let (mut batch, mut later, mut executors) = (Vec::new(), VecDeque::new(), HashSet::new());
        while let Some(waiting) = queue.waiting.pop_front() {
            if batch.len() == BATCH_MAX {
                queue.waiting.push_front(waiting);
                break;
            }
            let is_first = executors.insert(waiting.beat.heartbeat.executor_id);
            if is_first { batch.push(waiting) } else { later.push_back(waiting) }
        }
        later.append(&mut queue.waiting);
        queue.waiting = later;
        Some(batch)
    }

    async fn commit_all(&self, batch: Vec<Waiting>) {
        let (beats, answers): (Vec<_>, Vec<_>) = batch.into_iter().map(|w| (w.beat, (w.answer, w.made_us))).unzip();
        let verdicts = match beats.as_slice() {
            [one] => vec![self.commit_one(one).await],
            all => match self.store.beats(all).await {
                Ok(verdicts) => verdicts.into_iter().map(Ok).collect(),
                Err(error) if error.is_temporary() => {
                    all.iter().map(|_| Err(StoreError::new(error.kind(), ACTION, error.to_string()))).collect()
                }
                // One of them is at fault.
                Err(error) => {
                    tracing::warn!(%error, heartbeats = all.len(), "heartbeats not committed together; each by itself");
                    let mut verdicts = Vec::with_capacity(all.len());
                    for beat in all {
                        verdicts.push(self.commit_one(beat).await);
                    }
                    verdicts
                }
            },
        };
        for ((beat, (answer, made_us)), verdict) in beats.into_iter().zip(answers).zip(verdicts) {
            if matches!(verdict, Ok(HeartbeatVerdict::Committed)) {
                self.lock().note(beat, made_us);
            }
            // Whoever no longer waits sends the next one.
            drop(answer.send(verdict));
        }
    }

    async fn commit_one(&self, beat: &SignedHeartbeat) -> Result<HeartbeatVerdict> {
        let signer = Signer { owner: beat.owner, key_id: "", signed_at: beat.signed_at };
        match self.store.beat(&signer, &beat.heartbeat).await {
            Ok(true) => Ok(HeartbeatVerdict::Committed),
            Ok(false) => Ok(HeartbeatVerdict::Unknown),
            Err(error) if error.kind() == StoreErrorKind::Outdated => Ok(HeartbeatVerdict::Outdated),
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(detail: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, ACTION, detail)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fake, executor};
    use super::*;
    use crate::domain::{AppId, NodeId, TenantId};
    use futures_util::future::join_all;

    fn beat(tenant: i64, id: i64) -> SignedHeartbeat {
        let owner = Owner { tenant_id: TenantId(tenant), app_id: AppId(1) };
        let executor_id = ExecutorId(id);
        let heartbeat = ExecutorHeartbeat {
            executor_id,
            instance: format!("i{id}"),
            held: 0,
            running: 0,
            draining: false,
            node_id: NodeId(1),
        };
        SignedHeartbeat { owner, signed_at: 1, heartbeat }
    }

    fn store(bad: &[i64]) -> Arc<Fake> {
        let store = Fake { bad: bad.iter().copied().map(TenantId).collect(), ..Fake::default() };
        (0..1_000).for_each(|id| store.put(executor(id, 0)));
        Arc::new(store)
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_of_a_few_milliseconds_share_a_commit() {
        let store = store(&[]);
        let group = GroupCommit::new(store.clone());
        // A thousand executors, each every three seconds, for as long.
        let all = (0..1_000).map(async |id| {
            tokio::time::sleep(Duration::from_millis(3 * id as u64)).await;
            group.commit(beat(1, id), 0).await.unwrap()
        });
        assert!(join_all(all).await.iter().all(|verdict| *verdict == HeartbeatVerdict::Committed));
        let counts = store.counted();
        assert_eq!(counts.heartbeats, 1_000);
        assert!(counts.commits <= 150, "{counts:?}");
        assert_eq!(group.commit(beat(1, 5_000), 0).await.unwrap(), HeartbeatVerdict::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_waits_for_no_others() {
        let group = GroupCommit::new(store(&[]));
        let sent = tokio::time::Instant::now();
        group.commit(beat(1, 1), 0).await.unwrap();
        assert!(sent.elapsed() < GATHER, "{:?}", sent.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_be_stored_fails_no_other() {
        let store = store(&[13]);
        let group = GroupCommit::new(store.clone());
        let all = (0..50).map(|id| group.commit(beat(if id == 20 { 13 } else { 1 }, id), 0)).collect::<Vec<_>>();
        for (id, verdict) in join_all(all).await.into_iter().enumerate() {
            assert_eq!(verdict.is_err(), id == 20, "{id}");
        }
        assert_eq!(store.counted().heartbeats, 49);
    }

    #[tokio::test(start_paused = true)]
    async fn two_of_one_executor_are_committed_one_after_the_other() {
        let store = store(&[]);
        let group = GroupCommit::new(store.clone());
        let all = [1, 2, 1, 1, 3].map(|id| group.commit(beat(1, id), 0));
        assert!(join_all(all).await.into_iter().all(|verdict| verdict.is_ok()));
        let counts = store.counted();
        assert_eq!((counts.heartbeats, counts.commits), (5, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_is_committed_though_its_sender_has_gone() {
        let store = store(&[]);
        let group = GroupCommit::new(store.clone());
        let impatient = tokio::time::timeout(Duration::from_millis(1), group.commit(beat(1, 1), 0));
        assert!(impatient.await.is_err());
        group.commit(beat(1, 2), 0).await.unwrap();
        assert_eq!(store.counted().heartbeats, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_that_nobody_waits_for_the_newest_is_committed_and_known() {
        let store = Arc::new(Fake { slow: Duration::from_secs(2), ..Fake::default() });
        store.put(executor(1, 0));
        let group = GroupCommit::new(store.clone());
        for made_us in 1..=5 {
            let impatient = tokio::time::timeout(Duration::from_millis(100), group.commit(beat(1, 1), made_us));
            assert!(impatient.await.is_err());
        }
        let (owner, id) = (beat(1, 1).owner, ExecutorId(1));
        assert_eq!(group.committed(owner, id, "i1"), None);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(group.committed(owner, id, "i1"), Some(5));
        assert_eq!(group.committed(owner, id, "another process"), None);
        assert_eq!(group.committed(beat(2, 1).owner, id, "i1"), None, "another tenant asks");
        assert_eq!(store.counted().heartbeats, 2, "the first, which was on its way, and the last");
    }
}
