//! The executors among which one task's runs are shared, with what each routing needs worked out
//! once.

use super::chooser::{Known, Request};
use super::load::least_loaded;
use super::ring::{Ring, Rings};
use super::round::Rotation;
use super::weights::Weights;
use super::{Executors, Routing};
use crate::domain::executor::Executor;
use std::sync::Arc;

/// Candidates of one task, at least one.
pub(super) struct Field {
    pub executors: Executors,
    weights: Weights,
    rotation: Option<Rotation>,
    /// The ring, and where the task lies on it.
    ring: Option<(Arc<Ring>, u32)>,
    /// Where the uses of the executors' addresses are kept.
    slots: Option<Vec<usize>>,
}

impl Field {
    pub fn new(executors: Vec<Arc<Executor>>) -> Self {
        let weights = Weights::of(&executors);
        Self { executors: executors.into(), weights, rotation: None, ring: None, slots: None }
    }

    /// The same without the executors of these ids.
    pub fn without(&self, ids: &[i64]) -> Self {
        Self::new(self.executors.iter().filter(|executor| !ids.contains(&executor.id)).cloned().collect())
    }

    /// The place of the one executor that `routing` chooses, or none when it asks or takes all.
    pub fn place(&mut self, routing: Routing, request: &Request<'_>, known: &mut Known) -> Option<usize> {
        match routing {
            Routing::First => Some(0),
            Routing::Last => self.executors.len().checked_sub(1),
            Routing::Round => self.turn(request),
            Routing::Random => self.weights.draw(request.seed()),
            Routing::ConsistentHash => self.on_ring(request.task_id, &[], &mut known.rings),
            Routing::LeastFrequentlyUsed => {
                let uses = known.uses.of(request.task_id);
                let slots = self.slots.get_or_insert_with(|| {
                    let slots = uses.slots(&self.executors);
                    uses.welcome(&self.executors, &slots);
                    slots
                });
                uses.least_frequent(&self.executors, slots)
            }
            Routing::LeastRecentlyUsed => {
                let uses = known.uses.of(request.task_id);
                let slots = self.slots.get_or_insert_with(|| uses.slots(&self.executors));
                uses.least_recent(slots)
            }
            Routing::LeastLoaded => least_loaded(&self.executors, &known.given, request.seed()),
            Routing::Failover | Routing::Busyover | Routing::Sharding => None,
        }
    }

    /// An attempt more is a turn further, so that a repeated run moves on.
    fn turn(&mut self, request: &Request<'_>) -> Option<usize> {
        let rotation = self.rotation.get_or_insert_with(|| {
            let shares: Vec<i64> = self.executors.iter().map(|executor| executor.share()).collect();
            Rotation::of(&shares)
        });
        rotation.at(request.seq.wrapping_add(i64::from(request.attempt)))
    }

    /// The place on the whole ring, passing over the executors of these ids.
    pub fn on_ring(&mut self, task_id: i64, left_out: &[i64], rings: &mut Rings) -> Option<usize> {
        let ring = || (rings.over(&self.executors), Ring::hash(&task_id.to_string()));
        let (ring, hash) = self.ring.get_or_insert_with(ring);
        let allowed = |place: &usize| self.executors.get(*place).is_some_and(|e| !left_out.contains(&e.id));
        ring.walk(*hash).find(allowed)
    }
}
