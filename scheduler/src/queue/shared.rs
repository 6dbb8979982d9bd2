//! What the queue has in common with the batches that left it.

use super::fair_queue::FairQueue;
use crate::domain::TenantId;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the queue has in common with the batches that left it.
#[derive(Default)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    pub changed: Condvar,
}

#[derive(Default)]
pub(super) struct Inner {
    pub order: FairQueue,
    /// Due runs stay until others finish.
    pub passed_over: bool,
    pub closed: bool,
}

impl Shared {
    /// These many runs of these tenants are no longer under way.
    pub(super) fn finish(&self, counts: &BTreeMap<TenantId, usize>) {
        let mut inner = self.lock();
        for (tenant, count) in counts {
            inner.order.finish(*tenant, *count);
        }
        if std::mem::take(&mut inner.passed_over) {
            drop(inner);
            self.changed.notify_all();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every method leaves the collections in step before it can panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
