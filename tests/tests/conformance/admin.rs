//! What a case needs beside the traits: tenants, apps, tasks, and a look at the rows.

use async_trait::async_trait;
use carillon::domain::calendar::CalendarSpec;
use carillon::domain::permit::PermitRequest;
use carillon::domain::quota::Quotas;
use carillon::domain::rules::MaintenanceWindow;
use carillon::domain::statistics::{Figures, Grain, Step};
use carillon::domain::{AccessScope, AppId, BackfillId, CalendarId, LogId, Owner, TaskId, TenantId, WindowId};
use carillon::store::{
    AppFilter, AppView, Backfill, CalendarChange, DefinitionStore, FiguresFilter, KeptAttempt, LogFilter, LogView,
    NewRun, NewTask, Result, Skip, Skipped, SqlStore, StartedRun, TaskChange, TaskFilter, TaskView, Unsent,
};
use carillon_simulation::ModelStore;
use carillon_tests::Database;
use carillon_tests::tenants::make_app;
use sea_orm::QueryResult;

/// A permit's log and version, and whose it is.
pub type NotedPermit = (LogId, i64, (TaskId, AppId, TenantId));

/// The management side of a store.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Makes a tenant with an app.
    async fn make_app(&self, ids: [i64; 2], tenant: &str, app: &str) -> Owner;
    /// Makes, edits, starts and stops tasks, all or none.
    async fn apply(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>>;
    /// Asks for runs of past fires.
    async fn create_backfill(&self, of: &Backfill, now: i64) -> Result<()>;
    /// Backfills of a task before the one of that id, newest first.
    async fn backfills_of(
        &self,
        tenant_id: TenantId,
        task_id: TaskId,
        before: Option<BackfillId>,
        limit: u64,
    ) -> Vec<Backfill>;
    /// Ends a backfill before its time.
    async fn cancel_backfill(&self, tenant_id: TenantId, task_id: TaskId, id: BackfillId, now: i64) -> Result<()>;
    /// Adds a maintenance window.
    async fn add_window(&self, window: &MaintenanceWindow, now: i64);
    /// Takes one away.
    async fn drop_window(&self, tenant_id: TenantId, id: WindowId) -> Result<()>;
    /// Bounds the runs of an app that go on at once.
    async fn bound_app(&self, owner: Owner, most: i32);
    /// Figures by the minute from `from` until `until` (ms), of a task or else of a tenant.
    async fn figures(&self, tenant_id: TenantId, task: Option<TaskId>, from: i64, until: i64) -> Vec<(i64, Figures)>;
    /// Writes a calendar's next version after the one that is `current`.
    async fn put_calendar(
        &self,
        ids: (CalendarId, TenantId),
        name: &str,
        spec: &CalendarSpec,
        current: i64,
        now: i64,
    ) -> Result<CalendarChange>;
    /// Changes of calendars that tasks may still have to follow.
    async fn calendar_changes(&self, limit: u64) -> Vec<CalendarChange>;
    /// Started tasks that are planned by another version of that calendar.
    async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Vec<TaskId>;
    /// Ends a change that all have followed.
    async fn end_calendar_change(&self, change: &CalendarChange);
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
    /// The permits that runs of a task have or wait for, or had, by log.
    async fn permits(&self, task: TaskId) -> Vec<NotedPermit>;
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

    async fn create_backfill(&self, of: &Backfill, now: i64) -> Result<()> {
        self.store.create_backfill(of, now).await
    }

    async fn backfills_of(
        &self,
        tenant_id: TenantId,
        task_id: TaskId,
        before: Option<BackfillId>,
        limit: u64,
    ) -> Vec<Backfill> {
        self.store.backfills_of(tenant_id, task_id, before, limit).await.unwrap()
    }

    async fn cancel_backfill(&self, tenant_id: TenantId, task_id: TaskId, id: BackfillId, now: i64) -> Result<()> {
        self.store.cancel_backfill(tenant_id, task_id, id, now).await
    }

    async fn add_window(&self, window: &MaintenanceWindow, now: i64) {
        self.store.add_window(window, now).await.unwrap();
    }

    async fn drop_window(&self, tenant_id: TenantId, id: WindowId) -> Result<()> {
        self.store.drop_window(tenant_id, id).await
    }

    async fn bound_app(&self, owner: Owner, most: i32) {
        let filter = AppFilter { id: Some(owner.app_id), limit: 1, ..AppFilter::default() };
        let app = self.store.list_apps(&AccessScope::tenant(owner.tenant_id), &filter).await.unwrap().remove(0);
        self.store.edit_app(&app, &AppView { max_concurrent: most, ..app.clone() }).await.unwrap();
    }

    async fn figures(&self, tenant_id: TenantId, task: Option<TaskId>, from: i64, until: i64) -> Vec<(i64, Figures)> {
        let filter = FiguresFilter { from, until, step: Step::Minute, task_id: task, tenant_id: Some(tenant_id) };
        self.store.figures(&AccessScope::All, &filter).await.unwrap()
    }

    async fn put_calendar(
        &self,
        (id, tenant_id): (CalendarId, TenantId),
        name: &str,
        spec: &CalendarSpec,
        current: i64,
        now: i64,
    ) -> Result<CalendarChange> {
        self.store.put_calendar(id, tenant_id, name, spec, current, now).await
    }

    async fn calendar_changes(&self, limit: u64) -> Vec<CalendarChange> {
        DefinitionStore::calendar_changes(&self.store, limit).await.unwrap()
    }

    async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Vec<TaskId> {
        let behind = DefinitionStore::tasks_behind(&self.store, id, after, limit).await.unwrap();
        behind.iter().map(|task| task.id).collect()
    }

    async fn end_calendar_change(&self, change: &CalendarChange) {
        DefinitionStore::end_calendar_change(&self.store, change).await.unwrap();
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

    async fn permits(&self, task: TaskId) -> Vec<NotedPermit> {
        let sql = format!(
            "SELECT id, version, task_id, app_id, tenant_id FROM permit \
             WHERE task_id = {task} OR id IN (SELECT id FROM task_log WHERE task_id = {task}) ORDER BY id"
        );
        let permit = |row: &QueryResult| {
            let [id, version, task, app, tenant] = [0, 1, 2, 3, 4].map(|column| row.try_get_by_index::<i64>(column));
            Ok((LogId(id?), version?, (TaskId(task?), AppId(app?), TenantId(tenant?))))
        };
        self.database.query(&sql, permit).await
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

    async fn create_backfill(&self, of: &Backfill, now: i64) -> Result<()> {
        self.create_backfill(of, now).await
    }

    async fn backfills_of(
        &self,
        tenant_id: TenantId,
        task_id: TaskId,
        before: Option<BackfillId>,
        limit: u64,
    ) -> Vec<Backfill> {
        self.backfills_of(tenant_id, task_id, before, limit).await.unwrap()
    }

    async fn cancel_backfill(&self, tenant_id: TenantId, task_id: TaskId, id: BackfillId, now: i64) -> Result<()> {
        self.cancel_backfill(tenant_id, task_id, id, now).await
    }

    async fn add_window(&self, window: &MaintenanceWindow, now: i64) {
        self.add_window(window, now).await.unwrap();
    }

    async fn drop_window(&self, tenant_id: TenantId, id: WindowId) -> Result<()> {
        self.drop_window(tenant_id, id).await
    }

    async fn bound_app(&self, owner: Owner, most: i32) {
        self.bound_app(owner.app_id, most).await.unwrap();
    }

    async fn figures(&self, tenant_id: TenantId, task: Option<TaskId>, from: i64, until: i64) -> Vec<(i64, Figures)> {
        let (grain, subject) = task.map_or((Grain::TenantMinute, tenant_id.0), |task| (Grain::TaskMinute, task.0));
        self.inspect(|state| {
            let rows = state.figures.range((grain, from, i64::MIN)..(grain, until, i64::MIN));
            let of_subject = rows.filter(|((.., of), _)| *of == subject);
            of_subject.map(|((_, start, _), row)| (*start, row.figures)).collect()
        })
    }

    async fn put_calendar(
        &self,
        (id, tenant_id): (CalendarId, TenantId),
        name: &str,
        spec: &CalendarSpec,
        current: i64,
        now: i64,
    ) -> Result<CalendarChange> {
        self.put_calendar(id, tenant_id, name, spec, current, now).await
    }

    async fn calendar_changes(&self, limit: u64) -> Vec<CalendarChange> {
        DefinitionStore::calendar_changes(self, limit).await.unwrap()
    }

    async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Vec<TaskId> {
        let behind = DefinitionStore::tasks_behind(self, id, after, limit).await.unwrap();
        behind.iter().map(|task| task.id).collect()
    }

    async fn end_calendar_change(&self, change: &CalendarChange) {
        DefinitionStore::end_calendar_change(self, change).await.unwrap();
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

    async fn permits(&self, task: TaskId) -> Vec<NotedPermit> {
        self.inspect(|state| {
            let is_of_task = |permit: &&PermitRequest| {
                permit.task_id == task || state.logs.get(&permit.id).is_some_and(|row| row.run.task_id == task)
            };
            let noted = |permit: &PermitRequest| {
                let PermitRequest { id, version, task_id, app_id, tenant_id, .. } = *permit;
                (id, version, (task_id, app_id, tenant_id))
            };
            state.permits.values().filter(is_of_task).map(noted).collect()
        })
    }
}
