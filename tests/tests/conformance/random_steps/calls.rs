//! Calls of a store with all that they are given, so that the same call can be made on several.

use super::NOW;
use crate::admin::Admin;
use crate::fixture::{World, node};
use carillon::domain::permit::{Granted, PermitRequest};
use carillon::domain::plan::Plan;
use carillon::domain::routing::UseChange;
use carillon::domain::{LogId, NodeId, Owner, Reason, Run, Transition};
use carillon::store::{
    Backfill, EndedRun, NewRun, OutboxRound, Result, RunDispatch, Skip, Store, StoreError, StoreErrorKind, TaskChange,
    TaskView, UnclaimedEnd, Writer,
};
use carillon_protocol::RunResult;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A call.
#[derive(Debug, Clone)]
pub enum Call {
    WriteAhead(Vec<Plan>),
    Claim(NodeId, Vec<Run>, i64),
    ExpireUnclaimed(Vec<UnclaimedEnd>, i64),
    Acquire(Vec<PermitRequest>),
    Release(Vec<LogId>, bool),
    NoteWaits(Vec<(LogId, i64, Reason)>),
    Dispatch(NodeId, Vec<RunDispatch>),
    DispatchShards(NodeId, Run, Vec<Run>, i64),
    Succeed(Owner, Vec<RunResult>),
    SucceedWhole(Owner, Vec<RunResult>),
    Change(Vec<Transition>),
    NoteStop(Vec<(LogId, i64)>, Reason),
    /// With ids for what is written.
    ProcessOutbox(Vec<EndedRun>, Vec<LogId>, i64),
    LeaveRunning(Vec<(LogId, i64)>),
    Settle(Vec<LogId>, i64),
    Revoke(Vec<Run>, i64),
    StartRun(TaskView, NewRun),
    Skip(TaskView, Skip),
    Restore(TaskView, i64),
    Redefine(TaskChange),
    Backfill(Backfill, i64),
    /// With ids for what is written.
    Advance(Backfill, Vec<LogId>, i64),
    Use(Vec<UseChange>, i64),
    Purge(i64),
}

/// What comes of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What it moved, by id.
    Moved(BTreeMap<i64, String>),
    /// How much of it.
    Count(u64),
    /// What it says.
    Said(String),
}

/// How it ends.
pub type End = std::result::Result<Answer, StoreErrorKind>;

/// Whose connections it goes over.
#[derive(Clone)]
pub struct Actor {
    store: Arc<dyn Store>,
    admin: Arc<dyn Admin>,
}

impl Actor {
    /// The node itself.
    pub fn of(world: &World) -> Self {
        Self { store: Arc::clone(&world.store), admin: Arc::clone(&world.admin) }
    }

    /// Another node.
    pub fn rival_of(world: &World) -> Self {
        Self { store: Arc::clone(&world.rival), admin: Arc::clone(&world.rival_admin) }
    }
}

impl Call {
    /// Makes it.
    pub async fn make(&self, by: &Actor) -> End {
        let Actor { store, admin } = by;
        let done = match self {
            Self::WriteAhead(plans) => store
                .write_ahead(Writer::Node(NodeId(1)), plans, NOW)
                .await
                .map(|moved| ids(moved.into_iter().flatten().map(|id| id.0))),
            Self::Claim(node, runs, at) => store.claim(*node, runs.clone(), *at).await.map(|runs| moved(&runs)),
            Self::ExpireUnclaimed(ends, at) => store.expire_unclaimed(NodeId(1), ends, *at).await.map(logs),
            Self::Acquire(asks) => store.acquire(asks).await.map(granted),
            Self::Release(ids, in_order) => store.release(ids, *in_order).await.map(|()| Answer::Count(0)),
            Self::NoteWaits(waits) => store.note_waits(waits).await.map(|()| Answer::Count(0)),
            Self::Dispatch(node, items) => store.dispatch(*node, items).await.map(logs),
            Self::DispatchShards(node, parent, shards, at) => {
                store.dispatch_shards(*node, parent, shards, *at).await.map(|done| Answer::Said(done.to_string()))
            }
            Self::Succeed(owner, results) => {
                store.succeed(*owner, &results.iter().collect::<Vec<_>>()).await.map(Answer::Count)
            }
            Self::SucceedWhole(owner, results) => {
                store.succeed_whole(*owner, &results.iter().collect::<Vec<_>>()).await.map(Answer::Count)
            }
            Self::Change(changes) => store.change(changes).await.map(logs),
            Self::NoteStop(runs, reason) => store.note_stop(runs, *reason).await.map(logs),
            Self::ProcessOutbox(ended, ids, now) => followed(store.as_ref(), ended, ids, *now).await,
            Self::LeaveRunning(runs) => store.leave_running(runs).await.map(|()| Answer::Count(0)),
            Self::Settle(parents, at) => store.settle_parents(parents, *at).await.map(Answer::Count),
            Self::Revoke(runs, at) => store.settle_revoked(runs, *at).await.map(logs),
            Self::StartRun(task, run) => admin.start_run(task, run).await.map(|run| Answer::Said(format!("{run:?}"))),
            Self::Skip(task, skip) => {
                admin.skip_fire(task, skip, NOW).await.map(|end| Answer::Said(format!("{end:?}")))
            }
            Self::Restore(task, fire_time) => {
                admin.restore_fire(task, *fire_time, true, NOW).await.map(|()| Answer::Count(0))
            }
            Self::Backfill(one, at) => admin.create_backfill(one, *at).await.map(|()| Answer::Count(0)),
            Self::Advance(one, ids, at) => advanced(store.as_ref(), one, ids, *at).await,
            Self::Use(changes, id) => store.add_uses(changes, &|| *id).await.map(|()| Answer::Count(0)),
            Self::Purge(before) => store.purge(*before, 1_000).await.map(|purged| Answer::Count(purged.deleted)),
            Self::Redefine(change) => admin
                .apply(&[], std::slice::from_ref(change), NOW)
                .await
                .map(|held| moved(&held.into_iter().flatten().map(|held| held.run).collect::<Vec<_>>())),
        };
        done.map_err(|error| error.kind())
    }

    /// The parts of it that may come before and after what others do: a batch is guarded row by row.
    pub fn parts(&self) -> Vec<Self> {
        fn each<T: Clone>(rows: &[T], part: impl Fn(Vec<T>) -> Call) -> Vec<Call> {
            rows.iter().map(|row| part(vec![row.clone()])).collect()
        }
        let parts = match self.clone() {
            Self::WriteAhead(plans) => each(&plans, Self::WriteAhead),
            Self::Claim(node, runs, at) => each(&runs, |runs| Self::Claim(node, runs, at)),
            Self::Dispatch(node, items) => each(&items, |items| Self::Dispatch(node, items)),
            Self::Succeed(owner, results) => each(&results, |results| Self::Succeed(owner, results)),
            Self::SucceedWhole(owner, results) => each(&results, |results| Self::SucceedWhole(owner, results)),
            Self::Change(changes) => each(&changes, Self::Change),
            Self::ExpireUnclaimed(ends, at) => each(&ends, |ends| Self::ExpireUnclaimed(ends, at)),
            Self::Release(ids, in_order) => each(&ids, |ids| Self::Release(ids, in_order)),
            Self::NoteWaits(waits) => each(&waits, Self::NoteWaits),
            Self::NoteStop(runs, reason) => each(&runs, |runs| Self::NoteStop(runs, reason)),
            Self::LeaveRunning(runs) => each(&runs, Self::LeaveRunning),
            whole => vec![whole],
        };
        if parts.is_empty() { vec![self.clone()] } else { parts }
    }

    /// Whether it may take permits from runs, or runs from their permits. Who asks for permits meanwhile reads one after the
    /// other how many there are and what has become of its own runs: it may get fewer than in any order.
    pub fn may_end_permits(&self) -> bool {
        !matches!(
            self,
            Self::WriteAhead(_)
                | Self::Claim(..)
                | Self::ExpireUnclaimed(..)
                | Self::Acquire(_)
                | Self::NoteWaits(_)
                | Self::StartRun(..)
                | Self::Skip(..)
                | Self::Restore(..)
        )
    }
}

/// What comes of a call whose parts end so.
pub fn whole(parts: Vec<End>) -> End {
    let mut parts = parts.into_iter();
    let first = parts.next().expect("a call has a part")?;
    parts.try_fold(first, |sum, part| match (sum, part?) {
        (Answer::Moved(mut sum), Answer::Moved(more)) => {
            sum.extend(more);
            Ok(Answer::Moved(sum))
        }
        (Answer::Count(sum), Answer::Count(more)) => Ok(Answer::Count(sum + more)),
        (sum, _) => Ok(sum),
    })
}

/// What holds those up that got none.
fn granted(granted: Granted) -> Answer {
    let held_up: BTreeMap<LogId, _> = granted.held_up.into_iter().collect();
    Answer::Said(format!("{held_up:?}, outdated: {:?}", granted.outdated.into_iter().collect::<BTreeSet<_>>()))
}

/// Writes what follows these runs. Where the database made it try again with further ids, who called would try again, too.
async fn followed(store: &dyn Store, ended: &[EndedRun], ids: &[LogId], now: i64) -> Result<Answer> {
    let used = AtomicUsize::new(0);
    let new_id = || ids[used.fetch_add(1, Ordering::Relaxed) % ids.len()];
    let Some(mut round) = store.process_outbox(ended, &node(), &new_id, now).await? else {
        return Ok(Answer::Said("another has".to_owned()));
    };
    if used.into_inner() > round.started + round.paused.len() {
        return Err(StoreError::new(StoreErrorKind::Contention, "follow", "with other ids"));
    }
    in_order(&mut round);
    Ok(Answer::Said(format!("{round:?}")))
}

async fn advanced(store: &dyn Store, of: &Backfill, ids: &[LogId], now: i64) -> Result<Answer> {
    let used = AtomicUsize::new(0);
    let new_id = || ids[used.fetch_add(1, Ordering::Relaxed) % ids.len()];
    store.advance(NodeId(1), of, &new_id, now).await.map(|written| Answer::Count(written as u64))
}

fn in_order(round: &mut OutboxRound) {
    round.paused.sort_by_key(|paused| paused.id);
    for paused in &mut round.paused {
        paused.held.sort_by_key(|held| held.run.id);
    }
}

fn logs(moved: HashSet<LogId>) -> Answer {
    ids(moved.into_iter().map(|id| id.0))
}

fn ids(moved: impl Iterator<Item = i64>) -> Answer {
    Answer::Moved(moved.map(|id| (id, String::new())).collect())
}

fn moved(runs: &[Run]) -> Answer {
    Answer::Moved(runs.iter().map(|run| (run.id.0, format!("{run:?}"))).collect())
}
