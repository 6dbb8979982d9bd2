//! The numbers by which executors know tasks and attempts. A task's number never changes, so it is kept. Where one is missing,
//! those of many tasks of its app are read at once, by one caller at a time: after a start a whole second's tasks ask together.

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
    /// Who reads; the others find what was read.
    reading: tokio::sync::Mutex<()>,
}

impl JobNumbers {
    /// Over the store.
    pub fn new(store: Arc<dyn JobNumberStore>) -> Self {
        Self { store, tasks: DashMap::new(), reading: tokio::sync::Mutex::default() }
    }

    /// The number of a task within its tenant.
    pub async fn of_task(&self, owner: Owner, task: TaskId) -> Result<i32> {
        if let Some(number) = self.known(task) {
            return Ok(number);
        }
        let _turn = self.reading.lock().await;
        if let Some(number) = self.known(task) {
            return Ok(number);
        }
        let numbers = self.store.job_numbers_from(owner, task).await?;
        let none = || StoreError::new(StoreErrorKind::Contention, "number a task", "it has no number yet");
        let number = numbers.get(&task).copied().ok_or_else(none)?;
        if self.tasks.len() + numbers.len() > KEPT_MAX {
            self.tasks.clear();
        }
        for (task, number) in numbers {
            self.tasks.insert(task, number);
        }
        Ok(number)
    }

    fn known(&self, task: TaskId) -> Option<i32> {
        self.tasks.get(&task).map(|number| *number)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AppId, TenantId};
    use async_trait::async_trait;
    use futures_util::future::join_all;
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An app of so many tasks; it counts how often it is asked.
    struct Asked {
        tasks: i64,
        times: AtomicUsize,
    }

    #[async_trait]
    impl JobNumberStore for Asked {
        async fn job_numbers(&self, _: Owner, _: &[TaskId]) -> Result<HashMap<TaskId, i32>> {
            unreachable!("one by one")
        }

        async fn job_numbers_from(&self, _: Owner, task: TaskId) -> Result<HashMap<TaskId, i32>> {
            self.times.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            // The later ones first, and no more than half of them.
            let found = (task.0..self.tasks).chain(0..task.0).take(self.tasks as usize / 2);
            Ok(found.map(|id| (TaskId(id), id as i32 + 1)).collect())
        }

        async fn attempt_number(&self, _: &NumberedAttempt, _: &(dyn Fn(usize) -> i64 + Sync), _: i64) -> Result<i64> {
            unreachable!("no attempt")
        }

        async fn numbered_attempts(&self, _: &[i64]) -> Result<HashMap<i64, NumberedAttempt>> {
            unreachable!("no attempt")
        }

        async fn forget_attempt_numbers(&self, _: i64) -> Result<u64> {
            unreachable!("no attempt")
        }
    }

    #[tokio::test]
    async fn a_burst_of_tasks_is_read_together() {
        let store = Arc::new(Asked { tasks: 1_000, times: AtomicUsize::new(0) });
        let numbers = JobNumbers::new(store.clone());
        let owner = Owner { tenant_id: TenantId(1), app_id: AppId(1) };
        let found = join_all((0..1_000).map(|id| numbers.of_task(owner, TaskId(id)))).await;
        let found: Vec<i32> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!(found, (1..=1_000).collect::<Vec<_>>());
        assert_eq!(store.times.load(Ordering::Relaxed), 2, "one read for each half");
    }
}
