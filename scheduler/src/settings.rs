//! The configuration of a node: `conf/application.toml` is compiled in as the defaults, a file
//! overrides it, the environment overrides both. Everything is checked once, here.

mod shown;

use crate::auth::SignOnSettings;
use crate::clusters::{self, OtherClusterSettings, OwnClusterSettings};
use crate::discovery::NacosSettings;
use crate::store::{DatabaseSettings, EncryptionKeys};
use crate::tls::TlsSettings;
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

const DEFAULTS: &str = include_str!("../../conf/application.toml");

/// Where a file is looked for when none is named.
pub const DEFAULT_FILE: &str = "conf/application.toml";

/// Shortest token that may be configured, characters.
const TOKEN_CHARS_MIN: usize = 32;

/// Bounds of the intervals at which a node polls: longer ones would make runs late, shorter ones only cost.
const LOOK_INTERVALS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(5);

/// Most networks for executors, or for proxies.
const NETWORKS_MAX: usize = 1_000;

/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Listener.
    pub server: ServerSettings,
    /// Database.
    pub database: DatabaseSettings,
    /// Workers of the scheduler.
    pub schedulers: SchedulerSettings,
    /// Intervals and limits of executors.
    pub executors: ExecutorsSettings,
    /// Where plain executors are found.
    pub nacos: NacosSettings,
    /// What this cluster is called.
    pub cluster: OwnClusterSettings,
    /// Other clusters.
    pub clusters: Vec<OtherClusterSettings>,
    /// Encryption of secrets in the database.
    pub encryption: EncryptionSettings,
    /// Retention.
    pub data: DataSettings,
    /// Management API.
    pub api: ApiSettings,
    /// Sign-in of people.
    pub auth: AuthSettings,
    /// Metrics.
    pub metrics: MetricsSettings,
    /// Log output.
    pub log: LogSettings,
    /// Every name and value, to show; for secrets only whether they are set.
    #[serde(skip)]
    pub shown: Vec<(String, String)>,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Address to listen on.
    pub bind: std::net::IpAddr,
    /// Port to listen on.
    pub port: u16,
    /// Name of this node; empty: host:port.
    pub name: String,
    /// Proxies in front of this node that are trusted to name the client (`X-Forwarded-For`).
    pub trusted_proxies: Vec<IpNet>,
    /// Certificates.
    pub tls: TlsSettings,
}

/// `[schedulers]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // each is explained in conf/application.toml
pub struct SchedulerSettings {
    #[serde(with = "humantime_serde")]
    pub before_interval: Duration,
    pub task_queue_count: usize,
    #[serde(with = "humantime_serde")]
    pub task_pre_generation_max_time: Duration,
    #[serde(with = "humantime_serde")]
    pub pre_generation_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub load_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub look_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub waiting_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub reap_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub heartbeat_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub offline_after: Duration,
    pub time_zone: chrono_tz::Tz,
    #[serde(with = "humantime_serde")]
    pub misfire_after: Duration,
    #[serde(with = "humantime_serde")]
    pub hold_past_after: Duration,
    #[serde(with = "humantime_serde")]
    pub accept_window: Duration,
}

/// `[executors]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // each is explained in conf/application.toml
pub struct ExecutorsSettings {
    #[serde(with = "humantime_serde")]
    pub heartbeat_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub metadata_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub offline_after: Duration,
    #[serde(with = "humantime_serde")]
    pub abandon_after: Duration,
    #[serde(with = "humantime_serde")]
    pub plain_lost_after: Duration,
    #[serde(with = "humantime_serde")]
    pub plain_patience: Duration,
    #[serde(with = "humantime_serde")]
    pub keys_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub key_uses_interval: Duration,
    pub requests_per_second: u32,
    pub allowed_networks: Vec<IpNet>,
}

/// `[data]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSettings {
    /// Days that ended task logs are kept.
    pub max_retain_days: u32,
    /// Days that statistics are kept.
    pub statistics_days: u32,
    /// Days that those of single tasks are kept by the minute; after that by the hour.
    pub statistics_task_minutes_days: u32,
    /// Interval between two checks for minutes to count.
    #[serde(with = "humantime_serde")]
    pub statistics_interval: Duration,
    /// Interval between two rounds of deleting.
    #[serde(with = "humantime_serde")]
    pub purge_interval: Duration,
}

/// `[encryption]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncryptionSettings {
    /// Keys, as [`EncryptionKeys::parse`] takes them; empty: none.
    pub keys: Vec<SecretString>,
}

/// `[api]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiSettings {
    /// Bearer token with every permission; empty: none.
    pub token: SecretString,
    /// Requests of one caller per second, on average.
    pub requests_per_second: u32,
}

/// `[auth]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthSettings {
    /// Initial password of `admin`; empty: generated.
    pub admin_password: SecretString,
    /// A session ends after this time without use.
    #[serde(with = "humantime_serde")]
    pub session_idle: Duration,
    /// A session ends after this time, used or not.
    #[serde(with = "humantime_serde")]
    pub session_max: Duration,
    /// Whether browsers send the cookie over TLS only.
    pub secure_cookie: bool,
    /// Single sign-on.
    pub oidc: SignOnSettings,
}

/// `[metrics]`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Whether `/metrics` answers without a token.
    pub public: bool,
}

/// `[log]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Level or filter.
    pub level: String,
    /// How lines look.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// A setting that cannot be used: which, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("configuration: {0}")]
pub struct SettingsError(String);

impl Settings {
    /// Reads `file` (or [`DEFAULT_FILE`] if it exists) over the defaults, the environment over
    /// both.
    ///
    /// # Errors
    /// An unreadable file, an unknown name, a value of the wrong kind or out of range.
    pub fn load(file: Option<&Path>) -> Result<Self, SettingsError> {
        let mut sources =
            config::Config::builder().add_source(config::File::from_str(DEFAULTS, config::FileFormat::Toml));
        let (path, required) = file.map_or((Path::new(DEFAULT_FILE), false), |file| (file, true));
        sources = sources.add_source(config::File::from(path).format(config::FileFormat::Toml).required(required));
        sources = sources.add_source(
            config::Environment::with_prefix("CARILLON")
                .prefix_separator("__")
                .separator("__")
                .try_parsing(true)
                .list_separator(",")
                .with_list_parse_key("executors.allowed_networks")
                .with_list_parse_key("server.trusted_proxies")
                .with_list_parse_key("auth.oidc.scopes")
                .with_list_parse_key("nacos.servers")
                .with_list_parse_key("encryption.keys"),
        );
        // Kept as text, even if they look like numbers.
        for name in SECRET_TEXTS {
            let variable = format!("CARILLON__{}", name.to_uppercase().replace('.', "__"));
            if let Ok(text) = std::env::var(variable) {
                sources = sources.set_override(name, text).map_err(|error| SettingsError(error.to_string()))?;
            }
        }
        let read = || {
            let config = sources.build()?;
            let shown = shown::shown(&config)?;
            Ok(Self { shown, ..config.try_deserialize()? })
        };
        let settings: Self = read().map_err(|error: config::ConfigError| {
            SettingsError(format!("{error}; conf/application.toml lists every setting and its default"))
        })?;
        settings.check()?;
        Ok(settings)
    }

    #[allow(clippy::too_many_lines)] // a list, one entry per rule
    fn check(&self) -> Result<(), SettingsError> {
        EncryptionKeys::parse(&self.encryption.keys).map_err(SettingsError)?;
        let s = &self.schedulers;
        let rules = [
            (s.before_interval <= Duration::from_mins(1), "schedulers.before_interval must be at most 60s"),
            (
                s.task_pre_generation_max_time >= s.before_interval + 3 * s.pre_generation_interval
                    && s.task_pre_generation_max_time <= Duration::from_hours(1),
                "schedulers.task_pre_generation_max_time must be at least before_interval plus three pre_generation_intervals, and at most 1h",
            ),
            (
                (1_000..=1_000_000).contains(&s.task_queue_count),
                "schedulers.task_queue_count must be between 1000 and 1000000",
            ),
            (
                s.offline_after >= 2 * s.heartbeat_interval && !s.heartbeat_interval.is_zero(),
                "schedulers.offline_after must be at least two heartbeat_intervals",
            ),
            (
                !s.pre_generation_interval.is_zero() && !s.load_interval.is_zero(),
                "schedulers.pre_generation_interval and load_interval must not be 0",
            ),
            (
                [s.look_interval, s.waiting_interval].iter().all(|interval| LOOK_INTERVALS.contains(interval)),
                "schedulers.look_interval and waiting_interval must be between 50ms and 5s",
            ),
            (
                !s.reap_interval.is_zero() && s.reap_interval <= s.offline_after,
                "schedulers.reap_interval must not be 0, and at most offline_after",
            ),
            (
                LOOK_INTERVALS.contains(&self.executors.keys_interval) && !self.executors.key_uses_interval.is_zero(),
                "executors.keys_interval must be between 50ms and 5s, executors.key_uses_interval not 0",
            ),
            (
                (Duration::from_secs(1)..=Duration::from_mins(1)).contains(&self.data.statistics_interval),
                "data.statistics_interval must be between 1s and 60s",
            ),
            (
                s.accept_window >= Duration::from_millis(500) && s.accept_window <= Duration::from_mins(1),
                "schedulers.accept_window must be between 500ms and 60s",
            ),
            (
                self.executors.offline_after >= 2 * self.executors.heartbeat_interval
                    && !self.executors.heartbeat_interval.is_zero()
                    && !self.executors.metadata_interval.is_zero(),
                "executors.offline_after must be at least two heartbeat_intervals, and no interval 0",
            ),
            (
                self.executors.abandon_after >= self.executors.offline_after,
                "executors.abandon_after must be at least executors.offline_after",
            ),
            (
                self.executors.plain_lost_after >= Duration::from_mins(1),
                "executors.plain_lost_after must be at least 1m",
            ),
            (
                (Duration::from_secs(1)..=self.executors.plain_lost_after).contains(&self.executors.plain_patience),
                "executors.plain_patience must be between 1s and executors.plain_lost_after",
            ),
            (
                (1..=20_000).contains(&self.executors.requests_per_second),
                "executors.requests_per_second must be between 1 and 20000",
            ),
            (
                (1..=NETWORKS_MAX).contains(&self.executors.allowed_networks.len()),
                "executors.allowed_networks must name 1 to 1000 networks of executors",
            ),
            (
                self.server.trusted_proxies.len() <= NETWORKS_MAX
                    && self.server.trusted_proxies.iter().all(|network| network.prefix_len() > 0),
                "server.trusted_proxies must name at most 1000 networks, and not all addresses",
            ),
            (
                (1..=3_650).contains(&self.data.max_retain_days) && !self.data.purge_interval.is_zero(),
                "data.max_retain_days must be between 1 and 3650, data.purge_interval not 0",
            ),
            (
                self.api.token.expose_secret().is_empty()
                    || self.api.token.expose_secret().chars().count() >= TOKEN_CHARS_MIN,
                "api.token must have at least 32 characters, or be empty",
            ),
            (
                (1..=100_000).contains(&self.api.requests_per_second),
                "api.requests_per_second must be between 1 and 100000",
            ),
            (
                self.auth.session_idle >= Duration::from_mins(5) && self.auth.session_max >= self.auth.session_idle,
                "auth.session_idle must be at least 5m, and auth.session_max at least that",
            ),
            (
                (1..=3_650).contains(&self.data.statistics_days)
                    && (1..=self.data.statistics_days).contains(&self.data.statistics_task_minutes_days),
                "data.statistics_days must be between 1 and 3650, data.statistics_task_minutes_days at least 1 and not more",
            ),
            (
                ["sqlite:", "mysql:", "mariadb:", "postgres:", "postgresql:"]
                    .iter()
                    .any(|kind| self.database.url.starts_with(kind)),
                "database.url must begin with sqlite://, mysql:// or postgres://",
            ),
            (
                self.database.is_url(),
                "database.url is no URL: write special characters of its password as %23 for # and so on",
            ),
            (
                (2..=1_000).contains(&self.database.max_connections),
                "database.max_connections must be between 2 and 1000",
            ),
        ];
        let broken = rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule);
        match broken
            .or_else(|| self.server.tls.contradiction())
            .or_else(|| self.auth.oidc.contradiction())
            .or_else(|| self.nacos.contradiction())
            .or_else(|| clusters::contradiction(&self.cluster, &self.clusters))
        {
            Some(rule) => Err(SettingsError(rule.to_owned())),
            None => Ok(()),
        }
    }

    /// The node's name: as configured, otherwise host:port.
    #[must_use]
    pub fn node_name(&self) -> String {
        if !self.server.name.is_empty() {
            return self.server.name.clone();
        }
        format!("{}:{}", host_name(), self.server.port)
    }
}

/// Settings that are text, whatever they look like.
const SECRET_TEXTS: [&str; 5] =
    ["api.token", "auth.admin_password", "auth.oidc.client_secret", "database.url", "nacos.password"];

/// This machine's host name.
#[must_use]
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .or_else(|| std::env::var("HOSTNAME").ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// A duration as the engine counts, ms.
#[must_use]
pub fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
