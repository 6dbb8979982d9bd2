//! An executor's machine and the process on it, which follows the protocol as the product's own
//! SDK does: holds runs until they are due, starts nothing once its lease has run out, answers
//! repetitions alike, refuses what was cancelled, keeps results until a node has taken them.

mod ledger;
mod member;
mod server;
mod table;
mod work;

pub use ledger::{Ack, Ledger, Start, Stop, Stopped};
pub use server::{NodeServer, Refusal};

use super::{Dice, Net, SimClock, SimTime, Trace};
use carillon::cluster::Clock;
use carillon::dispatch::SendError;
use carillon_protocol::{
    Cancel, CancelAck, CancelOutcome, Code, Dispatch, DispatchAck, DispatchItem, DispatchOutcome, ProbeAck, RunKey,
    RunResult,
};
use member::Lease;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use table::Table;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

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
}

/// A machine. What it keeps on disk survives its processes.
#[derive(Debug)]
pub struct SimExecutor {
    index: usize,
    address: String,
    parts: MachineParts,
    clock: SimClock,
    servers: Mutex<Vec<Arc<dyn NodeServer>>>,
    /// Results that no node has taken yet, on disk.
    journal: Mutex<Vec<RunResult>>,
    process: Mutex<Option<Arc<Process>>>,
    processes: AtomicUsize,
}

/// A process on a machine.
#[derive(Debug)]
struct Process {
    instance: String,
    executor_id: AtomicI64,
    table: Mutex<Table>,
    lease: Mutex<Lease>,
    /// Woken when there are results to send.
    results: Notify,
    /// The node that answered last.
    current: AtomicUsize,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl SimExecutor {
    /// A machine without a process. Its clock lags by `lag_us`.
    #[must_use]
    pub fn new(index: usize, lag_us: i64, parts: MachineParts) -> Arc<Self> {
        Arc::new(Self {
            index,
            address: format!("http://executor-{index}:1"),
            clock: SimClock::new(parts.time.clone(), lag_us),
            parts,
            servers: Mutex::default(),
            journal: Mutex::default(),
            process: Mutex::default(),
            processes: AtomicUsize::new(0),
        })
    }

    /// Tells it where the nodes are.
    pub fn connect(&self, servers: Vec<Arc<dyn NodeServer>>) {
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

    /// The instance of the process that listens now.
    pub fn instance(&self) -> Option<String> {
        self.process().map(|process| process.instance.clone())
    }

    fn process(&self) -> Option<Arc<Process>> {
        self.process.lock().unwrap().clone()
    }

    /// Starts a process, if none runs.
    pub fn start(self: &Arc<Self>) {
        if self.process().is_some() {
            return;
        }
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let mut table = Table::default();
        for result in self.journal.lock().unwrap().iter() {
            table.restore(RunKey(result.log, result.attempt));
        }
        let process = Arc::new(Process {
            instance: format!("executor-{}-{number}", self.index),
            executor_id: AtomicI64::new(0),
            table: Mutex::new(table),
            lease: Mutex::default(),
            results: Notify::new(),
            current: AtomicUsize::new(0),
            tasks: Mutex::default(),
        });
        self.note(format!("process {} starts", process.instance));
        *self.process.lock().unwrap() = Some(process.clone());
        process.spawn(member::run(self.clone(), process.clone()));
        process.spawn(member::watch_contact(self.clone(), process.clone()));
        process.spawn(work::send_results(self.clone(), process.clone()));
    }

    /// Kills the process: memory is gone, the journal stays.
    pub fn kill(&self) {
        let Some(process) = self.process.lock().unwrap().take() else { return };
        self.note(format!("process {} is killed", process.instance));
        for task in process.tasks.lock().unwrap().drain(..) {
            task.abort();
        }
        for key in process.table.lock().unwrap().running() {
            self.parts.ledger.stopped(key, self.parts.time.now_ms(), Stopped::Killed);
        }
    }

    /// Whether results wait for a node.
    pub fn has_results(&self) -> bool {
        !self.journal.lock().unwrap().is_empty()
    }

    /// `POST /dispatch`.
    pub(super) fn dispatch(self: &Arc<Self>, message: &Dispatch) -> Result<DispatchAck, SendError> {
        let process = self.addressee(message.executor_id)?;
        let outcomes = message.items.iter().map(|item| self.accept(&process, item)).collect();
        Ok(DispatchAck { outcomes })
    }

    fn accept(self: &Arc<Self>, process: &Arc<Process>, item: &DispatchItem) -> DispatchOutcome {
        let key = RunKey(item.log, item.attempt);
        let mut table = process.table.lock().unwrap();
        let outcome = if !self.parts.handlers.contains(&item.handler) && !table.knows(key) {
            DispatchOutcome::HandlerMissing
        } else if item.accept_until < self.clock.now_ms() && !table.knows(key) {
            DispatchOutcome::TooLate
        } else {
            table.accept(key, item)
        };
        drop(table);
        self.note(format!("log {} attempt {}: {outcome:?} by {}", key.0, key.1, process.instance));
        if outcome == DispatchOutcome::Accepted {
            process.spawn(work::run_when_due(self.clone(), process.clone(), item.clone()));
        }
        outcome
    }

    /// `POST /cancel`.
    pub(super) fn cancel(self: &Arc<Self>, message: &Cancel) -> Result<CancelAck, SendError> {
        let process = self.addressee(message.executor_id)?;
        let mut table = process.table.lock().unwrap();
        let outcomes: Vec<CancelOutcome> =
            message.runs.iter().map(|key| table.cancel(*key, message.unstarted_only)).collect();
        drop(table);
        for (key, outcome) in message.runs.iter().zip(&outcomes) {
            self.note(format!("log {} attempt {}: cancel met {outcome:?}", key.0, key.1));
            if *outcome == CancelOutcome::Stopping {
                process.spawn(work::stop(self.clone(), process.clone(), *key));
            }
        }
        Ok(CancelAck { outcomes })
    }

    /// `POST /probe`.
    pub(super) fn busy_with(&self, executor_id: i64, tasks: &[i64]) -> Result<ProbeAck, SendError> {
        let process = self.addressee(executor_id)?;
        let table = process.table.lock().unwrap();
        let busy = tasks.iter().copied().filter(|task| table.runs_task(*task)).collect();
        Ok(ProbeAck { held: 0, running: table.running().len(), capacity: 1_000, busy })
    }

    fn addressee(&self, executor_id: i64) -> Result<Arc<Process>, SendError> {
        let process = self.process().ok_or_else(|| SendError::NotDelivered("no process listens".to_owned()))?;
        if process.executor_id.load(Ordering::Relaxed) == executor_id {
            return Ok(process);
        }
        Err(SendError::Refused(Code::WrongExecutor, "another process".to_owned()))
    }

    fn note(&self, text: impl AsRef<str>) {
        self.parts.trace.add(format!("executor {}: {}", self.index, text.as_ref()));
    }
}

impl Process {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap();
        tasks.retain(|task| !task.is_finished());
        tasks.push(tokio::spawn(work).abort_handle());
    }
}
