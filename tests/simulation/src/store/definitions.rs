//! What the task definition service asks.

use super::ModelStore;
use async_trait::async_trait;
use carillon::domain::audit::AuditNote;
use carillon::domain::{CalendarId, TaskId};
use carillon::store::{CalendarChange, DefinitionStore, NewTask, Result, TaskChange, TaskView, Unsent};

#[async_trait]
impl DefinitionStore for ModelStore {
    /// The model keeps no audit.
    fn noting(&self, _: Vec<AuditNote>) -> Self {
        self.clone()
    }

    async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        Self::apply_tasks(self, new, changes, now).await
    }

    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        Self::delete_task(self, before, now).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskView>> {
        Self::task(self, id).await
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
