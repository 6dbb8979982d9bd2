//! INIT and RETRY rows → the queue of one node.

use super::rows::{self, to_json};
use super::{ClaimStore, LEFT_OUT_MAX, LeftOut, Result, Share, SqlStore};
use crate::domain::{Run, Status};
use async_trait::async_trait;
use sea_orm::Value;
use std::collections::HashSet;

#[async_trait]
impl ClaimStore for SqlStore {
    async fn claimable(&self, share: Option<Share>, until: i64, limit: u64) -> Result<Vec<Run>> {
        const ACTION: &str = "read claimable runs";
        let (until, limit) = (until.into(), limit.into());
        let mut runs = match share.filter(|share| share.total > 1) {
            None => self.query(ACTION, &self.sql.claimable_all, [until, limit], rows::run).await?,
            Some(share) => {
                let part = [until, limit, i64::from(share.total).into(), i64::from(share.index).into()];
                self.query(ACTION, &self.sql.claimable_share, part, rows::run).await?
            }
        };
        runs.sort_by_key(|run| run.due_time);
        Ok(runs)
    }

    async fn claimable_besides(&self, left_out: &LeftOut, until: i64, limit: u64) -> Result<Vec<Run>> {
        const ACTION: &str = "read claimable runs of other tenants";
        let mut values = vec![until.into(), limit.into(), left_out.priority.into()];
        values.extend(places(&left_out.tenants).map(Value::from));
        let mut runs = self.query_raw(ACTION, self.sql.claimable_besides.bind_all(values), rows::run).await?;
        runs.sort_by_key(|run| run.due_time);
        Ok(runs)
    }

    async fn claim(&self, node: i64, runs: Vec<Run>, now: i64) -> Result<Vec<Run>> {
        const ACTION: &str = "claim runs";
        if runs.is_empty() {
            return Ok(runs);
        }
        let keys = to_json(ACTION, &runs.iter().map(|run| (run.id, run.version)).collect::<Vec<_>>())?;
        let claimed = self.execute(ACTION, &self.sql.claim, [keys.clone().into(), node.into(), now.into()]).await?;
        let mine: Option<HashSet<i64>> = if claimed == runs.len() as u64 {
            None
        } else {
            let read = self.query(ACTION, &self.sql.claimed, [keys.into(), node.into()], |row| row.try_get_by_index(0));
            Some(read.await?.into_iter().collect())
        };
        let ours = runs.into_iter().filter(|run| mine.as_ref().is_none_or(|ids| ids.contains(&run.id)));
        Ok(ours.map(|run| Run { version: run.version + 1, status: Status::Queued, queued_at: now, ..run }).collect())
    }

    async fn queued_of(&self, node: i64, limit: u64) -> Result<Vec<Run>> {
        self.query("read the node's own queue", &self.sql.queued_of, [node.into(), limit.into()], rows::run).await
    }

    async fn queued_of_others(&self, live: &[i64], limit: u64) -> Result<Vec<Run>> {
        const ACTION: &str = "read the queues of dead nodes";
        let live = to_json(ACTION, &live.iter().map(|id| [id]).collect::<Vec<_>>())?;
        self.query(ACTION, &self.sql.queued_of_others, [live.into(), limit.into()], rows::run).await
    }
}

/// Puts the tenants into the statement's places: in ascending order, the last one again where there
/// are fewer.
fn places(tenants: &[i64]) -> [i64; LEFT_OUT_MAX] {
    let mut tenants: Vec<i64> = tenants.iter().copied().take(LEFT_OUT_MAX).collect();
    tenants.sort_unstable();
    let last = tenants.last().copied().unwrap_or_default();
    std::array::from_fn(|place| tenants.get(place).copied().unwrap_or(last))
}
