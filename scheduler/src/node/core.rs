//! A node without its doors: the engine as a member of the cluster, what works on it, and how it leaves. [`super::serve`]
//! opens the doors to it (HTTP, keys, certificates) over an SQL store; the simulator runs it over a model of everything around
//! it. So what a node does between its start and its end is written once, here and below.

use crate::cluster::Clock;
use crate::definitions::TaskDefinitions;
use crate::dispatch::{PumpCore, PumpSettings, Transport};
use crate::engine::{Engine, EngineSettings};
use crate::store::{DefinitionStore, NodeInfo, Result, Store};
use crate::workers::{EngineParts, RunEndSignal, Workers};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long returning runs may take at shutdown when the database is unavailable.
const FAREWELL_MAX: Duration = Duration::from_secs(15);

/// Between two tries to return them.
const FAREWELL_PAUSE: Duration = Duration::from_millis(500);

/// A node that has joined.
pub struct NodeCore<S: Store> {
    /// What its workers work with.
    pub parts: Arc<EngineParts<S>>,
    /// Cancelled when it stops.
    pub stop: CancellationToken,
    dispatch_lead_ms: i64,
}

impl<S: Store + DefinitionStore + Clone + 'static> NodeCore<S> {
    /// Joins the cluster, and looks who is there.
    pub async fn join(
        store: S,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
        info: &NodeInfo,
        settings: EngineSettings,
    ) -> Result<Self> {
        let engine = Arc::new(Engine::join(Arc::new(store.clone()), clock, transport, info, settings).await?);
        engine.look().await?;
        let wake = Arc::default();
        let definitions = Arc::new(TaskDefinitions::new(engine.clone(), store, Arc::clone(&wake)));
        let (reap, ended) = (Arc::default(), Arc::new(RunEndSignal::default()));
        let parts = Arc::new(EngineParts { engine, definitions, wake, reap, ended });
        Ok(Self { parts, stop: CancellationToken::new(), dispatch_lead_ms: settings.dispatch.lead_ms })
    }

    /// The pump of its queue.
    #[must_use]
    pub fn pump(&self) -> PumpCore<S> {
        let engine = &self.parts.engine;
        let settings = PumpSettings { lead_ms: self.dispatch_lead_ms };
        PumpCore::new(engine.dispatcher.clone(), engine.queue.clone(), engine.clock.clone(), settings)
    }

    /// Promise 7: takes nothing more, lets what is on its way arrive, and gives back what it holds before it leaves.
    /// `pump_stopped` stops the pump; `and_then` is for what else a process has to say to the database.
    pub async fn leave(
        &self,
        workers: &mut Workers,
        pump_stopped: impl Future<Output = ()>,
        and_then: impl Future<Output = ()>,
    ) {
        tracing::info!("stopping: no new task logs, no new claims");
        self.stop.cancel();
        while let Some(ended) = workers.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a worker panicked");
            }
        }
        pump_stopped.await;
        let farewell = async {
            self.say_farewell().await;
            and_then.await;
        };
        if tokio::time::timeout(FAREWELL_MAX, farewell).await.is_err() {
            tracing::error!(
                "gave up returning queued runs: the database does not answer; other nodes take them after the offline time-out"
            );
        }
    }

    async fn say_farewell(&self) {
        let engine = &self.parts.engine;
        let mut tries = 0;
        loop {
            match engine.loader.give_back().await {
                Ok(returned) => {
                    tracing::info!(runs = returned, "queued runs returned");
                    break;
                }
                Err(error) => {
                    tries += 1;
                    tracing::warn!(%error, tries, "returning queued runs failed; trying again");
                    tokio::time::sleep(FAREWELL_PAUSE).await;
                }
            }
        }
        for (what, done) in [
            ("release the pre-generation lease", engine.pregenerator.release().await),
            ("release the housekeeping lease", engine.housekeeper.release().await),
            ("release the lease of statistics", engine.aggregator.release().await),
            ("leave the cluster", engine.membership.leave().await),
        ] {
            if let Err(error) = done {
                tracing::warn!(%error, what, "shutdown incomplete; the other nodes notice after the offline time-out");
            }
        }
    }
}
