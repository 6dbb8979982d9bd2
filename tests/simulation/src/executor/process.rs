//! A process on an executor's machine: its tasks stand still together, and die together.

use super::ledger::Stopped;
use crate::SimTime;
use carillon_executor::simulation::{self, SimulatedServer};
use carillon_protocol::RunStatus;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// A running process.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) server: SimulatedServer,
    pub(super) tasks: Arc<Tasks>,
    /// Asks it to end.
    pub(super) drain: CancellationToken,
}

/// The tasks of a process.
pub(crate) struct Tasks {
    time: Arc<SimTime>,
    /// Until then it stands still, epoch ms.
    frozen_until: Arc<AtomicI64>,
    is_killed: AtomicBool,
    handles: Mutex<Vec<AbortHandle>>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that gets no turn while its process stands still. Time passes for it all the same: what it waited for has
/// come when it goes on.
struct Gated {
    task: Task,
    time: Arc<SimTime>,
    frozen_until: Arc<AtomicI64>,
    thaw: Option<Pin<Box<Sleep>>>,
}

impl Tasks {
    pub(crate) fn new(time: Arc<SimTime>) -> Arc<Self> {
        let (frozen_until, is_killed) = (Arc::default(), AtomicBool::new(false));
        Arc::new(Self { time, frozen_until, is_killed, handles: Mutex::default() })
    }

    /// Stops the process (SIGSTOP) until then.
    pub(crate) fn freeze(&self, until_ms: i64) {
        self.frozen_until.store(until_ms, Ordering::Relaxed);
    }

    /// Ends all of them at once.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
        for task in self.handles.lock().unwrap().drain(..) {
            task.abort();
        }
    }

    /// How a handler ended whose future was dropped.
    pub(super) fn how_dropped(&self) -> Stopped {
        if self.is_killed.load(Ordering::Relaxed) { Stopped::Killed } else { Stopped::Ended(RunStatus::Abandoned) }
    }
}

impl simulation::Process for Tasks {
    fn run(&self, task: Task) -> AbortHandle {
        let (time, frozen_until) = (self.time.clone(), self.frozen_until.clone());
        let handle = tokio::spawn(Gated { task, time, frozen_until, thaw: None }).abort_handle();
        let mut handles = self.handles.lock().unwrap();
        if handles.len() > 64 {
            handles.retain(|task| !task.is_finished());
        }
        handles.push(handle.clone());
        handle
    }
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let left_ms = self.frozen_until.load(Ordering::Relaxed) - self.time.now_ms();
            let Ok(left_ms @ 1..) = u64::try_from(left_ms) else { break };
            let thaw = self.thaw.get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::from_millis(left_ms))));
            ready!(thaw.as_mut().poll(context));
            self.thaw = None;
        }
        self.task.as_mut().poll(context)
    }
}
