//! The workers of a node: each runs one engine part at its period.

use crate::auth::KeyRing;
use crate::cluster::ClusterClock;
use crate::definitions::TaskDefinitions;
use crate::engine::Engine;
use crate::live::Watcher;
use crate::metrics::{Family, family};
use crate::settings::Settings;
use crate::store::{Beat, SqlStore, Store, StoreError};
use crate::tls::Certificate;
use anyhow::anyhow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// How long ended runs are gathered before they are processed.
const GATHER: Duration = Duration::from_millis(20);

/// The running workers; none ends by itself.
pub type Workers = JoinSet<anyhow::Result<()>>;

/// What the workers work with.
pub struct Parts {
    /// The engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// Kept in step with the database's.
    pub clock: Arc<ClusterClock>,
    /// Kept up to date.
    pub keys: Arc<KeyRing>,
    /// The listener's, looked at now and then.
    pub certificate: Option<Arc<Certificate>>,
    /// The database.
    pub store: SqlStore,
    /// Wakes the urgent loader.
    pub wake: Arc<Notify>,
    /// Wakes the reaper.
    pub reap: Arc<Notify>,
    /// Wakes those who wait for runs to end.
    pub ended: Arc<RunEndSignal>,
    /// Pauses what fails too often.
    pub definitions: Arc<TaskDefinitions>,
    /// Tells open pages what has changed.
    pub watcher: Watcher,
}

/// Told when runs have ended.
#[derive(Debug, Default)]
pub struct RunEndSignal {
    outbox: Arc<Notify>,
    waiting: Arc<Notify>,
    backfill: Arc<Notify>,
    any: Notify,
}

impl RunEndSignal {
    /// Completes when runs have ended of which this node knows.
    pub fn any(&self) -> Notified<'_> {
        self.any.notified()
    }

    /// Runs have ended; wakes those of `engine` who wait for that.
    pub fn notify<S: Store + 'static>(&self, engine: &Engine<S>) {
        self.any.notify_waiters();
        if engine.outbox_worker.is_watching() {
            self.outbox.notify_one();
        }
        if !engine.queue.blocked.is_empty() {
            self.waiting.notify_one();
        }
        if engine.backfiller.is_open() {
            self.backfill.notify_one();
        }
    }
}

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
    Housekeeping,
    Statistics,
    Watch,
}

/// Rounds that failed, by worker.
pub static ROUNDS_FAILED: Family<15> = family!(Worker {
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
    Housekeeping "housekeeping",
    Statistics "statistics",
    Watch "watch",
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

/// Starts them all; they end when `stop` is cancelled.
pub fn start(parts: Parts, settings: &Settings, stop: &CancellationToken) -> Workers {
    let (s, e) = (&settings.schedulers, &settings.executors);
    let periods = [
        (Worker::Heartbeat, s.heartbeat_interval),
        (Worker::Look, s.look_interval),
        (Worker::Keys, e.keys_interval),
        (Worker::KeyUses, e.key_uses_interval),
        (Worker::Certificate, settings.server.tls.reload_interval),
        (Worker::Pregenerate, s.pre_generation_interval),
        (Worker::Load, s.load_interval),
        (Worker::LoadUrgent, s.look_interval),
        (Worker::Reap, s.reap_interval),
        (Worker::Waiting, s.waiting_interval),
        (Worker::Outbox, s.look_interval),
        (Worker::Backfill, s.look_interval),
        (Worker::Housekeeping, settings.data.purge_interval),
        (Worker::Statistics, settings.data.statistics_interval),
        (Worker::Watch, s.look_interval),
    ];
    let parts = Arc::new(parts);
    let mut workers = JoinSet::new();
    for (worker, period) in periods {
        workers.spawn(worker.turn(parts.clone(), period, stop.clone()));
    }
    workers
}

impl Worker {
    /// Turns round at `period`, and when it is woken. A store error is logged when it begins and
    /// when it is over; the next round tries again.
    async fn turn(self, parts: Arc<Parts>, period: Duration, stop: CancellationToken) -> anyhow::Result<()> {
        let wake = match self {
            Self::LoadUrgent => parts.wake.clone(),
            Self::Reap => parts.reap.clone(),
            Self::Waiting => parts.ended.waiting.clone(),
            Self::Outbox => parts.ended.outbox.clone(),
            Self::Backfill => parts.ended.backfill.clone(),
            Self::Watch => parts.watcher.wake(),
            _ => Arc::default(),
        };
        let mut interval = tokio::time::interval(period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed_rounds = 0u32;
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                _ = interval.tick() => {}
                () = wake.notified() => {}
            }
            if matches!(self, Self::Outbox | Self::Waiting | Self::Backfill) {
                // Results come in many batches a second; one round serves several.
                tokio::time::sleep(GATHER).await;
            }
            match self.round(&parts).await {
                Ok(()) => {
                    if failed_rounds > 0 {
                        tracing::info!(worker = ?self, failed_rounds, "worker works again");
                    }
                    failed_rounds = 0;
                }
                Err(Fault::Fatal(error)) => return Err(error),
                Err(Fault::Store(error)) => {
                    if failed_rounds == 0 || !error.is_temporary() {
                        tracing::error!(worker = ?self, %error, "worker failed; trying again");
                    }
                    failed_rounds += 1;
                    ROUNDS_FAILED.add(self as usize, 1);
                }
            }
        }
    }

    async fn round(self, parts: &Parts) -> Result<(), Fault> {
        let engine = &parts.engine;
        match self {
            Self::Heartbeat => match engine.beat().await? {
                Beat::Renewed => {}
                Beat::Replaced => {
                    return Err(Fault::Fatal(anyhow!(
                        "another process has taken this node's name (server.name); names must be unique"
                    )));
                }
                Beat::Restored { .. } => {
                    return Err(Fault::Fatal(anyhow!(
                        "the database was restored from a backup that is older than what this node has committed; the node ends, \
                             so that it starts again without what it remembers. What was due meanwhile is held until you run \
                             `carillon cluster resume`"
                    )));
                }
                Beat::Outdated { needed } => {
                    return Err(Fault::Fatal(anyhow!(
                        "a later release has changed the schema: it needs nodes that know schema {needed}; this node steps \
                             aside, upgrade it"
                    )));
                }
            },
            Self::Look => {
                parts.clock.observe(&parts.store).await?;
                if engine.look().await? {
                    parts.reap.notify_one();
                    parts.wake.notify_one();
                }
            }
            Self::Keys => parts.keys.look(&parts.store).await?,
            Self::KeyUses => parts.keys.note_uses(&parts.store).await?,
            Self::Certificate => reload(parts).await?,
            Self::Pregenerate => {
                if engine.pregenerator.tick().await? > 0 {
                    parts.wake.notify_one();
                }
            }
            Self::Load => drop(engine.loader.load().await?),
            Self::LoadUrgent => drop(engine.loader.load_urgent().await?),
            Self::Reap => {
                if engine.reaper.tick().await? > 0 {
                    parts.wake.notify_one();
                }
            }
            Self::Waiting => engine.dispatcher.look_at_waiting().await,
            Self::Outbox => outbox(parts).await?,
            Self::Backfill => {
                if engine.pregenerator.has_lease() && engine.backfiller.tick().await? > 0 {
                    parts.wake.notify_one();
                }
            }
            Self::Housekeeping => drop(engine.housekeeper.tick().await?),
            Self::Statistics => drop(engine.aggregator.tick().await?),
            Self::Watch => parts.watcher.tick().await?,
        }
        Ok(())
    }
}

/// Looks at the files of the listener's certificate.
async fn reload(parts: &Parts) -> Result<(), Fault> {
    let Some(certificate) = parts.certificate.clone() else { return Ok(()) };
    let looked = tokio::task::spawn_blocking(move || certificate.reload()).await;
    looked.map_err(|error| Fault::Fatal(anyhow!("checking the TLS certificate panicked: {error}")))
}

/// Children start at once, a fixed delay's next run is written, what fails too often pauses.
async fn outbox(parts: &Parts) -> Result<(), StoreError> {
    let engine = &parts.engine;
    let followed = engine.outbox_worker.tick().await?;
    for task in &followed.moved {
        engine.pregenerator.write_task(*task).await?;
    }
    if followed.started > 0 || !followed.moved.is_empty() {
        parts.wake.notify_one();
    }
    parts.definitions.revoke_paused(followed.paused).await;
    Ok(())
}
