//! Checks a file against the quotas of the tenants that it names.

use super::step::{Action, Step};
use crate::domain::quota::Quotas;
use crate::domain::rate_limit::WINDOW_MS;
use crate::domain::task::file::Entry;
use crate::domain::task::{NEVER, TaskSpec};
use crate::domain::{FieldError, Owner, TaskId};
use crate::store::{Result, SqlStore, TaskRoom};
use std::collections::{BTreeMap, HashMap};

/// Says that a schedule alone fires more often in a minute than the tenant's quota (0: none) allows.
pub fn falls_behind(spec: &TaskSpec, per_minute: i32, now: i64) -> Option<String> {
    let fires = if per_minute > 0 { fires_in_a_minute(spec, per_minute, now) } else { 0 };
    (fires > per_minute).then(|| {
        format!(
            "fires more than {per_minute} times in a minute, which is what the tenant may (its quota \
             max_fires_per_minute): its runs will fall behind"
        )
    })
}

/// Fires in the minute that begins with the first one, counted up to one more than `most`.
fn fires_in_a_minute(spec: &TaskSpec, most: i32, now: i64) -> i32 {
    let Ok(schedule) = spec.to_schedule(now, TaskId::NONE) else { return 0 };
    let first = schedule.next_after(now);
    let fires = std::iter::successors(Some(first), |at| Some(schedule.next_after(*at)));
    let within = fires.take(most as usize + 1).take_while(|at| *at != NEVER && at - first < WINDOW_MS);
    within.count() as i32
}

/// Quotas of the tenants that entries name, and how many tasks those have.
pub async fn of(
    store: &SqlStore,
    scopes: &HashMap<(String, String), Owner>,
) -> Result<HashMap<String, (Quotas, TaskRoom)>> {
    let mut quotas = HashMap::new();
    for ((tenant, _), owner) in scopes {
        if !quotas.contains_key(tenant) {
            quotas.insert(tenant.clone(), store.quotas_and_tasks(owner.tenant_id).await?);
        }
    }
    Ok(quotas)
}

/// More tasks than a tenant may have: said at the first one that the file creates.
pub fn refuse_too_many(steps: &[Step], quotas: &HashMap<String, (Quotas, TaskRoom)>, refused: &mut Vec<FieldError>) {
    let mut created: BTreeMap<&str, (&Entry, usize)> = BTreeMap::new();
    for Step { entry, .. } in steps.iter().filter(|step| matches!(step.action, Action::Create(..))) {
        created.entry(&entry.tenant).or_insert((entry, 0)).1 += 1;
    }
    for (tenant, (entry, count)) in created {
        let refusal = quotas.get(tenant).and_then(|(_, room)| room.refusal(count));
        refused.extend(refusal.map(|refusal| entry.refusal("tenant", refusal)));
    }
}
