//! The ways between a node and executors, as bytes over the model network.

use super::net::{Broken, Endpoint, Net};
use super::{Gate, SimExecutor, messages};
use async_trait::async_trait;
use carillon::api::{ExecutorMessage, ExecutorsDoor};
use carillon::auth::SignedHead;
use carillon::dispatch::{Carrier, SignedTransport, Uncarried};
use carillon::store::Store;
use carillon_protocol::exchange::{Answer, Request};
use carillon_protocol::sign::header;
use carillon_protocol::{Code, NODE_BASE_PATH, Reply};
use futures_util::stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// As the HTTP transport has it.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The transport of one node: the product's, over the model network.
pub type SimTransport = SignedTransport<SimCarrier>;

/// Carries a node's messages to executors.
#[derive(Debug)]
pub struct SimCarrier {
    /// Index of the node.
    pub node: usize,
    /// The node's process.
    pub gate: Arc<Gate>,
    /// The network.
    pub net: Arc<Net>,
    /// Every executor's machine.
    pub executors: Vec<Arc<SimExecutor>>,
}

#[async_trait]
impl Carrier for SimCarrier {
    async fn carry(&self, address: &str, request: Request, _: usize) -> Result<Answer, Uncarried> {
        let Some(machine) = self.executors.iter().find(|executor| executor.address() == address).cloned() else {
            return Err(Uncarried::NotDelivered("no such machine".to_owned()));
        };
        self.gate.thawed().await;
        let (here, there) = (Endpoint::Node(self.node), Endpoint::Executor(machine.index()));
        let what = messages::summary(&request);
        let deliver = move || {
            let (machine, request) = (machine.clone(), request.clone());
            async move { machine.serve(request).await }
        };
        let exchange = self.net.exchange(here, there, &what, deliver);
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, exchange).await;
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
    door.answer(message, &SignedHead { parts, sign_method, sign }, "10.0.0.1".to_owned(), body).await
}
