//! Calls to the nodes: signed, bounded in time and size, and trusted only when the reply's
//! signature is valid.

use crate::carrier::Carrier;
use crate::clock::ClusterClock;
use carillon_protocol::exchange::Request;
use carillon_protocol::sign::{Key, RandomSource, RequestParts, SignMethod};
use carillon_protocol::{Code, HeartbeatAck, LocalInstant, NODE_BASE_PATH, Reply};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

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
    /// `http[s]://host:port`.
    pub(crate) origin: String,
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
    /// A node, or every one that replied, says that its database is unavailable; sent at this local µs. What was sent at the
    /// other local µs, if any, has been written down all the same.
    StoreUnavailable { sent_us: i64, written_us: Option<i64> },
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
    /// Index of the one that worked last.
    current: watch::Sender<usize>,
    carrier: Arc<dyn Carrier>,
    pub(crate) identity: Identity,
    clock: Arc<ClusterClock>,
    random: Arc<dyn RandomSource>,
}

/// Any reply whose signature is valid.
struct Believed {
    reply: Reply<Value>,
    sent: LocalInstant,
    received: LocalInstant,
}

/// The part of a refusal's data that contains the time.
#[derive(Deserialize)]
struct Time {
    cluster_time_us: i64,
}

impl Nodes {
    pub(crate) fn new(
        list: Vec<Node>,
        carrier: Arc<dyn Carrier>,
        identity: Identity,
        clock: Arc<ClusterClock>,
        random: Arc<dyn RandomSource>,
    ) -> Self {
        Self { list, current: watch::Sender::new(0), carrier, identity, clock, random }
    }

    /// The node that is tried first.
    pub(crate) fn current(&self) -> &Node {
        // The list is never empty: the builder demands one.
        &self.list[*self.current.borrow() % self.list.len()]
    }

    /// Sends `body` to the nodes, one after another, until one accepts it. `timeout` applies to each. A node that has not
    /// answered by the time that another call found another node is not waited for any longer: it may stand still, and
    /// results must not wait until their long time-out.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        body: bytes::Bytes,
        timeout: Duration,
    ) -> Result<NodeReply<T>, Failure> {
        self.call_telling(path, body, timeout, |_| ()).await
    }

    /// The same; `tell` hears of each node that did not accept it, before the next one is asked.
    pub(crate) async fn call_telling<T: DeserializeOwned>(
        &self,
        path: &str,
        body: bytes::Bytes,
        timeout: Duration,
        tell: impl Fn(&Failure),
    ) -> Result<NodeReply<T>, Failure> {
        let mut current = self.current.subscribe();
        let first = *current.borrow_and_update();
        let mut failure = Failure::Unreachable("no node is configured".to_owned());
        for step in 0..self.list.len() {
            let index = (first + step) % self.list.len();
            let node = &self.list[index];
            let answered = tokio::select! {
                biased;
                answered = self.call_one(node, path, body.clone(), timeout) => answered,
                // The sender lives as long as this.
                Ok(_) = current.wait_for(|chosen| *chosen != first && *chosen != index) => {
                    return Err(Failure::Unreachable(format!("{}: no answer, and another node answers", node.base)));
                }
            };
            let found = match answered {
                Ok(believed) if believed.reply.code == Code::Ok => match parse(believed) {
                    Ok(answer) => {
                        self.choose(index);
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
            tell(&found);
            failure = worse(failure, found);
        }
        Err(failure)
    }

    fn choose(&self, index: usize) {
        let is_another = self.current.send_if_modified(|current| std::mem::replace(current, index) != index);
        if is_another {
            tracing::info!(node = %self.list[index].base, "node.chosen");
        }
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
            self.clock.observe(believed.sent, believed.received, time.cluster_time_us);
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
        let nonce = self.random.hex().map_err(|e| format!("no random bytes: {e}"))?;
        let parts = RequestParts {
            method: Request::METHOD,
            path: &format!("{}{NODE_BASE_PATH}{path}", node.prefix),
            query: "",
            tenant,
            app,
            key: &key.id,
            timestamp: self.clock.signing_ms(),
            nonce: &nonce,
        };
        let request = Request::signed(&parts, *method, &key.secret, body);
        let sent = self.clock.local();
        let answer = self.carrier.carry(&node.origin, request, timeout).await?;
        let received = self.clock.local();
        if !answer.is_genuine(*method, &key.secret, &nonce) {
            return Err(disbelieved(node, answer.status, &answer.body));
        }
        let reply = serde_json::from_slice(&answer.body).map_err(|e| format!("signed, but not a reply: {e}"))?;
        Ok(Believed { reply, sent, received })
    }
}

fn parse<T: DeserializeOwned>(believed: Believed) -> Result<NodeReply<T>, String> {
    let data = believed.reply.data.unwrap_or(Value::Null);
    Ok(NodeReply {
        data: serde_json::from_value(data).map_err(|e| format!("not the expected answer: {e}"))?,
        sent_us: believed.sent.free_us,
        received_us: believed.received.free_us,
    })
}

fn refused(node: &Node, path: &str, believed: Believed) -> Failure {
    let Reply { code, msg, data } = believed.reply;
    tracing::debug!(node = %node.base, path, code = u32::from(code), msg, "node.refused");
    match code {
        Code::RegisterAgain => Failure::RegisterAgain,
        Code::StoreUnavailable => {
            let ack: Option<HeartbeatAck> = data.and_then(|data| serde_json::from_value(data).ok());
            let written_us = ack.and_then(|ack| ack.written_us);
            Failure::StoreUnavailable { sent_us: believed.sent.free_us, written_us }
        }
        _ => Failure::Refused { code, msg },
    }
}

/// What a round over the nodes is said to have failed by: a refusal outweighs "database unavailable", which outweighs silence, so
/// the database is called unavailable only if it is for all nodes.
fn worse(so_far: Failure, found: Failure) -> Failure {
    use Failure::{Refused, StoreUnavailable, Unreachable};
    match (so_far, found) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_that_is_away_for_all_who_answer_is_to_blame() {
        let store = || Failure::StoreUnavailable { sent_us: 5, written_us: None };
        let silence = || Failure::Unreachable("x".into());
        let refusal = || Failure::Refused { code: Code::Internal, msg: "x".into() };
        assert_eq!(worse(silence(), store()), store());
        assert_eq!(worse(store(), silence()), store());
        assert_eq!(worse(store(), refusal()), refusal());
        assert_eq!(worse(refusal(), store()), refusal());
    }
}
