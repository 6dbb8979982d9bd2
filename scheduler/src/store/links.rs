//! Parents of tasks.

use super::row::{Read, column, from_row};
use super::sql::ID;
use super::sql_store::Transaction;
use super::values::{list, to_word};
use super::{Result, SqlStore, StoreError, StoreErrorKind, TaskView};
use crate::domain::links::{cycle, knots};
use crate::domain::task::{ParentLink, ParentOutcome, TaskSpec};
use crate::domain::{AppId, FieldError, FieldRefusal, Owner, Status, TaskId, TenantId};
use sea_orm::QueryResult;
use std::collections::{BTreeSet, HashMap};

statements!(
    PARENTS_OF_TASKS = |d| format!(
        "SELECT p.child_id, t.app_id, t.name, a.name AS app, p.on_outcome FROM {} task_parent p ON p.child_id = v.n_id \
         JOIN task t ON t.id = p.parent_id JOIN app a ON a.id = t.app_id ORDER BY p.child_id, p.id",
        d.batch(1, ID)
    ),
    NAMES_OF_TASKS = |d| format!("SELECT id, name FROM task WHERE id IN {}", d.ids(1)),
);

const ACTION: &str = "set the parents of a task";

/// What reading them is called in errors.
const READ: &str = "read the parents of tasks";

/// Every link of a tenant.
const LINKS: &str = "SELECT child_id, parent_id FROM task_parent WHERE tenant_id = {1}";

/// A parent as its child names it.
struct ParentRow {
    child_id: TaskId,
    app_id: AppId,
    name: String,
    app: String,
    /// `None` for one of a later release.
    on: Option<ParentOutcome>,
}

from_row!(ParentRow { child_id, app_id, name, app, on = outcome });

fn outcome(row: &QueryResult) -> Read<Option<ParentOutcome>> {
    Ok(known_outcome(column(row, "on_outcome")?))
}

/// The outcome of this word; `None` for one of a later release.
pub(super) fn known_outcome(word: String) -> Option<ParentOutcome> {
    serde_json::from_value(serde_json::Value::String(word)).ok()
}

impl SqlStore {
    /// Makes the task's parents those of its definition. Two edits that would close a cycle
    /// together come one after the other; [`SqlStore::refuse_cycles`] must follow.
    pub(super) async fn set_parents(
        &self,
        tx: &Transaction<'_>,
        owner: Owner,
        child: TaskId,
        spec: &TaskSpec,
    ) -> Result<()> {
        self.bump_rules(tx).await?;
        let mut parents = Vec::with_capacity(spec.parents.len());
        for (at, link) in spec.parents.iter().enumerate() {
            let parent = self.find_parent(tx, owner, &link.task).await?;
            let parent = parent
                .ok_or_else(|| refuse(&format!("parents[{at}].task"), FieldRefusal::no_such("task", &link.task)))?;
            parents.push((parent, link));
        }
        self.count_children(tx, child, -1).await?;
        let clear = sql!("DELETE FROM task_parent WHERE child_id = {1}");
        tx.execute(&clear, [child.into()]).await?;
        let insert = sql!(
            "INSERT INTO task_parent (id, tenant_id, child_id, parent_id, on_outcome, met_log_id) VALUES \
             ({1}, {2}, {3}, {4}, {5}, 0)"
        );
        let first: i64 = {
            let largest = sql!("SELECT COALESCE(MAX(id), 0) FROM task_parent");
            tx.query(&largest, []).await?.first().copied().unwrap_or(0)
        };
        for (at, (parent, link)) in parents.iter().enumerate() {
            let on = to_word(ACTION, &link.on)?;
            let id = first + 1 + at as i64;
            let values = [id.into(), owner.tenant_id.into(), child.into(), (*parent).into(), on.into()];
            tx.execute(&insert, values).await?;
        }
        self.count_children(tx, child, 1).await?;
        for (parent, _) in &parents {
            self.watch_open_runs(tx, *parent).await?;
        }
        Ok(())
    }

    /// Takes a task that is being deleted out of the graph.
    pub(super) async fn drop_links(&self, tx: &Transaction<'_>, task: TaskId) -> Result<()> {
        self.bump_rules(tx).await?;
        self.count_children(tx, task, -1).await?;
        let clear = sql!("DELETE FROM task_parent WHERE child_id = {1} OR parent_id = {1}");
        tx.execute(&clear, [task.into()]).await.map(drop)
    }

    /// Fills in the parents of listed tasks. Answers those of them that have a link of a later release.
    pub(super) async fn fill_parents(&self, tasks: &mut [TaskView]) -> Result<BTreeSet<TaskId>> {
        if tasks.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids = list(ACTION, tasks.iter().map(|task| task.id))?;
        Ok(fill(tasks, self.query(READ, &PARENTS_OF_TASKS, [ids.into()]).await?))
    }

    /// Fills them in within a transaction.
    ///
    /// # Errors
    /// One of the links is of a later release.
    pub(super) async fn fill_parents_in(&self, tx: &Transaction<'_>, tasks: &mut [TaskView]) -> Result<()> {
        let ids = list(ACTION, tasks.iter().map(|task| task.id))?;
        must_be_readable(&fill(tasks, tx.query(&PARENTS_OF_TASKS, [ids.into()]).await?))
    }

    async fn find_parent(&self, tx: &Transaction<'_>, owner: Owner, name: &str) -> Result<Option<TaskId>> {
        let found = match name.split_once('/') {
            None => {
                let sql = sql!("SELECT id FROM task WHERE tenant_id = {1} AND app_id = {2} AND name = {3}");
                let values = [owner.tenant_id.into(), owner.app_id.into(), name.into()];
                tx.query(&sql, values).await?
            }
            Some((app, name)) => {
                let sql = sql!(
                    "SELECT t.id FROM task t JOIN app a ON a.id = t.app_id WHERE t.tenant_id = {1} AND a.name = {2} \
                     AND t.name = {3}"
                );
                tx.query(&sql, [owner.tenant_id.into(), app.into(), name.into()]).await?
            }
        };
        Ok(found.first().copied())
    }

    /// Parent by parent: an UPDATE with a subquery makes MariaDB read every task.
    async fn count_children(&self, tx: &Transaction<'_>, child: TaskId, by: i32) -> Result<()> {
        let parents = sql!("SELECT DISTINCT parent_id FROM task_parent WHERE child_id = {1} ORDER BY parent_id");
        let count = sql!("UPDATE task SET children = children + {2} WHERE id = {1}");
        let parents: Vec<TaskId> = tx.query(&parents, [child.into()]).await?;
        for parent in parents {
            tx.execute(&count, [parent.into(), by.into()]).await?;
        }
        Ok(())
    }

    /// Runs of a new parent that were written before it was one count, too.
    async fn watch_open_runs(&self, tx: &Transaction<'_>, parent: TaskId) -> Result<()> {
        let watch = sql!(format!(
            "INSERT INTO outbox (id, task_id) SELECT l.id, l.task_id FROM task_log l WHERE l.task_id = {{1}} AND \
                 l.status < {} AND l.parent_id = 0 AND NOT EXISTS (SELECT 1 FROM outbox f WHERE f.id = l.id)",
            Status::Succeeded as i16
        ));
        tx.execute(&watch, [parent.into()]).await.map(drop)
    }

    /// Refuses cycles that these children (tenant, child) of the transaction would close.
    pub(super) async fn refuse_cycles(
        &self,
        tx: &Transaction<'_>,
        children: &BTreeSet<(TenantId, TaskId)>,
    ) -> Result<()> {
        let tenants: BTreeSet<TenantId> = children.iter().map(|(tenant, _)| *tenant).collect();
        for tenant_id in tenants {
            let all = sql!(LINKS);
            let links: Vec<(TaskId, TaskId)> = tx.query(&all, [tenant_id.into()]).await?;
            let knots = knots(&links);
            let mut closed = children.iter().filter(|(tenant, _)| *tenant == tenant_id && !knots.is_empty());
            if let Some(way) = closed.find_map(|(_, child)| cycle(&knots, *child)) {
                return Err(self.closes(tx, &way).await?);
            }
        }
        Ok(())
    }

    /// Every link (child, parent) of a tenant's tasks.
    pub async fn links_of_tenant(&self, tenant_id: TenantId) -> Result<Vec<(TaskId, TaskId)>> {
        self.query(READ, sql!(LINKS), [tenant_id.into()]).await
    }

    async fn closes(&self, tx: &Transaction<'_>, way: &[TaskId]) -> Result<StoreError> {
        let ids = list(ACTION, way.iter())?;
        let names: HashMap<TaskId, String> = tx.query(&NAMES_OF_TASKS, [ids.into()]).await?.into_iter().collect();
        let way: Vec<&str> = way.iter().filter_map(|id| names.get(id)).map(String::as_str).collect();
        Ok(refuse("parents", FieldRefusal::FollowsItself { way: way.join(" after ") }))
    }
}

fn fill(tasks: &mut [TaskView], rows: Vec<ParentRow>) -> BTreeSet<TaskId> {
    let mut unreadable = BTreeSet::new();
    let mut links: HashMap<TaskId, Vec<_>> = HashMap::new();
    for row in rows {
        links.entry(row.child_id).or_default().push(row);
    }
    for task in tasks {
        for ParentRow { app_id, name, app, on, .. } in links.remove(&task.id).into_iter().flatten() {
            let name = if app_id == task.owner.app_id { name } else { format!("{app}/{name}") };
            match on {
                Some(on) => task.spec.parents.push(ParentLink { task: name, on }),
                None => drop(unreadable.insert(task.id)),
            }
        }
    }
    unreadable
}

/// An error if one of these tasks has a link of a later release.
pub(super) fn must_be_readable(unreadable: &BTreeSet<TaskId>) -> Result<()> {
    let Some(task) = unreadable.first() else { return Ok(()) };
    let detail = format!("task {task} follows another one on an outcome that only a later release knows");
    Err(StoreError::new(StoreErrorKind::Other, READ, detail))
}

fn refuse(field: &str, refusal: FieldRefusal) -> StoreError {
    StoreError::refused(ACTION, FieldError::new(field, refusal))
}
