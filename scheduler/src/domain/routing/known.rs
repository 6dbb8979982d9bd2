//! What a batch knows about earlier batches.

use super::{CandidateLists, Rings, Uses};
use crate::domain::ExecutorId;
use std::collections::HashMap;
use std::sync::Arc;

/// What the caller knows before a batch, and keeps after it.
#[derive(Debug, Default)]
pub struct Known {
    /// The uses of those tasks of the batch whose routing goes by them
    /// ([`super::Routing::goes_by_uses`]): read again for every batch, since other nodes use them, too.
    pub uses: Uses,
    /// Runs given to executors (by id) since their last heartbeats, as far as a routing of the batch goes by loads
    /// ([`super::Routing::goes_by_load`]); what the batch gives adds up here.
    pub given: HashMap<ExecutorId, i64>,
    /// Of those, what this batch has given.
    pub newly_given: HashMap<ExecutorId, i64>,
    /// Rings of earlier batches; only saves work.
    pub rings: Rings,
    /// Candidates of earlier batches; only saves work.
    pub lists: Arc<CandidateLists>,
}
