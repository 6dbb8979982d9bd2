//! Statistics: task logs counted by minute, task and tenant, within the database.

mod read;
mod sql;

pub use read::FiguresFilter;
pub(super) use sql::STATEMENTS;

use super::row::{Read, column, from_row};
use super::sql_store::{Transaction, retrying};
use super::template::{Template, Text as _};
use super::values::list;
use super::{Counted, Counting, Fence, Part, Result, SqlStore, StatisticsStore};
use crate::domain::TaskId;
use crate::domain::statistics::{Grain, HOUR_MS, MINUTE_MS};
use crate::store::cluster::LEASE_RENEW;
use async_trait::async_trait;
use sea_orm::{QueryResult, Value};
use std::collections::BTreeSet;

const ACTION: &str = "count statistics";

/// Minutes put on the list at a time at most; the rest follows.
const LIST_MAX: usize = 1_000;

/// Runs of past instants may come in many batches; their minutes are counted again this long after
/// the last. ms.
const PAST_RUNS_MS: i64 = 30_000;

/// A first sum of an hour waits this long after its end, for its last minutes. ms.
const HOUR_SETTLES_MS: i64 = 2 * MINUTE_MS;

/// A sum of an hour of which minutes were counted again gathers them for this long, ms.
const HOUR_GATHERS_MS: i64 = 5 * MINUTE_MS;

#[async_trait]
impl StatisticsStore for SqlStore {
    async fn list_minutes(&self, fence: Fence, since: i64, until: i64) -> Result<bool> {
        let until = until - until.rem_euclid(MINUTE_MS);
        let listed = self.query::<i64, _>(ACTION, &sql::STATE, []).await?.first().copied().unwrap_or(0).max(since);
        if listed >= until {
            return Ok(true);
        }
        // What lies between the fires costs nothing.
        let next: Vec<i64> = self.query(ACTION, &sql::NEXT_FIRE, [listed.into()]).await?;
        let from = next.first().copied().unwrap_or(until).min(until);
        let from = from - from.rem_euclid(MINUTE_MS);
        let minutes: Vec<i64> = (from..until).step_by(MINUTE_MS as usize).take(LIST_MAX).collect();
        let listed = minutes.last().map_or(until, |last| last + MINUTE_MS);
        let mut steps = vec![(&sql::LISTED, vec![listed.into()])];
        if !minutes.is_empty() {
            steps.push((&sql::COUNT_AGAIN, vec![list(ACTION, &minutes)?.into(), 0i64.into()]));
        }
        self.fenced(fence, &steps).await
    }

    async fn to_count(&self, now: i64, limit: u64) -> Result<Vec<Counting>> {
        self.query(ACTION, &sql::DUE, [now.into(), limit.into()]).await
    }

    async fn tasks_fired(&self, minute: i64) -> Result<Vec<(TaskId, u64)>> {
        let found: Vec<(TaskId, i64)> = self.query(ACTION, &sql::TASKS_FIRED, [minute.into()]).await?;
        Ok(found.into_iter().map(|(task, fires)| (task, fires as u64)).collect())
    }

    async fn tasks_open(&self, minute: i64) -> Result<Vec<(TaskId, u64)>> {
        let found: Vec<(TaskId, i32)> = self.query(ACTION, &sql::TASKS_OPEN, [minute.into()]).await?;
        Ok(found.into_iter().map(|(task, fires)| (task, fires as u64)).collect())
    }

    async fn open_runs(&self, minute: i64) -> Result<u64> {
        let open: Vec<i64> = self.query(ACTION, &sql::OPEN_RUNS, [minute.into()]).await?;
        Ok(open.first().copied().unwrap_or(0) as u64)
    }

    async fn count_tasks(&self, fence: Fence, minute: i64, tasks: &[TaskId]) -> Result<bool> {
        let tasks = list(ACTION, tasks)?;
        let count = &sql::COUNT_TASKS;
        self.fenced(fence, &[(count, vec![tasks.into(), minute.into()])]).await
    }

    async fn sum_minute(&self, fence: Fence, minute: i64) -> Result<bool> {
        self.fenced(fence, &[(&sql::SUM_TENANTS, vec![minute.into()]), (&sql::SUM_ALL, vec![minute.into()])]).await
    }

    async fn rows_of_hour(&self, hour: i64) -> Result<u64> {
        let rows: Vec<i64> = self.query(ACTION, &sql::ROWS_OF_HOUR, [hour.into()]).await?;
        Ok(rows.first().copied().unwrap_or(0) as u64)
    }

    async fn sum_task_hours(&self, fence: Fence, hour: i64, part: Part) -> Result<bool> {
        let values = vec![hour.into(), part.of.into(), part.index.into()];
        self.fenced(fence, &[(&sql::SUM_TASK_HOURS, values)]).await
    }

    async fn sum_tenant_hours(&self, fence: Fence, hour: i64) -> Result<bool> {
        self.fenced(fence, &[(&sql::SUM_TENANT_HOURS, vec![hour.into()])]).await
    }

    async fn counted(&self, fence: Fence, of: &Counting, found: Counted, now: i64) -> Result<bool> {
        let mut values: Vec<Value> = vec![(of.grain as i32).into(), of.start.into(), of.marks.into()];
        let mut steps = Vec::new();
        match found.again_at {
            None => steps.push((&sql::DONE, values)),
            Some(at) => {
                values.push(at.into());
                steps.push((&sql::PUT_OFF, values));
            }
        }
        if found.is_change && of.grain == Grain::TaskMinute {
            let hour = of.start - of.start.rem_euclid(HOUR_MS);
            let at = (hour + HOUR_MS + HOUR_SETTLES_MS).max(now + HOUR_GATHERS_MS);
            steps.push((&sql::MARK_HOUR, vec![hour.into(), at.into()]));
        }
        self.fenced(fence, &steps).await
    }

    async fn purge_figures(&self, grain: Grain, before: i64, limit: u64) -> Result<bool> {
        const ACTION: &str = "delete old statistics";
        let grain = grain as i32;
        let last = [grain.into(), before.into(), limit.saturating_sub(1).into()];
        let last: Vec<(i64, i64)> = self.query(ACTION, &sql::PURGE_UNTIL, last).await?;
        match last.first() {
            Some((start, subject)) => {
                let values = [grain.into(), (*start).into(), (*subject).into()];
                self.execute(ACTION, &sql::PURGE_PART, values).await?;
                Ok(true)
            }
            None => self.execute(ACTION, &sql::PURGE_REST, [grain.into(), before.into()]).await.map(|_| false),
        }
    }
}

impl SqlStore {
    /// A transaction that holds the lease's row until it ends: a node that lost the lease writes
    /// nothing, and no other node takes it in between.
    async fn begin_fenced(&self, fence: Fence) -> Result<Option<Transaction<'_>>> {
        let tx = self.begin(ACTION).await?;
        let values = [fence.lease.as_str().into(), fence.node.into(), fence.number.into(), fence.ttl_ms.into()];
        if tx.execute(&LEASE_RENEW, values).await? == 0 {
            tx.rollback().await?;
            return Ok(None);
        }
        Ok(Some(tx))
    }

    /// These statements in one transaction under the fence.
    async fn fenced(&self, fence: Fence, steps: &[(&Template, Vec<Value>)]) -> Result<bool> {
        retrying(|| async {
            let Some(tx) = self.begin_fenced(fence).await? else { return Ok(false) };
            for (sql, values) in steps {
                tx.execute_raw(sql.on(self.backend).bind_all(values.clone())).await?;
            }
            tx.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Part of a transaction that writes or revives runs for instants: those before `now` (ms) may
    /// lie in minutes that are counted, which are then counted again.
    pub(super) async fn note_past_runs(&self, tx: &Transaction<'_>, fire_times: &[i64], now: i64) -> Result<()> {
        let past = fire_times.iter().filter(|at| **at < now);
        // In one order, so that two transactions do not wait for each other.
        let minutes: BTreeSet<i64> = past.map(|at| at - at.rem_euclid(MINUTE_MS)).collect();
        if minutes.is_empty() {
            return Ok(());
        }
        let minutes: Vec<i64> = minutes.into_iter().collect();
        let values = [list(ACTION, &minutes)?.into(), (now + PAST_RUNS_MS).into()];
        tx.execute(&sql::COUNT_AGAIN, values).await.map(drop)
    }
}

from_row!(Counting { grain = grain, start, marks, is_full, tries });

fn grain(row: &QueryResult) -> Read<Grain> {
    let grain: i32 = column(row, "grain")?;
    Ok(if grain == Grain::TaskMinute as i32 { Grain::TaskMinute } else { Grain::TaskHour })
}
