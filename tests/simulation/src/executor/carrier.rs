//! A process's way to the nodes, as bytes over the model network.

use super::ledger::Ack;
use super::reworded::{older, pretending};
use super::{MachineParts, note};
use crate::messages;
use crate::net::{Broken, Endpoint};
use async_trait::async_trait;
use carillon_executor::simulation::{Carried, Carrier};
use carillon_protocol::Verdict;
use carillon_protocol::exchange::{Answer, Request};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// A node as the network meets it.
#[async_trait]
pub trait NodeServer: Debug + Send + Sync {
    /// Answers a request; `None` when no process listens, or it died meanwhile.
    async fn answer(&self, request: Request) -> Option<Answer>;
}

/// How long results that something on the way swallows seem to be on their way.
const UNHEARD_FOR: Duration = Duration::from_secs(1);

/// Nodes in the order of their numbers.
pub(super) type Servers = Arc<Mutex<Vec<Weak<dyn NodeServer>>>>;

/// The way of a machine's processes.
#[derive(Debug)]
pub(super) struct NodeCarrier {
    pub(super) machine: usize,
    pub(super) parts: MachineParts,
    pub(super) servers: Servers,
    /// Handlers with which it registers, though it lacks them.
    pub(super) pretended: Vec<String>,
}

/// Where a node of that number is.
pub(super) fn origin_of(node: usize) -> String {
    format!("http://node-{node}:8526")
}

impl Carrier for NodeCarrier {
    fn carry<'a>(&'a self, origin: &'a str, request: Request, timeout: Duration) -> Carried<'a> {
        Box::pin(self.send(origin, request, timeout))
    }
}

impl NodeCarrier {
    async fn send(&self, origin: &str, request: Request, timeout: Duration) -> Result<Answer, String> {
        let request = if self.parts.is_older { older(&request, &self.parts.key) } else { request };
        let is_said = self.pretended.is_empty() || !messages::is_registration(&request);
        let request = if is_said { request } else { pretending(&request, &self.parts.key, &self.pretended) };
        let servers = self.servers.lock().unwrap().clone();
        let found = servers.into_iter().enumerate().find(|(node, _)| origin_of(*node) == origin);
        let Some((node, server)) = found else { return Err(format!("no such node: {origin}")) };
        if messages::has_results(&request) && self.parts.net.swallows_results_of(self.machine) {
            tokio::time::sleep(UNHEARD_FOR.min(timeout)).await;
            return Err("no answer".to_owned());
        }
        let what = messages::summary(&request);
        let sent = request.clone();
        let deliver = move || {
            let (server, request) = (server.upgrade(), request.clone());
            async move { server.ok_or(Broken::Refused)?.answer(request).await.ok_or(Broken::Refused) }
        };
        let (here, there) = (Endpoint::Executor(self.machine), Endpoint::Node(node));
        let exchange = self.parts.net.exchange(here, there, &what, deliver);
        match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(answer)) => {
                self.learn(node, &sent, &answer, &what);
                Ok(answer)
            }
            Ok(Err(broken)) => Err(format!("{broken:?}")),
            Err(_) => Err(format!("no answer within {timeout:?}")),
        }
    }

    /// Notes what a node said.
    fn learn(&self, node: usize, request: &Request, answer: &Answer, what: &str) {
        for (key, status, verdict) in messages::verdicts(request, answer) {
            let text = format!("log {} attempt {}: {status:?} answered {verdict:?} by node {node}", key.0, key.1);
            note(&self.parts, self.machine, &text);
            if verdict != Verdict::Again {
                self.parts.ledger.acknowledged(Ack { key, status, verdict });
            }
        }
        if messages::is_heartbeat(request) && messages::is_accepted(answer) {
            self.parts.ledger.heard(self.machine, self.parts.time.now_ms());
        }
        if answer.status != 200 {
            note(&self.parts, self.machine, &format!("{what} answered {} by node {node}", answer.status));
        }
    }
}
