//! Numbers by which executors of xxl-job know tasks and attempts.

use super::{ModelStore, refuse};
use async_trait::async_trait;
use carillon::domain::{Owner, TaskId};
use carillon::store::{BATCH_MAX, JOB_NUMBERS_MAX, JobNumberStore, NumberedAttempt, Result, StoreErrorKind};
use std::collections::HashMap;

/// How often a number is made anew that another attempt has.
const NUMBERS_TRIED_MAX: usize = 5;

/// Of an attempt that has a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptNumberRow {
    attempt: NumberedAttempt,
    made_at: i64,
}

#[async_trait]
impl JobNumberStore for ModelStore {
    async fn job_numbers(&self, owner: Owner, tasks: &[TaskId]) -> Result<HashMap<TaskId, i32>> {
        let tenant = owner.tenant_id;
        let known = self.call("read the numbers of tasks", |state, _| {
            let number = |task: &TaskId| Some((*task, *state.job_numbers.get(&(tenant, *task))?));
            Ok(tasks.iter().filter_map(number).collect::<HashMap<TaskId, i32>>())
        });
        let known = known.await?;
        if tasks.iter().all(|task| known.contains_key(task)) {
            return Ok(known);
        }
        self.call("number tasks", |state, _| {
            let mut numbers = HashMap::new();
            for task in tasks {
                let last = state.job_numbers.iter().filter(|((of, _), _)| *of == tenant).map(|(_, number)| *number);
                let next = last.max().unwrap_or(0) + 1;
                numbers.insert(*task, *state.job_numbers.entry((tenant, *task)).or_insert(next));
            }
            Ok(numbers)
        })
        .await
    }

    async fn job_numbers_from(&self, owner: Owner, task: TaskId) -> Result<HashMap<TaskId, i32>> {
        let found = self.call("read the numbers of an app's tasks", |state, _| {
            let mut of_app: Vec<TaskId> =
                state.tasks.iter().filter(|(_, row)| row.view.owner == owner).map(|(id, _)| *id).collect();
            of_app.sort_by_key(|found| (*found < task, *found));
            of_app.truncate(JOB_NUMBERS_MAX);
            let number = |task: TaskId| (task, state.job_numbers.get(&(owner.tenant_id, task)).copied());
            Ok(of_app.into_iter().map(number).collect::<Vec<_>>())
        });
        let found = found.await?;
        let mut numbers: HashMap<TaskId, i32> =
            found.iter().filter_map(|(task, number)| Some((*task, (*number)?))).collect();
        let unnumbered = found.iter().filter(|(_, number)| number.is_none()).map(|(task, _)| *task);
        let own = Some(task).filter(|task| !found.iter().any(|(found, _)| found == task));
        let ask: Vec<TaskId> = own.into_iter().chain(unnumbered).take(BATCH_MAX).collect();
        if !ask.is_empty() {
            numbers.extend(self.job_numbers(owner, &ask).await?);
        }
        Ok(numbers)
    }

    async fn attempt_number(
        &self,
        attempt: &NumberedAttempt,
        number: &(dyn Fn(usize) -> i64 + Sync),
        now: i64,
    ) -> Result<i64> {
        const ACTION: &str = "number an attempt";
        self.call(ACTION, |state, _| {
            let rows = &mut state.attempt_numbers;
            if let Some((number, _)) = rows.iter().find(|(_, row)| row.attempt == *attempt) {
                return Ok(*number);
            }
            let Some(free) = (0..NUMBERS_TRIED_MAX).map(number).find(|number| !rows.contains_key(number)) else {
                return refuse(StoreErrorKind::Contention, ACTION, "the numbers that were made are all in use");
            };
            rows.insert(free, AttemptNumberRow { attempt: *attempt, made_at: now });
            Ok(free)
        })
        .await
    }

    async fn numbered_attempts(&self, numbers: &[i64]) -> Result<HashMap<i64, NumberedAttempt>> {
        self.call("read numbered attempts", |state, _| {
            let attempt = |number: &i64| Some((*number, state.attempt_numbers.get(number)?.attempt));
            Ok(numbers.iter().filter_map(attempt).collect())
        })
        .await
    }

    async fn forget_attempt_numbers(&self, before: i64) -> Result<u64> {
        self.call("forget the numbers of attempts", |state, _| {
            let old = state.attempt_numbers.iter().filter(|(_, row)| row.made_at < before);
            let mut old: Vec<(i64, i64)> = old.map(|(number, row)| (row.made_at, *number)).collect();
            old.sort_unstable();
            old.truncate(BATCH_MAX);
            for (_, number) in &old {
                state.attempt_numbers.remove(number);
            }
            Ok(old.len() as u64)
        })
        .await
    }
}
