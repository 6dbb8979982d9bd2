//! The ways between a node and executors, as bytes over the model network.

use super::net::{Broken, Endpoint, Net};
use super::{Gate, Machine, Trace, messages};
use async_trait::async_trait;
use bytes::Bytes;
use carillon::api::{ExecutorMessage, ExecutorsDoor, PlainCaller, PlainDoor, PlainMessage};
use carillon::auth::SignedHead;
use carillon::cluster::Clock;
use carillon::dispatch::{Carrier, SignedTransport, Uncarried};
use carillon::domain::xxljob::wire::{self, TOKEN_HEADER};
use carillon::store::Store;
use carillon::xxljob::{Address, HELD_MS_MAX, Hold, PreparedRun, RunDoor};
use carillon_protocol::exchange::{Answer, Request};
use carillon_protocol::sign::header;
use carillon_protocol::{Code, NODE_BASE_PATH, Reply};
use futures_util::stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// As the HTTP transport has it.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long a reply to a run is waited for, as the sender of the product does.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest sleep before a run is due, µs: the cluster clock may be set meanwhile.
const SLEEP_US_MAX: i64 = 50_000;

/// Where executors of xxl-job look for their admin.
const PLAIN_BASE_PATH: &str = "/xxl-job-admin/api";

/// Who knocks.
const CALLER: &str = "10.0.0.1";

/// What plain executors call with: they are modelled after the library in Java.
const AGENT: &str = "Java/17.0.2";

/// The transport of one node: the product's, over the model network.
pub type SimTransport = SignedTransport<SimCarrier>;

/// Whom a node's messages can reach.
#[derive(Debug, Clone)]
pub struct Peers {
    /// Index of the node.
    pub node: usize,
    /// The node's process.
    pub gate: Arc<Gate>,
    /// The network.
    pub net: Arc<Net>,
    /// Every executor's machine.
    pub executors: Vec<Machine>,
}

impl Peers {
    async fn exchange(&self, address: &str, request: Request, within: Duration) -> Result<Answer, Uncarried> {
        let Some(machine) = self.executors.iter().find(|executor| executor.address() == address).cloned() else {
            return Err(Uncarried::NotDelivered("no such machine".to_owned()));
        };
        let (here, there) = (Endpoint::Node(self.node), Endpoint::Executor(machine.index()));
        let what = messages::summary(&request);
        let is_plain = machine.is_plain();
        let deliver = move || {
            let (machine, request) = (machine.clone(), request.clone());
            async move { machine.serve(request).await }
        };
        let answer = if is_plain {
            tokio::time::timeout(within, self.net.exchange_once(here, there, &what, deliver)).await
        } else {
            tokio::time::timeout(within, self.net.exchange(here, there, &what, deliver)).await
        };
        self.gate.thawed().await;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Broken::Refused)) => Err(Uncarried::NotListening("connection refused".to_owned())),
            Ok(Err(Broken::NoWay)) => Err(Uncarried::NotDelivered("no connection".to_owned())),
            Ok(Err(Broken::Reset)) => Err(Uncarried::Unknown("connection reset".to_owned())),
            Err(_) => Err(Uncarried::Unknown("no answer".to_owned())),
        }
    }
}

/// Carries a node's messages to executors.
#[derive(Debug)]
pub struct SimCarrier(pub Peers);

#[async_trait]
impl Carrier for SimCarrier {
    async fn carry(&self, address: &str, request: Request, _: usize) -> Result<Answer, Uncarried> {
        self.0.gate.thawed().await;
        self.0.exchange(address, request, REQUEST_TIMEOUT).await
    }
}

/// Sends runs to plain executors on their instant, as the thread of the product does.
pub struct SimRunDoor {
    /// Whom it reaches.
    pub peers: Peers,
    /// The node's.
    pub clock: Arc<dyn Clock>,
    /// Where events go.
    pub trace: Arc<Trace>,
}

/// Nobody waits any more: what was not sent is not.
struct Waiting(Hold);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

#[async_trait]
impl RunDoor for SimRunDoor {
    async fn run(&self, to: &Address, run: PreparedRun) -> Result<Bytes, Uncarried> {
        let not_sent = |why: &str| Err(Uncarried::NotDelivered(why.to_owned()));
        let PreparedRun { due_ms, accept_until_ms, request, hold } = run;
        let waiting = Waiting(hold);
        if due_ms > self.clock.now_ms() + HELD_MS_MAX {
            return not_sent("it is due too late");
        }
        let wait_us = accept_until_ms * 1_000 - self.clock.now_us();
        let give_back_us = self.clock.local_us() + wait_us;
        let sent_us = loop {
            self.peers.gate.thawed().await;
            let now_us = self.clock.now_us();
            if now_us >= accept_until_ms * 1_000 || self.clock.local_us() >= give_back_us {
                return not_sent("it was not sent before it expired");
            }
            let left_us = due_ms * 1_000 - now_us;
            if left_us <= 0 {
                break now_us;
            }
            tokio::time::sleep(Duration::from_micros(left_us.min(SLEEP_US_MAX) as u64)).await;
        };
        if !waiting.0.send(sent_us) {
            return not_sent("it was withdrawn");
        }
        let what = messages::summary(&request);
        let answer = self.peers.exchange(&to.to_string(), request, REPLY_TIMEOUT).await;
        if let Err(error) = &answer {
            self.trace.add(format!("node {}: {what} to {to}: {error:?}", self.peers.node));
        }
        answer.map(|answer| answer.body)
    }
}

/// Brings an executor's request to a node's door.
pub async fn knock<S: Store + 'static>(door: &ExecutorsDoor<S>, request: Request) -> Answer {
    let path = request.path.strip_prefix(NODE_BASE_PATH).unwrap_or_default();
    let Some((_, message)) = ExecutorMessage::ALL.into_iter().find(|(known, _)| *known == path) else {
        let body = serde_json::to_vec(&Reply::<()>::refuse(Code::NotFound, "there is no such route"));
        return Answer::unsigned(404, body.unwrap_or_default());
    };
    let parts = messages::signed_parts(&request);
    let (sign_method, sign) = (request.header(header::SIGN_METHOD), request.header(header::SIGN));
    let body = stream::iter([Ok::<_, Infallible>(request.body.clone())]);
    door.answer(message, &SignedHead { parts, sign_method, sign }, CALLER.to_owned(), body).await
}

/// What a request is to those who take in plain executors' messages; nothing if it is not for them.
#[must_use]
pub fn plain_message(request: &Request) -> Option<PlainMessage> {
    match request.path.strip_prefix(PLAIN_BASE_PATH)? {
        "/registry" => Some(PlainMessage::Registry),
        "/registryRemove" => Some(PlainMessage::Remove),
        "/callback" => Some(PlainMessage::Callback),
        _ => None,
    }
}

/// Brings a plain executor's request to a node's door; no answer if that cuts the connection.
pub async fn knock_plain<S: Store + 'static>(
    door: &PlainDoor<S>,
    message: PlainMessage,
    request: &Request,
) -> Option<Answer> {
    let body = stream::iter([Ok::<_, Infallible>(request.body.clone())]);
    let caller = PlainCaller { token: request.header(TOKEN_HEADER), agent: AGENT, address: CALLER };
    let envelope = door.answer(message, caller, body).await?;
    Some(Answer::unsigned(200, wire::bytes(&envelope)))
}
