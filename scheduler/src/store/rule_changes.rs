//! What runs that were written before have to follow: a maintenance window that was taken away, another quota of fires. The change
//! notes it in its own transaction, so whoever makes it may die at any moment.

use super::row::from_row;
use super::sql::{ID, INIT, PHASE_INDEX, RETRY, WAITING};
use super::sql_store::Transaction;
use super::values::to_json;
use super::{BATCH_MAX, Result, SqlStore};
use crate::domain::rules::RuleChange;
use crate::domain::{LogId, TenantId};

statements!(
    POSTPONED = |d| format!(
        "SELECT l.id FROM task_log l WHERE {} = {WAITING} AND l.due_time = {{2}} AND l.tenant_id = {{1}} \
         AND l.reason = 'maintenance' LIMIT {{3}}",
        d.phase()
    ),
    RESUME = |d| {
        d.update_rows(
        "task_log",
        "due_time = CASE WHEN l.fire_time > {3} THEN l.fire_time ELSE {3} END, reason = '', version = l.version + 1",
        ID,
        &format!(
            "l.id = v.n_id AND +l.status IN ({INIT}, {RETRY}) AND l.due_time = {{2}} AND l.reason = 'maintenance'"
        ),
    )
    },
    OVER_QUOTA = |d| format!(
        "SELECT l.id, l.due_time FROM task_log l {} WHERE {} = {WAITING} AND l.tenant_id = {{1}} AND \
         l.reason = 'over_quota' AND l.due_time >= {{3}} ORDER BY l.due_time LIMIT {{2}}",
        d.by_index(PHASE_INDEX),
        d.phase()
    ),
    ASK_AGAIN = |d| {
        d.update_rows(
        "task_log",
        "due_time = CASE WHEN l.fire_time > {2} THEN l.fire_time ELSE {2} END, reason = '', version = l.version + 1",
        ID,
        &format!("l.id = v.n_id AND +l.status IN ({INIT}, {RETRY}) AND l.reason = 'over_quota'"),
    )
    },
);

from_row!(RuleChange { id, tenant_id, ends_at, changed_at });

/// Changes that a node reads at most.
const READ_MAX: u64 = 100_000;

impl SqlStore {
    /// Notes in the transaction of the change what has to follow it.
    pub(super) async fn note_rule_change(&self, tx: &Transaction<'_>, change: &RuleChange) -> Result<()> {
        let over = sql!("DELETE FROM rule_change WHERE id = {1} OR (ends_at > 0 AND ends_at <= {now})");
        tx.execute(&over, [change.id.into()]).await?;
        let note = sql!("INSERT INTO rule_change (id, tenant_id, ends_at, changed_at) VALUES ({1}, {2}, {3}, {4})");
        let RuleChange { id, tenant_id, ends_at, changed_at } = *change;
        tx.execute(&note, [id.into(), tenant_id.into(), ends_at.into(), changed_at.into()]).await.map(drop)
    }

    /// What may still have to be followed at `now` (ms).
    pub(super) async fn rule_changes(&self, action: &'static str, now: i64) -> Result<Vec<RuleChange>> {
        let sql = sql!(
            "SELECT id, tenant_id, ends_at, changed_at FROM rule_change WHERE ends_at = 0 OR ends_at > {1} ORDER BY id LIMIT {2}"
        );
        self.query(action, &sql, [now.into(), READ_MAX.into()]).await
    }

    /// Makes runs due that wait for the end of a window that is no more, batch by batch; answers how many.
    pub(super) async fn resume_postponed(&self, tenant_id: TenantId, ends_at: i64, now: i64) -> Result<u64> {
        const ACTION: &str = "resume postponed runs";
        let values = [tenant_id.into(), ends_at.into(), (BATCH_MAX as u64).into()];
        let mut resumed = 0;
        loop {
            let rows = self.query(ACTION, &POSTPONED, values.clone()).await?;
            let ids: Vec<[i64; 1]> = rows.into_iter().map(|id| [id]).collect();
            if ids.is_empty() {
                return Ok(resumed);
            }
            let ids = to_json(ACTION, &ids)?;
            resumed += self.execute(ACTION, &RESUME, [ids.into(), ends_at.into(), now.into()]).await?;
        }
    }

    /// Makes runs due that the former quota of fires has delayed, batch by batch; answers how many. What is due by now asks
    /// anyway, unless it is held.
    pub(super) async fn ask_again_after(&self, change: &RuleChange, now: i64) -> Result<u64> {
        const ACTION: &str = "let delayed runs ask again";
        let mut moved = 0;
        // On from where the last batch ended: what lies before is not read again.
        let mut from = now + 1;
        loop {
            let values = [change.tenant_id.into(), (BATCH_MAX as u64).into(), from.into()];
            let rows: Vec<(LogId, i64)> = self.query(ACTION, &OVER_QUOTA, values).await?;
            let Some((_, last)) = rows.last() else { break };
            from = *last;
            let ids: Vec<[LogId; 1]> = rows.iter().map(|(id, _)| [*id]).collect();
            moved += self.execute(ACTION, &ASK_AGAIN, [to_json(ACTION, &ids)?.into(), now.into()]).await?;
        }
        // Unless there has been another change since.
        let done = sql!("DELETE FROM rule_change WHERE id = {1} AND changed_at = {2}");
        self.execute(ACTION, &done, [change.id.into(), change.changed_at.into()]).await?;
        Ok(moved)
    }
}
