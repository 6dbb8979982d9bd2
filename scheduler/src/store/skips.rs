//! Coming fires that people cancel before they are written: a log that ends before it begins. What
//! writes runs ahead leaves it alone, as any log that is there.

use super::dialect::{Dialect, Kind};

use super::planning::MOVE_BACK;
use super::planning::bucket;
use super::sql::ID;
use super::sql_store::{Transaction, retrying};
use super::statement::Sql;
use super::values::{clean, list};
use super::{Result, SqlStore, StoreError, TaskView};
use crate::domain::instant::utc_words;
use crate::domain::task::{Routing, ScheduleKind, TaskSpec};
use crate::domain::task_log::PARENT_SHARD;
use crate::domain::{LogId, Refusal, Status, TaskId, TenantId};

statements!(MOVE_SKIPS = |d| d.update_rows("task_log", "shard_index = {2}, shard_total = {3}", ID, "l.id = v.n_id"),);

/// Cancelled fires ahead of one task at most.
pub const SKIPS_MAX: i64 = 1_000;

/// A coming fire to cancel.
#[derive(Debug, Clone)]
pub struct Skip {
    /// Id of the log.
    pub id: LogId,
    /// The instant, ms.
    pub fire_time: i64,
    /// For people.
    pub message: String,
}

/// What became of a wish to cancel a coming fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// Its log is written as cancelled.
    Written,
    /// It has this log already.
    There(LogId),
}

const ACTION: &str = "cancel a coming fire";
const UNDO: &str = "let a cancelled fire come";

/// A fire that a person cancelled before it was claimed.
pub(super) fn is_skip(log: &str) -> String {
    format!(
        "+{log}.status = {} AND {log}.reason = 'cancelled_manually' AND {log}.attempt = 0 AND {log}.parent_id = 0 AND \
         {log}.trigger_kind IN ('schedule', 'misfire')",
        Status::Cancelled as i16
    )
}

/// Where the log of a fire stands in the unique index.
fn shard_of(spec: &TaskSpec) -> i32 {
    if spec.routing == Routing::Sharding { PARENT_SHARD } else { 0 }
}

impl SqlStore {
    /// Writes the log of a coming fire, which the schedule of `task` names, as cancelled manually. It
    /// ends at its instant, so that retention keeps it until then and its time after.
    pub async fn skip_fire(&self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped> {
        retrying(|| self.skip_fire_once(task, skip, now)).await
    }

    async fn skip_fire_once(&self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped> {
        let tx = self.begin(ACTION).await?;
        let watermark = self.hold(&tx, ACTION, task).await?;
        let shard = shard_of(&task.spec);
        if let Some((log, _)) = self.log_of_fire(&tx, task.id, skip.fire_time, shard).await? {
            tx.rollback().await?;
            return Ok(Skipped::There(log));
        }
        if task.activity.started && skip.fire_time < watermark {
            return Err(StoreError::of(ACTION, Refusal::FireIsPast));
        }
        let count = sql!(format!(
            "SELECT COUNT(*) FROM task_log l WHERE l.task_id = {{1}} AND l.fire_time > {{2}} AND {}",
            is_skip("l")
        ));
        let ahead: Vec<i64> = tx.query(&count, [task.id.into(), now.into()]).await?;
        if ahead.first().is_some_and(|ahead| *ahead >= SKIPS_MAX) {
            return Err(StoreError::of(ACTION, Refusal::TooManySkips { most: SKIPS_MAX }));
        }
        let insert = sql!(format!(
            "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
                 fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
                 started_at, finished_at, reason, message, trigger_kind, seq, priority, stopping) \
                 SELECT {{1}}, tenant_id, app_id, id, revision, 0, {{3}}, {{4}}, {{5}}, {{6}}, {{6}}, {}, 1, 0, 0, 0, 0, 0, \
                 0, 0, {{6}}, 'cancelled_manually', {{7}}, 'schedule', turn, priority, '' FROM task WHERE id = {{2}}",
            Status::Cancelled as i16
        ));
        let values = [
            skip.id.into(),
            task.id.into(),
            shard.into(),
            i32::from(shard == 0).into(),
            (bucket(skip.id) as i32).into(),
            skip.fire_time.into(),
            (!skip.message.is_empty()).then(|| clean(&skip.message)).into(),
        ];
        tx.execute(&insert, values).await?;
        tx.commit().await?;
        Ok(Skipped::Written)
    }

    /// Takes the log of a coming fire away that was cancelled before it was claimed. Where the watermark
    /// has passed it and the schedule names it still (`is_named`), the watermark moves back to it.
    pub async fn restore_fire(&self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()> {
        retrying(|| self.restore_fire_once(task, fire_time, is_named, now)).await
    }

    async fn restore_fire_once(&self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()> {
        if task.spec.schedule == ScheduleKind::FixedDelay {
            // The cancelled run has its outbox_worker, which goes on: with both there would be two chains.
            return Err(StoreError::of(UNDO, Refusal::FollowsByItself));
        }
        let tx = self.begin(UNDO).await?;
        self.hold(&tx, UNDO, task).await?;
        let Some((log, is_cancelled)) = self.log_of_fire(&tx, task.id, fire_time, shard_of(&task.spec)).await? else {
            return Err(StoreError::of(UNDO, Refusal::not_found("cancelled fire", utc_words(fire_time))));
        };
        if !is_cancelled || fire_time <= now {
            return Err(StoreError::of(UNDO, Refusal::NotCancelled));
        }
        if is_named {
            // With the log still there, so that it is taken out of what `max_fires` counts: it will be
            // counted again.
            let values = [task.id.into(), task.revision.into(), fire_time.into(), now.into()];
            tx.execute(&MOVE_BACK, values).await?;
        }
        let is_gone = format!("DELETE FROM task_log WHERE id = {{1}} AND {}", is_skip("task_log"));
        if tx.execute(&Sql::new(self.backend, &is_gone), [log.into()]).await? == 0 {
            return Err(StoreError::of(UNDO, Refusal::changed("run", log)));
        }
        tx.execute(sql!("DELETE FROM outbox WHERE id = {1}"), [log.into()]).await?;
        tx.commit().await
    }

    /// Holds the task's row, so that no one writes runs of it meanwhile; answers its watermark.
    async fn hold(&self, tx: &Transaction<'_>, action: &'static str, task: &TaskView) -> Result<i64> {
        let turn = sql!("UPDATE task SET turn = turn + 1 WHERE id = {1} AND revision = {2} AND tenant_id = {3}");
        let values = [task.id.into(), task.revision.into(), task.owner.tenant_id.into()];
        if tx.execute(&turn, values).await? == 0 {
            return Err(StoreError::of(action, Refusal::changed("task", &task.spec.name)));
        }
        let watermark = sql!("SELECT next_fire_at FROM task WHERE id = {1}");
        let found: Vec<i64> = tx.query(&watermark, [task.id.into()]).await?;
        found
            .first()
            .copied()
            .ok_or_else(|| StoreError::of(action, Refusal::DeletedMeanwhile { kind: "task".to_owned() }))
    }

    /// The log of a fire, and whether it was cancelled before it was claimed.
    async fn log_of_fire(
        &self,
        tx: &Transaction<'_>,
        task: TaskId,
        fire_time: i64,
        shard: i32,
    ) -> Result<Option<(LogId, bool)>> {
        let sql = sql!(format!(
            "SELECT l.id, CASE WHEN {} THEN 1 ELSE 0 END FROM task_log l WHERE l.task_id = {{1}} AND \
                 l.fire_time = {{2}} AND l.shard_index = {{3}}",
            is_skip("l")
        ));
        let found = tx.query(&sql, [task.into(), fire_time.into(), shard.into()]);
        Ok(found.await?.pop())
    }

    /// Fires of a tenant's task from `from` up to before `until` (ms) that were cancelled before they were
    /// claimed, earliest first.
    pub async fn skipped_fires(
        &self,
        tenant: TenantId,
        task: TaskId,
        from: i64,
        until: i64,
        limit: u64,
    ) -> Result<Vec<i64>> {
        let sql = sql!(format!(
            "SELECT l.fire_time FROM task_log l WHERE l.task_id = {{1}} AND l.fire_time >= {{2}} AND l.fire_time < {{3}} \
                 AND l.tenant_id = {{4}} AND {} ORDER BY l.fire_time LIMIT {{5}}",
            is_skip("l")
        ));
        let values = [task.into(), from.into(), until.into(), tenant.into(), limit.into()];
        self.query("list cancelled fires", &sql, values).await
    }

    /// Makes cancelled fires ahead fit another definition of their task: their logs stand where those of
    /// the definition's fires do. A fixed delay has no instants that could be left out.
    pub(super) async fn fit_skips(
        &self,
        tx: &Transaction<'_>,
        before: &TaskView,
        spec: &TaskSpec,
        now: i64,
    ) -> Result<()> {
        const ACTION: &str = "change a task";
        if spec.schedule == ScheduleKind::FixedDelay && before.spec.schedule != ScheduleKind::FixedDelay {
            // Whose log has never been anything else.
            let which = format!("task_id = {{1}} AND fire_time > {{2}} AND version = 1 AND {}", is_skip("task_log"));
            let sql = Sql::new(self.backend, &format!("DELETE FROM task_log WHERE {which}"));
            return tx.execute(&sql, [before.id.into(), now.into()]).await.map(drop);
        }
        let shard = shard_of(spec);
        if shard == shard_of(&before.spec) {
            return Ok(());
        }
        let ahead = sql!(format!(
            "SELECT l.id FROM task_log l WHERE l.task_id = {{1}} AND l.fire_time > {{2}} AND l.shard_index = {{3}} AND {} \
                 ORDER BY l.fire_time LIMIT {{4}}",
            is_skip("l")
        ));
        // Those of the last minutes, whose logs were written, beside those ahead of them.
        let limit = 2 * SKIPS_MAX;
        let values = [before.id.into(), now.into(), shard_of(&before.spec).into(), limit.into()];
        let ahead: Vec<LogId> = tx.query(&ahead, values).await?;
        if ahead.is_empty() {
            return Ok(());
        }
        let values = [list(ACTION, &ahead)?.into(), shard.into(), i32::from(shard == 0).into()];
        tx.execute(&MOVE_SKIPS, values).await.map(drop)
    }
}

/// Fires that were cancelled before they were claimed, of several tasks.
pub(super) fn skipped(backend: Dialect) -> String {
    format!(
        "SELECT l.task_id, l.fire_time FROM {} task_log l ON l.task_id = v.n_id AND l.fire_time >= v.n_from AND \
         l.fire_time < {{2}} WHERE {} ORDER BY l.fire_time DESC LIMIT {{3}}",
        backend.batch(1, &[("id", Kind::Big), ("from", Kind::Big)]),
        is_skip("l")
    )
}
