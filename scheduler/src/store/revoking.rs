//! What a change of a task revokes: runs that were written ahead, and what executors hold of it.

use super::DispatchedRun;
use super::attempts::delete_logs;
use super::dialect::Sql;
use super::error::Result;
use super::rows;
use super::sql::{CANCELLED, ID};
use super::sql_store::{SqlStore, Transaction, retrying};
use super::values::to_json;
use crate::domain::task::NEVER;
use crate::domain::{LogId, Reason, Status, TaskId};
use sea_orm::Value;

statements!(
    // The task's revision, not one that the caller knows: this is part of the edit.
    ADOPT = |d| d.update_rows(
        "task_log",
        "revision = (SELECT t.revision FROM task t WHERE t.id = l.task_id)",
        ID,
        "l.id = v.n_id",
    ),
    WATCH_RUNS = |d| format!(
        "INSERT INTO outbox (id, task_id) SELECT l.id, l.task_id FROM {} task_log l ON l.id = v.n_id \
         WHERE l.parent_id = 0 {}",
        d.batch(1, ID),
        d.or_ignore("outbox", "id")
    ),
    UNCOUNT = |_| "UPDATE task SET fires = CASE WHEN fires > {2} THEN fires - {2} ELSE 0 END WHERE id = {1}".into(),
);

/// What a stop or an edit found with executors.
pub type Unsent = Vec<DispatchedRun>;

/// What a change of a task revokes.
pub(super) struct Revocation {
    pub task_id: TaskId,
    pub reason: Reason,
    pub keeps_unscheduled: bool,
    /// The watermark now: what fires from there on is planned, and counted, again.
    pub next: i64,
    pub now: i64,
}

impl SqlStore {
    /// Runs of a fixed delay that executors hold become links of its chain: the next run comes
    /// after their end, not beside them.
    pub(super) async fn adopt(&self, tx: &Transaction<'_>, id: TaskId, held: &[DispatchedRun]) -> Result<()> {
        let links = held.iter().map(|dispatched| &dispatched.run).filter(|run| run.trigger.is_scheduled());
        let ids: Vec<[LogId; 1]> = links.map(|run| [run.id]).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let ids = to_json("change a task", &ids)?;
        tx.execute(&ADOPT, [ids.clone().into()]).await?;
        tx.execute(&WATCH_RUNS, [ids.into()]).await?;
        let wait = sql!(format!("UPDATE task SET next_fire_at = {NEVER} WHERE id = {{1}}"));
        tx.execute(&wait, [id.into()]).await.map(drop)
    }

    /// Restarts the chain of a fixed delay when executors gave up the run that it waited for. No link of
    /// it, given up or not, fired before `since` (ms).
    pub async fn restart_chain(&self, id: TaskId, revision: i64, since: i64) -> Result<()> {
        retrying(|| self.restart_chain_once(id, revision, since)).await
    }

    async fn restart_chain_once(&self, id: TaskId, revision: i64, since: i64) -> Result<()> {
        let tasks = super::PlanStore::tasks(self, &[id]).await?;
        let Some(task) = tasks.first() else { return Ok(()) };
        let first = task.schedule.next_after(task.schedule.anchor);
        let tx = self.begin("restart a chain").await?;
        // Sets nothing yet: it holds the row, so that the chain goes on in one way only.
        let is_waiting = sql!(format!(
            "UPDATE task SET turn = turn + 1 WHERE id = {{1}} AND revision = {{2}} AND started = 1 AND \
                 next_fire_at = {NEVER}"
        ));
        if tx.execute(&is_waiting, [id.into(), revision.into()]).await? == 0 {
            return tx.rollback().await;
        }
        // By the task's logs: the outbox has those of every task.
        let forget = sql!(|d| d.delete_from(
            "outbox",
            &format!(
                "(SELECT g.id AS n_id FROM task_log g WHERE g.task_id = {{1}} AND g.fire_time >= {{2}} AND \
                 +g.status = {CANCELLED} AND g.reason IN ('task_edited', 'task_stopped', 'task_paused')) v"
            ),
            "l.id = v.n_id",
        ));
        tx.execute(&forget, [id.into(), since.into()]).await?;
        let others = sql!(|d| format!(
            "SELECT f.id FROM task_log l {} outbox f ON f.id = l.id WHERE l.task_id = {{1}} AND l.fire_time >= {{2}} AND \
             l.revision = {{3}} AND l.trigger_kind IN ('schedule', 'misfire') LIMIT 1",
            d.join_in_order()
        ));
        let others: Vec<i64> = tx.query(&others, [id.into(), since.into(), revision.into()]).await?;
        if others.is_empty() {
            let set = sql!("UPDATE task SET next_fire_at = {2} WHERE id = {1}");
            tx.execute(&set, [id.into(), first.into()]).await?;
        }
        tx.commit().await
    }

    /// Clears cancelled fires of a task that never ran, from `from` (ms) on: shards and single runs
    /// of one instant exclude each other when the routing changes. Runs that were started on request
    /// stay, so that the caller can see what became of them.
    pub async fn clear_cancelled(&self, id: TaskId, from: i64) -> Result<()> {
        let which = format!(
            "task_id = {{1}} AND fire_time >= {{2}} AND status = {} AND reason IN ('task_edited', 'task_stopped', \
             'task_paused') AND trigger_kind IN ('schedule', 'misfire')",
            Status::Cancelled as i16
        );
        retrying(|| async {
            let tx = self.begin("clear cancelled runs").await?;
            for sql in delete_logs(self.backend, &which) {
                tx.execute(&sql, [id.into(), from.into()]).await?;
            }
            tx.commit().await
        })
        .await
    }

    /// Cancels what no executor has, in the task's own transaction; reads what executors have.
    pub(super) async fn revoke(&self, tx: &Transaction<'_>, taken: &Revocation) -> Result<Unsent> {
        const SCHEDULED: &str = " AND trigger_kind IN ('schedule', 'misfire')";
        let Revocation { task_id, reason, keeps_unscheduled, next, now } = *taken;
        let cancel = |which: &str| {
            Sql::new(
                self.backend,
                &format!(
                    "UPDATE task_log SET status = {}, reason = {{2}}, finished_at = {{3}}, version = version + 1 \
                     WHERE task_id = {{1}} AND status IN ({}, {}, {}){which}",
                    Status::Cancelled as i16,
                    Status::Init as i16,
                    Status::Queued as i16,
                    Status::Retry as i16
                ),
            )
        };
        // Fires that never ran and will not be planned again do not count for `max_fires`.
        let untried = cancel(&format!("{SCHEDULED} AND parent_id = 0 AND failures = 0 AND fire_time < {{4}}"));
        let values = [task_id.into(), reason.as_str().into(), now.into(), next.into()];
        let untried = tx.execute(&untried, values).await?;
        if untried > 0 {
            tx.execute(&UNCOUNT, [task_id.into(), (untried as i64).into()]).await?;
        }
        let cancel = cancel(if keeps_unscheduled { SCHEDULED } else { "" });
        let values: [Value; 3] = [task_id.into(), reason.as_str().into(), now.into()];
        tx.execute(&cancel, values.clone()).await?;
        let held = sql!(format!(
            "SELECT {} FROM task_log l WHERE l.task_id = {{1}} AND l.status = {} ORDER BY l.id",
            rows::DISPATCHED_COLUMNS,
            Status::Dispatched as i16
        ));
        let held = tx.query(&held, [task_id.into()]).await?;
        // Once more: a run may have come back from its executor between the two.
        tx.execute(&cancel, values).await?;
        // Copies in queues lose at the version.
        let keep = sql!(format!(
            "UPDATE task_log SET status = CASE WHEN attempt > 0 THEN {} ELSE {} END, version = version + 1, \
                 revision = (SELECT revision FROM task WHERE id = {{1}}) WHERE task_id = {{1}} AND status IN ({}, {}, {})",
            Status::Retry as i16,
            Status::Init as i16,
            Status::Init as i16,
            Status::Queued as i16,
            Status::Retry as i16
        ));
        if keeps_unscheduled {
            tx.execute(&keep, [task_id.into()]).await?;
        }
        Ok(held)
    }

    /// Takes fires that executors gave up for a stop or a pause out of what `max_fires` counts.
    pub async fn uncount(&self, id: TaskId, fires: usize) -> Result<()> {
        let values = [id.into(), (fires as i64).into()];
        self.execute("uncount fires", &UNCOUNT, values).await.map(drop)
    }
}
