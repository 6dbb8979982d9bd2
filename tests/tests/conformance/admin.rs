//! What a case needs beside the traits: tenants, apps, tasks, and a look at the rows.

use async_trait::async_trait;
use carillon::domain::quota::Quotas;
use carillon::domain::{AccessScope, AppId, LogId, Owner, TaskId, TenantId};
use carillon::store::{
    KeptAttempt, LogFilter, LogView, NewRun, NewTask, Result, Skip, Skipped, SqlStore, StartedRun, TaskChange,
    TaskFilter, TaskView, Unsent,
};
use carillon_tests::Database;
use carillon_tests::model::ModelStore;
use carillon_tests::tenants::make_app;

/// The management side of a store.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Makes a tenant with an app.
    async fn make_app(&self, ids: [i64; 2], tenant: &str, app: &str) -> Owner;
    /// Makes, edits, starts and stops tasks, all or none.
    async fn apply(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>>;
    /// Gives a tenant other quotas.
    async fn set_quotas(&self, tenant_id: TenantId, to: &Quotas, now: i64);
    /// Looks at a task.
    async fn task(&self, id: TaskId) -> Option<TaskView>;
    /// Every task of a tenant with that name.
    async fn tasks_named(&self, tenant: &str, name: &str) -> Vec<TaskView>;
    /// Deletes a task.
    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent>;
    /// Starts a run that no schedule names.
    async fn start_run(&self, task: &TaskView, run: &NewRun) -> Result<StartedRun>;
    /// Cancels a coming fire.
    async fn skip_fire(&self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped>;
    /// Lets a cancelled fire come.
    async fn restore_fire(&self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()>;
    /// Every log of a task, by fire time and shard.
    async fn logs(&self, task: TaskId) -> Vec<LogView>;
    /// What is kept of the attempts of a log of that tenant, oldest first.
    async fn attempts(&self, tenant_id: TenantId, log: LogId) -> Vec<KeptAttempt>;
    /// Attempts kept of logs that are gone.
    async fn orphans(&self) -> i64;
    /// The logs of a task whose end has consequences, by id.
    async fn watched(&self, task: TaskId) -> Vec<LogId>;
}

/// An SQL store, and the database behind it.
pub struct SqlAdmin {
    /// The store.
    pub store: SqlStore,
    /// For looks past it.
    pub database: Database,
}

#[async_trait]
impl Admin for SqlAdmin {
    async fn make_app(&self, [tenant_id, app_id]: [i64; 2], tenant: &str, app: &str) -> Owner {
        make_app(&self.store, [tenant_id, app_id], tenant, app).await
    }

    async fn apply(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        self.store.apply_tasks(new, changes, now).await
    }

    async fn set_quotas(&self, tenant_id: TenantId, to: &Quotas, now: i64) {
        self.store.set_quotas(tenant_id, None, to, now).await.unwrap();
    }

    async fn task(&self, id: TaskId) -> Option<TaskView> {
        let filter = TaskFilter { id: Some(id), limit: 1, ..TaskFilter::default() };
        self.store.list_tasks(&AccessScope::All, &filter).await.unwrap().pop()
    }

    async fn tasks_named(&self, tenant: &str, name: &str) -> Vec<TaskView> {
        let (tenant, name) = (Some(tenant.to_owned()), Some(name.to_owned()));
        let filter = TaskFilter { tenant, name, limit: 100, ..TaskFilter::default() };
        self.store.list_tasks(&AccessScope::All, &filter).await.unwrap()
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        self.store.delete_task(before, now).await
    }

    async fn start_run(&self, task: &TaskView, run: &NewRun) -> Result<StartedRun> {
        self.store.start_run(task, run).await
    }

    async fn skip_fire(&self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped> {
        self.store.skip_fire(task, skip, now).await
    }

    async fn restore_fire(&self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()> {
        self.store.restore_fire(task, fire_time, is_named, now).await
    }

    async fn logs(&self, task: TaskId) -> Vec<LogView> {
        let filter = LogFilter { task_id: Some(task), limit: 10_000, ..LogFilter::default() };
        let mut logs = self.store.list_logs(&AccessScope::All, &filter).await.unwrap().logs;
        logs.sort_by_key(|log| (log.dispatched.run.fire_time, log.dispatched.run.shard_index));
        logs
    }

    async fn attempts(&self, tenant_id: TenantId, log: LogId) -> Vec<KeptAttempt> {
        self.store.kept_attempts(tenant_id, log).await.unwrap()
    }

    async fn orphans(&self) -> i64 {
        let sql = "SELECT COUNT(*) FROM task_log_attempt a LEFT JOIN task_log l ON l.id = a.log_id WHERE l.id IS NULL";
        self.database.number(sql).await
    }

    async fn watched(&self, task: TaskId) -> Vec<LogId> {
        let sql = format!("SELECT id FROM outbox WHERE task_id = {task} ORDER BY id");
        self.database.query(&sql, |row| row.try_get_by_index(0)).await
    }
}

#[async_trait]
impl Admin for ModelStore {
    async fn make_app(&self, [tenant_id, app_id]: [i64; 2], tenant: &str, app: &str) -> Owner {
        if !self.inspect(|state| state.has_tenant(tenant)) {
            self.create_tenant(TenantId(tenant_id), tenant, 1).await.unwrap();
        }
        self.create_app(AppId(app_id), tenant, app).await.unwrap()
    }

    async fn apply(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        self.apply_tasks(new, changes, now).await
    }

    async fn set_quotas(&self, tenant_id: TenantId, to: &Quotas, now: i64) {
        self.set_quotas(tenant_id, to, now).await.unwrap();
    }

    async fn task(&self, id: TaskId) -> Option<TaskView> {
        self.task(id).await.unwrap()
    }

    async fn tasks_named(&self, tenant: &str, name: &str) -> Vec<TaskView> {
        let wanted = |task: &TaskView| task.tenant == tenant && task.spec.name == name;
        self.inspect(|state| state.tasks.values().map(|row| state.task_view(row)).filter(wanted).collect())
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        self.delete_task(before, now).await
    }

    async fn start_run(&self, task: &TaskView, run: &NewRun) -> Result<StartedRun> {
        self.start_run(task, run).await
    }

    async fn skip_fire(&self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped> {
        self.skip_fire(task, skip, now).await
    }

    async fn restore_fire(&self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()> {
        self.restore_fire(task, fire_time, is_named, now).await
    }

    async fn logs(&self, task: TaskId) -> Vec<LogView> {
        self.logs(task).await.unwrap()
    }

    async fn attempts(&self, tenant_id: TenantId, log: LogId) -> Vec<KeptAttempt> {
        let range = (log, i32::MIN)..=(log, i32::MAX);
        self.inspect(|state| {
            let is_theirs = state.logs.get(&log).is_some_and(|row| row.run.tenant_id == tenant_id);
            state.attempts.range(range).filter(|_| is_theirs).map(|(_, kept)| kept.clone()).collect()
        })
    }

    async fn orphans(&self) -> i64 {
        self.inspect(|state| state.attempts.keys().filter(|(log, _)| !state.logs.contains_key(log)).count() as i64)
    }

    async fn watched(&self, task: TaskId) -> Vec<LogId> {
        let of_task = |(log, of): (&LogId, &TaskId)| (*of == task).then_some(*log);
        self.inspect(|state| state.outbox_entries.iter().filter_map(of_task).collect())
    }
}
