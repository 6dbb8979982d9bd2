//! Which tasks were imported, and of what: a task's identity in another scheduler, and the number by which scripts and executors
//! knew it there.

use super::dialect::Kind;
use super::row::from_row;
use super::sql::ID;
use super::sql_store::{Transaction, retrying};
use super::values::{list, to_json};
use super::xxljob::{APP_NUMBERS_BEGIN, JOB_NUMBERS, JOB_NUMBERS_ADD, take};
use super::{Result, SqlStore, StoreError};
use crate::domain::import::JOB_NUMBER_MAX;
use crate::domain::{AppId, Refusal, TaskId, TenantId};
use std::collections::{HashMap, HashSet};

const ORIGIN: &[(&str, Kind)] = &[("id", Kind::Big), ("tenant_id", Kind::Big), ("origin", Kind::Text)];

statements!(
    ORIGIN_TASKS =
        |d| format!("SELECT t.id, t.app_id FROM {} task t ON t.id = v.n_id WHERE t.tenant_id = {{2}}", d.batch(1, ID)),
    ORIGINS_OF_TASKS_END =
        |d| { d.delete_from("task_origin", &d.rows(1, ORIGIN), "l.task_id = v.n_id AND l.tenant_id = v.n_tenant_id") },
    ORIGINS_END = |d| {
        d.delete_from("task_origin", &d.rows(1, ORIGIN), "l.tenant_id = v.n_tenant_id AND l.origin = v.n_origin")
    },
    ORIGINS_ADD = |d| format!(
        "INSERT INTO task_origin (task_id, tenant_id, origin) SELECT v.n_id, v.n_tenant_id, v.n_origin FROM {}",
        d.rows(1, ORIGIN)
    ),
    JOB_NUMBERS_TAKEN = |d| format!(
        "SELECT x.number FROM {} xxljob_task x ON x.number = v.n_id WHERE x.tenant_id = {{2}}",
        d.batch(1, ID)
    ),
    APP_NUMBERS_RAISE = |_| {
        "UPDATE xxljob_app_last SET last_app = CASE WHEN last_app < {2} THEN {2} ELSE last_app END WHERE tenant_id = {1}"
            .into()
    },
    APP_NUMBERS_ADD = |d| format!(
        "INSERT INTO xxljob_app (app_id, tenant_id, number) SELECT a.id, a.tenant_id, v.n_number FROM {} app a ON a.id = \
         v.n_id WHERE a.tenant_id = {{2}} AND NOT EXISTS (SELECT 1 FROM xxljob_app x WHERE x.app_id = a.id) AND NOT EXISTS \
         (SELECT 1 FROM xxljob_app x WHERE x.tenant_id = a.tenant_id AND x.number = v.n_number)",
        d.batch(1, &[("id", Kind::Big), ("number", Kind::Int)])
    ),
    JOB_NUMBERS_RAISE = |_| "UPDATE xxljob_number SET last_task = {2} WHERE tenant_id = {1} AND last_task < {2}".into(),
);

/// Origins that are noted at once at most.
pub const ORIGINS_MAX: usize = 500;

const NOTE: &str = "note where tasks were imported from";

/// Where a task was imported from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOrigin {
    /// The task.
    pub task_id: TaskId,
    /// Its identity there.
    pub origin: String,
    /// The number by which scripts and executors know it; 0 is none.
    pub number: i32,
}

from_row!(TaskOrigin { task_id, origin, number });

impl SqlStore {
    /// The imported tasks of a tenant after `after`, by id.
    pub async fn origins(&self, tenant: TenantId, after: TaskId, limit: u64) -> Result<Vec<TaskOrigin>> {
        let select = sql!(
            "SELECT o.task_id, o.origin, COALESCE(x.number, 0) AS number FROM task_origin o \
             JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id \
             LEFT JOIN xxljob_task x ON x.task_id = o.task_id AND x.tenant_id = o.tenant_id \
             WHERE o.tenant_id = {1} AND o.task_id > {2} ORDER BY o.task_id LIMIT {3}"
        );
        self.query("list imported tasks", &select, [tenant.into(), after.into(), limit.into()]).await
    }

    /// Notes where tasks of the tenant were imported from, each instead of what was noted before: at most [`ORIGINS_MAX`]. A number
    /// is given to a task, or an app, that has none if no other has it; numbers never change. All or none.
    pub async fn set_origins(
        &self,
        tenant: TenantId,
        origins: &[TaskOrigin],
        app_numbers: &[(AppId, i32)],
    ) -> Result<()> {
        retrying(|| self.set_origins_once(tenant, origins, app_numbers)).await
    }

    async fn set_origins_once(
        &self,
        tenant: TenantId,
        origins: &[TaskOrigin],
        app_numbers: &[(AppId, i32)],
    ) -> Result<()> {
        let tx = self.begin(NOTE).await?;
        // Holds the tenant's row: imports of one tenant, and giving numbers, come one after the other.
        take(&tx, tenant, 0).await?;
        let ids = list(NOTE, origins.iter().map(|origin| origin.task_id))?;
        let apps: Vec<(TaskId, AppId)> = tx.query(&ORIGIN_TASKS, [ids.into(), tenant.into()]).await?;
        let apps: HashMap<TaskId, AppId> = apps.into_iter().collect();
        if let Some(unknown) = origins.iter().find(|origin| !apps.contains_key(&origin.task_id)) {
            return Err(StoreError::of(NOTE, Refusal::not_found("task", unknown.task_id)));
        }
        let rows: Vec<(TaskId, TenantId, &str)> =
            origins.iter().map(|origin| (origin.task_id, tenant, origin.origin.as_str())).collect();
        let rows = to_json(NOTE, &rows)?;
        for statement in [&ORIGINS_OF_TASKS_END, &ORIGINS_END, &ORIGINS_ADD] {
            tx.execute(statement, [rows.clone().into()]).await?;
        }
        number(&tx, tenant, origins, &apps).await?;
        number_apps(&tx, tenant, app_numbers).await?;
        tx.commit().await
    }
}

/// Gives the tasks that have no number theirs, where no other task has it.
async fn number(
    tx: &Transaction<'_>,
    tenant: TenantId,
    origins: &[TaskOrigin],
    apps: &HashMap<TaskId, AppId>,
) -> Result<()> {
    let wanted = origins.iter().filter(|origin| (1..=JOB_NUMBER_MAX).contains(&origin.number));
    let ids = list(NOTE, wanted.clone().map(|origin| origin.task_id))?;
    let numbered: Vec<(TaskId, i32)> = tx.query(&JOB_NUMBERS, [ids.into(), tenant.into()]).await?;
    let numbered: HashSet<TaskId> = numbered.into_iter().map(|(task, _)| task).collect();
    let numbers = list(NOTE, wanted.clone().map(|origin| origin.number))?;
    let taken: Vec<i32> = tx.query(&JOB_NUMBERS_TAKEN, [numbers.into(), tenant.into()]).await?;
    let mut taken: HashSet<i32> = taken.into_iter().collect();
    let free = wanted.filter(|origin| !numbered.contains(&origin.task_id) && taken.insert(origin.number));
    let new: Vec<(TaskId, TenantId, AppId, i32)> =
        free.filter_map(|origin| Some((origin.task_id, tenant, *apps.get(&origin.task_id)?, origin.number))).collect();
    let Some(largest) = new.iter().map(|(.., number)| *number).max() else { return Ok(()) };
    tx.execute(&JOB_NUMBERS_ADD, [to_json(NOTE, &new)?.into()]).await?;
    tx.execute(&JOB_NUMBERS_RAISE, [tenant.into(), largest.into()]).await.map(drop)
}

/// Gives the apps that have no number theirs, where no other app has it.
async fn number_apps(tx: &Transaction<'_>, tenant: TenantId, numbers: &[(AppId, i32)]) -> Result<()> {
    let Some(largest) = numbers.iter().map(|(_, number)| *number).max() else { return Ok(()) };
    tx.execute(&APP_NUMBERS_BEGIN, [tenant.into()]).await?;
    // Its row is held from here on: whoever numbers apps meanwhile comes later.
    tx.execute(&APP_NUMBERS_RAISE, [tenant.into(), largest.into()]).await?;
    tx.execute(&APP_NUMBERS_ADD, [to_json(NOTE, &numbers)?.into(), tenant.into()]).await.map(drop)
}
