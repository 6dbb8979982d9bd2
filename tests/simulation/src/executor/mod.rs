//! An executor's machine and the process on it, which is the SDK as it ships: its table, timer, lease, journal and
//! senders, over this machine's clock, disk and network. Its handlers write down what they really do.

mod carrier;
mod disk;
mod handlers;
mod ledger;
mod process;
mod reworded;

pub use carrier::NodeServer;
pub use disk::MemoryDisk;
pub(crate) use handlers::{handler_fate, stopping_takes};
pub use ledger::{Ack, Ledger, OfMachine, Start, Stop, Stopped, Told};
pub(crate) use process::Tasks;

use super::keys::AppKey;
use super::net::Broken;
use super::random::SeededRandom;
use super::{Dice, MachineTime, Net, SimTime, Trace, messages};
use carillon_executor::simulation::{Process as _, SimulatedExecutor, Surroundings};
use carillon_executor::{BuildError, Executor};
use carillon_protocol::exchange::{Answer, Request};
use carrier::{NodeCarrier, Servers, origin_of};
use handlers::{Work, handle};
use process::Process;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What a machine is made of.
#[derive(Debug, Clone)]
pub struct MachineParts {
    /// Time.
    pub time: Arc<SimTime>,
    /// Chance.
    pub dice: Arc<Dice>,
    /// The network.
    pub net: Arc<Net>,
    /// Where events go.
    pub trace: Arc<Trace>,
    /// Where starts and ends go.
    pub ledger: Arc<Ledger>,
    /// Handlers of every process here.
    pub handlers: Vec<String>,
    /// The app that they belong to.
    pub key: AppKey,
    /// Whether its processes are of the release before.
    pub is_older: bool,
}

/// How much a process takes.
#[derive(Debug, Clone, Copy)]
struct Room {
    capacity: usize,
    held_max: usize,
}

/// A machine. What it keeps on disk survives its processes.
pub struct SimExecutor {
    index: usize,
    address: String,
    parts: MachineParts,
    clock: Arc<MachineTime>,
    disk: MemoryDisk,
    servers: Servers,
    room: Mutex<Room>,
    /// Handlers that processes started from now on do not have.
    missing: Mutex<Vec<String>>,
    /// Whether they register with them all the same.
    says_otherwise: AtomicBool,
    process: Mutex<Option<Arc<Process>>>,
    processes: AtomicUsize,
}

impl fmt::Debug for SimExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executor {}", self.index)
    }
}

pub(crate) fn note(parts: &MachineParts, machine: usize, text: &str) {
    parts.trace.add(format!("executor {machine}: {text}"));
}

impl SimExecutor {
    /// A machine without a process. Its wall clock lags by `lag_us`, and its monotonic clock drifts.
    #[must_use]
    pub fn new(index: usize, lag_us: i64, parts: MachineParts) -> Arc<Self> {
        let clock = MachineTime::of(&format!("executor {index}"), &parts.dice, parts.time.clone(), lag_us);
        Arc::new(Self {
            index,
            address: format!("http://executor-{index}:8527"),
            clock: Arc::new(clock),
            parts,
            disk: MemoryDisk::default(),
            servers: Servers::default(),
            room: Mutex::new(Room { capacity: 100, held_max: 1_000 }),
            missing: Mutex::default(),
            says_otherwise: AtomicBool::new(false),
            process: Mutex::default(),
            processes: AtomicUsize::new(0),
        })
    }

    /// Tells it where the nodes are. They know their executors, so it does not keep them.
    pub fn connect(&self, servers: Vec<Weak<dyn NodeServer>>) {
        *self.servers.lock().unwrap() = servers;
    }

    /// Its number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its disk, to fill, corrupt or wipe it.
    pub fn disk(&self) -> &MemoryDisk {
        &self.disk
    }

    /// Its clocks, to let them drift or to set them.
    pub fn clock(&self) -> &MachineTime {
        &self.clock
    }

    fn process(&self) -> Option<Arc<Process>> {
        self.process.lock().unwrap().clone()
    }

    /// Whether a process runs here.
    pub fn is_running(&self) -> bool {
        self.process().is_some()
    }

    /// How many runs processes started from now on run and hold at a time. The rest is refused as busy.
    pub fn limit(&self, capacity: usize, held_max: usize) {
        *self.room.lock().unwrap() = Room { capacity, held_max };
    }

    /// Processes started from now on lack these handlers; `unsaid`: though they register with them.
    pub fn lack(&self, handlers: &[&str], unsaid: bool) {
        self.says_otherwise.store(unsaid, Ordering::Relaxed);
        *self.missing.lock().unwrap() = handlers.iter().map(|&name| name.to_owned()).collect();
    }

    /// Starts a process, if none runs.
    pub fn start(self: &Arc<Self>) {
        if self.process().is_some() {
            return;
        }
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let name = format!("executor-{}-{number}", self.index);
        let (parts, tasks) = (self.parts.clone(), Tasks::new(self.parts.time.clone()));
        let work = Arc::new(Work { machine: self.index, parts, tasks: tasks.clone(), process: OnceLock::new() });
        let executor = match self.build(&name, &work) {
            Ok(executor) => executor,
            // A mistake of the simulation's own.
            Err(BuildError::Invalid { setting, reason }) => panic!("{setting}: {reason}"),
            // As an operator meets it: the journal cannot be written.
            Err(error) => return self.note(format!("process {name} does not start: {error}")),
        };
        self.note(format!("process {name} starts"));
        let drain = CancellationToken::new();
        let server = executor.server();
        let process = Arc::new(Process { name, server, tasks: tasks.clone(), drain: drain.clone() });
        drop(work.process.set(Arc::downgrade(&process)));
        *self.process.lock().unwrap() = Some(process);
        let machine = self.clone();
        tasks.clone().run(Box::pin(async move {
            let ended = executor.run(drain).await;
            machine.note(format!("process ends: {ended:?}"));
            machine.parts.ledger.gone(machine.index, machine.parts.time.now_ms());
            machine.process.lock().unwrap().take_if(|process| Arc::ptr_eq(&process.tasks, &tasks));
            tasks.kill();
        }));
    }

    fn build(&self, name: &str, work: &Arc<Work>) -> Result<SimulatedExecutor, BuildError> {
        let Room { capacity, held_max } = *self.room.lock().unwrap();
        let key = &self.parts.key;
        let mut builder = Executor::builder()
            .tenant(&key.tenant)
            .app(&key.app)
            .key(key.id(), key.secret())
            .address(&self.address)
            .capacity(capacity)
            .held_max(held_max)
            .journal_dir("/journal");
        for node in 0..self.servers.lock().unwrap().len() {
            builder = builder.scheduler(origin_of(node));
        }
        let missing = self.missing.lock().unwrap().clone();
        for handler in self.parts.handlers.iter().filter(|handler| !missing.contains(handler)) {
            let work = work.clone();
            builder = builder.handler(handler.clone(), move |ctx| handle(work.clone(), ctx));
        }
        let servers = self.servers.clone();
        let pretended = if self.says_otherwise.load(Ordering::Relaxed) { missing } else { Vec::new() };
        let surroundings = Surroundings {
            time: self.clock.clone(),
            random: Arc::new(SeededRandom::new(name, self.parts.dice.clone())),
            disk: Arc::new(self.disk.clone()),
            carrier: Arc::new(NodeCarrier { machine: self.index, parts: self.parts.clone(), servers, pretended }),
            own_address: Some(true),
            host_name: format!("machine-{}", self.index),
            pid: 1,
        };
        builder.build_simulated(surroundings, work.tasks.clone())
    }

    /// Kills the process (SIGKILL): memory is gone, what was written to the disk stays.
    pub fn kill(&self) {
        let Some(process) = self.process.lock().unwrap().take() else { return };
        self.note(format!("process {} is killed", process.name));
        process.tasks.kill();
        self.parts.ledger.gone(self.index, self.parts.time.now_ms());
        self.disk.release();
    }

    /// The machine loses its power: as a kill, and what was not synced is lost; the last write is torn.
    pub fn lose_power(&self) {
        self.kill();
        self.disk.lose_power(&self.parts.dice, &format!("disk {}", self.index));
    }

    /// Asks the process to end (SIGTERM): it gives back what has not started and waits for what runs.
    pub fn drain(&self) {
        if let Some(process) = self.process() {
            self.note(format!("process {} is asked to end", process.name));
            process.drain.cancel();
        }
    }

    /// Stops the process (SIGSTOP) until then, epoch ms.
    pub fn pause(&self, until_ms: i64) {
        if let Some(process) = self.process() {
            process.tasks.freeze(until_ms);
        }
    }

    /// Whether results wait for a node.
    pub fn has_results(&self) -> bool {
        self.process().is_some_and(|process| process.server.counts().2 > 0)
    }

    /// What its process keeps of runs, by name, where there is anything.
    pub fn kept(&self) -> Vec<(&'static str, usize)> {
        let sizes = self.process().map(|process| process.server.sizes()).unwrap_or_default();
        sizes.into_iter().filter(|(_, size)| *size > 0).collect()
    }

    /// What a request to this machine comes to.
    pub(super) async fn serve(&self, request: Request) -> Result<Answer, Broken> {
        let process = self.process().ok_or(Broken::Refused)?;
        let (server, (back, answer)) = (process.server.clone(), oneshot::channel());
        let asked = request.clone();
        process.tasks.run(Box::pin(async move {
            drop(back.send(server.answer(request).await));
        }));
        let answer = answer.await.map_err(|_| Broken::Reset)?;
        for line in messages::outcomes(&asked, &answer) {
            self.note(format!("{line} by {}", process.name));
        }
        Ok(answer)
    }

    fn note(&self, text: impl AsRef<str>) {
        note(&self.parts, self.index, text.as_ref());
    }
}
