//! A node's way to executors over the model network.

use super::net::{Endpoint, Fate, Net};
use super::{Dice, Gate, SimExecutor};
use async_trait::async_trait;
use carillon::dispatch::{Presence, SendError, Transport};
use carillon::domain::Executor;
use carillon_protocol::{Cancel, CancelAck, Code, Dispatch, DispatchAck, OutputPage, ProbeAck, ReadOutput, RunKey};
use std::sync::Arc;
use std::time::Duration;

/// As the HTTP transport has them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_millis(2_500);

/// The transport of one node.
#[derive(Debug)]
pub struct SimTransport {
    /// Index of the node.
    pub node: usize,
    /// The node's process.
    pub gate: Arc<Gate>,
    /// The network.
    pub net: Arc<Net>,
    /// All chance.
    pub dice: Arc<Dice>,
    /// Every executor's machine.
    pub executors: Vec<Arc<SimExecutor>>,
}

type Answer<A> = Result<A, SendError>;

impl SimTransport {
    fn machine(&self, address: &str) -> Option<&Arc<SimExecutor>> {
        self.executors.iter().find(|executor| executor.address() == address)
    }

    /// Takes a message to the executor and its answer back. A message that comes late is acted
    /// upon all the same.
    async fn exchange<A: Send + 'static>(
        &self,
        to: &Executor,
        what: String,
        act: impl Fn(&Arc<SimExecutor>) -> Answer<A> + Send + 'static,
    ) -> Answer<A> {
        self.gate.thawed().await;
        let answer = self.travel(to, what, act).await;
        self.gate.thawed().await;
        answer
    }

    async fn travel<A: Send + 'static>(
        &self,
        to: &Executor,
        what: String,
        act: impl Fn(&Arc<SimExecutor>) -> Answer<A> + Send + 'static,
    ) -> Answer<A> {
        let Some(machine) = self.machine(&to.address).cloned() else {
            return Err(SendError::NotDelivered("no such machine".to_owned()));
        };
        let (here, there) = (Endpoint::Node(self.node), Endpoint::Executor(machine.index()));
        match self.net.carry(here, there, &what).await {
            Fate::Arrived => {}
            Fate::Cut => return self.not_answered(&what).await,
            Fate::Lost => return Self::no_answer().await,
            Fate::Late(by) => {
                tokio::spawn(async move {
                    tokio::time::sleep(by).await;
                    drop(act(&machine));
                });
                return Self::no_answer().await;
            }
        }
        let answer = act(&machine)?;
        match self.net.carry(there, here, &format!("answer to {what}")).await {
            Fate::Arrived => Ok(answer),
            _ => Self::no_answer().await,
        }
    }

    /// No way: a new connection is not made, an old one says nothing.
    async fn not_answered<A>(&self, what: &str) -> Answer<A> {
        if self.dice.happens(&format!("node {} has no connection for {what}", self.node), 500) {
            tokio::time::sleep(CONNECT_TIMEOUT).await;
            return Err(SendError::NotDelivered("no connection".to_owned()));
        }
        Self::no_answer().await
    }

    async fn no_answer<A>() -> Answer<A> {
        tokio::time::sleep(REQUEST_TIMEOUT).await;
        Err(SendError::Unknown("no answer".to_owned()))
    }
}

fn sorted(mut keys: Vec<RunKey>) -> Vec<RunKey> {
    keys.sort_unstable();
    keys
}

#[async_trait]
impl Transport for SimTransport {
    async fn dispatch(&self, to: &Executor, message: &Dispatch) -> Answer<DispatchAck> {
        let keys = sorted(message.items.iter().map(|item| RunKey(item.log, item.attempt)).collect());
        let message = message.clone();
        self.exchange(to, format!("dispatch {keys:?}"), move |machine| machine.dispatch(&message)).await
    }

    async fn cancel(&self, to: &Executor, message: &Cancel) -> Answer<CancelAck> {
        let keys = sorted(message.runs.clone());
        let message = message.clone();
        self.exchange(to, format!("cancel {keys:?}"), move |machine| machine.cancel(&message)).await
    }

    async fn ask(&self, to: &Executor, message: &carillon_protocol::Probe) -> Answer<ProbeAck> {
        let tasks = message.tasks.clone();
        let executor_id = message.executor_id;
        self.exchange(to, format!("ask about {tasks:?}"), move |machine| machine.busy_with(executor_id, &tasks)).await
    }

    async fn read_output(&self, _: &Executor, _: &ReadOutput) -> Answer<OutputPage> {
        Err(SendError::Refused(Code::NotFound, "the model's runs log nothing".to_owned()))
    }

    async fn probe(&self, address: &str) -> Presence {
        self.gate.thawed().await;
        let Some(machine) = self.machine(address) else { return Presence::Unknown };
        let (here, there) = (Endpoint::Node(self.node), Endpoint::Executor(machine.index()));
        let way = self.net.carry(here, there, "probe").await;
        let answer = if way == Fate::Arrived {
            machine.instance().map_or(Presence::NotListening, Presence::Instance)
        } else {
            tokio::time::sleep(CONNECT_TIMEOUT).await;
            Presence::Unknown
        };
        self.gate.thawed().await;
        answer
    }
}
