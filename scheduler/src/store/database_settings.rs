//! What can be set about the database, and its address.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[database]` of the configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `sqlite://path?mode=rwc`, `mysql://user:password@host/name` (MariaDB too) or
    /// `postgres://user:password@host/name`.
    pub url: String,
    /// Connections at most.
    pub max_connections: u32,
    /// A connection that cannot be had for this long is an error.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// A statement that takes longer is an error.
    #[serde(with = "humantime_serde")]
    pub statement_timeout: Duration,
    /// Whether a node brings the schema up to date when it starts.
    pub migrate_at_start: bool,
}

impl DatabaseSettings {
    /// The address without its password, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        place(&self.url)
    }

    /// Whether the address can be parsed. A special character of the password that is not escaped ends the host too early.
    #[must_use]
    pub fn is_url(&self) -> bool {
        self.url.starts_with("sqlite:") || url::Url::parse(&self.url).is_ok_and(|url| url.has_host())
    }

    /// The address as the drivers know it; `mariadb:` is another word for `mysql:`.
    pub(super) fn for_driver(&self) -> String {
        self.url.strip_prefix("mariadb:").map_or_else(|| self.url.clone(), |rest| format!("mysql:{rest}"))
    }
}

/// The address of a database without its password, for messages.
#[must_use]
pub fn place(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    // What cannot be parsed is not shown: the password may be anywhere in it.
    let Ok(mut parsed) = url::Url::parse(url) else {
        return format!("{}://...", url.split(':').next().unwrap_or_default());
    };
    // A query may hold one, too.
    parsed.set_query(None);
    if parsed.set_password(None).is_err() {
        return format!("{}://...", parsed.scheme());
    }
    parsed.to_string()
}
