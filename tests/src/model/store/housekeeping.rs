//! Retention.

use super::ModelStore;
use async_trait::async_trait;
use carillon::domain::IdSource;
use carillon::store::{HousekeepingStore, Result};

#[async_trait]
impl HousekeepingStore for ModelStore {
    async fn purge(&self, before: i64, limit: u64) -> Result<u64> {
        self.call("purge", |state, _| {
            let first_kept = IdSource::first_at(before);
            let old = state
                .logs
                .range(..first_kept)
                .filter(|(_, row)| row.run.status.is_terminal() && row.finished_at < before);
            let old: Vec<i64> = old.map(|(id, _)| *id).take(limit as usize).collect();
            for id in &old {
                if let Some(row) = state.logs.remove(id) {
                    state.by_fire.remove(&(row.run.task_id, row.run.fire_time, row.run.shard_index));
                }
            }
            if (old.len() as u64) < limit {
                state.stale.retain(|(id, ..)| *id >= first_kept);
            }
            Ok(old.len() as u64)
        })
        .await
    }

    async fn purge_members(&self, before: i64) -> Result<u64> {
        self.call("purge members", |state, _| {
            let members = |state: &super::State| state.executors.len() + state.nodes.len();
            let all = members(state);
            state.executors.retain(|_, row| row.executor.heartbeat_at >= before);
            state.nodes.retain(|_, row| row.state.heartbeat_at >= before);
            Ok((all - members(state)) as u64)
        })
        .await
    }
}
