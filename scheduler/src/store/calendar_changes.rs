//! Changes of calendars, and the tasks that have to follow them.
//!
//! A task notes by which version of its calendar it is planned, in the transaction that plans it; a calendar notes since
//! when tasks may be behind, in the transaction of its change. So what is still to be done is in the rows, and any node can
//! do it. A change of a task holds the calendar that it names: it comes before a change of that, which then finds the task,
//! or plans by it.

use super::entity::calendar;
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::row::from_row;
use super::sql_store::Transaction;
use super::{CalendarChange, NewTask, Result, SqlStore, TaskChange, TaskFilter, TaskState, TaskView};
use crate::domain::{AccessScope, CalendarId, TaskId, TenantId};
use std::collections::BTreeSet;

const ACTION: &str = "follow a calendar";

/// Which version the calendar of that name has, in a statement that has tenant and name at these places; 0 for no calendar.
pub(super) fn calendar_version(tenant: usize, name: usize) -> String {
    format!(
        "(SELECT COALESCE(MAX(c.version), 0) FROM calendar c WHERE c.tenant_id = {{{tenant}}} AND c.name = {{{name}}})"
    )
}

impl SqlStore {
    /// Holds the calendars that these tasks name, in one order for all callers. The row is changed: members of a Galera
    /// cluster know of no other lock.
    pub(super) async fn hold_calendars(
        &self,
        tx: &Transaction<'_>,
        new: &[NewTask],
        changes: &[TaskChange],
    ) -> Result<()> {
        // A stop waits for nobody.
        let plans =
            |change: &&TaskChange| change.activity.started || change.spec.calendar != change.before.spec.calendar;
        let old = changes.iter().filter(plans).map(|change| (change.before.owner, &change.spec));
        let named: BTreeSet<(TenantId, &str)> = new
            .iter()
            .map(|task| (task.owner, &task.spec))
            .chain(old)
            .map(|(owner, spec)| (owner.tenant_id, spec.calendar.as_str()))
            .filter(|(_, name)| !name.is_empty())
            .collect();
        for (tenant_id, name) in named {
            self.hold_calendar(tx, tenant_id, name).await?;
        }
        Ok(())
    }

    /// Holds a calendar, if there is one of that name.
    pub(super) async fn hold_calendar(&self, tx: &Transaction<'_>, tenant_id: TenantId, name: &str) -> Result<()> {
        let hold = sql!("UPDATE calendar SET task_turn = task_turn + 1 WHERE tenant_id = {1} AND name = {2}");
        tx.execute(&hold, [tenant_id.into(), name.into()]).await.map(drop)
    }

    /// Changes that not all tasks may have followed yet, oldest first.
    pub async fn calendar_changes(&self, limit: u64) -> Result<Vec<CalendarChange>> {
        let changing = sql!(
            "SELECT id, version, changing_since AS since FROM calendar WHERE changing_since > 0 ORDER BY changing_since \
             LIMIT {1}"
        );
        self.query(ACTION, &changing, [limit.into()]).await
    }

    /// Started tasks that name the calendar and are planned by another version, by id after `after`.
    pub async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Result<Vec<TaskView>> {
        let found: Option<calendar::Model> = self.at(ACTION).one(calendar::Entity::find_by_id(id)).await?;
        let Some(calendar) = found else { return Ok(Vec::new()) };
        let filter = TaskFilter {
            calendar: Some(calendar.name),
            not_planned_by: Some(calendar.version),
            state: Some(TaskState::Started),
            after,
            limit,
            ..TaskFilter::default()
        };
        self.list_tasks(&AccessScope::tenant(calendar.tenant_id), &filter).await
    }

    /// Ends a change that every started task has followed. Those that this release cannot read count, too.
    pub async fn end_calendar_change(&self, change: &CalendarChange) -> Result<()> {
        let end = sql!(
            "UPDATE calendar SET changing_since = 0 WHERE id = {1} AND version = {2} AND NOT EXISTS (SELECT 1 FROM task t \
             WHERE t.tenant_id = calendar.tenant_id AND t.calendar = calendar.name AND t.started = 1 AND \
             t.calendar_version <> calendar.version)"
        );
        self.execute(ACTION, &end, [change.id.into(), change.version.into()]).await.map(drop)
    }
}

from_row!(CalendarChange { id, version, since });
