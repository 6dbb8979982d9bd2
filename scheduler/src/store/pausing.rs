//! Tasks that pause because they have failed too often in a row: in the transaction that counts the failure.

use super::sql_store::Transaction;
use super::template::Text as _;
use super::{Activity, PausedTask, Result, SqlStore, TaskChange, TaskView, audited_task};
use crate::domain::audit::{Actor, AuditNote, Target};
use crate::domain::{Action, LogId, Reason, TaskId};

impl SqlStore {
    /// Pauses the task if it is started and has failed as often as it may; its row is held by the caller. The audit names
    /// `node`.
    pub(super) async fn pause_failing(
        &self,
        tx: &Transaction<'_>,
        id: TaskId,
        node: &Actor,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<Option<PausedTask>> {
        let Some(before) = self.task_in(tx, id).await?.filter(has_failed_too_often) else { return Ok(None) };
        let (name, failures) = (before.spec.name.clone(), before.failures_in_row);
        let reason = format!("paused by itself after {failures} failed runs in a row");
        let activity = Activity { started: false, pause_note: Some(reason) };
        let entry = AuditNote {
            id: new_id().0,
            tenant_id: before.owner.tenant_id,
            at: now,
            actor: node.clone(),
            action: Action::PauseTask,
            target: Target::task(id, &name),
            before: audited_task(&before.spec, &before.activity),
            after: audited_task(&before.spec, &activity),
        };
        let change = TaskChange { spec: before.spec.clone(), before, activity, reason: Reason::TaskPaused };
        let held = self.update_task(tx, &change, now).await?;
        self.append_notes(tx, &[entry]).await?;
        Ok(Some(PausedTask { id, name, failures, held }))
    }

    async fn task_in(&self, tx: &Transaction<'_>, id: TaskId) -> Result<Option<TaskView>> {
        let sql = sql!(format!("{} WHERE t.id = {{1}}", super::task_views::views()));
        let mut found: Vec<TaskView> = tx.query_raw(sql.on(self.backend).bind([id.into()])).await?;
        self.fill_parents_in(tx, &mut found).await?;
        Ok(found.pop())
    }
}

/// By what it says now: a later run may have succeeded, and a start in between began to count again.
fn has_failed_too_often(task: &TaskView) -> bool {
    let most = task.spec.pause_after_failures;
    task.activity.started && most > 0 && task.failures_in_row >= most
}
