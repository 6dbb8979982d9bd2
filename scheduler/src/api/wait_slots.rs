//! Slots for requests that wait for a run to end.

use super::problem::Problem;
use super::refusal::RequestRefusal;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Most requests that wait at once on a node.
const WAITING_MAX: usize = 200;

/// How long a client should wait when all slots are taken.
const SLOT_WAIT: Duration = Duration::from_secs(5);

/// Slots for waiting requests.
pub struct WaitSlots(Semaphore);

impl Default for WaitSlots {
    fn default() -> Self {
        Self(Semaphore::new(WAITING_MAX))
    }
}

impl WaitSlots {
    /// A slot, free again when it is dropped.
    ///
    /// # Errors
    /// All are taken.
    pub fn enter(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let refusal = RequestRefusal::TooManyWaiting { most: WAITING_MAX as i64 };
        self.0.try_acquire().map_err(|_| Problem::from(refusal).retry_after(SLOT_WAIT))
    }
}
