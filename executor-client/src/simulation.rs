//! An executor for the simulator: the parts that ship, over clocks, chance, files and a network that are
//! handed in. There is no thread and no socket: the timer and the recorder are tasks, and who holds the
//! executor passes requests to it.

pub use crate::carrier::{Carried, Carrier};
pub use crate::clock::TimeSource;
pub use crate::disk::{Disk, DiskFile, DiskLock};
pub use crate::surroundings::Surroundings;

use crate::assembled::{Assembled, watched};
use crate::builder::ExecutorBuilder;
use crate::journal::Journal;
use crate::pending_results::Recorder;
use crate::server::{Head, Server};
use crate::slot::start_slots;
use crate::spawn::Spawn;
use crate::sync::lock;
use crate::{BuildError, RunError};
use carillon_protocol::exchange::{Answer, Request};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Where the tasks of a process run.
pub trait Process: Send + Sync {
    /// Runs `task` until it ends or the process does.
    fn run(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> AbortHandle;
}

#[derive(Clone)]
struct Tasks(Arc<dyn Process>);

impl Spawn for Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.run(Box::pin(task))
    }
}

/// An executor in a simulation.
pub struct SimulatedExecutor {
    server: Arc<Server>,
    journal: Journal,
    tasks: Tasks,
}

/// What nodes and observers see of it.
#[derive(Clone)]
pub struct SimulatedServer(Arc<Server>);

impl ExecutorBuilder {
    /// Builds an executor within these surroundings, whose tasks run in `process`. Of the settings, the port is
    /// not bound, and no output is kept.
    ///
    /// # Errors
    /// As [`ExecutorBuilder::build`].
    pub fn build_simulated(
        self,
        surroundings: Surroundings,
        process: Arc<dyn Process>,
    ) -> Result<SimulatedExecutor, BuildError> {
        let Assembled { server, journal, .. } = self.output_bytes_max(0).build_within(surroundings)?;
        Ok(SimulatedExecutor { server, journal, tasks: Tasks(process) })
    }
}

impl SimulatedExecutor {
    /// What it looks like from outside, while it runs.
    #[must_use]
    pub fn server(&self) -> SimulatedServer {
        SimulatedServer(Arc::clone(&self.server))
    }

    /// Runs until `drain` is cancelled, then drains.
    ///
    /// # Errors
    /// When a part stops unexpectedly.
    pub async fn run(self, drain: CancellationToken) -> Result<(), RunError> {
        let Self { server, journal, tasks } = self;
        let member = Arc::clone(&server.member);
        let (ended, ends) = mpsc::unbounded_channel();
        let beside = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [timer_ended, recorder_ended] = beside.clone();

        let (timing, handlers) = (Arc::clone(&member.runs), tasks.clone());
        watched(&tasks, "timer", &ended, async move {
            let release = |due, now_us| timing.release(due, now_us, |slots| start_slots(&timing, &handlers, slots));
            timing.timer.run_as_task(&timing.clock, release).await;
            timer_ended.store(true, Ordering::Release);
            std::future::pending::<()>().await;
        });
        let (runs, pending_results) = (Arc::clone(&member.runs), Arc::clone(&member.pending_results));
        let acknowledged_at = Arc::clone(&member.acknowledged_at);
        let recorder = Recorder { journal, runs, pending_results, acknowledged_at };
        watched(&tasks, "journal", &ended, async move {
            recorder.run_as_task().await;
            recorder_ended.store(true, Ordering::Release);
            std::future::pending::<()>().await;
        });
        let have_ended = || beside.iter().all(|has| has.load(Ordering::Acquire));
        Assembled::supervise(member, &tasks, std::future::pending(), (ended, ends), drain, have_ended).await
    }
}

impl SimulatedServer {
    /// Answers a node.
    pub async fn answer(&self, request: Request) -> Answer {
        let text = |(name, value): &(&'static str, String)| {
            Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?))
        };
        let headers: HeaderMap = request.headers.iter().filter_map(text).collect();
        let head = Head { method: Request::METHOD, path: &request.path, query: "", headers: &headers };
        self.0.answer(&head, std::future::ready(Ok(request.body)), &"a node").await
    }

    /// The name of the process.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.0.member.instance
    }

    /// The id of its last registration, 0 before the first.
    #[must_use]
    pub fn executor_id(&self) -> i64 {
        self.0.member.executor_id().unwrap_or(0)
    }

    /// How much it keeps of runs whose results no node has taken, by name. What it remembers of others is bounded by time and number.
    #[must_use]
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let member = &self.0.member;
        let given_back = lock(&member.giving_back).len();
        let mut sizes = member.runs.sizes();
        sizes.extend(member.pending_results.sizes());
        sizes.push(("given back", given_back));
        sizes
    }

    /// Runs that are held, running, and ended without a node having taken their results.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let counts = self.0.member.runs.counts();
        (counts.held, counts.running, counts.unacknowledged)
    }
}
