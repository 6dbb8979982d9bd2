//! What a batch knows about earlier batches.

use super::{Rings, Uses};
use crate::domain::ExecutorId;
use std::collections::HashMap;

/// What the caller knows before a batch, and keeps after it.
#[derive(Debug, Default)]
pub struct Known {
    /// The uses of those tasks of the batch whose routing goes by them
    /// ([`super::Routing::goes_by_uses`]): read again for every batch, since other nodes use them, too.
    pub uses: Uses,
    /// Runs given to executors (by id) since their last heartbeats.
    pub given: HashMap<ExecutorId, i64>,
    /// Rings of earlier batches; only saves work.
    pub rings: Rings,
}
