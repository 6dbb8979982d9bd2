//! The parts of a node, put together over any store, clock and transport. Production passes real
//! ones and [`crate::node`] runs the parts; the simulator passes models and runs the parts itself.

use crate::cluster::{Clock, Executors, ExecutorsParts, LoadChange, LoadWatch, Membership, Registry, RuleBook};
use crate::dispatch::{
    Canceller, DispatchParts, DispatchSettings, Dispatcher, EndedRuns, OutputReader, TaskCache, Transport,
};
use crate::domain::IdSource;
use crate::domain::silence::{LongestSilence, Silence};
use crate::housekeeping::{Aggregator, Housekeeper, HousekeepingSettings, StatisticsSettings};
use crate::outcome::{OutboxWorker, Reaper, ReaperParts, ReaperSettings, ResultIngestion};
use crate::pregenerate::{Backfiller, PregenerateSettings, Pregenerator};
use crate::queue::{Loader, LoaderParts, LoaderSettings, MissedRuns, RunQueue};
use crate::store::{Beat, ClusterStore, NodeInfo, Result, Store};
use std::sync::Arc;

/// Intervals and bounds of the engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineSettings {
    /// Nodes silent for longer are offline, ms.
    pub offline_after_ms: i64,
    /// After a longer time without any node an operator decides about the past, ms; 0 for never.
    pub hold_past_after_ms: i64,
    /// Runs in memory at most.
    pub queue_capacity: usize,
    /// Writing ahead.
    pub pregenerate: PregenerateSettings,
    /// Claiming.
    pub loader: LoaderSettings,
    /// Dispatching over.
    pub dispatch: DispatchSettings,
    /// Lost runs.
    pub reaper: ReaperSettings,
    /// Retention.
    pub housekeeping: HousekeepingSettings,
    /// Statistics.
    pub statistics: StatisticsSettings,
}

impl EngineSettings {
    async fn join(&self, store: Arc<dyn ClusterStore>, clock: Arc<dyn Clock>, info: &NodeInfo) -> Result<Membership> {
        let longest_silence = LongestSilence { ms: self.hold_past_after_ms, lead_ms: self.loader.lead_ms };
        let info = NodeInfo { longest_silence, ..info.clone() };
        Membership::join(store, clock, &info, self.offline_after_ms).await
    }
}

/// One node's engine.
pub struct Engine<S: Store + ?Sized> {
    /// The database.
    pub store: Arc<S>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// This node among others.
    pub membership: Arc<Membership>,
    /// Online executors.
    pub registry: Arc<Registry>,
    /// Bounds and windows.
    pub rules: Arc<RuleBook>,
    /// Messages of executors.
    pub executors: Executors,
    /// Claimed runs.
    pub queue: Arc<RunQueue>,
    /// Whether more is due than is carried.
    pub watch: Arc<LoadWatch>,
    /// Fills the queue.
    pub loader: Loader<S>,
    /// Writes ahead.
    pub pregenerator: Pregenerator<S>,
    /// Writes the runs of backfills.
    pub backfiller: Backfiller<S>,
    /// Dispatches.
    pub dispatcher: Arc<Dispatcher<S>>,
    /// Revokes dispatched runs.
    pub canceller: Arc<Canceller<S>>,
    /// Reads log output of runs.
    pub output: Arc<OutputReader<S>>,
    /// Takes results in.
    pub ingestion: ResultIngestion<S>,
    /// Writes the consequences of ended runs.
    pub outbox_worker: OutboxWorker<S>,
    /// Finds lost runs.
    pub reaper: Reaper<S>,
    /// Deletes old logs.
    pub housekeeper: Housekeeper<S>,
    /// Counts what happened.
    pub aggregator: Aggregator<S>,
    /// Names new rows.
    pub ids: Arc<IdSource>,
    lead_ms: i64,
}

impl<S: Store + 'static> Engine<S> {
    /// Joins the cluster and puts the parts together.
    pub async fn join(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
        info: &NodeInfo,
        settings: EngineSettings,
    ) -> Result<Self> {
        let membership = Arc::new(settings.join(store.clone(), clock.clone(), info).await?);
        let ids = Arc::new(IdSource::after(membership.id(), membership.ids_after()));
        let registry = Arc::new(Registry::default());
        let queue = Arc::new(RunQueue::new(settings.queue_capacity));
        let tasks = Arc::new(TaskCache::new(store.clone()));
        let ended = Arc::new(EndedRuns::default());
        let rules = Arc::new(RuleBook::new(settings.offline_after_ms));
        rules.refresh(&*store, clock.now_ms()).await?;
        let (told, reach) = (ended.clone(), transport.clone());
        let canceller = Arc::new(Canceller::new(store.clone(), clock.clone(), registry.clone(), reach, told));
        let dispatcher = Dispatcher::new(
            DispatchParts {
                store: store.clone(),
                clock: clock.clone(),
                membership: membership.clone(),
                registry: registry.clone(),
                rules: rules.clone(),
                transport: transport.clone(),
                canceller: canceller.clone(),
                queue: queue.clone(),
                ids: ids.clone(),
                tasks: tasks.clone(),
                ended: ended.clone(),
            },
            settings.dispatch,
        );
        let watch = Arc::new(LoadWatch::new(settings.pregenerate.ahead_ms));
        let misfire_after_ms = settings.dispatch.misfire_after_ms;
        let missed = MissedRuns::new(store.clone(), membership.id(), clock.clone(), rules.clone(), misfire_after_ms);
        let output = OutputReader::new(store.clone(), registry.clone(), transport.clone());
        let reaper = Reaper::new(
            ReaperParts {
                store: store.clone(),
                clock: clock.clone(),
                membership: membership.clone(),
                registry: registry.clone(),
                rules: rules.clone(),
                transport,
                canceller: canceller.clone(),
                tasks: tasks.clone(),
                ended: ended.clone(),
            },
            settings.reaper,
        );
        Ok(Self {
            executors: Executors::new(
                ExecutorsParts {
                    store: store.clone(),
                    rule_store: store.clone(),
                    clock: clock.clone(),
                    registry: registry.clone(),
                    rules: rules.clone(),
                    ids: ids.clone(),
                },
                settings.offline_after_ms,
                settings.loader.lead_ms,
            ),
            loader: Loader::new(
                LoaderParts {
                    store: store.clone(),
                    clock: clock.clone(),
                    membership: membership.clone(),
                    rules: rules.clone(),
                    queue: queue.clone(),
                    watch: watch.clone(),
                },
                missed,
                settings.loader,
            ),
            pregenerator: Pregenerator::new(
                store.clone(),
                clock.clone(),
                membership.clone(),
                ids.clone(),
                watch.clone(),
                rules.clone(),
                settings.pregenerate,
            ),
            dispatcher: Arc::new(dispatcher),
            canceller,
            output: Arc::new(output),
            backfiller: Backfiller::new(store.clone(), membership.id(), clock.clone(), ids.clone(), rules.clone()),
            rules,
            outbox_worker: OutboxWorker::new(store.clone(), clock.clone(), ids.clone(), ended.clone(), info.actor()),
            ingestion: ResultIngestion::new(store.clone(), clock.clone(), ids.clone(), tasks, ended),
            reaper,
            housekeeper: Housekeeper::new(store.clone(), clock.clone(), membership.clone(), settings.housekeeping),
            aggregator: Aggregator::new(store.clone(), clock.clone(), membership.clone(), settings.statistics),
            store,
            clock,
            membership,
            registry,
            queue,
            watch,
            ids,
            lead_ms: settings.loader.lead_ms,
        })
    }

    /// Renews this node's heartbeat. A node that finds the database restored from an older backup says so for all nodes.
    pub async fn beat(&self) -> Result<Beat> {
        let last = self.membership.last_beat();
        let beat = self.membership.heartbeat(self.queue.len() as u64).await?;
        if let Beat::Restored { from } = beat {
            let until = self.clock.now_ms();
            // It may have dispatched since, unless it stood still.
            let dispatched_until = until.min(last + self.membership.offline_after_ms());
            let silence = Silence {
                from,
                until,
                lived_until: dispatched_until + self.lead_ms,
                found_by: format!("node {}", self.membership.id()),
                decision: None,
            };
            self.loader.forget();
            self.store.witness(&silence).await?;
        }
        Ok(beat)
    }

    /// Reads the database's clock if nobody has of late, as after an outage.
    pub async fn refresh_clock(&self) -> Result<()> {
        self.clock.refresh(&*self.store).await
    }

    /// Reads which nodes and executors are alive; returns whether the nodes changed.
    pub async fn look(&self) -> Result<bool> {
        self.look_at_load();
        let changed = self.membership.look().await?;
        let seen = self.registry.read(&*self.store, self.executors_alive_since(), self.clock.now_ms()).await?;
        // Before any of them gets a run: what one has said that shows a restore is in the rules by now.
        self.rules.refresh(&*self.store, self.clock.now_ms()).await?;
        self.registry.take(seen);
        Ok(changed)
    }

    /// Has runs follow changes of rules; returns how many did.
    pub async fn follow_rules(&self) -> Result<u64> {
        let (now, here) = (self.clock.now_ms(), self.clock.local_us().div_euclid(1_000));
        self.rules.follow(&*self.store, now, here).await
    }

    /// Says when more is due than is carried, and when that is over.
    fn look_at_load(&self) {
        let now = self.clock.now_ms();
        self.watch.dispatching(self.queue.ready_for_ms(now + self.lead_ms));
        match self.watch.look(now) {
            Some(LoadChange::Begins(overload)) => tracing::warn!(
                claimed_late_ms = overload.worst.claiming_ms,
                dispatched_late_ms = overload.worst.dispatching_ms,
                written_ahead_ms = overload.worst.written_ahead_ms,
                in_memory = self.queue.len(),
                "overloaded: more is due than this node and its database carry. Runs start late; what is missed ends by its \
                 task's misfire strategy. Give the database more, or fire less (docs/operating.md, Overload)"
            ),
            Some(LoadChange::Ends(overload)) => tracing::info!(
                seconds = (now - overload.since) / 1_000,
                claimed_late_ms = overload.worst.claiming_ms,
                dispatched_late_ms = overload.worst.dispatching_ms,
                written_ahead_ms = overload.worst.written_ahead_ms,
                "no longer overloaded; the figures are the worst of that time"
            ),
            None => {}
        }
    }

    /// An executor with a heartbeat at or after this instant is online, ms.
    pub fn executors_alive_since(&self) -> i64 {
        self.membership.view().alive_since
    }
}
