//! Calls to the nodes: signed, bounded in time and size, and trusted only when the reply's
//! signature is valid.

use crate::clock::ClusterClock;
use carillon_protocol::sign::{self, Key, RequestParts, SignMethod, header};
use carillon_protocol::{BODY_BYTES_MAX, Code, KEEP_ALIVE_MARGIN, NODE_BASE_PATH, NODE_KEEP_ALIVE, Reply};
use rustls::ClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long connecting to a node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an idle connection is reused.
const POOL_IDLE: Duration = NODE_KEEP_ALIVE.saturating_sub(KEEP_ALIVE_MARGIN);

/// This executor's identity towards the nodes.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) tenant: String,
    pub(crate) app: String,
    pub(crate) key: Key,
    pub(crate) method: SignMethod,
}

/// One configured node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// `http[s]://host:port[/prefix]`, without a slash at the end.
    pub(crate) base: String,
    /// Path part of `base`, empty or with a leading slash.
    pub(crate) prefix: String,
    /// `host:port`.
    pub(crate) authority: String,
}

/// A successful reply with a valid signature.
#[derive(Debug)]
pub(crate) struct NodeReply<T> {
    pub(crate) data: T,
    /// Local µs just before it was sent.
    pub(crate) sent_us: i64,
    /// Local µs when the answer was complete.
    pub(crate) received_us: i64,
}

/// Why no node accepted a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Every node that replied says that its database is unavailable; first sent at this local µs.
    StoreUnavailable { sent_us: i64 },
    /// A node does not know this executor.
    RegisterAgain,
    /// Refused in a reply with a valid signature.
    Refused { code: Code, msg: String },
    /// No reply with a valid signature from any node.
    Unreachable(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StoreUnavailable { .. } => f.write_str("the nodes cannot reach their database"),
            Self::RegisterAgain => f.write_str("the node asks to register again"),
            Self::Refused { code, msg } => {
                write!(f, "refused with code {}: {msg}", u32::from(*code))
            }
            Self::Unreachable(reason) => f.write_str(reason),
        }
    }
}

/// The nodes in the order of the settings; the one that worked last comes first.
#[derive(Debug)]
pub(crate) struct Nodes {
    list: Vec<Node>,
    current: AtomicUsize,
    client: reqwest::Client,
    pub(crate) identity: Identity,
    clock: Arc<ClusterClock>,
}

/// Any reply whose signature is valid.
struct Believed {
    reply: Reply<Value>,
    sent_us: i64,
    received_us: i64,
}

/// The part of a refusal's data that contains the time.
#[derive(Deserialize)]
struct Time {
    cluster_time_us: i64,
}

impl Nodes {
    pub(crate) fn new(
        list: Vec<Node>,
        tls: ClientConfig,
        identity: Identity,
        clock: Arc<ClusterClock>,
    ) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(POOL_IDLE)
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { list, current: AtomicUsize::new(0), client, identity, clock })
    }

    /// The node that is tried first.
    pub(crate) fn current(&self) -> &Node {
        // The list is never empty: the builder demands one.
        &self.list[self.current.load(Ordering::Relaxed) % self.list.len()]
    }

    /// Sends `body` to the nodes, one after another, until one accepts it. `timeout` applies to each.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        body: bytes::Bytes,
        timeout: Duration,
    ) -> Result<NodeReply<T>, Failure> {
        let first = self.current.load(Ordering::Relaxed);
        let mut failure = Failure::Unreachable("no node is configured".to_owned());
        for step in 0..self.list.len() {
            let index = (first + step) % self.list.len();
            let node = &self.list[index];
            let found = match self.call_one(node, path, body.clone(), timeout).await {
                Ok(believed) if believed.reply.code == Code::Ok => match parse(believed) {
                    Ok(answer) => {
                        if self.current.swap(index, Ordering::Relaxed) != index {
                            tracing::info!(node = %node.base, "node.chosen");
                        }
                        return Ok(answer);
                    }
                    Err(reason) => Failure::Unreachable(reason),
                },
                Ok(believed) => refused(node, path, believed),
                Err(reason) => {
                    tracing::debug!(node = %node.base, path, reason, "node.unreachable");
                    Failure::Unreachable(format!("{}: {reason}", node.base))
                }
            };
            if found == Failure::RegisterAgain {
                return Err(found);
            }
            failure = worse(failure, found);
        }
        Err(failure)
    }

    /// One node's trusted reply. After a refusal because of the clock, corrects it and tries again, once.
    async fn call_one(
        &self,
        node: &Node,
        path: &str,
        body: bytes::Bytes,
        timeout: Duration,
    ) -> Result<Believed, String> {
        let first = self.exchange(node, path, body.clone(), timeout).await?;
        self.learn_time(&first);
        if first.reply.code != Code::ClockSkew {
            return Ok(first);
        }
        tracing::warn!(
            node = %node.base,
            "clock.skewed: the node refused this machine's time; using the node's"
        );
        let second = self.exchange(node, path, body, timeout).await?;
        self.learn_time(&second);
        Ok(second)
    }

    /// Every trusted reply that contains the time feeds the clock; a success with a body of its
    /// own (results) does not.
    fn learn_time(&self, believed: &Believed) {
        if let Some(data) = &believed.reply.data
            && let Ok(time) = Time::deserialize(data)
        {
            self.clock.observe(believed.sent_us, believed.received_us, time.cluster_time_us);
        }
    }

    async fn exchange(
        &self,
        node: &Node,
        path: &str,
        body: bytes::Bytes,
        timeout: Duration,
    ) -> Result<Believed, String> {
        let Identity { tenant, app, key, method } = &self.identity;
        let nonce = sign::nonce().map_err(|e| format!("no random bytes: {e}"))?;
        let timestamp = self.clock.signing_ms();
        let signed_path = format!("{}{NODE_BASE_PATH}{path}", node.prefix);
        let sign = RequestParts {
            method: "POST",
            path: &signed_path,
            query: "",
            tenant,
            app,
            key: &key.id,
            timestamp,
            nonce: &nonce,
        }
        .sign(*method, &key.secret, &body);
        let request = self
            .client
            .post(format!("{}{NODE_BASE_PATH}{path}", node.base))
            .timeout(timeout)
            .header("content-type", "application/json")
            .header(header::TENANT, tenant)
            .header(header::APP, app)
            .header(header::KEY, &key.id)
            .header(header::TIMESTAMP, timestamp)
            .header(header::NONCE, &nonce)
            .header(header::SIGN_METHOD, method.as_str())
            .header(header::SIGN, sign)
            .body(body);
        let sent_us = self.clock.local_us();
        let response = request.send().await.map_err(|e| chain(&e))?;
        let status = response.status().as_u16();
        let given = response.headers().get(header::SIGN).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let text = bounded(response).await?;
        let received_us = self.clock.local_us();
        let expected = sign::sign_reply(*method, &key.secret, &nonce, status, &text);
        if !given.is_some_and(|given| sign::matches(&expected, &given)) {
            return Err(disbelieved(node, status, &text));
        }
        let reply = serde_json::from_slice(&text).map_err(|e| format!("signed, but not a reply: {e}"))?;
        Ok(Believed { reply, sent_us, received_us })
    }
}

fn parse<T: DeserializeOwned>(believed: Believed) -> Result<NodeReply<T>, String> {
    let data = believed.reply.data.unwrap_or(Value::Null);
    Ok(NodeReply {
        data: serde_json::from_value(data).map_err(|e| format!("not the expected answer: {e}"))?,
        sent_us: believed.sent_us,
        received_us: believed.received_us,
    })
}

fn refused(node: &Node, path: &str, believed: Believed) -> Failure {
    let Reply { code, msg, .. } = believed.reply;
    tracing::debug!(node = %node.base, path, code = u32::from(code), msg, "node.refused");
    match code {
        Code::RegisterAgain => Failure::RegisterAgain,
        Code::StoreUnavailable => Failure::StoreUnavailable { sent_us: believed.sent_us },
        _ => Failure::Refused { code, msg },
    }
}

/// The outcome of a round over the nodes: a refusal outweighs "database unavailable", which
/// outweighs silence, so the database counts as unavailable only if it is for all nodes.
fn worse(so_far: Failure, found: Failure) -> Failure {
    use Failure::{Refused, StoreUnavailable, Unreachable};
    match (so_far, found) {
        (StoreUnavailable { sent_us: a }, StoreUnavailable { sent_us: b }) => StoreUnavailable { sent_us: a.min(b) },
        (so_far @ Refused { .. }, Unreachable(_) | StoreUnavailable { .. })
        | (so_far @ StoreUnavailable { .. }, Unreachable(_)) => so_far,
        (_, found) => found,
    }
}

/// A reply without a valid signature proves nothing, but its code helps to correct a wrong key:
/// a node that does not know the key cannot sign.
fn disbelieved(node: &Node, status: u16, text: &[u8]) -> String {
    let Ok(reply) = serde_json::from_slice::<Reply<Value>>(text) else {
        return format!("HTTP {status} without a valid signature");
    };
    let advice = match reply.code {
        Code::UnknownKey | Code::WrongSignature | Code::Unsigned | Code::SignMethod => {
            "check the key id, the secret, the tenant, the app and the sign method of this \
             executor against the app's keys in the console"
        }
        Code::TooMany => {
            "too many requests without a valid signature come from this address; if these are this \
             executor's, check its key, secret, tenant, app and sign method"
        }
        Code::Ok => "the secret on one side is wrong, or the reply was forged",
        _ => "the reply is not trusted",
    };
    tracing::warn!(
        node = %node.base,
        status,
        code = u32::from(reply.code),
        msg = reply.msg.chars().take(200).collect::<String>(),
        "node.answer_without_valid_signature: {advice}"
    );
    format!("HTTP {status}, code {} without a valid signature: {advice}", u32::from(reply.code))
}

async fn bounded(mut response: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| chain(&e))? {
        if text.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(format!("the answer is larger than {BODY_BYTES_MAX} bytes"));
        }
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

/// An error with its causes: reqwest's own text omits them.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_that_is_away_for_all_who_answer_counts_as_contact() {
        let store = || Failure::StoreUnavailable { sent_us: 5 };
        let silence = || Failure::Unreachable("x".into());
        let refusal = || Failure::Refused { code: Code::Internal, msg: "x".into() };
        assert_eq!(worse(silence(), store()), store());
        assert_eq!(worse(store(), silence()), store());
        assert_eq!(worse(store(), refusal()), refusal());
        assert_eq!(worse(refusal(), store()), refusal());
    }
}
