//! The numbers by which executors know tasks and attempts. A task's number never changes, so it is kept.

use crate::domain::xxljob::number::{of_first, of_later};
use crate::domain::{LogId, Owner, TaskId};
use crate::store::{JobNumberStore, NumberedAttempt, Result, StoreError, StoreErrorKind};
use carillon_protocol::RunKey;
use dashmap::DashMap;
use std::sync::Arc;

/// Numbers of tasks that are kept at most.
const KEPT_MAX: usize = 200_000;

/// Numbers, as far as they are known here, and where the others are.
pub struct JobNumbers {
    store: Arc<dyn JobNumberStore>,
    tasks: DashMap<TaskId, i32>,
}

impl JobNumbers {
    /// Over the store.
    pub fn new(store: Arc<dyn JobNumberStore>) -> Self {
        Self { store, tasks: DashMap::new() }
    }

    /// The number of a task within its tenant.
    pub async fn of_task(&self, owner: Owner, task: TaskId) -> Result<i32> {
        if let Some(number) = self.tasks.get(&task) {
            return Ok(*number);
        }
        let numbers = self.store.job_numbers(owner, &[task]).await?;
        let none = || StoreError::new(StoreErrorKind::Contention, "number a task", "it has no number yet");
        let number = numbers.get(&task).copied().ok_or_else(none)?;
        if self.tasks.len() >= KEPT_MAX {
            self.tasks.clear();
        }
        self.tasks.insert(task, number);
        Ok(number)
    }

    /// The number of an attempt. `now` is cluster time, ms.
    pub async fn of_attempt(&self, owner: Owner, RunKey(log, attempt): RunKey, now: i64) -> Result<i64> {
        if attempt <= 1 {
            return Ok(of_first(LogId(log)));
        }
        // Spread over all numbers, so that two attempts seldom want the same.
        let number = |tried: usize| {
            let seed = log.unsigned_abs() ^ (u64::from(attempt.unsigned_abs()) << 40) ^ ((tried as u64) << 56);
            of_later((seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) as i64)
        };
        self.store.attempt_number(&NumberedAttempt { owner, log: LogId(log), attempt }, &number, now).await
    }
}
