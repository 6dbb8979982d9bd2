//! A node as a process: what ships ([`NodeCore`], its workers and its pump) over a model of everything around it, and the door
//! that executors knock at. A crash drops everything in memory and on its way.

use crate::process::Process;
use crate::settings::{self, Shape};
use async_trait::async_trait;
use carillon::dispatch::PumpCore;
use carillon::domain::{ExecutorId, Owner};
use carillon::node::NodeCore;
use carillon::settings::Settings;
use carillon::store::{ClusterStore, NodeInfo, Registration, Result as StoreResult, Signer, StoreError};
use carillon::workers::{EngineParts, EnginePeriods, Workers};
use carillon_protocol::{Heartbeat, HeartbeatAck, Register, Registered, Results, ResultsAck};
use carillon_tests::model::executor::Refusal;
use carillon_tests::model::{Gate, ModelStore, NodeServer, SimClock, SimTransport, Trace};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// What a request to a simulated node is served with.
pub type SimParts = EngineParts<ModelStore>;

/// The product's own.
static PERIODS: LazyLock<EnginePeriods> =
    LazyLock::new(|| EnginePeriods::of(&Settings::load(None).expect("the defaults can be used")));

/// A process that cannot join ends, and is started again after this long.
const START_PAUSE: Duration = Duration::from_secs(1);

/// What a node is made of; it outlives the node's processes.
pub struct NodeParts {
    /// Its number, from 0.
    pub index: usize,
    /// How much it has room for, and how long before its due time a run is dispatched.
    pub shape: Shape,
    /// Its clock.
    pub clock: Arc<SimClock>,
    /// What stands between it and the world.
    pub gate: Arc<Gate>,
    /// The database through the gate.
    pub store: Arc<ModelStore>,
    /// The way to executors.
    pub transport: Arc<SimTransport>,
    /// Where events go.
    pub trace: Arc<Trace>,
}

/// A node, running or not.
pub struct SimNode {
    parts: NodeParts,
    running: Mutex<Option<Arc<Running>>>,
}

/// A running node.
struct Running {
    process: Process,
    /// Once it has joined.
    core: OnceLock<NodeCore<ModelStore>>,
    /// Told when it is to stop.
    stop: Notify,
}

impl fmt::Debug for SimNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.parts.index)
    }
}

impl SimNode {
    /// A node that does not run yet.
    pub fn new(parts: NodeParts) -> Arc<Self> {
        Arc::new(Self { parts, running: Mutex::default() })
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<SimClock> {
        &self.parts.clock
    }

    /// Its gate.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.parts.gate
    }

    /// Starts a process, if none runs; it joins as soon as the database lets it.
    pub fn start(self: &Arc<Self>) {
        let mut slot = self.running.lock().unwrap();
        if slot.is_some() {
            return;
        }
        let process = Process::new(self.parts.gate.clone());
        let running = Arc::new(Running { process, core: OnceLock::new(), stop: Notify::new() });
        *slot = Some(running.clone());
        drop(slot);
        self.note("starts");
        let node = self.clone();
        running.clone().process.spawn(async move { node.live(running).await });
    }

    /// Ends the process at once: its memory and what it sends are gone.
    pub fn crash(&self) {
        if let Some(running) = self.running.lock().unwrap().take() {
            self.note("crashes");
            running.process.kill();
        }
    }

    /// Wakes the urgent loader, as the API does after it wrote something.
    pub fn wake(&self) {
        let running = self.running.lock().unwrap().clone();
        if let Some(core) = running.as_ref().and_then(|running| running.core.get()) {
            core.parts.wake.notify_one();
        }
    }

    /// Asks the process to stop, and waits until it is gone.
    pub async fn stop(&self) {
        let Some(running) = self.running.lock().unwrap().clone() else { return };
        if running.core.get().is_none() {
            return self.crash();
        }
        self.note("is asked to stop");
        running.stop.notify_one();
        while self.running.lock().unwrap().as_ref().is_some_and(|now| Arc::ptr_eq(now, &running)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Runs `work` inside the process, as a request to it; `None` when there is no process, or
    /// it crashed meanwhile.
    pub async fn serve<A, W>(&self, work: impl FnOnce(Arc<SimParts>) -> W) -> Option<A>
    where
        A: Send + 'static,
        W: Future<Output = A> + Send + 'static,
    {
        let running = self.running.lock().unwrap().clone()?;
        let parts = running.core.get()?.parts.clone();
        running.process.spawn(work(parts)).await.ok()
    }

    /// A process from its start to its end, unless it crashes.
    async fn live(self: Arc<Self>, running: Arc<Running>) {
        let core = loop {
            match self.join().await {
                Ok(core) => break core,
                Err(_) => tokio::time::sleep(START_PAUSE).await,
            }
        };
        self.note(format!("joined as {}", core.parts.engine.membership.id()));
        let core = running.core.get_or_init(|| core);
        let pump = Arc::new(core.pump());
        let pumping = running.process.spawn(turn(pump.clone(), running.clone()));
        let mut workers = Workers::new();
        for work in core.parts.workers(&PERIODS) {
            workers.spawn(running.process.confine(work.turn(core.stop.clone())));
        }
        tokio::select! {
            biased;
            () = running.stop.notified() => self.note("stops"),
            ended = workers.join_next() => self.note(format!("ends by itself: {ended:?}")),
        }
        core.leave(&mut workers, pump.stop(async { drop(pumping.await) }), async {}).await;
        self.note("has left");
        *self.running.lock().unwrap() = None;
        running.process.kill();
    }

    async fn join(&self) -> StoreResult<NodeCore<ModelStore>> {
        let NodeParts { index, clock, store, transport, shape, .. } = &self.parts;
        let info = NodeInfo { name: format!("node-{index}"), ..NodeInfo::default() };
        store.now_us().await?;
        let settings = settings::engine(shape);
        NodeCore::join(ModelStore::clone(store), clock.clone(), transport.clone(), &info, settings).await
    }

    fn note(&self, text: impl AsRef<str>) {
        self.parts.trace.add(format!("node {}: {}", self.parts.index, text.as_ref()));
    }
}

/// The pump, as a task instead of a thread.
async fn turn(pump: Arc<PumpCore<ModelStore>>, running: Arc<Running>) {
    pump.run(|batch| drop(running.process.spawn(batch))).await;
}

fn refused(error: &StoreError) -> Refusal {
    if error.is_temporary() { Refusal::StoreUnavailable } else { Refusal::Fault }
}

/// A node as the executors of one app knock at it.
#[derive(Debug)]
pub struct Door {
    /// The node.
    pub node: Arc<SimNode>,
    /// Whose key they sign with.
    pub owner: Owner,
}

impl Door {
    fn signer(&self, signed_at: i64) -> Signer<'static> {
        Signer { owner: self.owner, key_id: "key", signed_at }
    }
}

#[async_trait]
impl NodeServer for Door {
    async fn register(&self, message: Register, signed_at: i64) -> Result<Registered, Refusal> {
        let signer = self.signer(signed_at);
        let answer = self.node.serve(async move |parts: Arc<SimParts>| {
            let engine = &parts.engine;
            let since = engine.executors_alive_since();
            let done = engine.executors.register(&signer, &message, since).await;
            done.map(|registration| (registration, engine.clock.now_us()))
        });
        let (Registration { executor_id, left_out }, cluster_time_us) =
            answer.await.ok_or(Refusal::Unreachable)?.map_err(|error| refused(&error))?;
        Ok(Registered { executor_id: executor_id.0, cluster_time_us, settings: settings::executors(), left_out })
    }

    async fn heartbeat(&self, message: Heartbeat, signed_at: i64) -> Result<HeartbeatAck, Refusal> {
        let signer = self.signer(signed_at);
        let answer = self.node.serve(async move |parts: Arc<SimParts>| {
            let engine = &parts.engine;
            let known = engine.executors.heartbeat(&signer, message).await;
            known.map(|known| known.map(|cancel| HeartbeatAck { cluster_time_us: engine.clock.now_us(), cancel }))
        });
        let known = answer.await.ok_or(Refusal::Unreachable)?.map_err(|error| refused(&error))?;
        known.ok_or(Refusal::RegisterAgain)
    }

    async fn results(&self, message: Results) -> Result<ResultsAck, Refusal> {
        let owner = self.owner;
        let answer = self.node.serve(async move |parts: Arc<SimParts>| {
            let verdicts =
                parts.engine.ingestion.apply(owner, ExecutorId(message.executor_id), &message.results).await?;
            parts.ended.notify(&parts.engine);
            Ok(verdicts)
        });
        let verdicts = answer.await.ok_or(Refusal::Unreachable)?.map_err(|error: StoreError| refused(&error))?;
        Ok(ResultsAck { verdicts })
    }
}
