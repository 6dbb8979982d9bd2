//! Runs that left the queue, and the proof that they count as under way.

use super::shared::Shared;
use crate::domain::{Run, TenantId};
use std::collections::BTreeMap;
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
    /// Tenant → runs.
    counts: BTreeMap<TenantId, usize>,
}

impl Batch {
    pub(super) fn of(runs: Vec<Run>, queue: &Arc<Shared>) -> Self {
        let mut counts = BTreeMap::new();
        for run in &runs {
            *counts.entry(run.tenant_id).or_default() += 1;
        }
        Self { runs, under_way: UnderWay { queue: Some(Arc::clone(queue)), counts } }
    }
}

/// Runs that are not counted.
impl From<Vec<Run>> for Batch {
    fn from(runs: Vec<Run>) -> Self {
        Self { runs, under_way: UnderWay::default() }
    }
}

impl UnderWay {
    /// Splits `count` of this tenant's runs off, or what there are: they finish by themselves.
    #[must_use]
    pub fn part(&mut self, tenant: TenantId, count: usize) -> Self {
        let have = self.counts.get_mut(&tenant);
        let count = have.map_or(0, |have| {
            let count = count.min(*have);
            *have -= count;
            count
        });
        Self { queue: self.queue.clone(), counts: BTreeMap::from([(tenant, count)]) }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.finish(&self.counts);
        }
    }
}
