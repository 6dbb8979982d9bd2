//! A node as a process: runs the engine's parts at their periods, serves HTTP, supervises both, and
//! leaves without losing or delaying anything.

mod core;
mod plain;

pub use core::NodeCore;
pub use plain::{PlainWays, PlainWire};

use crate::api;
use crate::auth::{AddressRule, Authenticator, FIRST_USER, KeyRing, Provider, SessionTimes, Throttle, check_password};
use crate::cluster::{Clock, ClusterClock, await_free_name};
use crate::clusters::Clusters;
use crate::dispatch::{DispatchSettings, HttpCarrier, HttpTransport, Pump, Tails, Wires};
use crate::domain::audit::Actor;
use crate::domain::statistics::DAY_MS;
use crate::engine::{Engine, EngineSettings};
use crate::housekeeping::{HousekeepingSettings, StatisticsSettings};
use crate::live::{Streams, Watcher};
use crate::outcome::{PAGE_ROWS, ReaperSettings};
use crate::pregenerate::PregenerateSettings;
use crate::queue::LoaderSettings;
use crate::settings::{Settings, host_name, ms};
use crate::store::{EncryptionKeys, NodeInfo, SqlStore};
use crate::tls::Listener;
use crate::workers::{EngineParts, EnginePeriods, PlainParts, ProcessParts, ProcessPeriods, Workers};
use crate::xxljob::{InquirySettings, Sender, SenderSettings};
use anyhow::{Context, anyhow, bail};
use carillon_protocol::ExecutorSettings;
use secrecy::ExposeSecret;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Interval between two checks whether the parts still run.
const PULSE: Duration = Duration::from_secs(1);

/// Added to the lead, ms. Cron fires fall on whole seconds; with a lead of whole seconds the
/// dispatch of one second's runs would fall on the very instant at which executors start
/// another's, and on one machine they would make each other late.
const STAGGER_MS: i64 = 350;

/// Runs a node until `shutdown` completes.
///
/// # Errors
/// A setting, the port or the database that prevents the start; a worker that failed for good.
pub async fn serve(settings: Settings, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    let Openings { tls, provider } = Openings::of(&settings)?;
    let listener = listen(&settings)?;
    let unusable = || unusable(&settings);
    let store = SqlStore::connect(&settings.database).await.with_context(unusable)?;
    prepare_schema(&store, &settings).await.with_context(unusable)?;
    let store = encrypting(store, &settings).await?;
    let keys = key_ring(&store, &settings).await?;

    let clock = Arc::new(ClusterClock::synchronised(&store).await.with_context(unusable)?);
    let addresses = AddressRule::new(&settings.executors.allowed_networks);
    let cluster_clock = clock.clone() as Arc<dyn Clock>;
    let transport = HttpTransport::new(keys.clone(), store.clone(), addresses.clone(), cluster_clock.clone())?;
    let (sender, sender_thread) = Sender::start(&SenderSettings::default(), addresses.clone(), cluster_clock.clone())
        .context("the thread that sends runs to plain executors cannot be started")?;
    let plain = PlainWire::over(PlainWays {
        door: Arc::new(sender),
        carrier: Arc::new(HttpCarrier::plain(&addresses)?),
        keys: keys.clone(),
        key_store: Arc::new(store.clone()),
        addresses: addresses.clone(),
        clock: cluster_clock.clone(),
        store: Arc::new(store.clone()),
    });
    let transport = Wires { signed: Arc::new(transport), plain: plain.stand_in.clone() };
    let info = node_info(&settings, &listener)?;
    let engine_settings = engine_settings(&settings);
    let offline_after_ms = engine_settings.offline_after_ms;
    await_free_name(&store, &info, offline_after_ms).await?;
    let core = NodeCore::join(store.clone(), clock, Arc::new(transport), &info, engine_settings);
    let core = core.await.with_context(unusable)?;
    let (parts, stop) = (core.parts.clone(), core.stop.clone());
    let engine = parts.engine.clone();
    say_joined(&engine, &info, &store);

    let authenticator = authenticator(&store, &settings);
    make_first_user(&authenticator, &engine, &settings, &info.actor()).await.with_context(unusable)?;

    let clusters = Arc::new(Clusters::new(&settings.clusters, cluster_clock)?);
    let discovery = plain.discovery(&engine, &settings.nacos)?;
    let tails = Arc::new(Tails::default());
    let streams = Arc::new(Streams::new(stop.clone()));
    let messages = executor_messages(&parts, &addresses, &settings);
    let requests_per_second = settings.executors.requests_per_second;
    let api = api::Api {
        engine: engine.clone(),
        store: store.clone(),
        definitions: parts.definitions.clone(),
        ended: parts.ended.clone(),
        door: api::ExecutorsDoor::new(messages, keys.clone(), Arc::new(store.clone()), requests_per_second),
        plain_door: plain.door(&parts),
        discovery: discovery.clone(),
        clusters: clusters.clone(),
        cluster_name: settings.cluster.name.clone(),
        addresses: addresses.clone(),
        keys: keys.clone(),
        trusted_proxies: settings.server.trusted_proxies.clone(),
        executors_show_certificates: tls.as_ref().is_some_and(|tls| tls.executors_show_certificates),
        authenticator,
        provider,
        rates: rates(settings.api.requests_per_second),
        secure_cookie: settings.auth.secure_cookie
            || settings.server.tls.is_on()
            || settings.auth.oidc.leads_back_over_tls(),
        tails: tails.clone(),
        streams: streams.clone(),
        node_name: info.name.clone(),
        wake: parts.wake.clone(),
        waiting: api::WaitSlots::default(),
        stop: stop.clone(),
        cached: api::CachedAnswers::default(),
        forecasts: api::Forecasts::default(),
        metrics_public: settings.metrics.public,
        ahead_ms: engine_settings.pregenerate.ahead_ms,
        retain_ms: engine_settings.housekeeping.retain_ms,
        default_zone: settings.schedulers.time_zone,
        settings: settings.shown.clone(),
    };
    let (tls, certificate) = tls.map(|tls| (tls.config, tls.certificate)).unzip();
    let (server, handle) = api::server(api, listener, tls)?;
    let server = tokio::spawn(server);

    let pump = Pump::start(core.pump())?;
    let watcher = Watcher::new(engine.clone(), store.clone(), streams);
    let process = ProcessParts { keys: keys.clone(), certificate, store: store.clone(), watcher, discovery, clusters };
    let plain = plain.parts(&parts, inquiry_settings(&settings));
    let mut workers = workers(&parts, &plain, &Arc::new(process), &settings, &stop);
    let failure = watch(&mut workers, &pump, &server, shutdown).await;

    let stopped = async {
        pump.stop().await;
        sender_thread.stop().await;
    };
    core.leave(&mut workers, stopped, note_key_uses(&keys, &store)).await;
    tails.close();
    handle.stop(true).await;
    store.close().await;
    tracing::info!("stopped");
    failure.map_or(Ok(()), Err)
}

/// What executors with the SDK say, taken in.
fn executor_messages(
    parts: &EngineParts<SqlStore>,
    addresses: &AddressRule,
    settings: &Settings,
) -> api::ExecutorMessages<SqlStore> {
    api::ExecutorMessages {
        engine: parts.engine.clone(),
        addresses: addresses.clone(),
        settings: executor_settings(settings),
        ended: parts.ended.clone(),
        wake: parts.wake.clone(),
    }
}

/// Begins to turn every worker.
fn workers(
    parts: &Arc<EngineParts<SqlStore>>,
    plain: &Arc<PlainParts<SqlStore>>,
    process: &Arc<ProcessParts>,
    settings: &Settings,
    stop: &CancellationToken,
) -> Workers {
    let periods = EnginePeriods::of(settings);
    let of_engine = parts.workers(&periods).into_iter().chain(plain.workers(&periods));
    let mut workers = Workers::new();
    for work in of_engine.chain(process.workers(&ProcessPeriods::of(settings))) {
        workers.spawn(work.turn(stop.clone()));
    }
    workers
}

async fn note_key_uses(keys: &KeyRing, store: &SqlStore) {
    if let Err(error) = keys.note_uses(store).await {
        tracing::warn!(%error, "the last use of keys was not noted");
    }
}

/// What the settings name and a node opens before it asks the database: what is refused here is
/// refused by `carillon config check`, too.
pub struct Openings {
    tls: Option<Listener>,
    provider: Option<Provider>,
}

impl Openings {
    /// Opens it.
    ///
    /// # Errors
    /// What cannot be used, and by which setting.
    pub fn of(settings: &Settings) -> anyhow::Result<Self> {
        let password = settings.auth.admin_password.expose_secret();
        if !password.is_empty() {
            check_password(password, FIRST_USER).map_err(|why| anyhow!("auth.admin_password: {why}"))?;
        }
        for other in &settings.clusters {
            other.token()?;
        }
        Ok(Self { tls: Listener::open(&settings.server.tls)?, provider: provider(settings)? })
    }
}

fn say_joined(engine: &Engine<SqlStore>, info: &NodeInfo, store: &SqlStore) {
    tracing::info!(
        node = engine.membership.id().0,
        name = info.name,
        address = info.address,
        database = store.backend_name(),
        "node joined"
    );
}

fn authenticator(store: &SqlStore, settings: &Settings) -> Authenticator {
    let times = SessionTimes { idle_ms: ms(settings.auth.session_idle), max_ms: ms(settings.auth.session_max) };
    Authenticator::new(store.clone(), settings.api.token.expose_secret(), times)
}

fn provider(settings: &Settings) -> anyhow::Result<Option<Provider>> {
    let settings = &settings.auth.oidc;
    settings.is_on().then(|| Provider::new(settings.clone())).transpose()
}

/// The cluster's first node makes the user that makes all others.
async fn make_first_user(
    authenticator: &Authenticator,
    engine: &Engine<SqlStore>,
    settings: &Settings,
    node: &Actor,
) -> crate::store::Result<()> {
    let now = engine.clock.now_ms();
    let new_id = || engine.ids.next(now);
    if let Some(password) =
        authenticator.first_user(settings.auth.admin_password.expose_secret(), node, &new_id, now).await?
    {
        // Not a log line: those are kept and sent elsewhere.
        println!(
            "First start: sign in as `admin` with the password {password} (shown once, to be changed at the first login)"
        );
    }
    Ok(())
}

fn rates(per_second: u32) -> api::Rates {
    let throttle = |per_second: u32| Throttle::new(5 * per_second, Duration::from_secs(1) / per_second.max(1));
    api::Rates { addresses: throttle(2 * per_second), callers: throttle(per_second) }
}

fn listen(settings: &Settings) -> anyhow::Result<TcpListener> {
    let address = (settings.server.bind, settings.server.port);
    TcpListener::bind(address).with_context(|| {
        format!(
            "cannot listen on {}:{} (server.bind, server.port); stop what listens there or choose another port",
            settings.server.bind, settings.server.port
        )
    })
}

/// How this node introduces itself to the others.
fn node_info(settings: &Settings, listener: &TcpListener) -> std::io::Result<NodeInfo> {
    let scheme = if settings.server.tls.is_on() { "https" } else { "http" };
    let (bind, port) = (settings.server.bind, listener.local_addr()?.port());
    // A node cannot be reached at the wildcard address.
    let place =
        if bind.is_unspecified() { format!("{}:{port}", host_name()) } else { SocketAddr::new(bind, port).to_string() };
    Ok(NodeInfo {
        name: settings.node_name(),
        address: format!("{scheme}://{place}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // What else there is to say is known when it joins.
        ..NodeInfo::default()
    })
}

async fn prepare_schema(store: &SqlStore, settings: &Settings) -> anyhow::Result<()> {
    if settings.database.migrate_at_start {
        let steps = store.migrate().await.context("the schema cannot be brought up to date")?;
        if steps > 0 {
            tracing::info!(steps, "schema migrated");
        }
    } else {
        let pending = store.pending().await?;
        if pending > 0 {
            bail!(
                "the schema lacks {pending} step(s); run `carillon migrate`, or set database.migrate_at_start = true"
            );
        }
    }
    Ok(store.refuse_later_schema().await?)
}

/// That the database of the settings cannot be used: what an error is put under.
pub fn unusable(settings: &Settings) -> String {
    format!("the database {} cannot be used (database.url)", settings.database.place())
}

/// The store with the keys of the settings, if they are those under which the database's secrets are encrypted.
async fn encrypting(store: SqlStore, settings: &Settings) -> anyhow::Result<SqlStore> {
    let store = store.with_encryption(encryption_keys(settings)?);
    match store.check_encryption().await.with_context(|| unusable(settings))? {
        Some(key) => tracing::info!(key, "secrets in the database are encrypted"),
        None if settings.encryption.keys.is_empty() => {
            tracing::info!("secrets in the database are stored in plain text (encryption.keys)");
        }
        None => tracing::warn!(
            "secrets in the database are still stored in plain text; when every node has the key, run `carillon encryption rotate`"
        ),
    }
    Ok(store)
}

/// The keys of `encryption.keys`.
///
/// # Errors
/// What is wrong with them.
pub fn encryption_keys(settings: &Settings) -> anyhow::Result<EncryptionKeys> {
    EncryptionKeys::parse(&settings.encryption.keys).map_err(|error| anyhow::anyhow!("configuration: {error}"))
}

/// The keys of all executors, if they are fit for where this node listens.
async fn key_ring(store: &SqlStore, settings: &Settings) -> anyhow::Result<Arc<KeyRing>> {
    let keys = Arc::new(KeyRing::default());
    keys.refresh(store).await.with_context(|| unusable(settings))?;
    let weak = keys.weak();
    if !weak.is_empty() && !settings.server.bind.is_loopback() {
        bail!(
            "executor keys {weak:?} have a short or well-known secret; replace them, or listen on loopback only (server.bind)"
        );
    }
    Ok(keys)
}

fn inquiry_settings(settings: &Settings) -> InquirySettings {
    InquirySettings {
        accept_window_ms: ms(settings.schedulers.accept_window),
        patience_ms: ms(settings.executors.plain_patience),
        lost_after_ms: ms(settings.executors.plain_lost_after),
    }
}

/// The engine's distances out of the settings.
#[must_use]
pub fn engine_settings(settings: &Settings) -> EngineSettings {
    let s = &settings.schedulers;
    let lead_ms = ms(s.before_interval) + STAGGER_MS;
    let purge_ms = ms(settings.data.purge_interval);
    EngineSettings {
        offline_after_ms: ms(s.offline_after),
        hold_past_after_ms: ms(s.hold_past_after),
        queue_capacity: s.task_queue_count,
        pregenerate: PregenerateSettings {
            ahead_ms: ms(s.task_pre_generation_max_time),
            misfire_after_ms: ms(s.misfire_after),
            lease_ttl_ms: ms(s.offline_after),
        },
        loader: LoaderSettings { lead_ms, interval_ms: ms(s.load_interval) },
        dispatch: DispatchSettings {
            lead_ms,
            accept_window_ms: ms(s.accept_window),
            misfire_after_ms: ms(s.misfire_after),
            waiting_ms: ms(s.waiting_interval),
        },
        reaper: ReaperSettings {
            accept_window_ms: ms(s.accept_window),
            offline_after_ms: ms(settings.executors.offline_after),
            abandon_after_ms: ms(settings.executors.abandon_after),
            plain_lost_after_ms: ms(settings.executors.plain_lost_after),
            // The executor's heartbeats may be lost for as long as its lease holds before the node loses its database. Executors
            // bear twice their own.
            kept_going_ms: ms(settings.executors.offline_after)
                + ms(s.offline_after.max(settings.executors.offline_after)),
            misfire_after_ms: ms(s.misfire_after),
            page_rows: PAGE_ROWS,
        },
        housekeeping: HousekeepingSettings {
            retain_ms: i64::from(settings.data.max_retain_days) * DAY_MS,
            lease_ttl_ms: purge_ms + ms(s.offline_after),
        },
        statistics: StatisticsSettings {
            logs_ms: i64::from(settings.data.max_retain_days) * DAY_MS,
            task_minutes_ms: i64::from(settings.data.statistics_task_minutes_days) * DAY_MS,
            figures_ms: i64::from(settings.data.statistics_days) * DAY_MS,
        },
    }
}

fn executor_settings(settings: &Settings) -> ExecutorSettings {
    let e = &settings.executors;
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    ExecutorSettings {
        heartbeat_interval_ms: ms(e.heartbeat_interval),
        metadata_interval_ms: ms(e.metadata_interval),
        offline_after_ms: ms(e.offline_after),
        abandon_after_ms: ms(e.abandon_after),
    }
}

/// Waits for the call to stop, or for a part to fail.
async fn watch(
    workers: &mut Workers,
    pump: &Pump<SqlStore>,
    server: &tokio::task::JoinHandle<std::io::Result<()>>,
    shutdown: impl Future<Output = ()>,
) -> Option<anyhow::Error> {
    let mut pulse = tokio::time::interval(PULSE);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => return None,
            ended = workers.join_next() => {
                return match ended {
                    Some(Ok(Err(error))) => Some(error),
                    Some(Err(error)) => Some(anyhow!("a worker panicked: {error}")),
                    _ => Some(anyhow!("a worker ended by itself")),
                };
            }
            _ = pulse.tick() => {
                if pump.is_finished() {
                    return Some(anyhow!("the dispatcher thread ended by itself"));
                }
                if server.is_finished() {
                    return Some(anyhow!("the HTTP server ended by itself"));
                }
            }
        }
    }
}
