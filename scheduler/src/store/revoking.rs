//! What a change of a task revokes: runs that were written ahead, and what executors hold of it.

use super::attempts::delete_logs;
use super::error::Result;
use super::rows;
use super::sql::{BATCH_MAX, DISPATCHED, GIVEN_UP, ID, ID_VERSION, INIT, QUEUED, RETRY, REVOCATIONS};
use super::sql_store::{SqlStore, Transaction};
use super::statement::Sql;
use super::values::{list, to_json};
use super::{DispatchedRun, Unsent};
use crate::domain::task::NEVER;
use crate::domain::{LogId, Reason, Status, TaskId};
use sea_orm::Value;
use std::collections::BTreeSet;

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
    // What executors hold is asked for after the commit, by whichever node: the mark outlives a crash. What a stop or a
    // pause revoked stays so under a later start, save what that fires anew. The version grows: a decision by the old
    // definition loses the race.
    MARK_HELD = |_| format!(
        "UPDATE task_log SET stopping = CASE WHEN {{2}} = 'task_edited' AND stopping IN ('task_stopped', 'task_paused') \
         AND fire_time < {{3}} THEN stopping ELSE {{2}} END, version = version + 1 WHERE task_id = {{1}} AND status = {DISPATCHED} AND \
         shard_index >= 0 AND stopping IN ('', {REVOCATIONS})"
    ),
    // An edit adopts what no schedule named. The mark is set last: MySQL assigns from left to right.
    KEEP_RUNNING = |d| {
        d.update_rows(
        "task_log",
        "revision = CASE WHEN l.stopping = 'task_edited' AND l.trigger_kind NOT IN ('schedule', 'misfire') THEN \
         (SELECT t.revision FROM task t WHERE t.id = l.task_id) ELSE l.revision END, stopping = ''",
        ID_VERSION,
        &format!(
            "l.id = v.n_id AND l.version = v.n_version AND +l.status = {DISPATCHED} AND l.stopping IN ({REVOCATIONS})"
        ),
    )
    },
    UNCOUNT = |_| "UPDATE task SET fires = CASE WHEN fires > {2} THEN fires - {2} ELSE 0 END WHERE id = {1}".into(),
);

/// What a change of a task revokes.
pub(super) struct Revocation {
    pub task_id: TaskId,
    pub reason: Reason,
    pub keeps_unscheduled: bool,
    /// Whether it begins or ends to be sharded: shards and single runs of one instant exclude each other.
    pub changes_shape: bool,
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

    /// Holds the runs of a task that are not over: none changes its state until the transaction ends. The task's row is held
    /// already, so that no run comes, save shards of one that was just dispatched: the second look finds these. A statement
    /// that goes by states alone would miss a run whose state changes, behind its back, to one that it has passed.
    pub(super) async fn hold_open_runs(&self, tx: &Transaction<'_>, task_id: TaskId) -> Result<()> {
        let Some(for_update) = self.backend.for_update() else { return Ok(()) };
        let open = sql!(format!(
            "SELECT id FROM task_log WHERE task_id = {{1}} AND status IN ({INIT}, {QUEUED}, {DISPATCHED}, {RETRY})"
        ));
        // In the order of their ids, as everyone should.
        let hold = Sql::new(
            self.backend,
            &format!(
                "SELECT l.id FROM {} task_log l ON l.id = v.n_id ORDER BY l.id {for_update}",
                self.backend.batch(1, ID)
            ),
        );
        let mut known: BTreeSet<LogId> = BTreeSet::new();
        for _ in 0..2 {
            let found: BTreeSet<LogId> = tx.query::<LogId, _>(&open, [task_id.into()]).await?.into_iter().collect();
            let more: Vec<[LogId; 1]> = found.difference(&known).map(|id| [*id]).collect();
            for batch in more.chunks(BATCH_MAX) {
                let _: Vec<LogId> = tx.query(&hold, [to_json("change a task", &batch)?.into()]).await?;
            }
            known.extend(found);
        }
        Ok(())
    }

    /// Cancels what no executor has, in the task's own transaction, which holds all its runs; reads what executors have.
    pub(super) async fn revoke(&self, tx: &Transaction<'_>, taken: &Revocation) -> Result<Unsent> {
        const SCHEDULED: &str = " AND trigger_kind IN ('schedule', 'misfire')";
        let Revocation { task_id, reason, keeps_unscheduled, changes_shape, next, now } = *taken;
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
        tx.execute(&cancel, values).await?;
        let held = sql!(format!(
            "SELECT {} FROM task_log l WHERE l.task_id = {{1}} AND l.status = {} ORDER BY l.id",
            rows::DISPATCHED_COLUMNS,
            Status::Dispatched as i16
        ));
        let marks = [task_id.into(), reason.as_str().into(), next.into()];
        tx.execute(&MARK_HELD, marks).await?;
        let held: Unsent = tx.query(&held, [task_id.into()]).await?;
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
        if changes_shape {
            // A run that goes on counts all of its shards.
            let parents = held.iter().filter(|row| row.run.is_parent()).map(|row| row.run.id);
            let parents = list("change a task", parents)?;
            let which = format!(
                "task_id = {{1}} AND fire_time >= {{2}} AND status = {} AND reason IN ({GIVEN_UP}) AND trigger_kind IN \
                 ('schedule', 'misfire') AND parent_id NOT IN {}",
                Status::Cancelled as i16,
                self.backend.ids(3)
            );
            for sql in delete_logs(self.backend, &which) {
                tx.execute(&sql, [task_id.into(), next.min(now).into(), parents.clone().into()]).await?;
            }
        }
        Ok(held)
    }
}
