//! The API, asked until a node answers: calls may meet nodes that are dead, paused, or without their database.

use anyhow::{Context as _, Result, bail};
use carillon_tests::node::TOKEN;
use reqwest::Method;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long one try may take.
const TRY_MAX: Duration = Duration::from_secs(6);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// Asks nodes, one after the other.
#[derive(Debug, Clone)]
pub struct Client {
    nodes: Vec<String>,
    http: reqwest::Client,
}

/// An answer, and what led to it.
#[derive(Debug)]
pub struct Answer {
    /// What the node said.
    pub body: Value,
    /// How often it was asked.
    pub tries: usize,
    /// What was answered before, in short.
    pub before: Vec<String>,
}

impl Client {
    /// Of nodes at these addresses.
    pub fn of(nodes: Vec<String>) -> Result<Self> {
        let http = carillon_tests::http::client().timeout(TRY_MAX).build()?;
        Ok(Self { nodes, http })
    }

    /// One try at one node: status and body.
    pub async fn once(&self, node: usize, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        self.once_if(node, method, path, body, None).await
    }

    /// The same, of something that still has this revision.
    async fn once_if(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: Option<&Value>,
        revision: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let url = format!("{}/api/v1{path}", self.nodes[node % self.nodes.len()]);
        let mut request = self.http.request(method, url).bearer_auth(TOKEN);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(revision) = revision {
            request = request.header("if-match", format!("\"{revision}\""));
        }
        let reply = request.send().await?;
        let status = reply.status().as_u16();
        let text = reply.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Asks `node` first and then the others, until one answers with success, for `within` at most.
    pub async fn until_done(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Answer> {
        repeat(&format!("{method} {path}"), within, async |tries| {
            self.once(node + tries - 1, method.clone(), path, body).await
        })
        .await
    }

    /// The same for a change of a task, each try with the revision that it has: one that was given up and comes late
    /// cannot undo what was changed after it.
    pub async fn until_changed(
        &self,
        node: usize,
        task: i64,
        (method, path): (Method, &str),
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Answer> {
        repeat(&format!("{method} {path}"), within, async |tries| {
            let node = node + tries - 1;
            let (status, shown) = self.once(node, Method::GET, &format!("/tasks/{task}"), None).await?;
            if status != 200 {
                return Ok((status, shown));
            }
            self.once_if(node, method.clone(), path, body, Some(&shown["revision"])).await
        })
        .await
    }
}

/// Tries until one is answered with success, for `within` at most.
async fn repeat(what: &str, within: Duration, work: impl AsyncFn(usize) -> Result<(u16, Value)>) -> Result<Answer> {
    let deadline = Instant::now() + within;
    let mut before = Vec::new();
    for tries in 1.. {
        match work(tries).await {
            Ok((200..300, body)) => return Ok(Answer { body, tries, before }),
            // Nothing that another node would do: the request itself is wrong.
            Ok((status @ (400 | 401 | 403 | 404 | 422), body)) => bail!("{what}: {status} {body}"),
            Ok((status, body)) => before.push(format!("{status} {}", body["detail"])),
            Err(error) => before.push(format!("{error:#}")),
        }
        if Instant::now() > deadline {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let last = before.pop().context("no try")?;
    bail!("{what}: not done within {within:?}; last: {last}")
}
