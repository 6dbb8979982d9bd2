//! A node as a process: what ships ([`NodeCore`], its workers and its pump) over a model of everything around it, and the door
//! that executors knock at. A crash drops everything in memory and on its way.

use crate::process::Process;
use crate::settings::{self, Shape};
use async_trait::async_trait;
use carillon::api::{ExecutorMessages, ExecutorsDoor, PlainDoor};
use carillon::auth::{AddressRule, KeyRing};
use carillon::dispatch::{PumpCore, Wires};
use carillon::node::{NodeCore, PlainWays, PlainWire};
use carillon::settings::Settings;
use carillon::store::{NodeInfo, Result as StoreResult};
use carillon::workers::{EngineParts, EnginePeriods, Workers};
use carillon_protocol::exchange::{Answer, Request};
use carillon_simulation::executor::NodeServer;
use carillon_simulation::keys::AppKeys;
use carillon_simulation::{
    Gate, Peers, SimCarrier, SimClock, SimRunDoor, SimStore, SimTransport, Trace, knock, knock_plain, plain_message,
};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// What a request to a simulated node is served with.
pub type SimParts = EngineParts<SimStore>;

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
    pub store: Arc<SimStore>,
    /// The way to executors.
    pub transport: Arc<SimTransport>,
    /// Whom its messages reach.
    pub peers: Peers,
    /// Where events go.
    pub trace: Arc<Trace>,
    /// Everyone's keys.
    pub keys: Arc<AppKeys>,
    /// The same as it has read them.
    pub ring: Arc<KeyRing>,
}

/// When one who asks for something goes away, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaves {
    /// After so long, ms.
    pub after: i64,
    /// Whether what the node does for them ends with that, wherever it is. Over HTTP/1.1 it goes on.
    pub ends_it: bool,
}

impl fmt::Display for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.ends_it { "ends" } else { "goes on" };
        write!(f, "goes away after {} ms ({what} then)", self.after)
    }
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
    core: OnceLock<NodeCore<SimStore>>,
    /// What executors knock at, from then on.
    door: OnceLock<Arc<ExecutorsDoor<SimStore>>>,
    /// What plain ones knock at.
    plain_door: OnceLock<Arc<PlainDoor<SimStore>>>,
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
        let running = Arc::new(Running {
            process,
            core: OnceLock::new(),
            door: OnceLock::new(),
            plain_door: OnceLock::new(),
            stop: Notify::new(),
        });
        *slot = Some(running.clone());
        drop(slot);
        self.note("starts");
        let node = self.clone();
        running.clone().process.spawn(async move { node.live(running).await });
    }

    /// Whether there is a process, though it may not have joined yet.
    pub fn is_running(&self) -> bool {
        self.running.lock().unwrap().is_some()
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
        self.serve_for(None, work).await
    }

    /// The same for one who (perhaps) goes away; `None` then, too.
    pub async fn serve_for<A, W>(&self, leaves: Option<Leaves>, work: impl FnOnce(Arc<SimParts>) -> W) -> Option<A>
    where
        A: Send + 'static,
        W: Future<Output = A> + Send + 'static,
    {
        let running = self.running.lock().unwrap().clone()?;
        let parts = running.core.get()?.parts.clone();
        let mut served = running.process.spawn(work(parts));
        let Some(Leaves { after, ends_it }) = leaves else { return served.await.ok() };
        let waited = tokio::time::timeout(Duration::from_millis(after as u64), &mut served).await;
        if waited.is_err() && ends_it {
            served.abort();
        }
        waited.ok()?.ok()
    }

    /// A process from its start to its end, unless it crashes.
    async fn live(self: Arc<Self>, running: Arc<Running>) {
        let plain = self.plain_wire();
        let core = loop {
            match self.join(&plain).await {
                Ok(core) => break core,
                Err(_) => tokio::time::sleep(START_PAUSE).await,
            }
        };
        self.note(format!("joined as {}", core.parts.engine.membership.id()));
        let core = running.core.get_or_init(|| core);
        let door = Arc::new(self.open_door(&core.parts).await);
        running.door.get_or_init(|| door);
        running.plain_door.get_or_init(|| Arc::new(plain.door(&core.parts)));
        let plain = plain.parts(&core.parts, settings::inquiry());
        let pump = Arc::new(core.pump());
        let pumping = running.process.spawn(turn(pump.clone(), running.clone()));
        let mut workers = Workers::new();
        for work in core.parts.workers(&PERIODS).into_iter().chain(plain.workers(&PERIODS)) {
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

    /// As `node.rs` of the product opens it.
    async fn open_door(&self, parts: &SimParts) -> ExecutorsDoor<SimStore> {
        let messages = ExecutorMessages {
            engine: parts.engine.clone(),
            addresses: AddressRule::new(&[]),
            settings: settings::executors(),
            ended: parts.ended.clone(),
            wake: parts.wake.clone(),
        };
        let keys = &self.parts.keys;
        ExecutorsDoor::new(messages, keys.ring().await, keys.clone(), settings::REQUESTS_PER_SECOND)
    }

    /// As `node.rs` of the product puts it together.
    fn plain_wire(&self) -> PlainWire<SimStore> {
        let NodeParts { clock, store, peers, trace, keys, ring, .. } = &self.parts;
        PlainWire::over(PlainWays {
            door: Arc::new(SimRunDoor { peers: peers.clone(), clock: clock.clone(), trace: trace.clone() }),
            carrier: Arc::new(SimCarrier(peers.clone())),
            keys: ring.clone(),
            key_store: keys.clone(),
            addresses: AddressRule::new(&[]),
            clock: clock.clone(),
            store: store.clone(),
        })
    }

    async fn join(&self, plain: &PlainWire<SimStore>) -> StoreResult<NodeCore<SimStore>> {
        let NodeParts { index, clock, store, transport, shape, .. } = &self.parts;
        let wires = Wires { signed: transport.clone(), plain: plain.stand_in.clone() };
        let info = NodeInfo { name: format!("node-{index}"), ..NodeInfo::default() };
        clock.begin(store.as_ref()).await?;
        let settings = settings::engine(shape);
        NodeCore::join(SimStore::clone(store), clock.clone(), Arc::new(wires), &info, settings).await
    }

    fn note(&self, text: impl AsRef<str>) {
        self.parts.trace.add(format!("node {}: {}", self.parts.index, text.as_ref()));
    }
}

/// The pump, as a task instead of a thread.
async fn turn(pump: Arc<PumpCore<SimStore>>, running: Arc<Running>) {
    pump.run(|batch| drop(running.process.spawn(batch))).await;
}

#[async_trait]
impl NodeServer for SimNode {
    async fn answer(&self, request: Request) -> Option<Answer> {
        let running = self.running.lock().unwrap().clone()?;
        if let Some(message) = plain_message(&request) {
            let door = running.plain_door.get()?.clone();
            return running.process.spawn(async move { knock_plain(&door, message, &request).await }).await.ok()?;
        }
        let door = running.door.get()?.clone();
        running.process.spawn(async move { knock(&door, request).await }).await.ok()
    }
}
