//! What the handlers work with.

use super::forecasts::Forecasts;
use super::short_cache::ShortCache;
use super::unauthenticated::UnauthenticatedLimits;
use super::wait_slots::WaitSlots;
use crate::auth::{AddressRule, Authenticator, KeyRing, Provider, Throttle, Verifier};
use crate::definitions::TaskDefinitions;
use crate::dispatch::Tails;
use crate::domain::AppId;
use crate::engine::Engine;
use crate::live::Streams;
use crate::store::SqlStore;
use crate::workers::RunEndSignal;
use carillon_protocol::ExecutorSettings;
use ipnet::IpNet;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How often each may ask.
pub struct Rates {
    /// By address, before anybody knows who it is.
    pub addresses: Throttle,
    /// By user or token.
    pub callers: Throttle,
}

/// What the database said last to those who need no login.
#[derive(Default)]
pub struct CachedAnswers {
    /// Whether it answers.
    pub answers: ShortCache<bool>,
    /// The watermark of writing ahead, epoch ms; `None` when it did not answer.
    pub watermark: ShortCache<Option<i64>>,
    /// Names (tenant, app) by the app's id; `None` when it did not answer.
    pub apps: ShortCache<Option<HashMap<AppId, (String, String)>>>,
}

/// What the handlers work with.
pub struct Api {
    /// The engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// The database, for what is not the engine's.
    pub store: SqlStore,
    /// Changes definitions.
    pub definitions: Arc<TaskDefinitions>,
    /// Wakes whoever follows up ended runs, and whoever lets waiting ones go.
    pub ended: Arc<RunEndSignal>,
    /// Checks executors' signatures.
    pub verifier: Verifier,
    /// Executors' keys.
    pub keys: Arc<KeyRing>,
    /// Requests that are not rightly signed.
    pub unauthenticated: UnauthenticatedLimits,
    /// Where executors may be.
    pub addresses: AddressRule,
    /// Proxies whose word on where requests come from counts.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether executors are heard only over connections that showed a certificate.
    pub executors_show_certificates: bool,
    /// Says who asks.
    pub authenticator: Authenticator,
    /// Who else can say it.
    pub provider: Option<Provider>,
    /// How often they may.
    pub rates: Rates,
    /// Whether cookies are for TLS only.
    pub secure_cookie: bool,
    /// Who follows what runs log.
    pub tails: Arc<Tails>,
    /// Who hears what has changed.
    pub streams: Arc<Streams>,
    /// This node's name.
    pub node_name: String,
    /// Wakes the urgent loader.
    pub wake: Arc<Notify>,
    /// What executors are told to keep to.
    pub executor_settings: ExecutorSettings,
    /// Places for requests that wait for a run to end.
    pub waiting: WaitSlots,
    /// Cancelled when this node stops.
    pub stop: CancellationToken,
    /// What probes and scrapes ask the database.
    pub cached: CachedAnswers,
    /// The coming day, as it was counted last.
    pub forecasts: Forecasts,
    /// Whether `/metrics` answers without a token.
    pub metrics_public: bool,
    /// How far ahead task logs are written, ms.
    pub ahead_ms: i64,
    /// How long task logs are kept where their tenant says nothing else, ms.
    pub retain_ms: i64,
    /// Zone of tasks that name none.
    pub default_zone: chrono_tz::Tz,
    /// Settings, as people may see them.
    pub settings: Vec<(String, String)>,
}
