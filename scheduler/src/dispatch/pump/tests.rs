use super::*;
use crate::cluster::{Membership, Registry};
use crate::dispatch::{DispatchParts, DispatchSettings, Probe, SendError, TaskCache, Transport};
use crate::domain::plan::Plan;
use crate::domain::task::TaskSpec;
use crate::domain::task::test::task_of;
use crate::domain::{Executor, IdSource, Run, Task};
use crate::queue::run;
use crate::store::{
    Change, ClusterStore, ExecutorBeat, ExecutorEnd, ExecutorStore, Fence, HandOver, LeaseName, Member, NodeInfo,
    NodeState, Result, Scope,
};
use async_trait::async_trait;
use carillon_protocol::{Cancel, CancelAck, Dispatch, DispatchAck, DispatchOutcome, Register, RunKey};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const NOW: i64 = 1_000_000;
const PANICKING: i64 = 1;
const QUICK: i64 = 2;
const HANGING: i64 = 3;
const CAPACITY: usize = 50_000;

/// Every step succeeds; a tenant, its app, its task and its executor have the same number.
struct Yes;

#[async_trait]
impl HandStore for Yes {
    async fn hand_over(&self, _: i64, items: &[HandOver], _: i64) -> Result<HashSet<i64>> {
        Ok(items.iter().map(|item| item.id).collect())
    }
    async fn hand_over_shards(&self, _: i64, _: &Run, _: &[(Run, i64)], _: i64) -> Result<bool> {
        Ok(false)
    }
    async fn change(&self, _: &[Change]) -> Result<HashSet<i64>> {
        Ok(HashSet::new())
    }
}

#[async_trait]
impl PlanStore for Yes {
    async fn tasks_due(&self, _: i64, _: u64) -> Result<Vec<Task>> {
        Ok(Vec::new())
    }
    async fn tasks(&self, ids: &[i64]) -> Result<Vec<Task>> {
        let spec = TaskSpec { handler: "h".to_owned(), ..TaskSpec::default() };
        let task = |id: &i64| Task { id: *id, tenant_id: *id, app_id: *id, revision: 1, ..task_of(spec.clone()) };
        Ok(ids.iter().map(task).collect())
    }
    async fn reopen(&self, _: &Task, _: i64, _: i64) -> Result<()> {
        Ok(())
    }
    async fn write_ahead(&self, _: Option<Fence>, _: &[Plan], _: i64) -> Result<Option<HashSet<i64>>> {
        Ok(None)
    }
}

#[async_trait]
impl ExecutorStore for Yes {
    async fn register(&self, _: Scope, _: &str, _: &Register, _: &(dyn Fn() -> i64 + Sync), _: i64) -> Result<i64> {
        Ok(0)
    }
    async fn beat(&self, _: &[ExecutorBeat]) -> Result<HashSet<i64>> {
        Ok(HashSet::new())
    }
    async fn reconfirm(&self, _: Scope, _: i64, _: &[RunKey]) -> Result<HashSet<RunKey>> {
        Ok(HashSet::new())
    }
    async fn retire(&self, _: Scope, _: i64, _: bool, _: i64) -> Result<()> {
        Ok(())
    }
    async fn executors(&self, _: i64) -> Result<Vec<Executor>> {
        let executor = |id| Executor {
            id,
            tenant_id: id,
            app_id: id,
            instance: String::new(),
            key_id: String::new(),
            address: String::new(),
            tags: HashSet::new(),
            handlers: HashSet::from(["h".to_owned()]),
            heartbeat_at: NOW,
            draining: false,
            described_at: NOW,
        };
        Ok([HANGING, QUICK, PANICKING].map(executor).into())
    }
    async fn executor_ends(&self, _: &[i64]) -> Result<Vec<ExecutorEnd>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl ClusterStore for Yes {
    async fn now_us(&self) -> Result<i64> {
        Ok(NOW * 1_000)
    }
    async fn join(&self, _: &NodeInfo) -> Result<Member> {
        Ok(Member { id: 1, incarnation: String::new() })
    }
    async fn heartbeat(&self, _: &Member, _: u64) -> Result<bool> {
        Ok(true)
    }
    async fn nodes(&self) -> Result<Vec<NodeState>> {
        Ok(Vec::new())
    }
    async fn leave(&self, _: &Member) -> Result<()> {
        Ok(())
    }
    async fn take_lease(&self, _: LeaseName, _: i64, _: Option<Fence>, _: i64) -> Result<Option<Fence>> {
        Ok(None)
    }
    async fn release_lease(&self, _: Fence) -> Result<()> {
        Ok(())
    }
}

/// Executors that answer, that do so only when they are told to, or that break the node.
struct Wires {
    hanging: AtomicUsize,
    go_on: watch::Receiver<bool>,
    arrived: watch::Sender<usize>,
}

#[async_trait]
impl Transport for Wires {
    async fn dispatch(&self, to: &Executor, message: &Dispatch) -> std::result::Result<DispatchAck, SendError> {
        let count = message.items.len();
        match to.id {
            HANGING => {
                self.hanging.fetch_add(count, Ordering::Relaxed);
                drop(self.go_on.clone().wait_for(|go_on| *go_on).await);
            }
            PANICKING => panic!("as a fault in the transport might"),
            _ => self.arrived.send_modify(|arrived| *arrived += count),
        }
        Ok(DispatchAck { outcomes: vec![DispatchOutcome::Accepted; count] })
    }
    async fn cancel(&self, _: &Executor, _: &Cancel) -> std::result::Result<CancelAck, SendError> {
        Err(SendError::NotDelivered(String::new()))
    }
    async fn probe(&self, _: &str) -> Probe {
        Probe::Unknown
    }
}

struct Still;

impl Clock for Still {
    fn now_us(&self) -> i64 {
        NOW * 1_000
    }
}

fn runs(tenant: i64, ids: std::ops::Range<i64>) -> impl Iterator<Item = Run> {
    ids.map(move |id| Run { tenant_id: tenant, app_id: tenant, task_id: tenant, ..run(id, NOW) })
}

async fn soon(what: impl Fn() -> bool) {
    let until_so = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), until_so).await.expect("it becomes so");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executors_that_hang_or_break_hold_neither_permits_nor_other_tenants() {
    let (go_on, watching) = watch::channel(false);
    let (arrived, mut arrivals) = watch::channel(0);
    let wires = Arc::new(Wires { hanging: AtomicUsize::new(0), go_on: watching, arrived });
    let (store, clock, queue) = (Arc::new(Yes), Arc::new(Still), Arc::new(RunQueue::new(CAPACITY)));
    let registry = Arc::new(Registry::default());
    registry.refresh(&*store, 0).await.unwrap();
    let membership = Membership::join(store.clone(), clock.clone(), &NodeInfo::default(), 10_000).await.unwrap();
    let parts = DispatchParts {
        store: store.clone(),
        clock: clock.clone(),
        membership: Arc::new(membership),
        registry,
        transport: wires.clone(),
        queue: queue.clone(),
        ids: Arc::new(IdSource::new(1)),
        tasks: Arc::new(TaskCache::new(store)),
    };
    let dispatcher = Dispatcher::new(parts, DispatchSettings { lead_ms: 3_000, accept_window_ms: 3_000 });
    let pump = Pump::start(Arc::new(dispatcher), queue.clone(), clock, PumpSettings { lead_ms: 3_000 }).unwrap();

    // More than sixteen batches of one tenant's hang …
    queue.push(runs(HANGING, 0..20_000));
    soon(|| wires.hanging.load(Ordering::Relaxed) >= 4_000).await;
    // … and the others' go out, also more than one batch of them, and beside a fault.
    queue.push(runs(PANICKING, 20_000..20_100).chain(runs(QUICK, 30_000..35_000)));
    let all = tokio::time::timeout(Duration::from_secs(20), arrivals.wait_for(|arrived| *arrived == 5_000));
    all.await.expect("nothing holds them").unwrap();
    let hanging = wires.hanging.load(Ordering::Relaxed);
    assert!(hanging < 4_100, "the hanging tenant has its share and no more: {hanging}");
    assert!(!pump.is_finished());

    go_on.send(true).unwrap();
    soon(|| queue.room() == CAPACITY).await;
    assert_eq!(wires.hanging.load(Ordering::Relaxed), 20_000);
    pump.stop().await;
}
