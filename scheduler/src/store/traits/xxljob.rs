//! What `xxljob/` asks: the numbers by which executors of xxl-job know tasks and attempts.

use crate::domain::{LogId, Owner, TaskId};
use crate::store::Result;
use async_trait::async_trait;
use std::collections::HashMap;

/// An attempt of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberedAttempt {
    /// Whose it is.
    pub owner: Owner,
    /// Task log.
    pub log: LogId,
    /// From 1.
    pub attempt: i32,
}

/// Numbers of tasks that one call answers at most.
pub const JOB_NUMBERS_MAX: usize = 5_000;

/// Asked by `xxljob/` for numbers.
#[async_trait]
pub trait JobNumberStore: Send + Sync {
    /// The numbers of tasks within their tenant, at most [`BATCH_MAX`](crate::store::BATCH_MAX) of one owner; those that have
    /// none get the next ones.
    async fn job_numbers(&self, owner: Owner, tasks: &[TaskId]) -> Result<HashMap<TaskId, i32>>;
    /// The numbers of a task and of others of its app, those of later ones first, at most
    /// [`JOB_NUMBERS_MAX`]: so that few calls answer for many tasks. Of those that have none, that task and at most
    /// [`BATCH_MAX`](crate::store::BATCH_MAX) others get the next ones.
    async fn job_numbers_from(&self, owner: Owner, task: TaskId) -> Result<HashMap<TaskId, i32>>;
    /// The number of an attempt after the first. `number` makes one for each try until one is free; `now` is cluster time, ms.
    async fn attempt_number(
        &self,
        attempt: &NumberedAttempt,
        number: &(dyn Fn(usize) -> i64 + Sync),
        now: i64,
    ) -> Result<i64>;
    /// Which attempts have these numbers, at most [`BATCH_MAX`](crate::store::BATCH_MAX).
    async fn numbered_attempts(&self, numbers: &[i64]) -> Result<HashMap<i64, NumberedAttempt>>;
    /// Forgets numbers made before that instant (ms), at most [`BATCH_MAX`](crate::store::BATCH_MAX) of them; answers how many.
    async fn forget_attempt_numbers(&self, before: i64) -> Result<u64>;
}
