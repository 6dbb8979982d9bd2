//! The workers of a node: each runs one part at its period, and when it is woken.
//!
//! Those of the engine ([`EngineParts`]) and those that speak for plain executors ([`PlainParts`]) run over any store, and the
//! simulator turns them as they are here; those of the process ([`ProcessParts`]) have to do with keys, certificates and open pages, which only a real node has.

mod ended;
mod engine;
mod plain;
mod process;

pub use ended::RunEndSignal;
pub use engine::{EngineParts, EnginePeriods};
pub use plain::PlainParts;
pub use process::{ProcessParts, ProcessPeriods};

use crate::metrics::{Family, family};
use crate::store::StoreError;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// How long ended runs are gathered before they are processed.
const GATHER: Duration = Duration::from_millis(20);

/// The running workers; none ends by itself.
pub type Workers = JoinSet<anyhow::Result<()>>;

/// One worker.
#[derive(Debug, Clone, Copy)]
enum Worker {
    Heartbeat,
    Look,
    Keys,
    KeyUses,
    Certificate,
    Pregenerate,
    Load,
    LoadUrgent,
    Reap,
    Waiting,
    Outbox,
    Backfill,
    Calendars,
    /// Has runs follow changes of rules.
    Rules,
    Housekeeping,
    Statistics,
    Watch,
    /// Vouches for plain executors.
    Vouch,
    /// Asks what became of their runs.
    Inquiry,
    /// Takes in what is to be said of their runs.
    Reports,
    /// Finds plain executors that do not register themselves.
    Discover,
    /// Asks other clusters how they are.
    Clusters,
}

/// Rounds that failed, by worker.
pub static ROUNDS_FAILED: Family<22> = family!(Worker {
    Heartbeat "heartbeat",
    Look "look",
    Keys "keys",
    KeyUses "key_uses",
    Certificate "certificate",
    Pregenerate "pregenerate",
    Load "load",
    LoadUrgent "load_urgent",
    Reap "reap",
    Waiting "waiting",
    Outbox "outbox",
    Backfill "backfill",
    Calendars "calendars",
    Rules "rules",
    Housekeeping "housekeeping",
    Statistics "statistics",
    Watch "watch",
    Vouch "vouch",
    Inquiry "inquiry",
    Reports "reports",
    Discover "discover",
    Clusters "clusters",
});

/// What a round may end in.
enum Fault {
    /// The next round tries again.
    Store(StoreError),
    /// The node must stop.
    Fatal(anyhow::Error),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

type Round = Result<(), Fault>;

/// A worker, ready to be turned.
pub struct Work {
    worker: Worker,
    period: Duration,
    wake: Arc<Notify>,
    round: Box<dyn Fn() -> BoxFuture<'static, Round> + Send + Sync>,
}

impl Work {
    /// `round` over `parts`, at `period` and when `wake` is told.
    fn new<P, F>(worker: Worker, period: Duration, wake: Arc<Notify>, parts: &Arc<P>, round: fn(Arc<P>) -> F) -> Self
    where
        P: Send + Sync + 'static,
        F: Future<Output = Round> + Send + 'static,
    {
        let parts = Arc::clone(parts);
        Self { worker, period, wake, round: Box::new(move || Box::pin(round(Arc::clone(&parts)))) }
    }

    /// Turns round until `stop` is cancelled. A store error is logged when it begins and when it is over; the next round
    /// tries again.
    ///
    /// # Errors
    /// What makes it impossible for this node to go on.
    pub async fn turn(self, stop: CancellationToken) -> anyhow::Result<()> {
        let worker = self.worker;
        let mut interval = tokio::time::interval(self.period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed_rounds = 0u32;
        loop {
            tokio::select! {
                // In order, and not by chance: a simulation can be repeated.
                biased;
                () = stop.cancelled() => return Ok(()),
                _ = interval.tick() => {}
                () = self.wake.notified() => {}
            }
            if matches!(worker, Worker::Outbox | Worker::Waiting | Worker::Backfill) {
                // Results come in many batches a second; one round serves several.
                tokio::time::sleep(GATHER).await;
            }
            match (self.round)().await {
                Ok(()) => {
                    if failed_rounds > 0 {
                        tracing::info!(?worker, failed_rounds, "worker works again");
                    }
                    failed_rounds = 0;
                }
                Err(Fault::Fatal(error)) => return Err(error),
                Err(Fault::Store(error)) => {
                    if failed_rounds == 0 || !error.is_temporary() {
                        tracing::error!(?worker, %error, "worker failed; trying again");
                    }
                    failed_rounds += 1;
                    ROUNDS_FAILED.add(worker as usize, 1);
                }
            }
        }
    }
}
