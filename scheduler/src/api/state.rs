//! Shared state of the handlers.

use super::executors_door::ExecutorsDoor;
use super::forecasts::Forecasts;
use super::short_cache::ShortCache;
use super::wait_slots::WaitSlots;
use super::xxljob::PlainDoor;
use crate::auth::{AddressRule, Authenticator, KeyRing, Provider, Throttle};
use crate::clusters::{ClusterFigures, Clusters};
use crate::definitions::TaskDefinitions;
use crate::discovery::Discovery;
use crate::dispatch::Tails;
use crate::domain::AppId;
use crate::engine::Engine;
use crate::live::Streams;
use crate::store::SqlStore;
use crate::workers::RunEndSignal;
use ipnet::IpNet;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Rate limits of callers.
pub struct Rates {
    /// By address, before the caller is known.
    pub addresses: Throttle,
    /// By user or token.
    pub callers: Throttle,
}

/// The last database answers for endpoints that need no login, or that show the same to everyone.
#[derive(Default)]
pub struct CachedAnswers {
    /// Whether it answers.
    pub answers: ShortCache<bool>,
    /// The watermark of writing ahead, epoch ms; `None` when it did not answer.
    pub watermark: ShortCache<Option<i64>>,
    /// Names (tenant, app) by the app's id; `None` when it did not answer.
    pub apps: ShortCache<Option<HashMap<AppId, (String, String)>>>,
    /// This cluster at a glance; `None` when the database did not answer.
    pub own_figures: ShortCache<Option<ClusterFigures>>,
}

/// Shared state of the handlers.
pub struct Api {
    /// The engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// The database, for what does not go through the engine.
    pub store: SqlStore,
    /// Changes definitions.
    pub definitions: Arc<TaskDefinitions>,
    /// Wakes the outbox worker after runs end, and the worker that releases blocked runs.
    pub ended: Arc<RunEndSignal>,
    /// Answers executors.
    pub door: ExecutorsDoor<SqlStore>,
    /// Answers plain executors.
    pub plain_door: PlainDoor<SqlStore>,
    /// Finds those that do not register themselves.
    pub discovery: Arc<Discovery>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// Other clusters.
    pub clusters: Arc<Clusters>,
    /// What this cluster is called; empty: nothing.
    pub cluster_name: String,
    /// Executors' keys.
    pub keys: Arc<KeyRing>,
    /// Proxies that are trusted to report where requests come from.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether executors must show a client certificate.
    pub executors_show_certificates: bool,
    /// Identifies callers.
    pub authenticator: Authenticator,
    /// Provider of single sign-on.
    pub provider: Option<Provider>,
    /// Rate limits of callers.
    pub rates: Rates,
    /// Whether cookies are for TLS only.
    pub secure_cookie: bool,
    /// Open streams of log output.
    pub tails: Arc<Tails>,
    /// Open streams of the change feed.
    pub streams: Arc<Streams>,
    /// This node's name.
    pub node_name: String,
    /// Wakes the urgent loader.
    pub wake: Arc<Notify>,
    /// Slots for requests that wait for a run to end.
    pub waiting: WaitSlots,
    /// Cancelled when this node stops.
    pub stop: CancellationToken,
    /// Cached database answers for probes and scrapes.
    pub cached: CachedAnswers,
    /// Cached forecasts of the next 24 hours.
    pub forecasts: Forecasts,
    /// Whether `/metrics` answers without a token.
    pub metrics_public: bool,
    /// How far ahead task logs are written, ms.
    pub ahead_ms: i64,
    /// How long task logs are kept unless their tenant sets its own retention, ms.
    pub retain_ms: i64,
    /// Time zone of tasks without one.
    pub default_zone: chrono_tz::Tz,
    /// Settings to show, without secrets.
    pub settings: Vec<(String, String)>,
}
