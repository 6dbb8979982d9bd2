//! Slots in the rates of tenants: one transaction for each batch of runs whose tenants have a
//! quota of fires.

use super::dialect::Kind;
use super::dispatching::CHANGE;
use super::dispatching::change_row;
use super::row::from_row;
use super::sql::{ID, INIT, PHASE_INDEX, WAITING};
use super::sql_store::{Transaction, retrying};
use super::values::{list, to_json};
use super::{Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::rate_limit::{self, DelayedRun, Rate, Rates, Slot, SlotRequest};
use crate::domain::{TenantId, Transition};
use std::collections::BTreeSet;

statements!(
    RATE_LOCK = |d| d.update_rows("tenant_rate", "turn = l.turn + 1", ID, "l.id = v.n_id"),
    RATE_INSERT = |d| format!(
        "INSERT INTO tenant_rate (id, turn, slots) SELECT v.n_id, 0, '{{}}' FROM {} WHERE 1 = 1 {}",
        d.rows(1, ID),
        d.or_ignore("tenant_rate", "id")
    ),
    RATES = |d| format!(
        "SELECT r.id, t.max_fires_per_minute, r.slots FROM {} tenant_rate r ON r.id = v.n_id \
         JOIN tenant t ON t.id = r.id",
        d.batch(1, ID)
    ),
    RATE_WRITE = |d| d.update_rows(
        "tenant_rate",
        "slots = v.n_slots",
        &[("id", Kind::Big), ("slots", Kind::Text)],
        "l.id = v.n_id",
    ),
    // A run with a time-out for waiting keeps its slot. (A tenant has more logs than wait at a time.)
    RATE_LINE = |d| format!(
        "SELECT l.id, l.version, l.failures, l.priority, l.due_time FROM task_log l {} JOIN task t ON t.id = l.task_id \
         WHERE {} = {WAITING} AND l.status = {INIT} AND l.due_time > {{3}} AND l.due_time < {{4}} AND l.tenant_id = {{1}} AND \
         l.priority < {{2}} AND l.reason = 'over_quota' AND t.wait_timeout_ms = 0 ORDER BY l.due_time LIMIT {{5}}",
        d.by_index(PHASE_INDEX),
        d.phase()
    ),
);

const ACTION: &str = "take slots in the rate of a tenant";

impl SqlStore {
    pub(super) async fn take_rate_slots_in_turn(&self, requests: &[SlotRequest], now: i64) -> Result<Vec<Slot>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        retrying(|| self.take_rate_slots_once(requests, now)).await
    }

    async fn take_rate_slots_once(&self, requests: &[SlotRequest], now: i64) -> Result<Vec<Slot>> {
        let tenants: BTreeSet<TenantId> = requests.iter().map(|request| request.tenant_id).collect();
        let tx = self.begin(ACTION).await?;
        self.lock_rates(&tx, &tenants).await?;
        let mut rates = self.read_rates(&tx, &tenants).await?;
        let (mut slots, urgent) = rate_limit::take_all(requests, &mut rates);
        for (tenant, urgent) in urgent {
            let Some((per_minute, rate)) = rates.get_mut(&tenant) else { continue };
            self.overtake(&tx, tenant, (*per_minute, rate), requests, &mut slots, &urgent).await?;
        }
        let delayed = requests.iter().zip(&slots).filter_map(|(request, slot)| match slot {
            Slot::Later(due_time) => {
                let per_minute = rates.get(&request.tenant_id).map_or(0, |(per_minute, _)| *per_minute);
                Some(Transition::delayed(request, *due_time, per_minute))
            }
            _ => None,
        });
        let delayed: Vec<Transition> = delayed.collect();
        self.write_rates(&tx, rates, now).await?;
        if !delayed.is_empty() {
            let rows: Vec<_> = delayed.iter().map(change_row).collect();
            tx.execute(&CHANGE, [to_json(ACTION, &rows)?.into()]).await?;
        }
        tx.commit().await?;
        Ok(slots)
    }

    /// Urgent runs change slots with less urgent ones that wait; those must not be claimed
    /// meanwhile.
    async fn overtake(
        &self,
        tx: &Transaction<'_>,
        tenant: TenantId,
        (per_minute, rate): (i32, &mut Rate),
        requests: &[SlotRequest],
        slots: &mut [Slot],
        urgent: &[usize],
    ) -> Result<()> {
        let of_urgent = || urgent.iter().filter_map(|at| requests.get(*at));
        let Some(after) = of_urgent().map(|request| request.at).min() else { return Ok(()) };
        // The whole line.
        let Some(last) = rate.behind(after) else { return Ok(()) };
        let priority = of_urgent().map(|request| request.priority).max().unwrap_or(0);
        let values = [tenant.into(), priority.into(), after.into(), (last + 1).into(), (urgent.len() as u64).into()];
        let line: Vec<DelayedRun> = tx.query(&RATE_LINE, values).await?;
        // Those that are found wait on, wherever they stand then.
        let still_wait = line.iter().map(|one| one.priority).chain(of_urgent().map(|request| request.priority)).min();
        let found = line.len();
        let moved = rate_limit::overtake(requests, slots, urgent, line, (per_minute, &mut *rate));
        if found < urgent.len() {
            rate.found_none_below(still_wait.unwrap_or(priority));
        }
        if moved.is_empty() {
            return Ok(());
        }
        let rows: Vec<Transition> = moved.iter().map(Transition::overtaken).collect();
        let rows: Vec<_> = rows.iter().map(change_row).collect();
        if tx.execute(&CHANGE, [to_json(ACTION, &rows)?.into()]).await? < moved.len() as u64 {
            return Err(StoreError::new(StoreErrorKind::Contention, ACTION, "a run that waited was claimed meanwhile"));
        }
        Ok(())
    }

    /// Taking slots of a tenant, and changing its quota, holds its row until the commit.
    pub(super) async fn lock_rates(&self, tx: &Transaction<'_>, tenants: &BTreeSet<TenantId>) -> Result<()> {
        let ids = list(ACTION, tenants)?;
        if tx.execute(&RATE_LOCK, [ids.clone().into()]).await? < tenants.len() as u64 {
            tx.execute(&RATE_INSERT, [ids.clone().into()]).await?;
            tx.execute(&RATE_LOCK, [ids.into()]).await?;
        }
        Ok(())
    }

    /// Quotas and slots of these tenants, whose rows are held.
    pub(super) async fn read_rates(&self, tx: &Transaction<'_>, tenants: &BTreeSet<TenantId>) -> Result<Rates> {
        let rows: Vec<(TenantId, i32, String)> = tx.query(&RATES, [list(ACTION, tenants)?.into()]).await?;
        rows.into_iter().map(|(id, per_minute, slots)| Ok((id, (per_minute, parse(&slots)?)))).collect()
    }

    pub(super) async fn write_rates(&self, tx: &Transaction<'_>, rates: Rates, now: i64) -> Result<()> {
        let mut rows = Vec::with_capacity(rates.len());
        for (id, (_, mut rate)) in rates {
            rate.forget(now);
            rows.push((id, to_json(ACTION, &rate)?));
        }
        tx.execute(&RATE_WRITE, [to_json(ACTION, &rows)?.into()]).await.map(drop)
    }
}

from_row!(DelayedRun { id, version, failures, priority, due_time });

/// The slots as they are stored.
pub(super) fn parse(slots: &str) -> Result<Rate> {
    serde_json::from_str(slots).map_err(|error| StoreError::new(StoreErrorKind::Other, ACTION, error.to_string()))
}
