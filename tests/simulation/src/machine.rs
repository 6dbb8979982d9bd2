//! Machines of executors: of those that embed the SDK, and of plain ones.

use crate::executor::{NodeServer, SimExecutor};
use crate::net::Broken;
use crate::plain::PlainExecutor;
use carillon_protocol::exchange::{Answer, Request};
use std::sync::{Arc, Weak};

/// A machine.
#[derive(Debug, Clone)]
pub enum Machine {
    /// Its processes are the SDK.
    Sdk(Arc<SimExecutor>),
    /// Its processes speak xxl-job's protocol.
    Plain(Arc<PlainExecutor>),
}

/// The same of either.
macro_rules! either {
    ($self:ident, $machine:ident => $what:expr) => {
        match $self {
            Self::Sdk($machine) => $what,
            Self::Plain($machine) => $what,
        }
    };
}

impl Machine {
    /// Whether its processes are plain executors.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Its number.
    #[must_use]
    pub fn index(&self) -> usize {
        either!(self, machine => machine.index())
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &str {
        either!(self, machine => machine.address())
    }

    /// Tells it where the nodes are.
    pub fn connect(&self, servers: Vec<Weak<dyn NodeServer>>) {
        either!(self, machine => machine.connect(servers));
    }

    /// Starts a process, if none runs.
    pub fn start(&self) {
        either!(self, machine => machine.start());
    }

    /// Whether a process runs here.
    #[must_use]
    pub fn is_running(&self) -> bool {
        either!(self, machine => machine.is_running())
    }

    /// Kills the process (SIGKILL).
    pub fn kill(&self) {
        either!(self, machine => machine.kill());
    }

    /// Asks the process to end (SIGTERM).
    pub fn drain(&self) {
        either!(self, machine => machine.drain());
    }

    /// Stops the process (SIGSTOP) until then, epoch ms.
    pub fn pause(&self, until_ms: i64) {
        either!(self, machine => machine.pause(until_ms));
    }

    /// Whether results wait for a node.
    #[must_use]
    pub fn has_results(&self) -> bool {
        either!(self, machine => machine.has_results())
    }

    /// What its process keeps of runs, by name, where there is anything.
    #[must_use]
    pub fn kept(&self) -> Vec<(&'static str, usize)> {
        either!(self, machine => machine.kept())
    }

    /// What a request to this machine comes to.
    pub(crate) async fn serve(&self, request: Request) -> Result<Answer, Broken> {
        either!(self, machine => machine.serve(request).await)
    }
}
