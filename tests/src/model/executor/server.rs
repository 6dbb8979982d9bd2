//! A node's HTTP interface as an executor meets it, and the executor's way there: one node after
//! another until one takes the message.

use super::{Process, SimExecutor};
use crate::model::net::{Endpoint, Fate};
use async_trait::async_trait;
use carillon_protocol::{Heartbeat, HeartbeatAck, Register, Registered, Results, ResultsAck};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one node may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing answers there.
    Unreachable,
    /// The node cannot reach its database.
    StoreUnavailable,
    /// The node does not know this executor.
    RegisterAgain,
    /// Another refusal.
    Fault,
}

/// What executors call on a node. `signed_at` is when the sender signed the message, by its clock, ms.
#[async_trait]
pub trait NodeServer: Debug + Send + Sync {
    /// Registers.
    async fn register(&self, message: Register, signed_at: i64) -> Result<Registered, Refusal>;
    /// Commits a heartbeat.
    async fn heartbeat(&self, message: Heartbeat, signed_at: i64) -> Result<HeartbeatAck, Refusal>;
    /// Takes results in.
    async fn results(&self, message: Results) -> Result<ResultsAck, Refusal>;
}

/// One message, sent to whichever node takes it.
pub(super) async fn call<A, W>(
    machine: &Arc<SimExecutor>,
    process: &Process,
    what: &str,
    ask: impl Fn(Arc<dyn NodeServer>) -> W,
) -> Result<A, Refusal>
where
    W: Future<Output = Result<A, Refusal>>,
{
    let servers = machine.servers.lock().unwrap().clone();
    let first = process.current.load(Ordering::Relaxed);
    let mut worst = Refusal::Unreachable;
    for step in 0..servers.len() {
        let node = (first + step) % servers.len();
        let answer = call_one(machine, node, what, ask(servers[node].clone())).await;
        match answer {
            Ok(answer) => {
                process.current.store(node, Ordering::Relaxed);
                return Ok(answer);
            }
            Err(Refusal::RegisterAgain) => return Err(Refusal::RegisterAgain),
            Err(refusal) => worst = worse(worst, refusal),
        }
    }
    Err(worst)
}

async fn call_one<A>(
    machine: &Arc<SimExecutor>,
    node: usize,
    what: &str,
    ask: impl Future<Output = Result<A, Refusal>>,
) -> Result<A, Refusal> {
    let (here, there) = (Endpoint::Executor(machine.index), Endpoint::Node(node));
    let net = &machine.parts.net;
    let exchange = async {
        if net.carry(here, there, what).await != Fate::Arrived {
            return std::future::pending().await;
        }
        let answer = ask.await?;
        if net.carry(there, here, &format!("answer to {what}")).await != Fate::Arrived {
            return std::future::pending().await;
        }
        Ok(answer)
    };
    tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Err(Refusal::Unreachable))
}

/// As the SDK: a refusal outweighs "database unavailable", which outweighs silence.
fn worse(so_far: Refusal, found: Refusal) -> Refusal {
    use Refusal::{Fault, StoreUnavailable, Unreachable};
    match (so_far, found) {
        (Fault, Unreachable | StoreUnavailable) | (StoreUnavailable, Unreachable) => so_far,
        (_, found) => found,
    }
}
