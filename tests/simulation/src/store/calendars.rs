//! Calendars, and the tasks that follow them.

use super::rows::{State, TaskRow};
use super::{ModelStore, refuse};
use carillon::domain::calendar::{Calendar, CalendarSpec};
use carillon::domain::task::TaskSpec;
use carillon::domain::{CalendarId, TaskId, TenantId};
use carillon::store::{CalendarChange, Result, StoreErrorKind, TaskView};
use std::sync::Arc;

/// A calendar.
#[derive(Debug, Clone)]
pub(super) struct CalendarRow {
    tenant_id: TenantId,
    calendar: Arc<Calendar>,
    changing_since: i64,
}

impl ModelStore {
    /// Writes a calendar's next version, if `current` is the version that is there (0: none is).
    pub async fn put_calendar(
        &self,
        id: CalendarId,
        tenant_id: TenantId,
        name: &str,
        spec: &CalendarSpec,
        current: i64,
        now: i64,
    ) -> Result<CalendarChange> {
        self.call("write a calendar", |state, _| {
            let known = state.calendar_named(tenant_id, name).map(|(id, row)| (*id, row.calendar.version));
            let (id, version) = known.unwrap_or((id, 0));
            if version != current {
                return refuse(StoreErrorKind::Conflict, "write a calendar", "it was changed meanwhile");
            }
            let calendar = Arc::new(spec.compile(name, version + 1).expect("checked when it was asked for"));
            state.calendars.insert(id, CalendarRow { tenant_id, calendar, changing_since: now });
            state.events.push(format!("calendar {name} has version {}", version + 1));
            Ok(CalendarChange { id, version: version + 1, since: now })
        })
        .await
    }

    /// Changes that not all tasks may have followed yet, oldest first.
    pub(super) async fn calendar_changes(&self, limit: u64) -> Result<Vec<CalendarChange>> {
        self.call("read changes of calendars", |state, _| {
            let change = |(id, row): (&CalendarId, &CalendarRow)| CalendarChange {
                id: *id,
                version: row.calendar.version,
                since: row.changing_since,
            };
            let changing = state.calendars.iter().filter(|(_, row)| row.changing_since > 0);
            let mut changes: Vec<CalendarChange> = changing.map(change).collect();
            changes.sort_by_key(|change| change.since);
            changes.truncate(limit as usize);
            Ok(changes)
        })
        .await
    }

    /// Started tasks that are planned by another version.
    pub(super) async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Result<Vec<TaskView>> {
        self.call("read tasks behind their calendar", |state, _| {
            let behind = state.behind(id).into_iter().filter(|row| row.view.id > after);
            Ok(behind.take(limit as usize).map(|row| state.task_view(row)).collect())
        })
        .await
    }

    /// Ends a change that every started task has followed.
    pub(super) async fn end_calendar_change(&self, change: &CalendarChange) -> Result<()> {
        self.call("end the change of a calendar", |state, _| {
            let is_followed = state.behind(change.id).is_empty();
            let row = state.calendars.get_mut(&change.id).filter(|row| row.calendar.version == change.version);
            if let Some(row) = row.filter(|_| is_followed) {
                row.changing_since = 0;
            }
            Ok(())
        })
        .await
    }
}

impl State {
    /// Whether a started task is planned by another version than its calendar has, or that is not known yet.
    #[must_use]
    pub fn has_changing_calendars(&self) -> bool {
        self.calendars.iter().any(|(id, row)| row.changing_since > 0 || !self.behind(*id).is_empty())
    }

    fn calendar_named(&self, tenant_id: TenantId, name: &str) -> Option<(&CalendarId, &CalendarRow)> {
        self.calendars.iter().find(|(_, row)| row.tenant_id == tenant_id && row.calendar.name == name)
    }

    /// The calendar that a definition names.
    pub(super) fn calendar_of(&self, tenant_id: TenantId, spec: &TaskSpec) -> Option<Arc<Calendar>> {
        self.calendar_named(tenant_id, &spec.calendar).map(|(_, row)| Arc::clone(&row.calendar))
    }

    /// Started tasks that name it and are planned by another version, by id.
    fn behind(&self, id: CalendarId) -> Vec<&TaskRow> {
        let Some(CalendarRow { tenant_id, calendar, .. }) = self.calendars.get(&id) else { return Vec::new() };
        let is_behind = |row: &&TaskRow| {
            let names = row.view.owner.tenant_id == *tenant_id && row.view.spec.calendar == calendar.name;
            names && row.view.activity.started && row.calendar_version != calendar.version
        };
        self.tasks.values().filter(is_behind).collect()
    }
}
