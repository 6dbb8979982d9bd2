//! What people do, over whichever database it is: what ships does it by functions of its store beside the traits.

use super::SimStore;
use carillon::domain::calendar::CalendarSpec;
use carillon::domain::quota::Quotas;
use carillon::domain::rules::MaintenanceWindow;
use carillon::domain::{AccessScope, AppId, BackfillId, CalendarId, Owner, TaskId, TenantId, WindowId};
use carillon::store::{
    AppFilter, AppView, Backfill, CalendarChange, DefinitionStore as _, KeyWords, NewRun, NewTask, Result, Skip,
    Skipped, StartedRun, StoreError, StoreErrorKind, TaskView, TenantView,
};
use carillon_protocol::sign::Key;

/// Functions that the model and what ships both have.
macro_rules! either {
    ($($(#[$doc:meta])* $action:literal $method:ident($($name:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl SimStore {
            $($(#[$doc])*
            pub async fn $method(&self, $($name: $type),*) -> Result<$answer> {
                match &self.sqlite {
                    None => self.rows.$method($($name),*).await,
                    Some(sqlite) => self.call(sqlite, $action, sqlite.sql.$method($($name),*)).await,
                }
            })*
        }
    };
}

either! {
    /// Asks for runs of past fires.
    "create a backfill" create_backfill(of: &Backfill, now: i64) -> ();
    /// Ends a backfill before its time.
    "cancel a backfill" cancel_backfill(tenant_id: TenantId, task_id: TaskId, id: BackfillId, now: i64) -> ();
    /// Adds a maintenance window to its tenant.
    "add a maintenance window" add_window(window: &MaintenanceWindow, now: i64) -> ();
    /// Ends a window: takes it away, whether it has begun or not.
    "end a maintenance window" drop_window(tenant_id: TenantId, id: WindowId) -> ();
    /// Cancels a coming fire.
    "cancel a coming fire" skip_fire(task: &TaskView, skip: &Skip, now: i64) -> Skipped;
    /// Lets a cancelled fire come.
    "let a cancelled fire come" restore_fire(task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> ();
    /// Writes a calendar's next version.
    "write a calendar" put_calendar(
        id: CalendarId, tenant_id: TenantId, name: &str, spec: &CalendarSpec, current: i64, now: i64
    ) -> CalendarChange;
    /// Writes a run that no schedule names.
    "start a run" start_run(task: &TaskView, run: &NewRun) -> StartedRun;
}

impl SimStore {
    /// Creates a tenant.
    pub async fn create_tenant(&self, id: TenantId, name: &str, now: i64) -> Result<()> {
        let Some(sqlite) = &self.sqlite else { return self.rows.create_tenant(id, name, now).await };
        let (name, description) = (name.to_owned(), String::new());
        let tenant = TenantView { id, name, description, max_concurrent: 0, revision: 1, created_at: now };
        self.call(sqlite, "create a tenant", sqlite.sql.create_tenant(&tenant)).await
    }

    /// Creates an app of a tenant.
    pub async fn create_app(&self, id: AppId, tenant_id: TenantId, tenant: &str, name: &str) -> Result<Owner> {
        let Some(sqlite) = &self.sqlite else { return self.rows.create_app(id, tenant, name).await };
        let app = AppView {
            id,
            tenant_id,
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            max_concurrent: 0,
            sign_method: None,
            scripts: false,
            revision: 1,
            created_at: 1,
        };
        // Nobody uses it: the keys of a simulation are in no database.
        let key = Key { id: format!("key-{id}"), secret: "secret".repeat(8) };
        let words = KeyWords { is_token: false, note: "", created_by: "" };
        self.call(sqlite, "create an app", sqlite.sql.create_app(&app, &key, words)).await?;
        Ok(Owner { tenant_id, app_id: id })
    }

    /// Creates one task.
    pub async fn create_task(&self, task: &NewTask, now: i64) -> Result<()> {
        self.apply_tasks(std::slice::from_ref(task), &[], now).await.map(drop)
    }

    /// Bounds the runs of an app that go on at once; 0: as many as there are.
    pub async fn bound_app(&self, app: AppId, most: i32) -> Result<()> {
        let Some(sqlite) = &self.sqlite else { return self.rows.bound_app(app, most).await };
        let bound = async {
            let filter = AppFilter { id: Some(app), limit: 1, ..AppFilter::default() };
            let before = sqlite.sql.list_apps(&AccessScope::All, &filter).await?.pop();
            let gone = || StoreError::new(StoreErrorKind::NotFound, "bound an app", "there is no such app");
            let before = before.ok_or_else(gone)?;
            sqlite.sql.edit_app(&before, &AppView { max_concurrent: most, ..before.clone() }).await
        };
        self.call(sqlite, "bound an app", bound).await
    }

    /// Gives a tenant other quotas.
    pub async fn set_quotas(&self, tenant_id: TenantId, to: &Quotas, now: i64) -> Result<()> {
        let Some(sqlite) = &self.sqlite else { return self.rows.set_quotas(tenant_id, to, now).await };
        self.call(sqlite, "set quotas", sqlite.sql.set_quotas(tenant_id, None, to, now)).await
    }

    /// Writes ended logs of that time (ms), a second apart, as a housekeeper leaves them that has been away since.
    pub async fn write_history(&self, task: TaskId, logs: i64, at: i64) -> Result<()> {
        let Some(sqlite) = &self.sqlite else { return self.rows.write_history(task, logs, at).await };
        self.call(sqlite, "write history", sqlite.write_history(task, logs, at)).await
    }
}
