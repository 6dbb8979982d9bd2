//! Asks other clusters how they are.

use super::figures::{ClusterFigures, Nodes, Statistics};
use super::settings::OtherClusterSettings;
use crate::cluster::Clock;
use crate::response_body::{Unread, read_within};
use anyhow::{Context, anyhow, ensure};
use futures_util::future::join_all;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Between two looks at the others.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Both answers together may take this long, a connection this long of it …
const ANSWER_MAX: Duration = Duration::from_secs(3);
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// … and have so many bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What is shown covers so much, ms.
pub const SHOWN_MS: i64 = 3_600_000;

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

/// Whom another cluster vouches for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VouchedFor {
    /// Their name there.
    pub name: String,
    /// Issuer and subject of their single sign-on there, or empty.
    pub subject: String,
}

/// The other clusters.
pub struct Clusters {
    clock: Arc<dyn Clock>,
    http: Client,
    /// Without connections that wait: handlers run on several runtimes, and a connection belongs to the one that opened it.
    single: Client,
    doors: Vec<Door>,
    heard: Mutex<Vec<OtherCluster>>,
}

/// Where one of them is asked.
struct Door {
    name: String,
    base: Url,
    token: SecretString,
    signs_in: bool,
}

impl Clusters {
    /// Of these settings; nothing is asked yet.
    ///
    /// # Errors
    /// A token that cannot be read; when the machine's certificates cannot be used.
    pub fn new(settings: &[OtherClusterSettings], clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let client = |idle_max: usize| {
            let mut http = Client::builder()
                .connect_timeout(CONNECT_MAX)
                .timeout(ANSWER_MAX)
                // A token is for its cluster alone.
                .redirect(redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(idle_max);
            if !settings.iter().any(|other| other.url.starts_with("https:")) {
                http = http.tls_backend_preconfigured(crate::tls::unused()?);
            }
            http.build().context("a client for clusters.url cannot be created")
        };
        let door = |other: &OtherClusterSettings| {
            let base =
                other.base().with_context(|| format!("cluster `{}` has no address (clusters.url)", other.name))?;
            Ok(Door { name: other.name.clone(), base, token: other.token()?, signs_in: other.signs_in })
        };
        let heard = settings.iter().map(|other| OtherCluster {
            name: other.name.clone(),
            url: other.url.trim_end_matches('/').to_owned(),
            ..OtherCluster::default()
        });
        Ok(Self {
            clock,
            http: client(1)?,
            single: client(0)?,
            doors: settings.iter().map(door).collect::<anyhow::Result<_>>()?,
            heard: Mutex::new(heard.collect()),
        })
    }

    /// All of them, as they were last heard.
    #[must_use]
    pub fn all(&self) -> Vec<OtherCluster> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names of those whose people sign in here.
    #[must_use]
    pub fn that_sign_in(&self) -> Vec<String> {
        self.doors.iter().filter(|door| door.signs_in).map(|door| door.name.clone()).collect()
    }

    /// The page of another cluster, if there is one of that name; `signs_in`: only if its people sign in here.
    #[must_use]
    pub fn page(&self, name: &str, signs_in: bool, path: &str, query: &[(&str, &str)]) -> Option<Url> {
        let door = self.doors.iter().find(|door| door.name == name && (door.signs_in || !signs_in))?;
        let mut url = door.base.clone();
        url.set_path(path);
        url.query_pairs_mut().extend_pairs(query);
        Some(url)
    }

    /// Asks the cluster of that name, whose people sign in here, to whom it gave that code.
    ///
    /// # Errors
    /// It is none of those; it does not answer, or does not know the code.
    pub async fn redeem(&self, name: &str, code: &str, verifier: &str) -> anyhow::Result<VouchedFor> {
        let door = self.doors.iter().find(|door| door.name == name && door.signs_in);
        let door = door.with_context(|| format!("people of cluster `{name}` do not sign in here"))?;
        let path = "/api/v1/clusters/sign-ins";
        let mut url = door.base.clone();
        url.set_path(path);
        let body = serde_json::json!({ "code": code, "verifier": verifier }).to_string();
        let request = self.single.post(url).header(CONTENT_TYPE, "application/json").body(body);
        read(door, request, path).await
    }

    /// Asks all of them at the same time, each within a bounded time.
    pub async fn tick(&self) {
        join_all(self.doors.iter().enumerate().map(|(at, door)| async move {
            let answer = tokio::time::timeout(ANSWER_MAX, self.ask(door)).await;
            let late = || Err(anyhow!("its answers timed out after {} s", ANSWER_MAX.as_secs()));
            self.hear(at, answer.unwrap_or_else(|_| late()));
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
        // In steps of minutes: of longer ones the range is rounded to whole hours.
        let query = format!("from={}&until={until}&step=5m", until.saturating_sub(SHOWN_MS));
        let statistics: Statistics = self.get(door, "/api/v1/statistics", &query).await?;
        Ok(nodes.figures(statistics))
    }

    async fn get<T: DeserializeOwned>(&self, door: &Door, path: &str, query: &str) -> anyhow::Result<T> {
        let mut url = door.base.clone();
        url.set_path(path);
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        read(door, self.http.get(url), path).await
    }
}

/// The answer to a request that shows the cluster's token.
async fn read<T: DeserializeOwned>(door: &Door, request: RequestBuilder, path: &str) -> anyhow::Result<T> {
    let mut token = HeaderValue::from_str(&format!("Bearer {}", door.token.expose_secret()))?;
    token.set_sensitive(true);
    let request = request.header(AUTHORIZATION, token);
    let mut answer = request.send().await.map_err(reqwest::Error::without_url)?;
    ensure!(answer.status().is_success(), "{path} answered {}", answer.status());
    let body = read_within(&mut answer, ANSWER_BYTES_MAX).await.map_err(|unread| match unread {
        Unread::TooLong => anyhow!("{path} answered more than {ANSWER_BYTES_MAX} bytes"),
        Unread::Broken(error) => error.without_url().into(),
    })?;
    serde_json::from_slice(&body).with_context(|| format!("the answer of {path} cannot be read"))
}
