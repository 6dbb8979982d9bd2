//! The workers of a process: keys, the certificate, open pages.

use super::{Fault, Round, Work, Worker};
use crate::auth::KeyRing;
use crate::clusters::{self, Clusters};
use crate::discovery::{Discovery, LOOK_INTERVAL};
use crate::live::Watcher;
use crate::settings::Settings;
use crate::store::SqlStore;
use crate::tls::Certificate;
use anyhow::anyhow;
use std::sync::Arc;
use std::time::Duration;

/// What they work with.
pub struct ProcessParts {
    /// Kept up to date.
    pub keys: Arc<KeyRing>,
    /// The listener's, looked at now and then.
    pub certificate: Option<Arc<Certificate>>,
    /// The database.
    pub store: SqlStore,
    /// Tells open pages what has changed.
    pub watcher: Watcher,
    /// Finds executors of xxl-job that do not register themselves.
    pub discovery: Arc<Discovery>,
    /// Asks other clusters how they are.
    pub clusters: Arc<Clusters>,
}

/// How often each of them looks, at least.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // each is explained in conf/application.toml
pub struct ProcessPeriods {
    pub keys: Duration,
    pub key_uses: Duration,
    pub certificate: Duration,
    pub watch: Duration,
}

impl ProcessPeriods {
    /// Out of the settings.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        Self {
            keys: settings.executors.keys_interval,
            key_uses: settings.executors.key_uses_interval,
            certificate: settings.server.tls.reload_interval,
            watch: settings.schedulers.look_interval,
        }
    }
}

impl ProcessParts {
    /// Every worker of the process.
    pub fn workers(self: &Arc<Self>, periods: &ProcessPeriods) -> Vec<Work> {
        let never = Arc::default;
        vec![
            Work::new(Worker::Keys, periods.keys, never(), self, read_keys),
            Work::new(Worker::KeyUses, periods.key_uses, never(), self, note_key_uses),
            Work::new(Worker::Certificate, periods.certificate, never(), self, reload_certificate),
            Work::new(Worker::Watch, periods.watch, self.watcher.wake(), self, watch),
            Work::new(Worker::Clusters, clusters::LOOK_INTERVAL, never(), self, ask_clusters),
            Work::new(Worker::Discover, LOOK_INTERVAL, self.discovery.wake(), self, discover),
        ]
    }
}

async fn read_keys(parts: Arc<ProcessParts>) -> Round {
    if parts.keys.look(&parts.store).await? {
        parts.discovery.changed();
    }
    Ok(())
}

async fn note_key_uses(parts: Arc<ProcessParts>) -> Round {
    Ok(parts.keys.note_uses(&parts.store).await?)
}

/// Looks at the files of the listener's certificate.
async fn reload_certificate(parts: Arc<ProcessParts>) -> Round {
    let Some(certificate) = parts.certificate.clone() else { return Ok(()) };
    let looked = tokio::task::spawn_blocking(move || certificate.reload()).await;
    looked.map_err(|error| Fault::Fatal(anyhow!("checking the TLS certificate panicked: {error}")))
}

async fn discover(parts: Arc<ProcessParts>) -> Round {
    Ok(parts.discovery.tick().await?)
}

async fn ask_clusters(parts: Arc<ProcessParts>) -> Round {
    parts.clusters.tick().await;
    Ok(())
}

async fn watch(parts: Arc<ProcessParts>) -> Round {
    Ok(parts.watcher.tick().await?)
}
