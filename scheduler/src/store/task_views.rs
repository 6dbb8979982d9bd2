//! Tasks as the API lists them.

use super::conditions::Conditions;
use super::error::{Result, StoreError};
use super::links::must_be_readable;
use super::row::{FromRow as _, Read, column, from_row};
use super::rows;
use super::sql_store::SqlStore;
use super::task_columns::{markers, read_spec, spec_list};
use super::template::Text as _;
use super::{Activity, TaskState, TaskView};
use crate::domain::{AccessScope, Owner, TaskId, TenantId};
use sea_orm::{QueryResult, Value};

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only this tenant.
    pub tenant: Option<String>,
    /// Only of the tenant of this id.
    pub tenant_id: Option<TenantId>,
    /// Only this app.
    pub app: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only those that have this in their name, or in that of their handler.
    pub search: Option<String>,
    /// Only those that name this calendar.
    pub calendar: Option<String>,
    /// Only those that are planned by another version of their calendar.
    pub not_planned_by: Option<i64>,
    /// Only those that run this handler.
    pub handler: Option<String>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those that follow this task.
    pub parent_id: Option<TaskId>,
    /// Only this task.
    pub id: Option<TaskId>,
    /// After this id.
    pub after: TaskId,
    /// At most so many.
    pub limit: u64,
}

const VIEW_COLUMNS: &str = "t.id, t.tenant_id, t.app_id, n.name AS tenant, a.name AS app, t.started, t.revision, t.next_fire_at, \
     t.anchor_at, t.fires, t.failures_in_row, t.paused_at, t.pause_note, t.script, t.created_at, t.updated_at";

/// What a list is called in errors.
const LIST: &str = "list tasks";

/// Tasks that are counted at most.
const COUNTED_MAX: u32 = 100_000;

/// Names that one statement looks for.
const NAMES_AT_ONCE: usize = 100;

impl SqlStore {
    /// Lists tasks within reach, by id. What a later release wrote, and this one cannot read, is left out and reported, unless
    /// it is asked for by its id.
    pub async fn list_tasks(&self, access_scope: &AccessScope, filter: &TaskFilter) -> Result<Vec<TaskView>> {
        let mut tasks = Vec::new();
        let mut rest = filter.clone();
        while rest.limit > 0 {
            let statement = listed(&views(), access_scope, &rest).finish(self, "ORDER BY t.id", rest.limit);
            let rows = self.fetch(LIST, statement).await?;
            let mut read = readable(&rows, filter.id.is_some())?;
            let unreadable = self.fill_parents(&mut read).await?;
            if filter.id.is_some() {
                must_be_readable(&unreadable)?;
            }
            for task in &unreadable {
                tracing::error!(task = task.0, "a task has a link of a later release and is not listed");
            }
            read.retain(|task| !unreadable.contains(&task.id));
            let left_out = (rows.len() - read.len()) as u64;
            tasks.extend(read);
            match rows.last().filter(|_| rows.len() as u64 == rest.limit) {
                // As many more, so that a page that is not full is the last one.
                Some(last) => (rest.after, rest.limit) = (id_of(last)?, left_out),
                None => break,
            }
        }
        Ok(tasks)
    }

    /// How many tasks such a list has, whatever its limit; counted up to [`COUNTED_MAX`].
    pub async fn number_of_tasks(&self, access_scope: &AccessScope, filter: &TaskFilter) -> Result<u64> {
        const HEAD: &str = "SELECT COUNT(*) FROM (SELECT t.id FROM task t JOIN tenant n ON n.id = t.tenant_id JOIN app a \
             ON a.id = t.app_id";
        let statement = listed(HEAD, access_scope, filter).finish_as(self, &format!("LIMIT {COUNTED_MAX}) s"));
        let found: Vec<i64> = self.query_raw("count tasks", statement).await?;
        Ok(found.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// The tasks of an app that have one of these names.
    pub async fn tasks_named(&self, owner: Owner, names: &[String]) -> Result<Vec<TaskView>> {
        let sql = sql!(format!(
            "{} WHERE t.tenant_id = {{1}} AND t.app_id = {{2}} AND t.name IN ({})",
            views(),
            markers(3, NAMES_AT_ONCE)
        ));
        let mut tasks = Vec::new();
        for chunk in names.chunks(NAMES_AT_ONCE) {
            // The last name fills the row up: the text of the statement stays the same.
            let filled = (0..NAMES_AT_ONCE).filter_map(|at| chunk.get(at).or_else(|| chunk.last()));
            let mut values: Vec<Value> = vec![owner.tenant_id.into(), owner.app_id.into()];
            values.extend(filled.map(|name| Value::from(name.as_str())));
            tasks.extend(self.query_raw("find tasks by name", sql.on(self.backend).bind_all(values)).await?);
        }
        must_be_readable(&self.fill_parents(&mut tasks).await?)?;
        Ok(tasks)
    }
}

/// The tasks of these rows that can be read; an error if that must be all of them.
fn readable(rows: &[QueryResult], all: bool) -> Result<Vec<TaskView>> {
    let mut tasks = Vec::with_capacity(rows.len());
    for row in rows {
        match TaskView::from_row(row) {
            Ok(task) => tasks.push(task),
            Err(error) if all => return Err(StoreError::from_db(LIST, &error)),
            Err(error) => tracing::error!(task = id_of(row)?.0, %error, "a task cannot be read and is not listed"),
        }
    }
    Ok(tasks)
}

fn id_of(row: &QueryResult) -> Result<TaskId> {
    column(row, "id").map_err(|error| StoreError::from_db(LIST, &error))
}

/// The conditions of a list, after the `head` of its statement.
fn listed(head: &str, access_scope: &AccessScope, filter: &TaskFilter) -> Conditions {
    let mut wanted = Conditions::new(format!("{head} WHERE t.id > {{1}}"), vec![filter.after.into()]);
    wanted.within(access_scope, "t.tenant_id", Some("t.app_id"));
    wanted.and("t.tenant_id = ", filter.tenant_id);
    wanted.and("n.name = ", filter.tenant.clone());
    wanted.and("a.name = ", filter.app.clone());
    wanted.and("t.name = ", filter.name.clone());
    wanted.and_holds(&["t.name", "t.handler"], filter.search.as_deref());
    wanted.and("t.calendar = ", filter.calendar.clone());
    wanted.and("t.calendar_version <> ", filter.not_planned_by);
    wanted.and("t.handler = ", filter.handler.clone());
    wanted.and("t.id = ", filter.id);
    if let Some(state) = filter.state {
        wanted.and("t.started = ", Some(i32::from(state == TaskState::Started)));
        wanted.text.push_str(match state {
            TaskState::Started => "",
            TaskState::Stopped => " AND t.pause_note IS NULL",
            TaskState::Paused => " AND t.pause_note IS NOT NULL",
        });
    }
    if let Some(parent) = filter.parent_id {
        let at = wanted.push(parent);
        let follows = format!(" AND t.id IN (SELECT p.child_id FROM task_parent p WHERE p.parent_id = {{{at}}})");
        wanted.text.push_str(&follows);
    }
    wanted
}

/// The head of a statement that reads [`TaskView`]s.
pub(super) fn views() -> String {
    views_with("")
}

/// The same with further columns, each after a comma, of tables that are joined to it.
pub(super) fn views_with(columns: &str) -> String {
    let spec = spec_list("t.");
    format!(
        "SELECT {VIEW_COLUMNS}, {spec}{columns} FROM task t JOIN tenant n ON n.id = t.tenant_id JOIN app a ON a.id = t.app_id"
    )
}

from_row!(TaskView {
    id,
    owner = rows::owner,
    tenant,
    app,
    spec = read_spec,
    activity = activity,
    revision,
    next_fire_at,
    anchor_at,
    fires,
    failures_in_row,
    paused_at,
    script,
    created_at,
    updated_at,
});

fn activity(row: &QueryResult) -> Read<Activity> {
    let (started, pause_note): (bool, Option<String>) = (column(row, "started")?, column(row, "pause_note")?);
    Ok(Activity { started, pause_note: pause_note.filter(|_| !started) })
}
