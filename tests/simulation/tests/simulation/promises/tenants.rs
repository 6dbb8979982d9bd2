//! P8: nothing crosses tenants. That one with much to do does not delay another is held by P3, for the other.

use super::Evidence;
use crate::world::Tenant;
use carillon::domain::{ExecutorId, LogId};

impl Evidence<'_> {
    /// An executor starts runs of its tenant only.
    pub fn tenants_are_apart(&mut self) {
        for start in self.starts.values().flatten().cloned().collect::<Vec<_>>() {
            let executors = self.world.tenants.iter().find(|tenant| tenant.tasks.contains(&start.task));
            let address = self.state.executor_address(ExecutorId(start.executor_id));
            let is_of = |tenant: &Tenant, address: &str| {
                tenant.executors.iter().any(|index| self.world.executors[*index].address() == address)
            };
            let here = self.world.executors[start.machine].address();
            let is_own = executors.is_some_and(|tenant| is_of(tenant, &address) && is_of(tenant, here));
            if !is_own && !address.is_empty() {
                let detail = format!("task {} started at {address}", start.task);
                self.breaks("P8 an executor starts runs of its tenant only", Some(LogId(start.key.0)), detail);
            }
        }
    }
}
