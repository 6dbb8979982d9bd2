//! What `definitions.rs` asks: tasks as people see and change them.

use super::outcome::DispatchedRun;
use crate::domain::audit::AuditNote;
use crate::domain::task::TaskSpec;
use crate::domain::{CalendarId, Owner, Reason, TaskId};
use crate::store::error::Result;
use async_trait::async_trait;

/// Whether a task fires by itself, and why not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// It fires.
    pub started: bool,
    /// It is paused (and not started), and this is why.
    pub pause_note: Option<String>,
}

impl Activity {
    /// Started or stopped.
    #[must_use]
    pub fn of(started: bool) -> Self {
        Self { started, pause_note: None }
    }

    /// In a word.
    #[must_use]
    pub fn state(&self) -> TaskState {
        match (self.started, &self.pause_note) {
            (true, _) => TaskState::Started,
            (false, Some(_)) => TaskState::Paused,
            (false, None) => TaskState::Stopped,
        }
    }
}

/// What a task's activity is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// It fires by itself.
    Started,
    /// It does not.
    Stopped,
    /// It does not, and a note says why.
    Paused,
}

/// Every state with its word in the API.
pub const TASK_STATES: [(TaskState, &str); 3] =
    [(TaskState::Started, "started"), (TaskState::Stopped, "stopped"), (TaskState::Paused, "paused")];

impl TaskState {
    /// The word in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        TASK_STATES[self as usize].1
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        TASK_STATES.iter().find(|(_, known)| *known == word).map(|(state, _)| *state)
    }
}

/// A task as the API shows it.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Id.
    pub id: TaskId,
    /// Whose it is.
    pub owner: Owner,
    /// Tenant's name.
    pub tenant: String,
    /// App's name.
    pub app: String,
    /// The definition.
    pub spec: TaskSpec,
    /// Whether it fires by itself.
    pub activity: Activity,
    /// Grows with every edit, start and stop.
    pub revision: i64,
    /// Watermark, epoch ms, or [`NEVER`](crate::domain::task::NEVER).
    pub next_fire_at: i64,
    /// Where a fixed rate counts from, ms.
    pub anchor_at: i64,
    /// Fires of the schedule written since it was started.
    pub fires: i64,
    /// Runs that failed since the last success.
    pub failures_in_row: i32,
    /// When it was paused, ms, or 0.
    pub paused_at: i64,
    /// The version of the script that its runs are; 0 where they are calls of its handler.
    pub script: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub updated_at: i64,
}

/// What the audit keeps of a task: what people define, not what the engine counts.
#[must_use]
pub fn audited_task(spec: &TaskSpec, activity: &Activity) -> Option<String> {
    let Ok(serde_json::Value::Object(mut fields)) = serde_json::to_value(spec) else { return None };
    fields.insert("started".to_owned(), activity.started.into());
    fields.insert("pause_note".to_owned(), activity.pause_note.clone().into());
    Some(serde_json::Value::Object(fields).to_string())
}

impl TaskView {
    /// After which instant (ms) the fires of another definition count from an edit at `now` on: an
    /// edit that leaves the schedule alone also owes what was not written yet.
    #[must_use]
    pub fn fires_after(&self, spec: &TaskSpec, activity: &Activity, now: i64) -> i64 {
        let goes_on = self.activity.started && activity.started && self.spec.fires_like(spec);
        if goes_on { now.min(self.next_fire_at.saturating_sub(1)) } else { now }
    }
}

/// A task to be.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Id.
    pub id: TaskId,
    /// Whose it is.
    pub owner: Owner,
    /// The definition, checked.
    pub spec: TaskSpec,
    /// Whether it fires at once.
    pub activity: Activity,
}

/// Another definition or state for a task.
#[derive(Debug, Clone)]
pub struct TaskChange {
    /// As the caller saw it; its revision must still be current.
    pub before: TaskView,
    /// The definition, checked.
    pub spec: TaskSpec,
    /// Whether it fires.
    pub activity: Activity,
    /// Why what was written ahead is cancelled.
    pub reason: Reason,
}

/// A calendar that was written, and that started tasks may still have to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalendarChange {
    /// The calendar.
    pub id: CalendarId,
    /// Its version.
    pub version: i64,
    /// When it was written, ms.
    pub since: i64,
}

/// What a stop or an edit found with executors.
pub type Unsent = Vec<DispatchedRun>;

/// Asked by `definitions.rs`.
#[async_trait]
pub trait DefinitionStore: Send + Sync {
    /// The same store, whose next commit writes these notes into the audit.
    #[must_use]
    fn noting(&self, notes: Vec<AuditNote>) -> Self
    where
        Self: Sized;
    /// Creates and changes tasks, all or none, and revokes what was written ahead by old definitions; answers what executors
    /// hold of each changed one, marked as revoked, in their order.
    async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>>;
    /// Deletes a task; its logs stay. Answers what executors hold of it, marked as revoked.
    async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent>;
    /// The task of that id, of any tenant.
    async fn task(&self, id: TaskId) -> Result<Option<TaskView>>;
    /// Changes of calendars that not all tasks may have followed yet, oldest first.
    async fn calendar_changes(&self, limit: u64) -> Result<Vec<CalendarChange>>;
    /// Started tasks that name the calendar and are planned by another version than its present one, by id after `after`.
    /// None of a calendar that is gone.
    async fn tasks_behind(&self, id: CalendarId, after: TaskId, limit: u64) -> Result<Vec<TaskView>>;
    /// Ends the change, if that is still the calendar's version, and every started task that names it is planned by it.
    async fn end_calendar_change(&self, change: &CalendarChange) -> Result<()>;
}
