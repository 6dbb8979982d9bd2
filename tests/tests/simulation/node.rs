//! A node as a process: the engine's parts turned round at their real periods, and the door that
//! executors knock at. A crash drops everything in memory and on its way.

use crate::settings::{self, Shape};
use async_trait::async_trait;
use carillon::api::{ExecutorMessages, ExecutorsDoor};
use carillon::auth::AddressRule;
use carillon::engine::Engine;
use carillon::store::{Beat, ClusterStore, NodeInfo, Result as StoreResult};
use carillon_protocol::exchange::{Answer, Request};
use carillon_tests::model::executor::NodeServer;
use carillon_tests::model::keys::AppKeys;
use carillon_tests::model::{Gate, ModelStore, SimClock, SimTransport, Trace, knock};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::MissedTickBehavior;

/// The engine of a simulated node.
pub type SimEngine = Engine<ModelStore>;

/// Runs in one batch, and batches on their way at a time, as in the product's pump.
const BATCH_RUNS: usize = 500;
const BATCHES_MAX: usize = 4;

/// The dispatcher's polling interval.
const DISPATCH_LOOK: Duration = Duration::from_millis(10);

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
    /// Everyone's keys.
    pub keys: Arc<AppKeys>,
}

/// A node, running or not.
pub struct SimNode {
    parts: NodeParts,
    process: Mutex<Option<Arc<Process>>>,
}

/// A running node.
#[derive(Default)]
struct Process {
    engine: Mutex<Option<Arc<SimEngine>>>,
    /// What executors knock at.
    door: Mutex<Option<Arc<ExecutorsDoor<ModelStore>>>>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// Wakes the urgent loader.
    wake: Arc<Notify>,
    /// Wakes the reaper.
    reap: Arc<Notify>,
}

impl fmt::Debug for SimNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.parts.index)
    }
}

impl SimNode {
    /// A node that does not run yet.
    pub fn new(parts: NodeParts) -> Arc<Self> {
        Arc::new(Self { parts, process: Mutex::default() })
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<SimClock> {
        &self.parts.clock
    }

    /// Its gate.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.parts.gate
    }

    /// The database as it sees it.
    pub fn store(&self) -> &Arc<ModelStore> {
        &self.parts.store
    }

    /// Starts a process, if none runs; it joins as soon as the database lets it.
    pub fn start(self: &Arc<Self>) {
        let mut slot = self.process.lock().unwrap();
        if slot.is_some() {
            return;
        }
        let process = Arc::new(Process::default());
        *slot = Some(process.clone());
        drop(slot);
        self.note("starts");
        let node = self.clone();
        process.clone().spawn(async move { node.boot(process).await });
    }

    /// Ends the process at once: its memory and what it sends are gone.
    pub fn crash(&self) {
        let Some(process) = self.process.lock().unwrap().take() else { return };
        self.note("crashes");
        for task in process.tasks.lock().unwrap().drain(..) {
            task.abort();
        }
    }

    /// Wakes the urgent loader, as the API does after it wrote something.
    pub fn wake(&self) {
        if let Some(process) = self.process.lock().unwrap().as_ref() {
            process.wake.notify_one();
        }
    }

    /// Runs `work` inside the process, as a request to it; `None` when there is no process, or
    /// it crashed meanwhile.
    pub async fn serve<A, W>(&self, work: impl FnOnce(Arc<SimEngine>) -> W) -> Option<A>
    where
        A: Send + 'static,
        W: Future<Output = A> + Send + 'static,
    {
        let process = self.process.lock().unwrap().clone()?;
        let engine = process.engine.lock().unwrap().clone()?;
        let (gate, work) = (self.parts.gate.clone(), work(engine));
        let request = process.spawn(async move {
            gate.thawed().await;
            let answer = work.await;
            gate.thawed().await;
            answer
        });
        request.await.ok()
    }

    async fn boot(self: Arc<Self>, process: Arc<Process>) {
        let engine = loop {
            match self.join().await {
                Ok(engine) => break Arc::new(engine),
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        };
        self.note(format!("joined as {}", engine.membership.id()));
        *process.engine.lock().unwrap() = Some(engine.clone());
        *process.door.lock().unwrap() = Some(self.open_door(&process, &engine).await);
        self.start_workers(&process, &engine);
    }

    /// As `node.rs` of the product opens it.
    async fn open_door(&self, process: &Process, engine: &Arc<SimEngine>) -> Arc<ExecutorsDoor<ModelStore>> {
        let messages = ExecutorMessages {
            engine: engine.clone(),
            addresses: AddressRule::new(&[]),
            settings: settings::executors(),
            ended: Arc::default(),
            wake: process.wake.clone(),
        };
        let keys = &self.parts.keys;
        Arc::new(ExecutorsDoor::new(messages, keys.ring().await, keys.clone(), settings::REQUESTS_PER_SECOND))
    }

    async fn join(&self) -> StoreResult<SimEngine> {
        let NodeParts { index, clock, store, transport, .. } = &self.parts;
        let info = NodeInfo { name: format!("node-{index}"), ..NodeInfo::default() };
        store.now_us().await?;
        let engine =
            Engine::join(store.clone(), clock.clone(), transport.clone(), &info, settings::engine(&self.parts.shape))
                .await?;
        engine.look().await?;
        Ok(engine)
    }

    /// As `node.rs` of the product turns them round.
    fn start_workers(self: &Arc<Self>, process: &Arc<Process>, engine: &Arc<SimEngine>) {
        let wake = process.wake.clone();
        let never = || Arc::new(Notify::new());
        let (node, e) = (self.clone(), engine.clone());
        self.every(process, 3_000, never(), move || beat(node.clone(), e.clone()));
        let (p, e) = (process.clone(), engine.clone());
        self.every(process, 1_000, never(), move || look(p.clone(), e.clone()));
        let (p, e) = (process.clone(), engine.clone());
        self.every(process, 5_000, never(), move || write_ahead(p.clone(), e.clone()));
        let e = engine.clone();
        self.every(process, 5_000, never(), move || load(e.clone()));
        let e = engine.clone();
        self.every(process, 1_000, wake, move || load_urgent(e.clone()));
        let (p, e) = (process.clone(), engine.clone());
        self.every(process, 3_000, process.reap.clone(), move || reap(p.clone(), e.clone()));
        let e = engine.clone();
        self.every(process, 200, never(), move || look_at_waiting(e.clone()));
        let (p, e) = (process.clone(), engine.clone());
        self.every(process, 1_000, never(), move || outbox(p.clone(), e.clone()));
        process.spawn(self.clone().pump(process.clone(), engine.clone()));
    }

    /// Turns a worker round at its period and when it is woken; a store error waits for the next
    /// round.
    fn every<F, W>(self: &Arc<Self>, process: &Arc<Process>, period_ms: u64, wake: Arc<Notify>, round: F)
    where
        F: Fn() -> W + Send + 'static,
        W: Future<Output = StoreResult<()>> + Send,
    {
        let gate = self.parts.gate.clone();
        process.spawn(async move {
            let mut interval = tokio::time::interval(Duration::from_millis(period_ms));
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    biased;
                    _ = interval.tick() => {}
                    () = wake.notified() => {}
                }
                gate.thawed().await;
                drop(round().await);
            }
        });
    }

    /// The dispatcher's thread: what is due within the lead, a few batches at a time.
    async fn pump(self: Arc<Self>, process: Arc<Process>, engine: Arc<SimEngine>) {
        let permits = Arc::new(Semaphore::new(BATCHES_MAX));
        loop {
            self.parts.gate.thawed().await;
            let batch = engine.queue.take(engine.clock.now_ms() + self.parts.shape.lead_ms, BATCH_RUNS);
            if batch.runs.is_empty() {
                tokio::time::sleep(DISPATCH_LOOK).await;
                continue;
            }
            let permit = permits.clone().acquire_owned().await.expect("it is never closed");
            let dispatcher = engine.dispatcher.clone();
            process.spawn(async move {
                dispatcher.dispatch_batch(batch, permit).await;
            });
        }
    }

    fn note(&self, text: impl AsRef<str>) {
        self.parts.trace.add(format!("node {}: {}", self.parts.index, text.as_ref()));
    }
}

impl Process {
    fn spawn<A: Send + 'static>(&self, work: impl Future<Output = A> + Send + 'static) -> JoinHandle<A> {
        let mut tasks = self.tasks.lock().unwrap();
        tasks.retain(|task| !task.is_finished());
        let handle = tokio::spawn(work);
        tasks.push(handle.abort_handle());
        handle
    }
}

async fn beat(node: Arc<SimNode>, engine: Arc<SimEngine>) -> StoreResult<()> {
    if engine.membership.heartbeat(engine.queue.len() as u64).await? != Beat::Renewed {
        node.crash();
    }
    Ok(())
}

async fn look(process: Arc<Process>, engine: Arc<SimEngine>) -> StoreResult<()> {
    engine.store.now_us().await?;
    if engine.look().await? {
        process.reap.notify_one();
        process.wake.notify_one();
    }
    Ok(())
}

async fn write_ahead(process: Arc<Process>, engine: Arc<SimEngine>) -> StoreResult<()> {
    if engine.pregenerator.tick().await? > 0 {
        process.wake.notify_one();
    }
    Ok(())
}

async fn load(engine: Arc<SimEngine>) -> StoreResult<()> {
    engine.loader.load().await.map(drop)
}

async fn load_urgent(engine: Arc<SimEngine>) -> StoreResult<()> {
    engine.loader.load_urgent().await.map(drop)
}

async fn reap(process: Arc<Process>, engine: Arc<SimEngine>) -> StoreResult<()> {
    if engine.reaper.tick().await? > 0 {
        process.wake.notify_one();
    }
    Ok(())
}

async fn look_at_waiting(engine: Arc<SimEngine>) -> StoreResult<()> {
    engine.dispatcher.look_at_waiting().await;
    Ok(())
}

async fn outbox(process: Arc<Process>, engine: Arc<SimEngine>) -> StoreResult<()> {
    let followed = engine.outbox_worker.tick().await?;
    for task in &followed.moved {
        engine.pregenerator.write_task(*task).await?;
    }
    if followed.started > 0 || !followed.moved.is_empty() {
        process.wake.notify_one();
    }
    for paused in followed.paused {
        engine.canceller.revoke(paused.held).await?;
    }
    Ok(())
}

#[async_trait]
impl NodeServer for SimNode {
    async fn answer(&self, request: Request) -> Option<Answer> {
        let door = self.process.lock().unwrap().as_ref()?.door.lock().unwrap().clone()?;
        self.serve(async move |_| knock(&door, request).await).await
    }
}
