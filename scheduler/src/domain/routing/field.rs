//! The executors among which one task's runs are shared, with what each routing needs worked out
//! once.

use super::Executors;
use super::ring::{Ring, Rings};
use super::round::Rotation;
use super::weights::Weights;
use crate::domain::executor::Executor;
use crate::domain::{ExecutorId, TaskId};
use std::sync::Arc;

/// Candidates of one task, at least one.
pub(super) struct Field {
    pub executors: Executors,
    pub weights: Weights,
    pub rotation: Option<Rotation>,
    /// The ring, and where the task lies on it.
    ring: Option<(Arc<Ring>, u32)>,
    /// Where the uses of the executors' addresses are kept.
    pub slots: Option<Vec<usize>>,
}

impl Field {
    pub fn new(executors: Vec<Arc<Executor>>) -> Self {
        let weights = Weights::of(&executors);
        Self { executors: executors.into(), weights, rotation: None, ring: None, slots: None }
    }

    /// The same without the executors of these ids.
    pub fn without(&self, ids: &[ExecutorId]) -> Self {
        Self::new(self.executors.iter().filter(|executor| !ids.contains(&executor.id)).cloned().collect())
    }

    /// The place on the whole ring, passing over the executors of these ids.
    pub fn on_ring(&mut self, task_id: TaskId, left_out: &[ExecutorId], rings: &mut Rings) -> Option<usize> {
        let ring = || (rings.over(&self.executors), Ring::hash(&task_id.to_string()));
        let (ring, hash) = self.ring.get_or_insert_with(ring);
        let allowed = |place: &usize| self.executors.get(*place).is_some_and(|e| !left_out.contains(&e.id));
        ring.walk(*hash).find(allowed)
    }
}
