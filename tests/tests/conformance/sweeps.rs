//! What a node looks through page by page: each of the runs has its turn, however many go on before it.

use crate::executors::{process, register};
use crate::fixture::{World, success};
use async_trait::async_trait;
use carillon::cluster::{Clock, ClusterClock, Membership, Registry, RuleBook};
use carillon::dispatch::{Canceller, EndedRuns, Presence, SendError, TaskCache, Transport};
use carillon::domain::{Executor, NodeId, Reason, Run, Status};
use carillon::outcome::{Reaper, ReaperParts, ReaperSettings};
use carillon::store::{ExecutorEnd, NodeInfo, SqlStore};
use carillon_protocol::{
    Cancel, CancelAck, CancelOutcome, Dispatch, DispatchAck, OutputPage, Probe, ProbeAck, ReadOutput,
};
use std::sync::Arc;

databases!(a_sharded_run_that_is_over_ends_behind_those_that_go_on, a_stop_is_repeated_behind_those_that_reach_nobody,);

/// Rows of a page, and of all.
const PAGE: u64 = 4;
const RUNS: u64 = 11;

/// Looks after which each run has had its turn.
const TURNS: u64 = RUNS.div_ceil(PAGE);

const OFFLINE_AFTER_MS: i64 = 10_000;

/// Executors drop what they are asked to.
struct Drops;

#[async_trait]
impl Transport for Drops {
    async fn dispatch(&self, _: &Executor, _: &Dispatch, _: &[i64]) -> Result<DispatchAck, SendError> {
        Err(nobody())
    }

    async fn cancel(&self, _: &Executor, asked: &Cancel, _: bool) -> Result<CancelAck, SendError> {
        Ok(CancelAck { outcomes: vec![CancelOutcome::Dropped; asked.runs.len()] })
    }

    async fn ask(&self, _: &Executor, _: &Probe) -> Result<ProbeAck, SendError> {
        Err(nobody())
    }

    async fn read_output(&self, _: &Executor, _: &ReadOutput) -> Result<OutputPage, SendError> {
        Err(nobody())
    }

    async fn probe(&self, _: &ExecutorEnd) -> Presence {
        Presence::Unknown
    }
}

fn nobody() -> SendError {
    SendError::NotDelivered("no one is there".to_owned())
}

/// A node that knows the executors of the store.
async fn node(world: &World, store: SqlStore) -> (Reaper<SqlStore>, Arc<Canceller<SqlStore>>) {
    let store = Arc::new(store);
    let clock: Arc<dyn Clock> = Arc::new(ClusterClock::synchronised(&*store).await.unwrap());
    let (transport, ended): (Arc<dyn Transport>, _) = (Arc::new(Drops), Arc::new(EndedRuns::default()));
    let registry = Arc::new(Registry::default());
    registry.take(registry.read(&*store, 0, world.now).await.unwrap());
    let info = NodeInfo { name: "a".to_owned(), ..NodeInfo::default() };
    let membership = Membership::join(store.clone(), clock.clone(), &info, OFFLINE_AFTER_MS).await.unwrap();
    let canceller =
        Canceller::new(store.clone(), clock.clone(), registry.clone(), transport.clone(), Arc::clone(&ended));
    let canceller = Arc::new(canceller);
    let settings = ReaperSettings {
        accept_window_ms: 3_000,
        offline_after_ms: OFFLINE_AFTER_MS,
        abandon_after_ms: 60_000,
        plain_lost_after_ms: 600_000,
        kept_going_ms: 2 * OFFLINE_AFTER_MS,
        misfire_after_ms: 30_000,
        page_rows: PAGE,
    };
    let parts = ReaperParts {
        store: store.clone(),
        clock,
        membership: Arc::new(membership),
        registry,
        rules: Arc::new(RuleBook::new(OFFLINE_AFTER_MS)),
        transport,
        canceller: canceller.clone(),
        tasks: Arc::new(TaskCache::new(store)),
        ended,
    };
    (Reaper::new(parts, settings), canceller)
}

/// Its last shard ended, and who was to end the run with it died.
async fn a_sharded_run_that_is_over_ends_behind_those_that_go_on(world: World, store: SqlStore) {
    let mut runs: Vec<(Run, Run)> = Vec::new();
    for _ in 0..RUNS {
        let parent = world.queued_parent().await;
        let shards = world.shards_of(&parent, 1);
        assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now - 5_000).await.unwrap());
        runs.push((parent, shards[0].clone()));
    }
    let (last, shard) = runs.pop().unwrap();
    world.store.succeed(world.owner, &[&success(&shard, 1)]).await.unwrap();
    let (reaper, _) = node(&world, store).await;
    for _ in 0..TURNS {
        reaper.tick().await.unwrap();
    }
    assert_eq!(world.row(&last).await.dispatched.run.status, Status::Succeeded);
    for (parent, _) in &runs {
        assert_eq!(world.row(parent).await.dispatched.run.status, Status::Dispatched);
    }
}

async fn a_stop_is_repeated_behind_those_that_reach_nobody(world: World, store: SqlStore) {
    let there = register(&world, &process("one", "a", &["pay"])).await;
    let mut runs = world.runs(RUNS as i64).await;
    let last = runs.split_off(runs.len() - 1);
    let mut held = world.dispatched(1, runs, 7).await;
    held.extend(world.dispatched(1, last, there.0).await);
    let keys: Vec<_> = held.iter().map(|run| (run.id, run.version)).collect();
    assert_eq!(world.store.note_stop(&keys, Reason::CancelledManually).await.unwrap().len(), held.len());
    let (_, canceller) = node(&world, store).await;
    let mut dropped = 0;
    for _ in 0..TURNS {
        dropped += canceller.repeat_stops(i64::MAX, PAGE).await.unwrap();
        assert!(canceller.is_open(), "not all is said yet");
    }
    let end = world.row(held.last().unwrap()).await.dispatched.run;
    assert_eq!((dropped, end.status, end.reason), (1, Status::Cancelled, Reason::CancelledManually));
    // Once all have ended, a look from the first on finds out.
    for run in &held[..held.len() - 1] {
        let run = world.row(run).await.dispatched.run;
        world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
    }
    for _ in 0..=TURNS {
        canceller.repeat_stops(i64::MAX, PAGE).await.unwrap();
    }
    assert!(!canceller.is_open());
}
