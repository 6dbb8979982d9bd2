//! Asks other clusters how they are.

use super::figures::{ClusterFigures, Nodes, Statistics};
use super::settings::OtherClusterSettings;
use crate::cluster::Clock;
use anyhow::{Context, ensure};
use futures_util::future::join_all;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Between two looks at the others.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// An answer may take this long, a connection this long of it …
const ANSWER_MAX: Duration = Duration::from_secs(3);
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// … and have so many bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What is shown covers so much, ms.
const SHOWN_MS: i64 = 3_600_000;

/// Why a cluster is away, characters.
const PROBLEM_CHARS_MAX: usize = 500;

/// How a cluster is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// It has not been asked yet.
    #[default]
    Pending,
    /// It answers.
    Current,
    /// It does not.
    Away,
}

/// Another cluster, as it was last heard.
#[derive(Debug, Clone, Default)]
pub struct OtherCluster {
    /// What it is called.
    pub name: String,
    /// Where it answers.
    pub url: String,
    /// How it is.
    pub state: State,
    /// Since when, by this cluster's time, ms; 0 before it was asked.
    pub since: i64,
    /// Why it is away; empty while it is not.
    pub problem: String,
    /// When it answered last, by this cluster's time, ms; 0 for never.
    pub read_at: i64,
    /// What it said then.
    pub figures: Option<ClusterFigures>,
}

/// The other clusters.
pub struct Clusters {
    clock: Arc<dyn Clock>,
    http: Client,
    doors: Vec<Door>,
    heard: Mutex<Vec<OtherCluster>>,
}

/// Where one of them is asked.
struct Door {
    base: Url,
    token: SecretString,
}

impl Clusters {
    /// Of these settings; nothing is asked yet.
    ///
    /// # Errors
    /// A token that cannot be read; when the machine's certificates cannot be used.
    pub fn new(settings: &[OtherClusterSettings], clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let mut http = Client::builder()
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            // A token is for its cluster alone.
            .redirect(redirect::Policy::none())
            .no_proxy();
        if !settings.iter().any(|other| other.url.starts_with("https:")) {
            http = http.tls_backend_preconfigured(crate::tls::unused()?);
        }
        let door = |other: &OtherClusterSettings| {
            let base =
                other.base().with_context(|| format!("cluster `{}` has no address (clusters.url)", other.name))?;
            Ok(Door { base, token: other.token()? })
        };
        let heard = settings.iter().map(|other| OtherCluster {
            name: other.name.clone(),
            url: other.url.trim_end_matches('/').to_owned(),
            ..OtherCluster::default()
        });
        Ok(Self {
            clock,
            http: http.build().context("a client for clusters.url cannot be created")?,
            doors: settings.iter().map(door).collect::<anyhow::Result<_>>()?,
            heard: Mutex::new(heard.collect()),
        })
    }

    /// All of them, as they were last heard.
    #[must_use]
    pub fn all(&self) -> Vec<OtherCluster> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks all of them at the same time, each within a bounded time.
    pub async fn tick(&self) {
        join_all(self.doors.iter().enumerate().map(|(at, door)| async move {
            let answer = self.ask(door).await;
            self.hear(at, answer);
        }))
        .await;
    }

    fn hear(&self, at: usize, answer: anyhow::Result<ClusterFigures>) {
        let now = self.clock.now_ms();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(one) = heard.get_mut(at) else { return };
        let before = one.state;
        match answer {
            Ok(figures) => {
                (one.state, one.problem, one.read_at) = (State::Current, String::new(), now);
                one.figures = Some(figures);
            }
            Err(error) => {
                one.state = State::Away;
                one.problem = format!("{error:#}").chars().take(PROBLEM_CHARS_MAX).collect();
            }
        }
        if one.state != before {
            one.since = now;
            if one.state == State::Away {
                tracing::warn!(cluster = one.name, why = one.problem, "another cluster does not answer");
            } else {
                tracing::info!(cluster = one.name, "another cluster answers");
            }
        }
    }

    async fn ask(&self, door: &Door) -> anyhow::Result<ClusterFigures> {
        let nodes: Nodes = self.get(door, "/api/v1/nodes", "").await?;
        let until = nodes.cluster_time();
        let query = format!("from={}&until={until}&step=1h", until - SHOWN_MS);
        let statistics: Statistics = self.get(door, "/api/v1/statistics", &query).await?;
        Ok(ClusterFigures::of(&nodes, statistics))
    }

    async fn get<T: DeserializeOwned>(&self, door: &Door, path: &str, query: &str) -> anyhow::Result<T> {
        let mut url = door.base.clone();
        url.set_path(path);
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        let mut token = HeaderValue::from_str(&format!("Bearer {}", door.token.expose_secret()))?;
        token.set_sensitive(true);
        let request = self.http.get(url).header(AUTHORIZATION, token);
        let mut answer = request.send().await.map_err(reqwest::Error::without_url)?;
        ensure!(answer.status().is_success(), "GET {path} answered {}", answer.status());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            ensure!(
                body.len() + chunk.len() <= ANSWER_BYTES_MAX,
                "GET {path} answered more than {ANSWER_BYTES_MAX} bytes"
            );
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).with_context(|| format!("the answer to GET {path} cannot be read"))
    }
}
