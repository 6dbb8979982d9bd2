//! Changing definitions: one transaction, in which what executors hold of the old one is marked as revoked; then the question
//! to the executors, and the new one's logs. What comes after the commit is there for speed: the reaper repeats the question,
//! and pre-generation writes the logs. Returns only when nothing of the old definition can start any more, except what the
//! result names.

mod calendars;

pub use calendars::FollowedCalendar;

use crate::domain::audit::AuditNote;
use crate::domain::task::TaskSpec;
use crate::domain::{LogId, Reason, TaskId};
use crate::engine::Engine;
use crate::store::{
    Activity, Beside, DefinitionStore, NewTask, PausedTask, Result, SqlStore, Store, TaskChange, TaskView, Unsent,
};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tokio::sync::Notify;

/// What an edit, a stop or a delete could not revoke.
#[derive(Debug, Default)]
pub struct NotRevoked {
    /// Runs that go on.
    pub running: Vec<String>,
    /// Runs whose executor could not be asked; they may still start.
    pub unreachable: Vec<String>,
}

/// The change from `before` to another definition or state.
#[must_use]
pub fn change_of(before: TaskView, spec: TaskSpec, activity: Activity) -> TaskChange {
    let is_edit = activity.started || (activity == before.activity && spec != before.spec);
    let reason = match &activity {
        _ if is_edit => Reason::TaskEdited,
        Activity { pause_note: Some(_), .. } => Reason::TaskPaused,
        Activity { .. } => Reason::TaskStopped,
    };
    TaskChange { before, spec, activity, reason }
}

impl TaskDefinitions<SqlStore> {
    /// The same, whose next change also writes what is kept of tasks beside their definitions.
    #[must_use]
    pub fn noting_beside(&self, notes: Vec<AuditNote>, beside: Beside) -> Self {
        let (engine, wake, came_to) = (self.engine.clone(), self.wake.clone(), self.came_to.clone());
        Self { engine, store: self.store.noting_beside(notes, beside), wake, came_to }
    }
}

/// Changes definitions, for the API and for the engine itself.
pub struct TaskDefinitions<S: Store = SqlStore> {
    engine: Arc<Engine<S>>,
    store: S,
    /// Wakes the urgent loader.
    wake: Arc<Notify>,
    /// The calendar whose change was followed last.
    came_to: Arc<AtomicI64>,
}

impl<S: Store + DefinitionStore + 'static> TaskDefinitions<S> {
    /// Over the node's parts.
    pub fn new(engine: Arc<Engine<S>>, store: S, wake: Arc<Notify>) -> Self {
        Self { engine, store, wake, came_to: Arc::default() }
    }

    /// The same, whose next change writes these notes into the audit.
    #[must_use]
    pub fn noting(&self, notes: Vec<AuditNote>) -> Self {
        let (engine, wake, came_to) = (self.engine.clone(), self.wake.clone(), self.came_to.clone());
        Self { engine, store: self.store.noting(notes), wake, came_to }
    }

    /// Creates and changes tasks (checked), all or none. Returns what could not be revoked of
    /// each changed one, in their order.
    pub async fn apply(&self, new: &[NewTask], changes: &[TaskChange]) -> Result<Vec<NotRevoked>> {
        self.engine.refresh_clock().await?;
        let now = self.engine.clock.now_ms();
        for change in changes {
            // What the definition of before owes goes on with an edit that leaves its schedule alone.
            if change.before.fires_after(&change.spec, &change.activity, now) >= now {
                self.write_what_is_owed(&change.before, now).await?;
            }
        }
        let held = self.store.apply_tasks(new, changes, now).await?;
        let mut not_revoked = Vec::with_capacity(changes.len());
        for held in held {
            not_revoked.push(self.revoke(held).await);
        }
        let old = changes.iter().filter(|change| change.activity.started).map(|change| change.before.id);
        let new = new.iter().filter(|task| task.activity.started).map(|task| task.id);
        for id in old.chain(new) {
            if let Err(error) = self.engine.pregenerator.write_task(id).await {
                // The change is committed; the node that writes ahead makes up for it.
                tracing::warn!(task = id.0, %error, "the runs of a changed task are not written yet");
            }
        }
        self.wake.notify_one();
        Ok(not_revoked)
    }

    /// Deletes a task; returns what could not be revoked.
    pub async fn delete(&self, before: &TaskView) -> Result<NotRevoked> {
        self.engine.refresh_clock().await?;
        let now = self.engine.clock.now_ms();
        self.write_what_is_owed(before, now).await?;
        let held = self.store.delete_task(before, now).await?;
        Ok(self.revoke(held).await)
    }

    /// Fires that have passed and have no row yet, as after a long outage, get one before the definition that named them ends.
    async fn write_what_is_owed(&self, before: &TaskView, now: i64) -> Result<()> {
        if before.activity.started && before.next_fire_at < now {
            self.engine.pregenerator.write_task(before.id).await?;
        }
        Ok(())
    }

    /// Asks executors for what they hold of tasks that were paused by themselves.
    pub async fn revoke_paused(&self, paused: Vec<PausedTask>) {
        for PausedTask { id, name, failures, held } in paused {
            tracing::warn!(task = id.0, name, failures, "task paused: too many failures in a row");
            self.revoke(held).await;
        }
    }

    /// The task with that id, of any tenant.
    pub async fn find(&self, id: TaskId) -> Result<Option<TaskView>> {
        self.store.task(id).await
    }

    /// Asks executors for what they hold unstarted. Should it not come to that, or to its end, the marks of the change's
    /// own transaction have any node's reaper ask again; the change is committed, so that is no failure of it.
    async fn revoke(&self, held: Unsent) -> NotRevoked {
        if held.is_empty() {
            return NotRevoked::default();
        }
        let text = |ids: &[LogId]| ids.iter().map(ToString::to_string).collect();
        let asked: Vec<LogId> =
            held.iter().map(|one| &one.run).filter(|run| !run.is_parent()).map(|run| run.id).collect();
        match self.engine.canceller.revoke(held).await {
            Ok(took) => NotRevoked { running: text(&took.running), unreachable: text(&took.unreachable) },
            Err(error) => {
                tracing::warn!(%error, "what executors hold of a changed task is not revoked yet");
                NotRevoked { running: Vec::new(), unreachable: text(&asked) }
            }
        }
    }
}
