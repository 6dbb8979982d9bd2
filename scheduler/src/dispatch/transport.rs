//! Messages to executors, as the engine sees them.

use crate::domain::Executor;
use crate::store::ExecutorEnd;
use async_trait::async_trait;
use carillon_protocol::{
    self as protocol, Cancel, CancelAck, Code, Dispatch, DispatchAck, OutputPage, ProbeAck, ReadOutput,
};

/// Why a message was not answered as expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It certainly did not arrive (no connection).
    #[error("not delivered: {0}")]
    NotDelivered(String),
    /// It may have arrived (no answer, or one that cannot be trusted).
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// The executor refused it as a whole.
    #[error("refused with {0:?}: {1}")]
    Refused(Code, String),
}

/// What was found at the address of an executor that is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// A process of its app answers, with this instance.
    Instance(String),
    /// The machine answers that nothing listens there.
    NotListening,
    /// Nothing certain: no answer, or one that only a process of its app could have signed, and none did.
    Unknown,
}

/// The engine's way to executors.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Dispatches runs; idempotent per (log, attempt). `scripts` are the versions of the scripts that the runs are, in their
    /// order, 0 for a call of a handler; only plain executors are given others.
    async fn dispatch(&self, to: &Executor, message: &Dispatch, scripts: &[i64]) -> Result<DispatchAck, SendError>;
    /// Revokes runs; `again` when they may have been revoked there before, also by another node.
    async fn cancel(&self, to: &Executor, message: &Cancel, again: bool) -> Result<CancelAck, SendError>;
    /// Asks which tasks an executor is busy with, and whether it is there at all.
    async fn ask(&self, to: &Executor, message: &protocol::Probe) -> Result<ProbeAck, SendError>;
    /// Reads a page of a run's log output.
    async fn read_output(&self, to: &Executor, message: &ReadOutput) -> Result<OutputPage, SendError>;
    /// Checks which process listens at the address of an executor that is silent.
    async fn probe(&self, silent: &ExecutorEnd) -> Presence;
}
