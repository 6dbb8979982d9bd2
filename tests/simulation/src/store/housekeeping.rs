//! Retention.

use super::ModelStore;
use super::rows::{LogRow, State};
use async_trait::async_trait;
use carillon::domain::id_source::NODE_NUMBER_MAX;
use carillon::domain::task_log::PRIORITY_DEFAULT;
use carillon::domain::{ExecutorId, IdSource, LogId, NodeId, Reason, Run, Status, TaskId, Trigger};
use carillon::store::{HousekeepingStore, Purged, Result};
use std::collections::BTreeSet;

#[async_trait]
impl HousekeepingStore for ModelStore {
    async fn retentions(&self) -> Result<Vec<i32>> {
        self.call("read retentions", |state, _| {
            let days = state.quotas.values().map(|quotas| quotas.retain_days).chain([0]);
            Ok(days.collect::<BTreeSet<i32>>().into_iter().collect())
        })
        .await
    }

    async fn purge_of(&self, days: i32, before: i64, limit: u64) -> Result<Purged> {
        self.call("purge of tenants", |state, _| {
            let after = state.cursors.get(&days).copied().unwrap_or(LogId::NONE);
            let next = state.logs.range(LogId(after.0 + 1)..IdSource::first_at(before)).take(limit as usize);
            let looked: Vec<LogId> = next.map(|(id, _)| *id).collect();
            let is_old = |row: &LogRow| {
                let keeps = state.quotas.get(&row.run.tenant_id).map_or(0, |quotas| quotas.retain_days);
                keeps == days && state.is_over(row, before)
            };
            let old: Vec<LogId> = looked.iter().filter(|id| is_old(&state.logs[id])).copied().collect();
            for id in &old {
                state.forget(*id);
            }
            if let Some(last) = looked.last() {
                state.cursors.insert(days, *last);
            }
            Ok(Purged { deleted: old.len() as u64, is_more: looked.len() as u64 == limit })
        })
        .await
    }

    async fn purge(&self, before: i64, limit: u64) -> Result<Purged> {
        self.call("purge", |state, _| {
            let first_kept = IdSource::first_at(before);
            let old = state.logs.range(..first_kept).filter(|(_, row)| state.is_over(row, before));
            let old: Vec<LogId> = old.map(|(id, _)| *id).take(limit as usize).collect();
            for id in &old {
                state.forget(*id);
            }
            if (old.len() as u64) < limit {
                state.stale.retain(|(id, ..)| *id >= first_kept);
            }
            Ok(Purged { deleted: old.len() as u64, is_more: old.len() as u64 >= limit })
        })
        .await
    }

    async fn purge_members(&self, before: i64, _limit: u64) -> Result<u64> {
        self.call("purge members", |state, _| {
            let members = |state: &super::State| state.executors.len() + state.nodes.len() + state.uses.len();
            let all = members(state);
            state.executors.retain(|_, row| row.executor.heartbeat_at >= before);
            state.nodes.retain(|_, row| row.state.heartbeat_at >= before);
            let addresses: BTreeSet<_> = state.executors.values().map(|row| row.executor.address.clone()).collect();
            let State { uses, tasks, .. } = state;
            uses.retain(|(task, address), _| addresses.contains(address) && tasks.contains_key(task));
            Ok((all - members(state)) as u64)
        })
        .await
    }

    /// There are no sign-ins to the model.
    async fn purge_access(&self, _: i64, _: u64) -> Result<u64> {
        Ok(0)
    }
}

impl ModelStore {
    /// Writes ended logs of that time (ms), a second apart, as a housekeeper leaves them that has been away since.
    pub async fn write_history(&self, task: TaskId, logs: i64, at: i64) -> Result<()> {
        self.call("write history", |state, _| {
            let (owner, ids) = (state.tasks[&task].view.owner, IdSource::new(NodeId(NODE_NUMBER_MAX)));
            for number in 0..logs {
                let fire_time = at + number * 1_000;
                let run = Run {
                    id: ids.next(fire_time),
                    version: 4,
                    tenant_id: owner.tenant_id,
                    app_id: owner.app_id,
                    task_id: task,
                    revision: 0,
                    parent_id: LogId::NONE,
                    shard_index: 0,
                    shard_total: 1,
                    fire_time,
                    due_time: fire_time,
                    attempt: 1,
                    failures: 0,
                    status: Status::Succeeded,
                    reason: Reason::None,
                    params: None,
                    trigger: Trigger::Schedule,
                    seq: 0,
                    priority: PRIORITY_DEFAULT,
                    executor_id: ExecutorId::NONE,
                    queued_at: 0,
                    has_rate_slot: false,
                };
                state.insert(LogRow { finished_at: fire_time, ..LogRow::new(run) });
            }
            state.events.push(format!("{logs} logs of long ago are there"));
            Ok(())
        })
        .await
    }
}

impl State {
    /// Whether it ended before that time, ms, and no parent counts it any more.
    fn is_over(&self, row: &LogRow, before: i64) -> bool {
        let parent = self.logs.get(&row.run.parent_id);
        let is_counted = parent.is_none_or(|parent| parent.run.status.is_terminal());
        row.run.status.is_terminal() && row.finished_at < before && is_counted
    }

    pub(super) fn forget(&mut self, id: LogId) {
        if let Some(row) = self.logs.remove(&id) {
            self.by_fire.remove(&(row.run.task_id, row.run.fire_time, row.run.shard_index));
        }
        self.outbox_entries.remove(&id);
        self.permits.remove(&id);
        self.backfill_runs.remove(&id);
        self.attempts.retain(|(log, _), _| *log != id);
    }
}
