//! The executors of one app that are online, in the order of candidates.

use super::Executors;
use crate::domain::executor::Executor;
use crate::domain::{AppId, TenantId};
use std::sync::Arc;

/// Executors of one app, each once, in the order of (address, id).
#[derive(Debug, Clone)]
pub struct Fleet {
    app: (TenantId, AppId),
    executors: Executors,
    shape: u64,
    has_plain: bool,
}

impl Fleet {
    /// The number of a shape that nothing is kept of.
    pub const UNKEPT: u64 = 0;

    /// Of these executors of an app. Fleets of one app with the same number `shape` differ in load and times only
    /// ([`Executor::routes_like`]).
    #[must_use]
    pub fn new(app: (TenantId, AppId), mut executors: Vec<Arc<Executor>>, shape: u64) -> Self {
        executors.sort_by(|a, b| (&a.address, a.id).cmp(&(&b.address, b.id)));
        executors.dedup_by_key(|executor| executor.id);
        let has_plain = executors.iter().any(|executor| executor.plain);
        Self { app, executors: executors.into(), shape, has_plain }
    }

    /// Whose they are.
    #[must_use]
    pub fn app(&self) -> (TenantId, AppId) {
        self.app
    }

    /// The executors.
    #[must_use]
    pub fn executors(&self) -> &Executors {
        &self.executors
    }

    /// The number of their shape.
    #[must_use]
    pub fn shape(&self) -> u64 {
        self.shape
    }

    /// Whether one of them is plain: what may go to it is not sent early.
    #[must_use]
    pub fn has_plain(&self) -> bool {
        self.has_plain
    }

    /// Whether this is the same fleet at the same time.
    #[must_use]
    pub fn is(&self, other: &Executors) -> bool {
        Arc::ptr_eq(&self.executors, other)
    }

    /// The same fleet with other executors in the places of those of the same (address, id).
    #[must_use]
    pub fn with(&self, newer: &[Arc<Executor>]) -> Self {
        let mut executors = self.executors.to_vec();
        for executor in newer {
            let place = |e: &Arc<Executor>| (&e.address, e.id).cmp(&(&executor.address, executor.id));
            if let Some(slot) = executors.binary_search_by(place).ok().and_then(|place| executors.get_mut(place)) {
                *slot = Arc::clone(executor);
            }
        }
        Self { executors: executors.into(), ..self.clone() }
    }
}
