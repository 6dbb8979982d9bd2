//! What a run at a fixed rate is to be.

use crate::load::Load;
use crate::options::Protocol;

/// How far ahead a node writes logs by default.
const AHEAD_S: u32 = 180;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Tasks, and so fires per second.
    pub rate: u32,
    /// Length of the window.
    pub seconds: u32,
    /// How far ahead logs are written.
    pub ahead_s: u32,
    /// Who takes part.
    pub load: Load,
    /// Whether as many logs become old as are written.
    pub retention: bool,
    /// What executors speak.
    pub protocol: Protocol,
}

impl Plan {
    /// One of each, with the node's default distance.
    pub fn full(rate: u32, seconds: u32) -> Self {
        Self { rate, seconds, ahead_s: AHEAD_S, load: Load::ONE, retention: false, protocol: Protocol::Carillon }
    }

    /// Fires that the window should hold.
    pub fn expected(self) -> u64 {
        u64::from(self.rate) * u64::from(self.seconds)
    }
}
