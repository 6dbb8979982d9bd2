//! Runs that no schedule names.

use super::rows::{LogRow, State, bucket};
use super::{ModelStore, refuse};
use carillon::domain::schedule::beside_whole_seconds;
use carillon::domain::task::Routing;
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{ExecutorId, LogId, Reason, Run, Status};
use carillon::store::{NewRun, Result, StartedRun, StoreErrorKind, TaskView};

const ACTION: &str = "start a run";

/// Milliseconds after the wanted one that are tried.
const TRIES_MAX: i64 = 1_000;

impl ModelStore {
    /// Writes a run that no schedule names.
    pub async fn start_run(&self, task: &TaskView, run: &NewRun) -> Result<StartedRun> {
        self.call(ACTION, |state, _| {
            let key = run.key.clone().map(|key| (task.id, key));
            let earlier = key.as_ref().and_then(|key| state.run_keys.get(key)).and_then(|log| state.logs.get(log));
            if let Some(earlier) = earlier {
                let Run { id, fire_time, .. } = earlier.run;
                return Ok(StartedRun { log: id, fire_time, is_repeated: true });
            }
            let fire_time = state.insert_run(task, run)?;
            if let Some(key) = key {
                state.run_keys.insert(key, run.id);
            }
            Ok(StartedRun { log: run.id, fire_time, is_repeated: false })
        })
        .await
    }
}

impl State {
    /// Inserts the log at the first free millisecond from the wanted one on; returns that.
    pub(super) fn insert_run(&mut self, task: &TaskView, run: &NewRun) -> Result<i64> {
        let is_sharded = task.spec.routing == Routing::Sharding;
        let shard_index = if is_sharded { PARENT_SHARD } else { 0 };
        let wanted = self.tasks.get(&task.id).map_or(run.at, |row| self.task(row).schedule.unnamed_from(run.at));
        let is_free =
            |at: &i64| beside_whole_seconds(*at) == *at && !self.by_fire.contains_key(&(task.id, *at, shard_index));
        let Some(fire_time) = (wanted..=wanted + TRIES_MAX).find(is_free) else {
            return refuse(StoreErrorKind::Duplicate, ACTION, "every millisecond has a run");
        };
        let Some(row) = self.tasks.get_mut(&task.id) else {
            return refuse(StoreErrorKind::NotFound, ACTION, format!("there is no task {} (any more)", task.id));
        };
        row.turn += 1;
        let mut log = LogRow::new(Run {
            id: run.id,
            version: 1,
            tenant_id: row.view.owner.tenant_id,
            app_id: row.view.owner.app_id,
            task_id: task.id,
            revision: row.view.revision,
            parent_id: LogId::NONE,
            shard_index,
            shard_total: i32::from(!is_sharded),
            fire_time,
            due_time: fire_time,
            attempt: 0,
            failures: 0,
            status: Status::Init,
            reason: Reason::None,
            params: run.params.clone(),
            trigger: run.trigger,
            seq: row.turn,
            priority: run.priority.unwrap_or(row.view.spec.priority),
            executor_id: ExecutorId::NONE,
            queued_at: 0,
            has_rate_slot: false,
        });
        if task.spec.needs_permit() {
            log.bucket = bucket(task.id.0);
        }
        log.message.clone_from(&run.message);
        let counts_failures = row.view.spec.pause_after_failures > 0;
        self.insert(log);
        if counts_failures || self.has_children(task.id) {
            self.watch(run.id);
        }
        Ok(fire_time)
    }
}
