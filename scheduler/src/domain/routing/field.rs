//! The executors among which one task's runs are shared.

use super::Executors;
use super::candidates::Candidates;
use super::ring::{Ring, Rings};
use crate::domain::{ExecutorId, TaskId};
use std::sync::Arc;

/// Candidates of one task, and where the task stands among them.
pub(super) struct Field {
    pub candidates: Arc<Candidates>,
    /// Where the task lies on their ring.
    hash: Option<u32>,
    /// Where the uses of the executors' addresses are kept.
    pub slots: Option<Vec<usize>>,
}

impl Field {
    pub fn new(candidates: Arc<Candidates>) -> Self {
        Self { candidates, hash: None, slots: None }
    }

    pub fn executors(&self) -> &Executors {
        &self.candidates.executors
    }

    /// The same without the executors of these ids.
    pub fn without(&self, ids: &[ExecutorId]) -> Self {
        let others = self.executors().iter().filter(|executor| !ids.contains(&executor.id)).cloned();
        // Its places are asked for by no one: it is not kept.
        Self::new(Arc::new(Candidates::of(others.collect(), Vec::new())))
    }

    /// The place on the whole ring, passing over the executors of these ids.
    pub fn on_ring(&mut self, task_id: TaskId, left_out: &[ExecutorId], rings: &mut Rings) -> Option<usize> {
        let hash = *self.hash.get_or_insert_with(|| Ring::hash(&task_id.to_string()));
        let allowed = |place: &usize| self.executors().get(*place).is_some_and(|e| !left_out.contains(&e.id));
        self.candidates.ring(rings).walk(hash).find(allowed)
    }
}
