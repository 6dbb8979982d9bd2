//! What the task definition service asks: the statements are in `tasks.rs`, `task_views.rs`, `calendar_changes.rs` and `audit.rs`.

use super::{CalendarChange, DefinitionStore, NewTask, Result, SqlStore, TaskChange, TaskFilter, TaskView, Unsent};
use crate::domain::audit::AuditNote;
use crate::domain::{AccessScope, CalendarId, TaskId};
use async_trait::async_trait;

#[async_trait]
impl DefinitionStore for SqlStore {
    fn noting(&self, notes: Vec<AuditNote>) -> Self {
        Self::noting(self, notes)
    }

    async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        Self::apply_tasks(self, new, changes, now).await
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        Self::delete_task(self, before, now).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskView>> {
        let filter = TaskFilter { id: Some(id), limit: 1, ..TaskFilter::default() };
        Ok(self.list_tasks(&AccessScope::All, &filter).await?.into_iter().next())
    }

    async fn calendar_changes(&self, limit: u64) -> Result<Vec<CalendarChange>> {
        Self::calendar_changes(self, limit).await
    }

    async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Result<Vec<TaskView>> {
        Self::tasks_behind(self, id, after, limit).await
    }

    async fn end_calendar_change(&self, change: &CalendarChange) -> Result<()> {
        Self::end_calendar_change(self, change).await
    }
}
