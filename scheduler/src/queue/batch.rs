//! Runs that left the queue, and the proof that they count as under way.

use super::shared::Shared;
use crate::domain::{LogId, Run, TenantId};
use std::collections::HashMap;
use std::sync::Arc;

/// Runs taken out of the queue at once.
#[derive(Default)]
pub struct Batch {
    /// They.
    pub runs: Vec<Run>,
    /// Counts them for their tenants until it is dropped.
    pub under_way: UnderWay,
}

/// Counts runs as under way for as long as it lives, also through a panic or an early return.
#[derive(Default)]
pub struct UnderWay {
    queue: Option<Arc<Shared>>,
    runs: HashMap<LogId, TenantId>,
}

impl Batch {
    pub(super) fn of(runs: Vec<Run>, queue: &Arc<Shared>) -> Self {
        let counted = runs.iter().map(|run| (run.id, run.tenant_id)).collect();
        Self { runs, under_way: UnderWay { queue: Some(Arc::clone(queue)), runs: counted } }
    }
}

/// Runs that are not counted.
impl From<Vec<Run>> for Batch {
    fn from(runs: Vec<Run>) -> Self {
        Self { runs, under_way: UnderWay::default() }
    }
}

impl UnderWay {
    /// Splits those of these runs off that are counted here: they finish by themselves.
    #[must_use]
    pub fn part(&mut self, ids: impl IntoIterator<Item = LogId>) -> Self {
        let runs = ids.into_iter().filter_map(|id| self.runs.remove_entry(&id)).collect();
        Self { queue: self.queue.clone(), runs }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.as_ref().filter(|_| !self.runs.is_empty()) {
            queue.finish(&self.runs);
        }
    }
}
