//! Successes that come at the same time share a statement: of a thousand executors each tells a few, and a transaction for each
//! of these would cost more than the rows that it changes.
//!
//! Of each owner a few requests write at a time. Others wait; who has written passes the turn on to the first of them, which
//! writes for those behind it, too. Without others a request writes at once, and alone.

use crate::domain::Owner;
use crate::store::{BATCH_MAX, Result};
use carillon_protocol::{RunKey, RunResult, Verdict};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Requests of one owner that write at a time: enough to keep a database busy while its commits wait for a disk.
const WRITERS_MAX: usize = 4;

/// What became of results.
pub type Verdicts = HashMap<RunKey, Verdict>;

/// For all that were written together.
pub type Written = Arc<Result<Verdicts>>;

/// Who writes, and who waits: no more than the server has requests.
#[derive(Debug, Default)]
pub struct SharedWrites {
    lanes: Mutex<HashMap<Owner, Lane>>,
}

#[derive(Debug, Default)]
struct Lane {
    writers: usize,
    waiting: VecDeque<Waiting>,
}

/// Results of a request that another one may write.
#[derive(Debug)]
pub struct Waiting {
    results: Vec<RunResult>,
    tell: oneshot::Sender<Told>,
}

#[derive(Debug)]
enum Told {
    /// Another request has written them.
    Written(Written),
    /// It is this one's turn.
    Write(Permit),
}

/// What a request is to do about its results.
#[derive(Debug)]
pub enum Turn {
    /// To write them, and those of others.
    Write(Share),
    /// Nothing: they are written.
    Written(Written),
    /// To write them by itself: who was to write them could not.
    Alone,
}

/// The results of others that a request writes with its own. Dropped untold, the others write by themselves.
#[derive(Debug)]
pub struct Share {
    others: Vec<Waiting>,
    _permit: Permit,
}

impl Share {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// They.
    pub fn results(&self) -> impl Iterator<Item = &RunResult> {
        self.others.iter().flat_map(|waiting| &waiting.results)
    }

    /// Lets the others write by themselves.
    pub fn leave(&mut self) {
        self.others.clear();
    }

    /// Tells the others what became of theirs; the turn is the next one's.
    pub fn tell(self, written: &Written) {
        for waiting in self.others {
            // One whose caller is gone has nobody to tell.
            drop(waiting.tell.send(Told::Written(Arc::clone(written))));
        }
    }
}

/// One of the [`WRITERS_MAX`]; passed on when it is dropped.
#[derive(Debug)]
struct Permit {
    writes: Arc<SharedWrites>,
    owner: Owner,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.writes.pass_on(self.owner);
    }
}

/// A place among those that wait, which a request leaves when its caller goes: what it told is not kept.
struct Place<'a> {
    writes: &'a SharedWrites,
    owner: Owner,
    told: oneshot::Receiver<Told>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Who was told has no place any more.
        if !self.told.is_terminated() {
            self.told.close();
            self.writes.forget_gone(self.owner);
        }
    }
}

impl SharedWrites {
    /// Waits until these results, of one batch, are written or to be written.
    pub async fn turn(self: &Arc<Self>, owner: Owner, results: &[&RunResult]) -> Turn {
        let Some(told) = self.enter(owner, results) else {
            return self.write(Permit { writes: Arc::clone(self), owner }, results);
        };
        let mut place = Place { writes: self, owner, told };
        match (&mut place.told).await {
            Ok(Told::Written(written)) => Turn::Written(written),
            Ok(Told::Write(permit)) => self.write(permit, results),
            Err(_) => Turn::Alone,
        }
    }

    /// Takes a turn, or a place among those that wait.
    fn enter(&self, owner: Owner, results: &[&RunResult]) -> Option<oneshot::Receiver<Told>> {
        let mut lanes = self.lock();
        let lane = lanes.entry(owner).or_default();
        if lane.writers < WRITERS_MAX {
            lane.writers += 1;
            return None;
        }
        let (tell, told) = oneshot::channel();
        lane.waiting.push_back(Waiting { results: results.iter().map(|result| (*result).clone()).collect(), tell });
        Some(told)
    }

    /// With those that wait, as far as they have room in one batch, and none tells of the same attempt as another.
    fn write(&self, permit: Permit, own: &[&RunResult]) -> Turn {
        let mut others = Vec::new();
        if let Some(lane) = self.lock().get_mut(&permit.owner)
            && !lane.waiting.is_empty()
        {
            let mut keys: HashSet<RunKey> = own.iter().map(|result| key(result)).collect();
            let mut has_room = |next: &mut Waiting| {
                keys.len() + next.results.len() <= BATCH_MAX
                    && next.results.iter().all(|result| keys.insert(key(result)))
            };
            while let Some(next) = lane.waiting.pop_front_if(&mut has_room) {
                others.push(next);
            }
        }
        Turn::Write(Share { others, _permit: permit })
    }

    /// Gives a turn that is over to the first that still waits.
    fn pass_on(self: &Arc<Self>, owner: Owner) {
        while let Some(next) = self.next(owner) {
            if !next.tell.is_closed() {
                // Should its caller go just now, the permit comes back with what was not told, and is passed on by that.
                drop(next.tell.send(Told::Write(Permit { writes: Arc::clone(self), owner })));
                return;
            }
        }
    }

    /// The next that waits; a turn less if nobody does.
    fn next(&self, owner: Owner) -> Option<Waiting> {
        let mut lanes = self.lock();
        let lane = lanes.get_mut(&owner)?;
        let next = lane.waiting.pop_front();
        if next.is_none() {
            lane.writers -= 1;
            if lane.writers == 0 {
                lanes.remove(&owner);
            }
        }
        next
    }

    fn forget_gone(&self, owner: Owner) {
        if let Some(lane) = self.lock().get_mut(&owner) {
            lane.waiting.retain(|waiting| !waiting.tell.is_closed());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The attempt that a result is of.
pub fn key(result: &RunResult) -> RunKey {
    RunKey(result.log, result.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AppId, TenantId};
    use carillon_protocol::RunStatus;
    use futures_util::FutureExt as _;

    const OWNER: Owner = Owner { tenant_id: TenantId(1), app_id: AppId(1) };

    fn result(log: i64) -> RunResult {
        RunResult {
            log,
            attempt: 1,
            status: RunStatus::Succeeded,
            message: String::new(),
            output: String::new(),
            started_at: 1,
            finished_at: 2,
            due_time: 1,
        }
    }

    fn share(turn: Option<Turn>) -> Share {
        match turn {
            Some(Turn::Write(share)) => share,
            other => panic!("{other:?}"),
        }
    }

    fn logs(share: &Share) -> Vec<i64> {
        share.results().map(|result| result.log).collect()
    }

    #[test]
    fn who_waits_is_written_with_the_next_turn() {
        let writes = Arc::new(SharedWrites::default());
        let own = result(0);
        let mut turns: Vec<Share> =
            (0..WRITERS_MAX).map(|_| share(writes.turn(OWNER, &[&own]).now_or_never())).collect();
        assert!(turns.iter().all(Share::is_empty));
        let results: Vec<RunResult> = (1..=4).map(result).collect();
        let each: Vec<[&RunResult; 1]> = results.iter().map(|result| [result]).collect();
        let mut waiting: Vec<_> = each.iter().map(|one| Box::pin(writes.turn(OWNER, one))).collect();
        assert!(waiting.iter_mut().all(|turn| poll(turn).is_none()));
        let other = Owner { app_id: AppId(2), ..OWNER };
        assert!(share(writes.turn(other, &[&own]).now_or_never()).is_empty(), "others' do not wait for it");

        // The second's caller goes.
        drop(waiting.remove(1));
        drop(turns.pop());
        let first = share(poll(&mut waiting[0]));
        assert_eq!(logs(&first), [3, 4]);
        let written = Arc::new(Ok(Verdicts::from([(RunKey(4, 1), Verdict::Applied)])));
        first.tell(&written);
        for turn in &mut waiting[1..] {
            assert!(matches!(poll(turn), Some(Turn::Written(told)) if Arc::ptr_eq(&told, &written)));
        }
        drop(turns);
        assert!(writes.lock().is_empty(), "nothing is kept");
    }

    #[test]
    fn who_was_to_be_written_by_one_that_fails_writes_alone() {
        let writes = Arc::new(SharedWrites::default());
        let results: Vec<RunResult> = (0..=5).map(result).collect();
        let each: Vec<[&RunResult; 1]> = results.iter().map(|result| [result]).collect();
        let mut turns: Vec<Share> =
            (0..WRITERS_MAX).map(|_| share(writes.turn(OWNER, &each[0]).now_or_never())).collect();
        let mut waiting: Vec<_> = each[1..4].iter().map(|one| Box::pin(writes.turn(OWNER, one))).collect();
        assert!(waiting.iter_mut().all(|turn| poll(turn).is_none()));
        drop(turns.pop());
        // Its turn comes, and it is dropped before it has looked: the turn goes on.
        drop(waiting.remove(0));
        let failed = share(poll(&mut waiting[0]));
        assert_eq!(logs(&failed), [3]);
        drop(failed);
        assert!(matches!(poll(&mut waiting[1]), Some(Turn::Alone)));
        drop(turns);
        assert!(writes.lock().is_empty());
    }

    #[test]
    fn no_share_is_larger_than_a_batch() {
        let writes = Arc::new(SharedWrites::default());
        let results: Vec<RunResult> = (0..BATCH_MAX as i64 * 2).map(result).collect();
        let halves: Vec<Vec<&RunResult>> = results.chunks(BATCH_MAX / 2).map(|half| half.iter().collect()).collect();
        let mut turns: Vec<Share> =
            (0..WRITERS_MAX).map(|_| share(writes.turn(OWNER, &halves[0]).now_or_never())).collect();
        let mut waiting: Vec<_> = halves[1..].iter().map(|half| Box::pin(writes.turn(OWNER, half))).collect();
        assert!(waiting.iter_mut().all(|turn| poll(turn).is_none()));
        drop(turns.pop());
        let share = share(poll(&mut waiting[0]));
        assert_eq!(share.results().count(), BATCH_MAX / 2);
    }

    #[test]
    fn what_is_told_twice_is_written_apart() {
        let writes = Arc::new(SharedWrites::default());
        let (one, again, another) = (result(1), RunResult { finished_at: 3, ..result(1) }, result(2));
        let mut turns: Vec<Share> =
            (0..WRITERS_MAX).map(|_| share(writes.turn(OWNER, &[&one]).now_or_never())).collect();
        let each = [[&one], [&another], [&again]];
        let mut waiting: Vec<_> = each.iter().map(|one| Box::pin(writes.turn(OWNER, one))).collect();
        assert!(waiting.iter_mut().all(|turn| poll(turn).is_none()));
        drop(turns.pop());
        let first = share(poll(&mut waiting[0]));
        assert_eq!(logs(&first), [2]);
        drop(first);
        assert!(share(poll(&mut waiting[2])).is_empty());
    }

    /// Polls a turn once, and keeps it.
    fn poll(turn: &mut (impl Future<Output = Turn> + Unpin)) -> Option<Turn> {
        turn.now_or_never()
    }
}
