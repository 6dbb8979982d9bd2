//! Two ways to executors: signed messages to those that speak carillon's protocol, and what stands in for plain ones.

use super::{Presence, SendError, Transport};
use crate::domain::Executor;
use crate::store::ExecutorEnd;
use async_trait::async_trait;
use carillon_protocol::{Cancel, CancelAck, Dispatch, DispatchAck, OutputPage, Probe, ProbeAck, ReadOutput};
use std::sync::Arc;

/// Takes the way that an executor needs.
pub struct Wires {
    /// To those that registered themselves.
    pub signed: Arc<dyn Transport>,
    /// To plain ones.
    pub plain: Arc<dyn Transport>,
}

impl Wires {
    fn to(&self, is_plain: bool) -> &dyn Transport {
        if is_plain { &*self.plain } else { &*self.signed }
    }
}

#[async_trait]
impl Transport for Wires {
    async fn dispatch(&self, to: &Executor, message: &Dispatch, scripts: &[i64]) -> Result<DispatchAck, SendError> {
        self.to(to.plain).dispatch(to, message, scripts).await
    }

    async fn cancel(&self, to: &Executor, message: &Cancel, again: bool) -> Result<CancelAck, SendError> {
        self.to(to.plain).cancel(to, message, again).await
    }

    async fn ask(&self, to: &Executor, message: &Probe) -> Result<ProbeAck, SendError> {
        self.to(to.plain).ask(to, message).await
    }

    async fn read_output(&self, to: &Executor, message: &ReadOutput) -> Result<OutputPage, SendError> {
        self.to(to.plain).read_output(to, message).await
    }

    async fn probe(&self, silent: &ExecutorEnd) -> Presence {
        self.to(silent.plain).probe(silent).await
    }
}
