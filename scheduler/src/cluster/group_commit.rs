//! Heartbeats of executors, committed together: those that arrive while others are committed, or shortly after, share the
//! next transaction. Each is answered after its commit. What keeps a batch from being committed keeps none of the others:
//! then each is committed alone.

use crate::store::{
    BATCH_MAX, ExecutorStore, HeartbeatVerdict, Result, SignedHeartbeat, Signer, StoreError, StoreErrorKind,
};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// After a commit others are gathered for so long. A heartbeat that comes after a pause waits for nothing.
const GATHER: Duration = Duration::from_millis(20);

/// Heartbeats that wait at most; more are told that the database is away.
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
}

struct Waiting {
    beat: SignedHeartbeat,
    answer: oneshot::Sender<Result<HeartbeatVerdict>>,
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

    /// Commits a heartbeat, with others if there are some. It is committed even if the caller stops waiting.
    pub async fn commit(self: &Arc<Self>, beat: SignedHeartbeat) -> Result<HeartbeatVerdict> {
        let (answer, answered) = oneshot::channel();
        let is_served = {
            let mut queue = self.lock();
            if queue.waiting.len() >= WAITING_MAX {
                return Err(unavailable("too many heartbeats wait to be committed"));
            }
            queue.waiting.push_back(Waiting { beat, answer });
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
        let (beats, answers): (Vec<_>, Vec<_>) = batch.into_iter().map(|w| (w.beat, w.answer)).unzip();
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
        for (answer, verdict) in answers.into_iter().zip(verdicts) {
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
    use crate::domain::{AppId, ExecutorId, NodeId, Owner, TenantId};
    use crate::store::ExecutorHeartbeat;
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
            group.commit(beat(1, id)).await.unwrap()
        });
        assert!(join_all(all).await.iter().all(|verdict| *verdict == HeartbeatVerdict::Committed));
        let counts = store.counted();
        assert_eq!(counts.heartbeats, 1_000);
        assert!(counts.commits <= 150, "{counts:?}");
        assert_eq!(group.commit(beat(1, 5_000)).await.unwrap(), HeartbeatVerdict::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_waits_for_no_others() {
        let group = GroupCommit::new(store(&[]));
        let sent = tokio::time::Instant::now();
        group.commit(beat(1, 1)).await.unwrap();
        assert!(sent.elapsed() < GATHER, "{:?}", sent.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_be_stored_fails_no_other() {
        let store = store(&[13]);
        let group = GroupCommit::new(store.clone());
        let all = (0..50).map(|id| group.commit(beat(if id == 20 { 13 } else { 1 }, id))).collect::<Vec<_>>();
        for (id, verdict) in join_all(all).await.into_iter().enumerate() {
            assert_eq!(verdict.is_err(), id == 20, "{id}");
        }
        assert_eq!(store.counted().heartbeats, 49);
    }

    #[tokio::test(start_paused = true)]
    async fn two_of_one_executor_are_committed_one_after_the_other() {
        let store = store(&[]);
        let group = GroupCommit::new(store.clone());
        let all = [1, 2, 1, 1, 3].map(|id| group.commit(beat(1, id)));
        assert!(join_all(all).await.into_iter().all(|verdict| verdict.is_ok()));
        let counts = store.counted();
        assert_eq!((counts.heartbeats, counts.commits), (5, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_is_committed_though_its_sender_has_gone() {
        let store = store(&[]);
        let group = GroupCommit::new(store.clone());
        let impatient = tokio::time::timeout(Duration::from_millis(1), group.commit(beat(1, 1)));
        assert!(impatient.await.is_err());
        group.commit(beat(1, 2)).await.unwrap();
        assert_eq!(store.counted().heartbeats, 2);
    }
}
