//! Writing task logs ahead.

use super::connect::retrying;
use super::dialect::Sql;
use super::rows::{self, to_json};
use super::{BUCKETS, Fence, PlanStore, Result, SqlStore};
use crate::domain::plan::{Fire, Plan};
use crate::domain::task::NEVER;
use crate::domain::task_log::PARENT_SHARD;
use crate::domain::{Status, Task};
use async_trait::async_trait;
use std::collections::HashSet;

#[async_trait]
impl PlanStore for SqlStore {
    async fn tasks_due(&self, until: i64, limit: u64) -> Result<Vec<Task>> {
        const ACTION: &str = "read the tasks that fall due";
        let mut tasks = self.query(ACTION, &self.sql.tasks_due, [until.into(), limit.into()], rows::task).await?;
        self.fill_calendars(&mut tasks).await?;
        Ok(tasks)
    }

    async fn tasks(&self, ids: &[i64]) -> Result<Vec<Task>> {
        let ids = to_json("read tasks", &ids.iter().map(|id| [id]).collect::<Vec<_>>())?;
        let mut tasks = self.query("read tasks", &self.sql.tasks, [ids.into()], rows::task).await?;
        self.fill_calendars(&mut tasks).await?;
        Ok(tasks)
    }

    async fn reopen(&self, task: &Task, from: i64, now: i64) -> Result<()> {
        self.move_back(task.id, task.revision, task.schedule.next_owed(from), now).await
    }

    async fn skipped(&self, since: &[(i64, i64)], until: i64, limit: u64) -> Result<Vec<(i64, i64)>> {
        const ACTION: &str = "list cancelled fires";
        let values = [to_json(ACTION, since)?.into(), until.into(), limit.into()];
        let read = |row: &sea_orm::QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
        self.query(ACTION, &self.sql.skipped, values, read).await
    }

    async fn write_ahead(&self, fence: Option<Fence>, plans: &[Plan], now: i64) -> Result<Option<HashSet<i64>>> {
        retrying(|| self.write_ahead_once(fence, plans, now)).await
    }
}

impl SqlStore {
    /// The earliest fire that is not written yet, of all tasks, ms; far away when there is none.
    pub async fn watermark(&self) -> Result<i64> {
        let read = |row: &sea_orm::QueryResult| row.try_get_by_index::<Option<i64>>(0);
        let earliest = self.query("read the watermark", &self.sql.watermark, [], read).await?;
        Ok(earliest.first().copied().flatten().unwrap_or(NEVER))
    }

    /// Moves a watermark back to `first`, if it lies beyond.
    pub(super) async fn move_back(&self, id: i64, revision: i64, first: i64, now: i64) -> Result<()> {
        let values = [id.into(), revision.into(), first.into(), now.into()];
        self.execute("move a watermark back", &self.move_back_sql(), values).await.map(drop)
    }

    /// Of task `{1}` under revision `{2}`, to the instant `{3}`, at `{4}`.
    pub(super) fn move_back_sql(&self) -> Sql {
        // Both take the watermark before that is set: MySQL assigns left to right.
        Sql::new(
            self.backend,
            &format!(
                "UPDATE task SET written_until = CASE WHEN next_fire_at = {NEVER} THEN {{4}} + 86400000 WHEN next_fire_at > \
                 written_until THEN next_fire_at ELSE written_until END, fires = {}, next_fire_at = {{3}} \
                 WHERE id = {{1}} AND revision = {{2}} AND started = 1 AND next_fire_at > {{3}}",
                fires_before("{3}")
            ),
        )
    }

    async fn write_ahead_once(&self, fence: Option<Fence>, plans: &[Plan], now: i64) -> Result<Option<HashSet<i64>>> {
        const ACTION: &str = "write task logs ahead";
        let marks: Vec<_> = plans.iter().map(mark).collect();
        let marks = to_json(ACTION, &marks)?;
        let tx = self.begin(ACTION).await?;
        if let Some(fence) = fence {
            // Renewing inside the transaction holds the lease's row until the commit: a node
            // that lost the lease meanwhile writes nothing.
            let values = [fence.lease.as_str().into(), fence.node.into(), fence.number.into(), LEASE_TTL_MS.into()];
            if tx.execute(&self.sql.lease_renew, values).await? == 0 {
                tx.rollback().await?;
                return Ok(None);
            }
        }
        // The watermark first: it locks exactly the tasks that are still as planned, so that an
        // edit or a stop comes either before (and this plan writes nothing) or after (and
        // cancels what it finds written).
        let moved = tx.execute(&self.sql.move_watermarks, [marks.clone().into()]).await?;
        let moved: HashSet<i64> = if moved == plans.len() as u64 {
            plans.iter().map(|plan| plan.task_id).collect()
        } else {
            let read = tx.query(&self.sql.moved_tasks, [marks.into()], |row| row.try_get_by_index(0)).await?;
            read.into_iter().collect()
        };
        let fires_of = |which: &dyn Fn(&Plan) -> bool| {
            let chosen = plans.iter().filter(|plan| moved.contains(&plan.task_id) && which(plan));
            chosen.flat_map(|plan| plan.fires.iter().map(|fire| row(plan, fire))).collect::<Vec<_>>()
        };
        let takeovers = fires_of(&|plan| plan.takes_over);
        if !takeovers.is_empty() {
            let takeovers = to_json(ACTION, &takeovers)?;
            tx.execute(&self.sql.keep_given_up, [takeovers.clone().into()]).await?;
            tx.execute(&self.sql.take_over_fires, [takeovers.into()]).await?;
        }
        let fires = fires_of(&|_| true);
        if !fires.is_empty() {
            tx.execute(&self.sql.insert_fires, [to_json(ACTION, &fires)?.into()]).await?;
        }
        let written = plans.iter().filter(|plan| moved.contains(&plan.task_id)).flat_map(|plan| &plan.fires);
        let written: Vec<i64> = written.map(|fire| fire.fire_time).collect();
        self.note_past_runs(&tx, &written, now).await?;
        let watched = fires_of(&|plan| plan.follow_up);
        if !watched.is_empty() {
            tx.execute(&self.sql.watch_fires, [to_json(ACTION, &watched)?.into()]).await?;
        }
        tx.commit().await?;
        tracing::trace!(tasks = moved.len(), logs = fires.len(), now, "task logs written ahead");
        Ok(Some(moved))
    }
}

/// `task.fires` without the fires from `first` up to the watermark, which will be planned, and
/// counted, again. Those that were given up untried count no more, nor those that executors gave up
/// for a stop or a pause; what they give up for an edit counts until it is planned again.
pub(super) fn fires_before(first: &str) -> String {
    let again = format!(
        "(SELECT COUNT(*) FROM task_log l WHERE l.task_id = task.id AND l.fire_time >= {first} AND \
         l.fire_time < task.next_fire_at AND l.parent_id = 0 AND l.origin IN ('schedule', 'misfire') AND \
         l.reason <> 'misfire_skipped' AND NOT (l.status = {} AND ((l.attempt = 0 AND l.reason = 'task_edited') OR \
         (l.failures = 0 AND l.reason IN ('task_stopped', 'task_paused')))))",
        Status::Cancelled as i16
    );
    format!("CASE WHEN fires > {again} THEN fires - {again} ELSE 0 END")
}

/// How long a lease lives without renewal, ms: as long as a node may be silent.
pub(super) const LEASE_TTL_MS: i64 = 10_000;

/// What moves a watermark: whence, whither, how many fires and runs that makes, and whether the
/// plan knows that somebody waits for their ends.
fn mark(plan: &Plan) -> (i64, i64, i64, i64, i64, i64, i32) {
    let runs = plan.counted();
    (plan.task_id, plan.revision, plan.from, plan.to, runs, runs, i32::from(plan.follow_up))
}

type Row<'a> = (i64, i64, i64, i64, i64, i64, i16, i64, i32, &'a str, Option<&'a str>, &'a str, i64, i32);

fn row<'a>(plan: &Plan, fire: &'a Fire) -> Row<'a> {
    (
        fire.id,
        plan.task_id,
        plan.revision,
        plan.to,
        fire.fire_time,
        fire.due_time,
        fire.status as i16,
        bucket(if plan.together { plan.task_id } else { fire.id }),
        if plan.sharded { PARENT_SHARD } else { 0 },
        fire.reason.as_str(),
        (!fire.message.is_empty()).then_some(fire.message.as_str()),
        fire.origin.as_str(),
        fire.seq,
        plan.priority,
    )
}

/// Spreads ids over the buckets that nodes share out among themselves (Fibonacci hashing,
/// Knuth, TAOCP 3, 6.4): ids of one millisecond differ only in their low bits.
pub(super) fn bucket(id: i64) -> i64 {
    let spread = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread as i64) % BUCKETS
}
