//! What an executor meets outside of itself: clocks, chance, files, the way to the nodes.

use crate::address::host_name;
use crate::carrier::Carrier;
use crate::clock::{self, TimeSource};
use crate::disk::{self, Disk};
use carillon_protocol::sign::{RandomSource, SystemRandom};
use std::sync::Arc;

/// What lies around an executor.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Its machine's clocks.
    pub time: Arc<dyn TimeSource>,
    /// Where nonces and the name of the process come from.
    pub random: Arc<dyn RandomSource>,
    /// Where the journal is.
    pub disk: Arc<dyn Disk>,
    /// The way to the nodes.
    pub carrier: Arc<dyn Carrier>,
    /// Whether the process itself listens at its address; `None`: it finds out.
    pub own_address: Option<bool>,
    /// Name of the machine or container.
    pub host_name: String,
    /// Id of the process.
    pub pid: u32,
}

impl Surroundings {
    /// This machine, and what leads to the nodes.
    pub(crate) fn machine(carrier: Arc<dyn Carrier>) -> Self {
        Self {
            time: clock::machine(),
            random: Arc::new(SystemRandom),
            disk: disk::machine(),
            carrier,
            own_address: None,
            host_name: host_name(),
            pid: std::process::id(),
        }
    }
}
