//! The dispatcher's own thread: sleeps until the next run is due within the lead, wakes for an
//! earlier arrival, and starts a bounded number of batches at a time. The bound is on the work in
//! the database; how many runs are being sent is the queue's to bound, for each tenant by itself.

use super::Dispatcher;
use crate::cluster::Clock;
use crate::queue::RunQueue;
use crate::store::{DispatchStore, OutcomeStore, PermitStore, PlanStore};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// Batches between the queue and their mark at a time.
const BATCHES_MAX: usize = 16;

/// Runs in one batch.
const BATCH_RUNS: usize = 500;

/// Distances of the pump, ms.
#[derive(Debug, Clone, Copy)]
pub struct PumpSettings {
    /// How long before its due time a run is dispatched.
    pub lead_ms: i64,
}

/// A running dispatcher thread.
pub struct Pump {
    queue: Arc<RunQueue>,
    thread: std::thread::JoinHandle<()>,
    batches: TaskTracker,
}

impl Pump {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start<S: DispatchStore + PlanStore + PermitStore + OutcomeStore + ?Sized + 'static>(
        dispatcher: Arc<Dispatcher<S>>,
        queue: Arc<RunQueue>,
        clock: Arc<dyn Clock>,
        settings: PumpSettings,
    ) -> std::io::Result<Self> {
        let runtime = Handle::current();
        let batches = TaskTracker::new();
        let (tracker, source) = (batches.clone(), Arc::clone(&queue));
        let thread = std::thread::Builder::new().name("dispatcher".to_owned()).spawn(move || {
            let permits = Arc::new(Semaphore::new(BATCHES_MAX));
            let until = || clock.now_ms() + settings.lead_ms;
            // First the permit, then the runs: what is most urgent is chosen as late as can be.
            // Fails only when the semaphore is closed, which never happens.
            while let Ok(permit) = runtime.block_on(Arc::clone(&permits).acquire_owned()) {
                let Some(batch) = source.wait(until, BATCH_RUNS) else { break };
                let dispatcher = Arc::clone(&dispatcher);
                tracker.spawn_on(
                    async move {
                        let count = batch.runs.len();
                        let done = AssertUnwindSafe(dispatcher.dispatch_batch(batch, permit)).catch_unwind();
                        if done.await.is_err() {
                            // The loader finds their rows again: overdue and still queued.
                            tracing::error!(runs = count, "the dispatcher panicked while processing a batch");
                        }
                    },
                    &runtime,
                );
            }
        })?;
        Ok(Self { queue, thread, batches })
    }

    /// Whether the thread has ended (it only does when it is stopped, or by a fault).
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops taking runs and waits until every batch on its way has arrived. The queue keeps what
    /// was not taken.
    pub async fn stop(self) {
        self.queue.close();
        let thread = self.thread;
        if !matches!(tokio::task::spawn_blocking(move || thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the dispatcher thread panicked");
        }
        self.batches.close();
        self.batches.wait().await;
    }
}
