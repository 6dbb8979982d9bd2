//! Runs that no schedule names: started manually, by a program, by a parent.

use super::planning::bucket;
use super::sql_store::{Transaction, retrying};
use super::values::clean;
use super::{Result, SqlStore, StoreError, StoreErrorKind, TaskView};
use crate::domain::Status;
use crate::domain::schedule::beside_whole_seconds;
use crate::domain::task::{Routing, TaskSpec};
use crate::domain::task_log::PARENT_SHARD;
use crate::domain::{LogId, Refusal, TaskId, Trigger};
use carillon_protocol::sign::sha256_hex;

/// A run to start.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Id of the log.
    pub id: LogId,
    /// Parameters instead of the task's.
    pub params: Option<String>,
    /// When it is due, ms.
    pub at: i64,
    /// Priority instead of the task's.
    pub priority: Option<i32>,
    /// Two runs of one task with the same key are one.
    pub key: Option<String>,
    /// What makes it.
    pub trigger: Trigger,
    /// For people.
    pub message: String,
}

impl NewRun {
    /// Manual, at once.
    #[must_use]
    pub fn manual(id: LogId, now: i64) -> Self {
        let (params, priority, key, message) = (None, None, None, String::new());
        Self { id, params, at: now, priority, key, trigger: Trigger::Manual, message }
    }
}

/// A run that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRun {
    /// Its log.
    pub log: LogId,
    /// Its fire time, ms: a millisecond later than asked when the task has a log for that
    /// instant, its schedule names it, or it is a whole second.
    pub fire_time: i64,
    /// Whether an earlier call with the same key started it.
    pub is_repeated: bool,
}

const ACTION: &str = "start a run";

/// Milliseconds after the wanted one that are tried.
const TRIES_MAX: i64 = 1_000;

impl SqlStore {
    /// Writes a run that no schedule names.
    pub async fn start_run(&self, task: &TaskView, run: &NewRun) -> Result<StartedRun> {
        let run = &NewRun { at: self.unnamed_from(task, run.at).await?, ..run.clone() };
        let mut started = retrying(|| self.start_run_once(task, run)).await;
        if run.key.is_some() && started.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Duplicate) {
            // Another call with the key came first, between the look and the write.
            started = retrying(|| self.start_run_once(task, run)).await;
        }
        started
    }

    /// The first instant from `at` (ms) on that a manual run may have: it would take the place of a fire that is not written
    /// yet.
    async fn unnamed_from(&self, task: &TaskView, at: i64) -> Result<i64> {
        let schedule = task.spec.to_schedule(task.anchor_at, task.id);
        let mut schedule = schedule.map_err(|error| StoreError::refused(ACTION, error))?;
        if !task.spec.calendar.is_empty() {
            schedule.calendar = Some(self.ready_calendar(task.owner.tenant_id, &task.spec.calendar).await?);
        }
        Ok(schedule.unnamed_from(at))
    }

    async fn start_run_once(&self, task: &TaskView, run: &NewRun) -> Result<StartedRun> {
        let key = run.key.as_ref().map(|key| key_of(task.id, key));
        let tx = self.begin(ACTION).await?;
        if let Some(key) = &key
            && let Some(earlier) = self.run_of_key(&tx, key).await?
        {
            tx.rollback().await?;
            return Ok(earlier);
        }
        let fire_time = self.insert_run(&tx, task.id, &task.spec, run).await?;
        if let Some(key) = key {
            // One whose log retention has taken is free again.
            let clear = sql!(
                "DELETE FROM run_key WHERE id = {1} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.id = run_key.log_id)"
            );
            tx.execute(&clear, [key.clone().into()]).await?;
            let sql = sql!("INSERT INTO run_key (id, task_id, log_id) VALUES ({1}, {2}, {3})");
            tx.execute(&sql, [key.into(), task.id.into(), run.id.into()]).await?;
        }
        tx.commit().await?;
        Ok(StartedRun { log: run.id, fire_time, is_repeated: false })
    }

    async fn run_of_key(&self, tx: &Transaction<'_>, key: &str) -> Result<Option<StartedRun>> {
        let sql = sql!("SELECT l.id, l.fire_time FROM run_key k JOIN task_log l ON l.id = k.log_id WHERE k.id = {1}");
        let found: Vec<(LogId, i64)> = tx.query(&sql, [key.into()]).await?;
        Ok(found.first().map(|(log, fire_time)| StartedRun { log: *log, fire_time: *fire_time, is_repeated: true }))
    }

    /// Inserts the log at the first free millisecond from the wanted one on; answers that.
    pub(super) async fn insert_run(
        &self,
        tx: &Transaction<'_>,
        task_id: TaskId,
        spec: &TaskSpec,
        run: &NewRun,
    ) -> Result<i64> {
        let shard = if spec.routing == Routing::Sharding { PARENT_SHARD } else { 0 };
        let place = if spec.needs_permit() { task_id.0 } else { run.id.0 };
        let turn = sql!("UPDATE task SET turn = turn + 1 WHERE id = {1}");
        if tx.execute(&turn, [task_id.into()]).await? == 0 {
            return Err(StoreError::of(ACTION, Refusal::not_found("task", task_id)));
        }
        // The watermark's row is held: no one else starts a run of this task meanwhile, and
        // pre-generation skips an instant that is taken.
        let taken = sql!(
            "SELECT fire_time FROM task_log WHERE task_id = {1} AND shard_index = {2} AND fire_time >= {3} AND \
             fire_time < {4} ORDER BY fire_time"
        );
        let values = [task_id.into(), shard.into(), run.at.into(), (run.at + TRIES_MAX).into()];
        let taken: Vec<i64> = tx.query(&taken, values).await?;
        let mut fire_time = run.at;
        for at in taken {
            if at == fire_time {
                fire_time = beside_whole_seconds(at + 1);
            }
        }
        let insert = sql!(format!(
            "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
                 fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
                 started_at, finished_at, reason, message, params, trigger_kind, seq, priority, stopping) \
                 SELECT {{1}}, tenant_id, app_id, id, revision, 0, {{3}}, {{4}}, {{5}}, {{6}}, {{6}}, {}, 1, 0, 0, 0, 0, 0, \
                 0, 0, 0, '', {{7}}, {{8}}, {{9}}, turn, COALESCE({{10}}, priority), '' FROM task WHERE id = {{2}}",
            Status::Init as i16
        ));
        let values = [
            run.id.into(),
            task_id.into(),
            shard.into(),
            i32::from(shard == 0).into(),
            (bucket(place) as i32).into(),
            fire_time.into(),
            (!run.message.is_empty()).then(|| clean(&run.message)).into(),
            run.params.as_deref().map(clean).into(),
            run.trigger.as_str().into(),
            run.priority.into(),
        ];
        tx.execute(&insert, values).await?;
        self.watch(tx, run.id).await?;
        Ok(fire_time)
    }

    /// Notes that the end of a run has consequences, if its task says so.
    async fn watch(&self, tx: &Transaction<'_>, log: LogId) -> Result<()> {
        let watch = sql!(
            "INSERT INTO outbox (id, task_id) SELECT l.id, t.id FROM task_log l JOIN task t ON t.id = l.task_id \
             WHERE l.id = {1} AND (t.children > 0 OR t.pause_after_failures > 0)"
        );
        tx.execute(&watch, [log.into()]).await.map(drop)
    }
}

/// The row of an idempotency key: keys of any length and alphabet, each task's its own.
fn key_of(task_id: TaskId, key: &str) -> String {
    format!("{task_id}:{}", sha256_hex(key.as_bytes()))
}
