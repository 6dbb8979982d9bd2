//! Tasks as responses show them.

use crate::api::words;
use crate::domain::task::{NEVER, TaskSpec, TaskWarning};
use crate::store::TaskView;
use serde::Serialize;
use utoipa::ToSchema;

/// A task.
#[derive(Serialize, ToSchema)]
pub struct Task {
    /// Id.
    pub id: String,
    /// Tenant's name.
    pub tenant: String,
    /// App's name.
    pub app: String,
    #[serde(flatten)]
    spec: TaskSpec,
    /// Whether it fires by itself and, if not, whether it is paused.
    #[schema(value_type = words::TaskState)]
    state: &'static str,
    /// Whether it fires by itself.
    started: bool,
    /// Why it is paused.
    pause_note: Option<String>,
    /// When it was paused, epoch ms.
    paused_at: Option<i64>,
    /// The version of the script that its runs are; 0 where they are calls of its handler.
    script: i64,
    /// What is allowed, but may not be intended.
    warnings: Vec<TaskWarning>,
    /// Increases with every change.
    revision: i64,
    /// Its next scheduled fire, epoch ms, even if its log is already written; null when it will not fire by itself
    /// (any more), and while the instant is unknown, such as that of a fixed delay during a run. Fires that were
    /// cancelled in advance count.
    next_fire_at: Option<i64>,
    /// Logs are written for fires before this instant, epoch ms; null when none will be written (any more).
    written_until: Option<i64>,
    /// Fires of the schedule since it was started.
    fires: i64,
    /// Runs that failed since the last success.
    failures_in_row: i32,
    /// Epoch ms.
    created_at: i64,
    /// Epoch ms.
    updated_at: i64,
}

/// A task that was changed.
#[derive(Serialize, ToSchema)]
pub struct Changed {
    /// The task.
    pub task: Task,
    /// Logs of runs that are still running.
    pub running: Vec<String>,
    /// Logs of runs whose executor could not be asked; they may still start.
    pub unreachable: Vec<String>,
}

impl Task {
    /// The task with its next fire, or [`NEVER`].
    pub fn new(task: &TaskView, next_fire_at: i64) -> Self {
        Self {
            id: task.id.to_string(),
            tenant: task.tenant.clone(),
            app: task.app.clone(),
            spec: task.spec.clone(),
            state: task.activity.state().as_str(),
            started: task.activity.started,
            pause_note: task.activity.pause_note.clone(),
            paused_at: (task.paused_at != 0).then_some(task.paused_at),
            script: task.script,
            warnings: task.spec.warnings(task.activity.started),
            revision: task.revision,
            next_fire_at: (next_fire_at != NEVER).then_some(next_fire_at),
            written_until: (task.next_fire_at != NEVER).then_some(task.next_fire_at),
            fires: task.fires,
            failures_in_row: task.failures_in_row,
            created_at: task.created_at,
            updated_at: task.updated_at,
        }
    }
}
