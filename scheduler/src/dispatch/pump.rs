//! From the queue to the dispatcher: what is due within the lead leaves in a bounded number of batches at a time. The bound
//! is on the work in the database; how many runs are being sent is the queue's to bound, for each tenant by itself.
//!
//! [`PumpCore`] is the loop, whoever turns it: [`Pump`] on a thread of its own, which sleeps until the next run is due and
//! wakes for an earlier arrival; the simulator as a task, on virtual time.

use super::Dispatcher;
use crate::cluster::Clock;
use crate::queue::{Batch, RunQueue};
use crate::store::{ClusterStore, DispatchStore, OutcomeStore, PermitStore, PlanStore, RuleStore};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// Batches between the queue and their mark at a time.
const BATCHES_MAX: usize = 16;

/// Runs in one batch, where executors are few.
const BATCH_RUNS: usize = 500;

/// Runs in one batch for each executor: a message costs both sides as much as dozens of runs in it, and a batch that is dealt
/// out to more executors than it has runs is a message for each.
const BATCH_RUNS_EACH: usize = 5;

/// Runs in one batch at most: one statement marks them.
const BATCH_RUNS_MAX: usize = 5_000;

/// Distances of the pump, ms.
#[derive(Debug, Clone, Copy)]
pub struct PumpSettings {
    /// How long before its due time a run is dispatched.
    pub lead_ms: i64,
}

/// The pump without the thread that turns it.
pub struct PumpCore<S: ?Sized> {
    dispatcher: Arc<Dispatcher<S>>,
    queue: Arc<RunQueue>,
    clock: Arc<dyn Clock>,
    settings: PumpSettings,
    permits: Arc<Semaphore>,
    batches: TaskTracker,
}

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore + 'static> PumpCore<S> {
    /// Over the node's parts.
    pub fn new(
        dispatcher: Arc<Dispatcher<S>>,
        queue: Arc<RunQueue>,
        clock: Arc<dyn Clock>,
        settings: PumpSettings,
    ) -> Self {
        let (permits, batches) = (Arc::new(Semaphore::new(BATCHES_MAX)), TaskTracker::new());
        Self { dispatcher, queue, clock, settings, permits, batches }
    }

    /// Turns as a task: hands each batch to `spawn`, until the queue is closed.
    pub async fn run(&self, spawn: impl Fn(BoxFuture<'static, ()>)) {
        self.turn(move || self.queue.ready(move || self.until(), self.batch_runs()), spawn).await;
    }

    /// Turns on a thread of its own, which sleeps between two batches.
    fn block(&self, runtime: &Handle) {
        let next = || ready(self.queue.wait(|| self.until(), self.batch_runs()));
        runtime.block_on(self.turn(next, |batch| drop(runtime.spawn(batch))));
    }

    async fn turn<F>(&self, next: impl Fn() -> F, spawn: impl Fn(BoxFuture<'static, ()>))
    where
        F: Future<Output = Option<Batch>>,
    {
        // First the permit, then the runs: what is most urgent is chosen as late as can be.
        // Fails only when the semaphore is closed, which never happens.
        while let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await {
            let Some(batch) = next().await else { break };
            let dispatched = dispatch(Arc::clone(&self.dispatcher), batch, permit);
            spawn(Box::pin(self.batches.track_future(dispatched)));
        }
    }

    fn batch_runs(&self) -> usize {
        batch_runs(self.dispatcher.registry.len())
    }

    /// What is due by then may leave, ms.
    fn until(&self) -> i64 {
        self.clock.now_ms() + self.settings.lead_ms
    }

    /// Takes no more runs and waits until every batch on its way has arrived; `turned` completes when the loop has ended. The
    /// queue keeps what was not taken.
    pub async fn stop(&self, turned: impl Future<Output = ()>) {
        self.queue.close();
        turned.await;
        self.batches.close();
        self.batches.wait().await;
    }
}

/// How many runs may leave together.
fn batch_runs(executors: usize) -> usize {
    executors.saturating_mul(BATCH_RUNS_EACH).clamp(BATCH_RUNS, BATCH_RUNS_MAX)
}

async fn dispatch<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore>(
    dispatcher: Arc<Dispatcher<S>>,
    batch: Batch,
    permit: OwnedSemaphorePermit,
) {
    let count = batch.runs.len();
    if AssertUnwindSafe(dispatcher.dispatch_batch(batch, permit)).catch_unwind().await.is_err() {
        // The loader finds their rows again: overdue and still queued.
        tracing::error!(runs = count, "the dispatcher panicked while processing a batch");
    }
}

/// A running dispatcher thread.
pub struct Pump<S: ?Sized> {
    core: Arc<PumpCore<S>>,
    thread: std::thread::JoinHandle<()>,
}

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore + 'static> Pump<S> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(core: PumpCore<S>) -> std::io::Result<Self> {
        let (runtime, core) = (Handle::current(), Arc::new(core));
        let turned = Arc::clone(&core);
        let thread = std::thread::Builder::new().name("dispatcher".to_owned()).spawn(move || turned.block(&runtime))?;
        Ok(Self { core, thread })
    }

    /// Whether the thread has ended (it only does when it is stopped, or by a fault).
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops it as [`PumpCore::stop`] does.
    pub async fn stop(self) {
        let Self { core, thread } = self;
        core.stop(async {
            if !matches!(tokio::task::spawn_blocking(move || thread.join()).await, Ok(Ok(()))) {
                tracing::error!("the dispatcher thread panicked");
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_several_runs_for_each_of_many_executors() {
        assert_eq!([0, 1, 100].map(batch_runs), [500; 3]);
        assert_eq!([101, 1_000, usize::MAX].map(batch_runs), [505, 5_000, 5_000]);
    }
}
