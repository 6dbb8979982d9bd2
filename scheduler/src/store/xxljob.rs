//! Numbers by which executors of xxl-job know tasks and attempts.

use super::dialect::Kind;
use super::row::from_row;
use super::rows;
use super::sql::ID;
use super::sql_store::{Transaction, retrying};
use super::values::{list, to_json};
use super::{
    BATCH_MAX, JOB_NUMBERS_MAX, JobNumberStore, NumberedAttempt, Result, SqlStore, StoreError, StoreErrorKind,
};
use crate::domain::{AppId, LogId, Owner, TaskId, TenantId};
use async_trait::async_trait;
use std::collections::HashMap;

statements!(
    JOB_NUMBERS = |d| format!(
        "SELECT x.task_id, x.number FROM {} xxljob_task x ON x.task_id = v.n_id WHERE x.tenant_id = {{2}}",
        d.batch(1, ID)
    ),
    JOB_NUMBERS_TAKE = |_| "UPDATE xxljob_number SET last_task = last_task + {2} WHERE tenant_id = {1}".into(),
    JOB_NUMBERS_BEGIN = |d| format!(
        "INSERT INTO xxljob_number (tenant_id, last_task) SELECT v.n_id, 0 FROM {} WHERE 1 = 1 {}",
        d.rows(1, ID),
        d.or_ignore("xxljob_number", "tenant_id")
    ),
    APP_NUMBERS_BEGIN = |d| format!(
        "INSERT INTO xxljob_app_last (tenant_id, last_app) VALUES ({{1}}, 0) {}",
        d.or_ignore("xxljob_app_last", "tenant_id")
    ),
    JOB_NUMBER_LAST = |_| "SELECT last_task FROM xxljob_number WHERE tenant_id = {1}".into(),
    JOB_NUMBERS_ADD = |d| format!(
        "INSERT INTO xxljob_task (task_id, tenant_id, app_id, number) SELECT v.n_task_id, v.n_tenant_id, v.n_app_id, \
         v.n_number FROM {}",
        d.rows(1, &[("task_id", Kind::Big), ("tenant_id", Kind::Big), ("app_id", Kind::Big), ("number", Kind::Int)])
    ),
    ATTEMPTS_NUMBERED = |d| format!(
        "SELECT x.number, x.tenant_id, x.app_id, x.log_id, x.attempt FROM {} xxljob_attempt x ON x.number = v.n_id",
        d.batch(1, ID)
    ),
    ATTEMPTS_FORGOTTEN = |d| d.delete_from("xxljob_attempt", &d.rows(1, ID), "l.number = v.n_id"),
);

const NUMBER_TASKS: &str = "number tasks";
const NUMBER_ATTEMPT: &str = "number an attempt";

/// How often a number is made anew that another attempt has.
const NUMBERS_TRIED_MAX: usize = 5;

#[async_trait]
impl JobNumberStore for SqlStore {
    async fn job_numbers(&self, owner: Owner, tasks: &[TaskId]) -> Result<HashMap<TaskId, i32>> {
        let known: Vec<(TaskId, i32)> = self
            .query(NUMBER_TASKS, &JOB_NUMBERS, [list(NUMBER_TASKS, tasks.iter())?.into(), owner.tenant_id.into()])
            .await?;
        let known: HashMap<TaskId, i32> = known.into_iter().collect();
        if tasks.iter().all(|task| known.contains_key(task)) {
            return Ok(known);
        }
        retrying(|| self.number_tasks(owner, tasks)).await
    }

    async fn job_numbers_from(&self, owner: Owner, task: TaskId) -> Result<HashMap<TaskId, i32>> {
        let read = sql!(
            "SELECT t.id, x.number FROM task t LEFT JOIN xxljob_task x ON x.task_id = t.id WHERE t.tenant_id = {1} AND \
             t.app_id = {2} ORDER BY CASE WHEN t.id < {3} THEN 1 ELSE 0 END, t.id LIMIT {4}"
        );
        let values = [owner.tenant_id.into(), owner.app_id.into(), task.into(), (JOB_NUMBERS_MAX as u64).into()];
        let found: Vec<(TaskId, Option<i32>)> = self.query(NUMBER_TASKS, &read, values).await?;
        let mut numbers: HashMap<TaskId, i32> =
            found.iter().filter_map(|(task, number)| Some((*task, (*number)?))).collect();
        let unnumbered = found.iter().filter(|(_, number)| number.is_none()).map(|(task, _)| *task);
        // That task may have been deleted, while its runs go on.
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
        let NumberedAttempt { owner, log, attempt } = *attempt;
        let find = sql!(
            "SELECT number FROM xxljob_attempt WHERE log_id = {1} AND attempt = {2} AND tenant_id = {3} AND app_id = {4}"
        );
        let insert = sql!(
            "INSERT INTO xxljob_attempt (number, tenant_id, app_id, log_id, attempt, made_at) VALUES ({1}, {2}, {3}, {4}, {5}, {6})"
        );
        for tried in 0..NUMBERS_TRIED_MAX {
            let whose = [log.into(), attempt.into(), owner.tenant_id.into(), owner.app_id.into()];
            let found: Vec<i64> = self.query(NUMBER_ATTEMPT, &find, whose).await?;
            if let Some(number) = found.first() {
                return Ok(*number);
            }
            let number = number(tried);
            let values =
                [number.into(), owner.tenant_id.into(), owner.app_id.into(), log.into(), attempt.into(), now.into()];
            match self.execute(NUMBER_ATTEMPT, &insert, values).await {
                Ok(_) => return Ok(number),
                Err(error) if error.kind() == StoreErrorKind::Duplicate => {}
                Err(error) => return Err(error),
            }
        }
        let detail = "the numbers that were made are all in use";
        Err(StoreError::new(StoreErrorKind::Contention, NUMBER_ATTEMPT, detail))
    }

    async fn numbered_attempts(&self, numbers: &[i64]) -> Result<HashMap<i64, NumberedAttempt>> {
        const ACTION: &str = "read numbered attempts";
        let found: Vec<AttemptRow> = self.query(ACTION, &ATTEMPTS_NUMBERED, [list(ACTION, numbers)?.into()]).await?;
        let named =
            |AttemptRow { number, owner, log, attempt }: AttemptRow| (number, NumberedAttempt { owner, log, attempt });
        Ok(found.into_iter().map(named).collect())
    }

    async fn forget_attempt_numbers(&self, before: i64) -> Result<u64> {
        const ACTION: &str = "forget the numbers of attempts";
        let old = sql!("SELECT number FROM xxljob_attempt WHERE made_at < {1} ORDER BY made_at LIMIT {2}");
        let old: Vec<i64> = self.query(ACTION, &old, [before.into(), (BATCH_MAX as u64).into()]).await?;
        if old.is_empty() {
            return Ok(0);
        }
        self.execute(ACTION, &ATTEMPTS_FORGOTTEN, [list(ACTION, &old)?.into()]).await
    }
}

impl SqlStore {
    /// Numbers those of them that have none, one transaction of a tenant at a time.
    async fn number_tasks(&self, owner: Owner, tasks: &[TaskId]) -> Result<HashMap<TaskId, i32>> {
        let Owner { tenant_id, app_id } = owner;
        let tx = self.begin(NUMBER_TASKS).await?;
        take(&tx, tenant_id, 0).await?;
        let asked = list(NUMBER_TASKS, tasks.iter())?;
        let known: Vec<(TaskId, i32)> = tx.query(&JOB_NUMBERS, [asked.into(), tenant_id.into()]).await?;
        let mut known: HashMap<TaskId, i32> = known.into_iter().collect();
        let new: Vec<TaskId> = tasks.iter().copied().filter(|task| !known.contains_key(task)).collect();
        take(&tx, tenant_id, new.len() as i64).await?;
        let last: Vec<i32> = tx.query(&JOB_NUMBER_LAST, [tenant_id.into()]).await?;
        let last = last.first().copied().unwrap_or_default();
        let first = last - i32::try_from(new.len()).unwrap_or(i32::MAX) + 1;
        let numbered: Vec<(TaskId, TenantId, AppId, i32)> =
            new.iter().zip(first..).map(|(task, number)| (*task, tenant_id, app_id, number)).collect();
        tx.execute(&JOB_NUMBERS_ADD, [to_json(NUMBER_TASKS, &numbered)?.into()]).await?;
        tx.commit().await?;
        known.extend(numbered.into_iter().map(|(task, .., number)| (task, number)));
        Ok(known)
    }
}

/// Takes so many numbers of a tenant, whose row is held until the commit.
pub(super) async fn take(tx: &Transaction<'_>, tenant_id: TenantId, count: i64) -> Result<()> {
    let values = || [tenant_id.into(), count.into()];
    if tx.execute(&JOB_NUMBERS_TAKE, values()).await? == 0 {
        tx.execute(&JOB_NUMBERS_BEGIN, [list(NUMBER_TASKS, [tenant_id].iter())?.into()]).await?;
        tx.execute(&JOB_NUMBERS_TAKE, values()).await?;
    }
    Ok(())
}

/// A row of `xxljob_attempt`.
struct AttemptRow {
    number: i64,
    owner: Owner,
    log: LogId,
    attempt: i32,
}

from_row!(AttemptRow { number, owner = rows::owner, log: "log_id", attempt });
