//! Permits, uses of executors, overdue fires.

use super::ModelStore;
use super::rows::State;
use async_trait::async_trait;
use carillon::domain::permit::{Granted, Held, Limit, PermitRequest, Standing, grant};
use carillon::domain::rate_limit::{self, DelayedRun, Slot};
use carillon::domain::routing::{Use, UseChange};
use carillon::domain::{AppId, LogId, Reason, Run, Status, TaskId, TenantId, Transition, Trigger};
use carillon::store::{DispatchedRun, PermitStore, Result};

#[async_trait]
impl PermitStore for ModelStore {
    async fn acquire(&self, asks: &[PermitRequest]) -> Result<Granted> {
        self.call("acquire permits", |state, now| {
            let standing = |ask: &PermitRequest| {
                let run = state.logs.get(&ask.id).map(|row| &row.run)?;
                let (version, of) = state
                    .permits
                    .get(&ask.id)
                    .map_or((0, (AppId(0), TenantId(0))), |permit| (permit.version, (permit.app_id, permit.tenant_id)));
                (run.status == Status::Queued && run.version == ask.version).then(|| Standing::of(ask, version, of))
            };
            let (granted, changes) = grant(asks, &standing, state.held());
            for (ask, waits_for) in changes {
                let permit = match waits_for {
                    None => {
                        state.grants.begin(ask.id, now);
                        *ask
                    }
                    Some(limit) => {
                        let (task_id, app_id, tenant_id) = ask.waits_for(limit);
                        PermitRequest { version: -ask.version, task_id, app_id, tenant_id, ..*ask }
                    }
                };
                state.permits.insert(ask.id, permit);
            }
            Ok(granted)
        })
        .await
    }

    async fn release(&self, ids: &[LogId], in_order: bool) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.call("release permits", |state, now| {
            for id in ids {
                if let Some(permit) = state.permits.get_mut(id).filter(|permit| permit.version > 0) {
                    permit.version = -permit.version;
                    (permit.app_id, permit.tenant_id) = (AppId(0), TenantId(0));
                    state.grants.end(*id, now);
                }
                if !in_order {
                    state.permits.remove(id);
                }
            }
            Ok(())
        })
        .await
    }

    async fn note_waits(&self, waits: &[(LogId, i64, Reason)]) -> Result<()> {
        self.call("note waits", |state, _| {
            for (id, version, reason) in waits {
                let is_silent = |run: &Run| run.status == Status::Queued && run.reason == Reason::None;
                let row = state.logs.get_mut(id).filter(|row| row.run.version == *version);
                if let Some(row) = row.filter(|row| is_silent(&row.run)) {
                    row.run.reason = *reason;
                    state.events.push(format!("log {id} waits: {reason:?}"));
                }
            }
            Ok(())
        })
        .await
    }

    async fn take_rate_slots(&self, asks: &[rate_limit::SlotRequest], now: i64) -> Result<Vec<Slot>> {
        self.call("take_rate_slots", |state, at| {
            let of = |tenant: TenantId| {
                let rate = state.rates.get(&tenant).cloned().unwrap_or_default();
                (tenant, (state.fires_per_minute(tenant).unwrap_or(0), rate))
            };
            let mut rates: rate_limit::Rates = asks.iter().map(|ask| of(ask.tenant_id)).collect();
            let (mut slots, urgent) = rate_limit::take_all(asks, &mut rates);
            for (tenant, urgent) in urgent {
                let Some((per_minute, rate)) = rates.get_mut(&tenant) else { continue };
                let line = state.line(tenant);
                for moved in rate_limit::overtake(asks, &mut slots, &urgent, line, (*per_minute, rate)) {
                    state.change_one(&Transition::overtaken(&moved), at);
                }
            }
            for (ask, slot) in asks.iter().zip(&slots) {
                if let Slot::Later(due_time) = slot {
                    let most = state.fires_per_minute(ask.tenant_id).unwrap_or(0);
                    state.change_one(&Transition::delayed(ask, *due_time, most), at);
                }
            }
            for (tenant, (_, mut rate)) in rates {
                rate.forget(now);
                state.rates.insert(tenant, rate);
            }
            Ok(slots)
        })
        .await
    }

    async fn holders(&self, tasks: &[TaskId]) -> Result<Vec<DispatchedRun>> {
        self.call("read holders", |state, _| {
            let of_tasks = state.permits.values().filter(|ask| tasks.contains(&ask.task_id));
            let rows = of_tasks.filter_map(|ask| state.logs.get(&ask.id));
            Ok(rows.filter(|row| row.run.status == Status::Dispatched).map(super::LogRow::dispatched).collect())
        })
        .await
    }

    async fn uses(&self, tasks: &[TaskId]) -> Result<Vec<(TaskId, String, Use)>> {
        self.call("read uses", |state, _| {
            let wanted = state.uses.iter().filter(|((task, _), _)| tasks.contains(task));
            Ok(wanted.map(|((task, address), used)| (*task, address.clone(), *used)).collect())
        })
        .await
    }

    async fn add_uses(&self, changes: &[UseChange], _new_id: &(dyn Fn() -> i64 + Sync)) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.call("add uses", |state, _| {
            for change in changes {
                let used = state.uses.entry((change.task_id, change.address.clone())).or_default();
                used.count = used.count.max(change.floor) + change.added;
                used.last = used.last.max(change.last);
            }
            Ok(())
        })
        .await
    }

    async fn overdue(&self, since: &[(TaskId, i64)], due_before: i64, limit: u64) -> Result<Vec<(TaskId, i64)>> {
        self.call("read overdue", |state, _| {
            let counts = |status| !matches!(status, Status::Expired | Status::Cancelled);
            let is_missed = |run: &Run| {
                (run.trigger == Trigger::Schedule && run.due_time < due_before) || run.trigger == Trigger::Misfire
            };
            let wanted = state.logs.values().map(|row| &row.run).filter(|run| {
                is_missed(run)
                    && run.parent_id == LogId::NONE
                    && counts(run.status)
                    && since.iter().any(|(task, from)| run.task_id == *task && run.fire_time >= *from)
            });
            let mut found: Vec<(TaskId, i64)> = wanted.map(|run| (run.task_id, run.fire_time)).collect();
            found.sort_by_key(|(_, fire_time)| std::cmp::Reverse(*fire_time));
            found.truncate(limit as usize);
            Ok(found)
        })
        .await
    }
}

impl State {
    /// Runs of a tenant that wait for their places and may change them, by due time.
    fn line(&self, tenant: TenantId) -> Vec<DelayedRun> {
        let waits = |run: &&Run| {
            run.tenant_id == tenant
                && (run.status, run.reason) == (Status::Init, Reason::OverQuota)
                && self.tasks.get(&run.task_id).is_some_and(|row| row.view.spec.wait_timeout_ms == 0)
        };
        let line = self.logs.values().map(|row| &row.run).filter(waits);
        let mut line: Vec<DelayedRun> = line
            .map(|run| {
                let Run { id, version, failures, priority, due_time, .. } = *run;
                DelayedRun { id, version, failures, priority, due_time }
            })
            .collect();
        line.sort_by_key(|one| one.due_time);
        line
    }

    /// Permits that count.
    fn held(&self) -> Held {
        let mut held = Held::default();
        for ask in self.permits.values() {
            let Some(run) = self.logs.get(&ask.id).map(|row| &row.run) else { continue };
            if run.status == Status::Queued && run.version == -ask.version {
                let first = held.waiting.entry(ask.task_id).or_insert(run.due_time);
                *first = run.due_time.min(*first);
                let limit = Limit::noted(ask.app_id, ask.tenant_id);
                let of = match limit {
                    Limit::App => ask.app_id.0,
                    Limit::Tenant => ask.tenant_id.0,
                    Limit::Task | Limit::Executor => ask.task_id.0,
                };
                held.lines.entry((limit, of)).or_default().push(run.urgency());
            }
            let counts = match run.status {
                Status::Dispatched => true,
                Status::Queued => run.version == ask.version,
                _ => false,
            };
            if counts {
                *held.tasks.entry(ask.task_id).or_default() += 1;
                *held.apps.entry(ask.app_id).or_default() += 1;
                *held.tenants.entry(ask.tenant_id).or_default() += 1;
            }
        }
        held
    }
}
