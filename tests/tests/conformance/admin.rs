//! What a case needs beside the traits: tenants, apps, tasks, and a look at the rows.

use async_trait::async_trait;
use carillon::domain::Reason;
use carillon::store::{LogFilter, LogView, NewKey, Result, Scope, SqlStore, TaskDraft, TaskFilter, TaskView, Unsent};
use carillon_tests::model::ModelStore;

/// The management side of a store.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Makes a tenant with an app.
    async fn make_app(&self, ids: [i64; 2], tenant: &str, app: &str) -> Scope;
    /// Makes a task.
    async fn create_task(&self, id: i64, scope: [&str; 2], draft: &TaskDraft, started: bool, now: i64) -> Result<()>;
    /// Looks at a task.
    async fn task(&self, id: i64) -> Option<TaskView>;
    /// Every task of a tenant.
    async fn tasks_named(&self, tenant: &str, name: &str) -> Vec<TaskView>;
    /// Edits, starts or stops a task.
    async fn change_task(
        &self,
        before: &TaskView,
        draft: &TaskDraft,
        started: bool,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent>;
    /// Deletes a task.
    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent>;
    /// Moves a watermark back.
    async fn rewind(&self, id: i64, draft: &TaskDraft, revision: i64, from: i64, now: i64);
    /// Starts a run by hand.
    async fn run_now(&self, id: i64, task: &TaskView, params: Option<&str>, now: i64) -> i64;
    /// Every log of a task, by fire time and shard.
    async fn logs(&self, task: i64) -> Vec<LogView>;
}

#[async_trait]
impl Admin for SqlStore {
    async fn make_app(&self, [tenant_id, app_id]: [i64; 2], tenant: &str, app: &str) -> Scope {
        self.create_tenant(tenant_id, tenant, 1).await.unwrap();
        let key = NewKey { id: format!("key-{app_id}"), secret: "secret".repeat(8) };
        self.create_app(app_id, tenant, app, &key, 1).await.unwrap();
        self.scope(tenant, app).await.unwrap()
    }

    async fn create_task(
        &self,
        id: i64,
        [tenant, app]: [&str; 2],
        draft: &TaskDraft,
        started: bool,
        now: i64,
    ) -> Result<()> {
        self.create_task(id, tenant, app, draft, started, now).await
    }

    async fn task(&self, id: i64) -> Option<TaskView> {
        let filter = TaskFilter { id: Some(id), limit: 1, ..TaskFilter::default() };
        self.list_tasks(&filter).await.unwrap().pop()
    }

    async fn tasks_named(&self, tenant: &str, name: &str) -> Vec<TaskView> {
        let filter = TaskFilter { tenant: Some(tenant.to_owned()), limit: 100, ..TaskFilter::default() };
        let tasks = self.list_tasks(&filter).await.unwrap();
        tasks.into_iter().filter(|task| task.draft.name == name).collect()
    }

    async fn change_task(
        &self,
        before: &TaskView,
        draft: &TaskDraft,
        started: bool,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent> {
        self.change_task(before, draft, started, reason, now).await
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        self.delete_task(before, now).await
    }

    async fn rewind(&self, id: i64, draft: &TaskDraft, revision: i64, from: i64, now: i64) {
        self.rewind(id, draft, revision, from, now).await.unwrap();
    }

    async fn run_now(&self, id: i64, task: &TaskView, params: Option<&str>, now: i64) -> i64 {
        self.run_now(id, task, params, now).await.unwrap()
    }

    async fn logs(&self, task: i64) -> Vec<LogView> {
        let filter = LogFilter { task_id: Some(task), limit: 10_000, ..LogFilter::default() };
        let mut logs = self.list_logs(&filter).await.unwrap();
        logs.sort_by_key(|log| (log.handed.run.fire_time, log.handed.run.shard_index));
        logs
    }
}

#[async_trait]
impl Admin for ModelStore {
    async fn make_app(&self, [tenant_id, app_id]: [i64; 2], tenant: &str, app: &str) -> Scope {
        self.create_tenant(tenant_id, tenant, 1).await.unwrap();
        self.create_app(app_id, tenant, app).await.unwrap()
    }

    async fn create_task(
        &self,
        id: i64,
        [tenant, app]: [&str; 2],
        draft: &TaskDraft,
        started: bool,
        now: i64,
    ) -> Result<()> {
        self.create_task(id, tenant, app, draft, started, now).await
    }

    async fn task(&self, id: i64) -> Option<TaskView> {
        self.task(id).await.unwrap()
    }

    async fn tasks_named(&self, tenant: &str, name: &str) -> Vec<TaskView> {
        let wanted = |task: &TaskView| task.tenant == tenant && task.draft.name == name;
        self.inspect(|state| state.tasks.values().map(|row| row.view.clone()).filter(wanted).collect())
    }

    async fn change_task(
        &self,
        before: &TaskView,
        draft: &TaskDraft,
        started: bool,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent> {
        self.change_task(before, draft, started, reason, now).await
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        self.delete_task(before, now).await
    }

    async fn rewind(&self, id: i64, draft: &TaskDraft, revision: i64, from: i64, now: i64) {
        self.rewind(id, draft, revision, from, now).await.unwrap();
    }

    async fn run_now(&self, id: i64, task: &TaskView, params: Option<&str>, now: i64) -> i64 {
        self.run_now(id, task, params, now).await.unwrap()
    }

    async fn logs(&self, task: i64) -> Vec<LogView> {
        self.logs(task).await.unwrap()
    }
}
