//! The workers of the engine.

use super::ended::RunEndSignal;
use super::{Fault, Round, Work, Worker};
use crate::definitions::TaskDefinitions;
use crate::engine::Engine;
use crate::settings::Settings;
use crate::store::{Beat, DefinitionStore, Store};
use anyhow::anyhow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// What they work with.
pub struct EngineParts<S: Store> {
    /// The engine.
    pub engine: Arc<Engine<S>>,
    /// Pauses what fails too often; has tasks follow their calendars.
    pub definitions: Arc<TaskDefinitions<S>>,
    /// Wakes the urgent loader.
    pub wake: Arc<Notify>,
    /// Wakes the reaper.
    pub reap: Arc<Notify>,
    /// Wakes those who wait for runs to end.
    pub ended: Arc<RunEndSignal>,
}

/// How often each of them looks, at least.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // each is explained in conf/application.toml
pub struct EnginePeriods {
    pub heartbeat: Duration,
    pub look: Duration,
    pub pregenerate: Duration,
    pub load: Duration,
    pub reap: Duration,
    pub waiting: Duration,
    pub housekeeping: Duration,
    pub statistics: Duration,
    pub vouch: Duration,
}

impl EnginePeriods {
    /// Out of the settings.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let s = &settings.schedulers;
        Self {
            heartbeat: s.heartbeat_interval,
            look: s.look_interval,
            pregenerate: s.pre_generation_interval,
            load: s.load_interval,
            reap: s.reap_interval,
            waiting: s.waiting_interval,
            housekeeping: settings.data.purge_interval,
            statistics: settings.data.statistics_interval,
            vouch: settings.executors.heartbeat_interval,
        }
    }
}

impl<S: Store + DefinitionStore + 'static> EngineParts<S> {
    /// Every worker of the engine.
    pub fn workers(self: &Arc<Self>, periods: &EnginePeriods) -> Vec<Work> {
        let never = Arc::default;
        let p = periods;
        vec![
            Work::new(Worker::Heartbeat, p.heartbeat, never(), self, heartbeat),
            Work::new(Worker::Look, p.look, never(), self, look),
            Work::new(Worker::Pregenerate, p.pregenerate, never(), self, pregenerate),
            Work::new(Worker::Load, p.load, never(), self, load),
            Work::new(Worker::LoadUrgent, p.look, self.wake.clone(), self, load_urgent),
            Work::new(Worker::Reap, p.reap, self.reap.clone(), self, reap),
            Work::new(Worker::Waiting, p.waiting, self.ended.waiting.clone(), self, look_at_waiting),
            Work::new(Worker::Outbox, p.look, self.ended.outbox.clone(), self, process_outbox),
            Work::new(Worker::Backfill, p.look, self.ended.backfill.clone(), self, backfill),
            Work::new(Worker::Calendars, p.pregenerate, never(), self, follow_calendars),
            Work::new(Worker::Rules, p.look, never(), self, follow_rules),
            Work::new(Worker::Housekeeping, p.housekeeping, never(), self, keep_house),
            Work::new(Worker::Statistics, p.statistics, never(), self, count),
        ]
    }
}

async fn heartbeat<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    let why = match parts.engine.beat().await? {
        Beat::Renewed => return Ok(()),
        Beat::Replaced => {
            anyhow!("another process has taken this node's name (server.name); names must be unique")
        }
        Beat::Restored { .. } => anyhow!(
            "the database was restored from a backup that is older than what this node has committed; the node ends, so that \
             it starts again without what it remembers. What was due meanwhile is held until you run `carillon cluster resume`"
        ),
        Beat::Outdated { needed } => anyhow!(
            "a later release has changed the schema: it needs nodes that know schema {needed}; this node steps aside, upgrade it"
        ),
    };
    Err(Fault::Fatal(why))
}

async fn look<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    let engine = &parts.engine;
    engine.clock.observe(&*engine.store).await?;
    if engine.look().await? {
        parts.reap.notify_one();
        parts.wake.notify_one();
    }
    Ok(())
}

async fn pregenerate<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.refresh_clock().await?;
    if parts.engine.pregenerator.tick().await? > 0 {
        parts.wake.notify_one();
    }
    Ok(())
}

async fn load<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.refresh_clock().await?;
    parts.engine.loader.load().await?;
    Ok(())
}

async fn load_urgent<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.refresh_clock().await?;
    parts.engine.loader.load_urgent().await?;
    Ok(())
}

async fn reap<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    if parts.engine.reaper.tick().await? > 0 {
        parts.wake.notify_one();
    }
    Ok(())
}

async fn look_at_waiting<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.refresh_clock().await?;
    parts.engine.dispatcher.look_at_waiting().await;
    Ok(())
}

/// Children start at once, a fixed delay's next run is written, what fails too often pauses.
async fn process_outbox<S: Store + DefinitionStore + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.refresh_clock().await?;
    let followed = parts.engine.outbox_worker.tick().await?;
    for task in &followed.moved {
        parts.engine.pregenerator.write_task(*task).await?;
    }
    if followed.started > 0 || !followed.moved.is_empty() {
        parts.wake.notify_one();
    }
    parts.definitions.revoke_paused(followed.paused).await;
    Ok(())
}

async fn backfill<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    let engine = &parts.engine;
    engine.refresh_clock().await?;
    if engine.pregenerator.has_lease() && engine.backfiller.tick().await? > 0 {
        parts.wake.notify_one();
    }
    Ok(())
}

/// What a node has left that died, or lost the database, after it had changed a calendar.
async fn follow_calendars<S: Store + DefinitionStore + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    if parts.engine.pregenerator.has_lease() {
        parts.definitions.follow_calendars().await?;
    }
    Ok(())
}

/// Runs that wait for what is no more: for the end of a window, or by another quota of fires.
async fn follow_rules<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    if parts.engine.follow_rules().await? > 0 {
        parts.wake.notify_one();
    }
    Ok(())
}

async fn keep_house<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.housekeeper.tick().await?;
    Ok(())
}

async fn count<S: Store + 'static>(parts: Arc<EngineParts<S>>) -> Round {
    parts.engine.aggregator.tick().await?;
    Ok(())
}
