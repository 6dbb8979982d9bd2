//! INIT and RETRY rows → the queue of one node.

use super::dialect::{Dialect, Kind};
use super::rows::RUN_COLUMNS;
use super::sql::{CANCELLED, EXPIRED, HELD, ID_VERSION, INIT, PHASE_INDEX, QUEUED, RETRY, WAITING, is_known};
use super::template::Text as _;
use super::values::{clean, list, to_json};
use super::{ClaimStore, DueRange, LEFT_OUT_MAX, LeftOut, MissedQuestion, Result, Share, SqlStore, UnclaimedEnd};
use crate::domain::{LogId, NodeId, Run, Status, TaskId, TenantId};
use async_trait::async_trait;
use sea_orm::Value;
use std::collections::HashSet;

statements!(
    CLAIMABLE_ALL = |d| claimable(d, &[""]),
    CLAIMABLE_SHARE = |d| claimable(d, &[IN_SHARE]),
    CLAIMABLE_BESIDES = claimable_besides,
    CLAIM = |d| d.update_rows(
        "task_log",
        &format!("status = {QUEUED}, node_id = {{2}}, queued_at = {{3}}, version = l.version + 1"),
        ID_VERSION,
        &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status IN ({INIT}, {RETRY}) AND {}", is_known(2)),
    ),
    CLAIMED = |d| format!(
        "SELECT l.id FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
         WHERE +l.status = {QUEUED} AND l.node_id = {{2}}",
        d.batch(1, ID_VERSION)
    ),
    MISSED_AT = |d| format!(
        "SELECT m.task_id, m.fire_time FROM (SELECT l.task_id, l.fire_time, v.n_place, ROW_NUMBER() OVER (PARTITION BY \
         l.task_id ORDER BY l.fire_time DESC) AS place FROM {} task_log l ON l.task_id = v.n_id AND \
         l.fire_time >= v.n_from AND l.fire_time < v.n_until WHERE ((l.due_time < {{2}} AND l.trigger_kind = 'schedule') \
         OR l.trigger_kind = 'misfire') AND l.parent_id = 0 AND +l.status NOT IN ({EXPIRED}, {CANCELLED})) m \
         WHERE m.place = m.n_place",
        d.batch(1, &[("id", Kind::Big), ("from", Kind::Big), ("until", Kind::Big), ("place", Kind::Big)])
    ),
    EXPIRE = |d| {
        d.update_rows(
        "task_log",
        &format!(
            "status = {EXPIRED}, reason = v.n_reason, message = v.n_message, queued_at = {{2}}, finished_at = {{2}}, \
             version = l.version + 1"
        ),
        END_ROW,
        &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {INIT} AND {}", is_known(3)),
    )
    },
    EXPIRED_ROWS = |d| format!(
        "SELECT l.id FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
         WHERE +l.status = {EXPIRED} AND l.queued_at = {{2}} AND l.finished_at = {{2}}",
        d.batch(1, END_ROW)
    ),
    QUEUED_BEFORE = |d| format!(
        "SELECT {RUN_COLUMNS} FROM task_log l {} WHERE {} = {HELD} AND l.due_time > {{4}} AND l.due_time <= {{5}} AND \
         l.status = {QUEUED} AND l.node_id = {{1}} AND l.queued_at < {{2}} AND {} ORDER BY l.due_time LIMIT {{3}}",
        d.by_index(PHASE_INDEX),
        d.phase(),
        is_known(1)
    ),
    QUEUED_OF_OTHERS = |d| format!(
        "SELECT {RUN_COLUMNS} FROM task_log l {} WHERE {} = {HELD} AND l.due_time > {{3}} AND l.due_time <= {{4}} AND \
         l.status = {QUEUED} AND l.node_id NOT IN {} ORDER BY l.due_time LIMIT {{2}}",
        d.by_index(PHASE_INDEX),
        d.phase(),
        d.ids(1)
    ),
    HELD_AFTER = |d| format!(
        "SELECT l.due_time FROM task_log l {} WHERE {} = {HELD} AND l.due_time >= {{1}} AND l.due_time < {{3}} \
         ORDER BY l.due_time LIMIT 1 OFFSET {{2}}",
        d.by_index(PHASE_INDEX),
        d.phase()
    ),
);

const END_ROW: &[(&str, Kind)] =
    &[("id", Kind::Big), ("version", Kind::Big), ("reason", Kind::Text), ("message", Kind::Text)];

/// A share as half of all rows in PostgreSQL's eyes: a plain comparison of an expression would be
/// one row in two hundred, for which it reads and sorts everything that is due.
const IN_SHARE: &str = " AND CASE WHEN l.bucket % {4} = {5} THEN 1 = 1 ELSE 1 = 0 END";

/// One ordered index range for each filter, each cut at the limit, instead of one sort over all. MariaDB would read past the
/// instant (by the phase alone) when much of what is written is due, unless it is told to use the index as a range.
fn claimable(d: Dialect, filters: &[&str]) -> String {
    let (index, phase) = (d.by_index(PHASE_INDEX), d.phase());
    let part = |filter: &&str| {
        format!(
            "SELECT {RUN_COLUMNS} FROM task_log l {index} WHERE {phase} = {WAITING} AND \
             l.due_time <= {{1}} AND l.due_time > {{3}}{filter} ORDER BY l.due_time LIMIT {{2}}"
        )
    };
    let parts: Vec<String> = filters.iter().map(part).collect();
    if let [all] = &parts[..] {
        // MariaDB would make a table of what a SELECT around it reads.
        return all.clone();
    }
    let parts = parts.iter().enumerate().map(|(at, part)| format!("SELECT * FROM ({part}) p{at}"));
    parts.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Passes by the rows of a few tenants, `{5}` and on in ascending order, of a priority up to `{4}`,
/// looking only at the index (phase, due time, tenant, priority). PostgreSQL looks at the rows,
/// too, for any condition but a range: it gets the ranges between the tenants.
fn claimable_besides(d: Dialect) -> String {
    let tenants: Vec<String> = (5..5 + LEFT_OUT_MAX).map(|at| format!("{{{at}}}")).collect();
    let list = tenants.join(", ");
    if d.filters_in_index() {
        return claimable(d, &[&format!(" AND (l.tenant_id NOT IN ({list}) OR l.priority > {{4}})")]);
    }
    let mut ranges = vec![
        format!(" AND l.priority > {{4}} AND l.tenant_id IN ({list})"),
        format!(" AND l.tenant_id < {}", tenants[0]),
        format!(" AND l.tenant_id > {}", tenants[LEFT_OUT_MAX - 1]),
    ];
    let between = tenants.windows(2).map(|two| format!(" AND l.tenant_id > {} AND l.tenant_id < {}", two[0], two[1]));
    ranges.extend(between);
    let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
    format!("SELECT * FROM ({}) a ORDER BY due_time LIMIT {{2}}", claimable(d, &ranges))
}

#[async_trait]
impl ClaimStore for SqlStore {
    async fn claimable(&self, share: Option<Share>, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        const ACTION: &str = "read claimable runs";
        let (until, limit, after) = (due.until.into(), limit.into(), due.after.into());
        let mut runs: Vec<Run> = match share.filter(|share| share.total > 1) {
            None => self.query(ACTION, &CLAIMABLE_ALL, [until, limit, after]).await?,
            Some(share) => {
                let part = [until, limit, after, i64::from(share.total).into(), i64::from(share.index).into()];
                self.query(ACTION, &CLAIMABLE_SHARE, part).await?
            }
        };
        runs.sort_by_key(|run| run.due_time);
        Ok(runs)
    }

    async fn claimable_besides(&self, left_out: &LeftOut, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        const ACTION: &str = "read claimable runs of other tenants";
        let mut values = vec![due.until.into(), limit.into(), due.after.into(), left_out.priority.into()];
        values.extend(places(&left_out.tenants).map(Value::from));
        let mut runs: Vec<Run> = self.query_raw(ACTION, CLAIMABLE_BESIDES.on(self.backend).bind_all(values)).await?;
        runs.sort_by_key(|run| run.due_time);
        Ok(runs)
    }

    async fn claim(&self, node: NodeId, runs: Vec<Run>, now: i64) -> Result<Vec<Run>> {
        const ACTION: &str = "claim runs";
        if runs.is_empty() {
            return Ok(runs);
        }
        let keys = to_json(ACTION, &runs.iter().map(|run| (run.id, run.version)).collect::<Vec<_>>())?;
        let claimed = self.execute(ACTION, &CLAIM, [keys.clone().into(), node.into(), now.into()]).await?;
        let mine: Option<HashSet<LogId>> = if claimed == runs.len() as u64 {
            None
        } else {
            let read = self.query(ACTION, &CLAIMED, [keys.into(), node.into()]);
            Some(read.await?.into_iter().collect())
        };
        let ours = runs.into_iter().filter(|run| mine.as_ref().is_none_or(|ids| ids.contains(&run.id)));
        Ok(ours.map(|run| Run { version: run.version + 1, status: Status::Queued, queued_at: now, ..run }).collect())
    }

    async fn missed_at(&self, questions: &[MissedQuestion], due_before: i64) -> Result<Vec<(TaskId, i64)>> {
        const ACTION: &str = "read missed fires";
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<_> = questions.iter().map(|asked| (asked.task, asked.from, asked.until, asked.place)).collect();
        self.query(ACTION, &MISSED_AT, [to_json(ACTION, &rows)?.into(), due_before.into()]).await
    }

    async fn expire_unclaimed(&self, node: NodeId, ends: &[UnclaimedEnd], now: i64) -> Result<HashSet<LogId>> {
        const ACTION: &str = "end unclaimed runs";
        if ends.is_empty() {
            return Ok(HashSet::new());
        }
        let row = |end: &UnclaimedEnd| (end.id, end.version, end.reason.as_str(), clean(&end.message));
        let rows = to_json(ACTION, &ends.iter().map(row).collect::<Vec<_>>())?;
        let values = [rows.clone().into(), now.into(), node.into()];
        if self.execute(ACTION, &EXPIRE, values).await? == ends.len() as u64 {
            return Ok(ends.iter().map(|end| end.id).collect());
        }
        let read = self.query(ACTION, &EXPIRED_ROWS, [rows.into(), now.into()]);
        Ok(read.await?.into_iter().collect())
    }

    async fn queued_before(&self, node: NodeId, at: i64, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        let values = [node.into(), at.into(), limit.into(), due.after.into(), due.until.into()];
        self.query("read a node's queue", &QUEUED_BEFORE, values).await
    }

    async fn queued_of_others(&self, live: &[NodeId], due: DueRange, limit: u64) -> Result<Vec<Run>> {
        const ACTION: &str = "read the queues of dead nodes";
        let live = list(ACTION, live.iter())?;
        self.query(ACTION, &QUEUED_OF_OTHERS, [live.into(), limit.into(), due.after.into(), due.until.into()]).await
    }

    async fn held_after(&self, from: i64, until: i64, rows: u64) -> Result<Option<i64>> {
        let values = [from.into(), rows.into(), until.into()];
        let found: Vec<i64> = self.query("page runs that are held", &HELD_AFTER, values).await?;
        Ok(found.first().copied())
    }
}

/// Puts the tenants into the statement's places: in ascending order, the last one again where there
/// are fewer.
fn places(tenants: &[TenantId]) -> [TenantId; LEFT_OUT_MAX] {
    let mut tenants: Vec<TenantId> = tenants.iter().copied().take(LEFT_OUT_MAX).collect();
    tenants.sort_unstable();
    let last = tenants.last().copied().unwrap_or_default();
    std::array::from_fn(|place| tenants.get(place).copied().unwrap_or(last))
}
