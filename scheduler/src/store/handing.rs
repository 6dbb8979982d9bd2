//! QUEUED rows → executors, and guarded steps out of the hot path.

use super::attempts::delete_logs;
use super::connect::retrying;
use super::planning::bucket;
use super::rows::{clean, to_json};
use super::{Change, HandOver, HandStore, Result, SqlStore};
use crate::domain::{Reason, Run, Status};
use async_trait::async_trait;
use std::collections::HashSet;

#[async_trait]
impl HandStore for SqlStore {
    async fn hand_over(&self, node: i64, items: &[HandOver], now: i64) -> Result<HashSet<i64>> {
        const ACTION: &str = "hand runs over";
        if items.is_empty() {
            return Ok(HashSet::new());
        }
        let keys: Vec<_> = items.iter().map(|item| (item.id, item.version, item.executor_id)).collect();
        let keys = to_json(ACTION, &keys)?;
        let moved = if items.iter().any(|item| item.refused.is_some()) {
            self.hand_over_keeping(ACTION, &keys, (node, now), items).await?
        } else {
            self.execute(ACTION, &self.sql.hand_over, [keys.clone().into(), node.into(), now.into()]).await?
        };
        if moved == items.len() as u64 {
            return Ok(items.iter().map(|item| item.id).collect());
        }
        let read = self.query(ACTION, &self.sql.handed_over, [keys.into(), node.into()], |row| row.try_get_by_index(0));
        Ok(read.await?.into_iter().collect())
    }

    async fn hand_over_shards(&self, node: i64, parent: &Run, shards: &[Run], now: i64) -> Result<bool> {
        retrying(|| self.hand_over_shards_once(node, parent, shards, now)).await
    }

    async fn note_stop(&self, runs: &[(i64, i64)], reason: Reason) -> Result<HashSet<i64>> {
        const ACTION: &str = "note that runs must stop";
        if runs.is_empty() {
            return Ok(HashSet::new());
        }
        let keys = to_json(ACTION, runs)?;
        let values = || [keys.clone().into(), reason.as_str().into()];
        if self.execute(ACTION, &self.sql.note_stop, values()).await? == runs.len() as u64 {
            return Ok(runs.iter().map(|(id, _)| *id).collect());
        }
        let read = self.query(ACTION, &self.sql.noted_stop, values(), |row| row.try_get_by_index(0));
        Ok(read.await?.into_iter().collect())
    }

    async fn change(&self, changes: &[Change]) -> Result<HashSet<i64>> {
        const ACTION: &str = "change the state of runs";
        if changes.is_empty() {
            return Ok(HashSet::new());
        }
        let keys = to_json(ACTION, &changes.iter().map(change_row).collect::<Vec<_>>())?;
        let moved = if changes.iter().any(|change| change.ended.is_some()) {
            self.change_keeping(ACTION, &keys, changes).await?
        } else {
            self.execute(ACTION, &self.sql.change, [keys.clone().into()]).await?
        };
        if moved == changes.len() as u64 {
            return Ok(changes.iter().map(|change| change.id).collect());
        }
        let read = self.query(ACTION, &self.sql.changed, [keys.into()], |row| row.try_get_by_index(0));
        Ok(read.await?.into_iter().collect())
    }
}

type ChangeRow = (i64, i64, i16, i64, i32, &'static str, Option<String>, i64, i64);

pub(super) fn change_row(change: &Change) -> ChangeRow {
    (
        change.id,
        change.version,
        change.to as i16,
        change.due_time,
        change.failures,
        change.reason.as_str(),
        (!change.message.is_empty()).then(|| clean(&change.message)),
        change.started_at,
        change.finished_at,
    )
}

impl SqlStore {
    async fn hand_over_shards_once(&self, node: i64, parent: &Run, shards: &[Run], now: i64) -> Result<bool> {
        const ACTION: &str = "hand shards over";
        let tx = self.begin(ACTION).await?;
        let total = i64::try_from(shards.len()).unwrap_or(i64::MAX);
        let values = [parent.id.into(), parent.version.into(), total.into(), now.into()];
        if tx.execute(&self.sql.expand_parent, values).await? == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        if parent.attempt > 0 {
            // A new definition took this fire over: the shards that the old one gave up unstarted
            // make room.
            let which = "task_id = {1} AND fire_time = {2} AND parent_id = {3} AND status = {4}";
            let cancelled = Status::Cancelled as i32;
            let values = || [parent.task_id.into(), parent.fire_time.into(), parent.id.into(), cancelled.into()];
            for sql in delete_logs(self.backend, which) {
                tx.execute(&sql, values()).await?;
            }
        }
        let rows: Vec<_> =
            shards.iter().map(|run| (run.id, parent.id, run.shard_index, bucket(run.id), run.executor_id)).collect();
        tx.execute(&self.sql.insert_shards, [to_json(ACTION, &rows)?.into(), node.into(), now.into()]).await?;
        tx.commit().await?;
        Ok(true)
    }
}
