//! Who takes part in a run at a fixed rate.

use serde::{Deserialize, Serialize};

/// Most executors that one process simulates: each has four threads and a port.
pub const EXECUTORS_MAX: u32 = 1_000;

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Nodes that share the work.
    pub nodes: u32,
    /// Tenants that the firing tasks belong to, in turn.
    pub tenants: u32,
    /// Executors of all tenants together, in one process.
    pub executors: u32,
    /// Enabled tasks beside those that fire.
    pub tasks: u32,
}

impl Load {
    /// One of each, and no task but those that fire.
    pub const ONE: Self = Self { nodes: 1, tenants: 1, executors: 1, tasks: 0 };

    /// As many executors as tenants, unless something else is said.
    pub fn new(nodes: u32, tenants: u32, executors: Option<u32>, tasks: u32) -> Result<Self, String> {
        let executors = executors.unwrap_or(tenants);
        if executors < tenants {
            return Err(format!(
                "--executors {executors} are fewer than --tenants {tenants}: an executor works for one tenant, so each \
                 needs one; say --executors {tenants} or more"
            ));
        }
        if executors > EXECUTORS_MAX {
            return Err(format!(
                "{executors} executors are too many for one process: say --executors {EXECUTORS_MAX} or fewer, and no \
                 more --tenants"
            ));
        }
        Ok(Self { nodes, tenants, executors, tasks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_an_executor() {
        assert_eq!(Load::new(2, 10, None, 5), Ok(Load { nodes: 2, tenants: 10, executors: 10, tasks: 5 }));
        assert_eq!(Load::new(1, 10, Some(30), 0).map(|load| load.executors), Ok(30));
        assert_eq!(Load::new(1, 1, None, 0), Ok(Load::ONE));
        for (tenants, executors) in [(10, Some(9)), (1, Some(1_001)), (1_001, None)] {
            assert!(Load::new(1, tenants, executors, 0).is_err(), "{tenants} {executors:?}");
        }
    }
}
