//! Rules: quotas of tenants, bounds of apps, maintenance windows.

use super::history::{Bounded, Rebound};
use super::rows::State;
use super::{ModelStore, refuse};
use async_trait::async_trait;
use carillon::domain::quota::Quotas;
use carillon::domain::rules::{MaintenanceWindow, RuleChange, Rules};
use carillon::domain::silence::Silence;
use carillon::domain::{AppId, LogId, Reason, Run, TenantId, WindowId};
use carillon::store::{Result, RuleStore, StoreErrorKind};
use std::collections::{HashMap, HashSet};

#[async_trait]
impl RuleStore for ModelStore {
    async fn rule_version(&self) -> Result<i64> {
        self.call("look for new rules", |state, _| Ok(state.rule_version)).await
    }

    async fn rules(&self, now: i64) -> Result<Rules> {
        self.call("read rules", |state, _| {
            let is_bound = |quotas: &Quotas| quotas.max_concurrent > 0 || quotas.max_fires_per_minute > 0;
            let bounded = state.quotas.iter().filter(|(_, quotas)| is_bound(quotas));
            let tenants = bounded.map(|(id, quotas)| (*id, *quotas)).collect();
            let apps = state.app_bounds.iter().map(|(id, most)| (*id, *most)).collect();
            let silences = state.silences.values().rev().cloned().collect();
            let mut coming: Vec<&MaintenanceWindow> = state.windows.values().filter(|one| one.ends_at > now).collect();
            coming.sort_by_key(|window| window.starts_at);
            let mut windows: HashMap<TenantId, Vec<MaintenanceWindow>> = HashMap::new();
            for window in coming {
                windows.entry(window.tenant_id).or_default().push(window.clone());
            }
            let changes = state.rule_changes.iter().filter(|change| change.ends_at > now).copied().collect();
            // No executor of a simulation runs scripts.
            let scripts = HashSet::new();
            Ok(Rules { version: state.rule_version, apps, scripts, tenants, windows, silences, changes })
        })
        .await
    }

    async fn witness(&self, told: &Silence) -> Result<bool> {
        self.call("note who lived through a silence", |state, now| {
            let silence = state.silences.entry(told.from).or_insert(Silence { lived_until: 0, ..told.clone() });
            if silence.lived_until >= told.lived_until {
                return Ok(false);
            }
            *silence = Silence { until: silence.until, decision: None, ..told.clone() };
            state.change_rules(now);
            Ok(true)
        })
        .await
    }

    async fn resume(&self, tenant_id: TenantId, ends_at: i64, now: i64) -> Result<u64> {
        self.call("resume postponed runs", |state, _| {
            let waits = |run: &Run| {
                (run.tenant_id, run.due_time, run.reason) == (tenant_id, ends_at, Reason::Maintenance)
                    && run.status.is_claimable()
            };
            let mut resumed = 0;
            for run in state.logs.values_mut().map(|row| &mut row.run).filter(|run| waits(run)) {
                run.due_time = run.fire_time.max(now);
                run.reason = Reason::None;
                run.version += 1;
                resumed += 1;
                state.events.push(format!("log {} waits no longer for the end of a window", run.id));
            }
            Ok(resumed)
        })
        .await
    }

    /// A quota is followed at once here.
    async fn ask_again(&self, _: &RuleChange, _: i64) -> Result<u64> {
        Ok(0)
    }
}

impl ModelStore {
    /// Bounds the runs of an app that go on at once; 0: as many as there are.
    pub async fn bound_app(&self, app: AppId, most: i32) -> Result<()> {
        self.call("bound an app", |state, now| {
            state.app_bounds.insert(app, most);
            state.app_bounds.retain(|_, most| *most > 0);
            state.change_rules(now);
            state.note_bound(Bounded::App(app), most, now);
            Ok(())
        })
        .await
    }

    /// Adds a maintenance window to its tenant.
    pub async fn add_window(&self, window: &MaintenanceWindow, _now: i64) -> Result<()> {
        self.call("add a maintenance window", |state, now| {
            state.windows.insert(window.id, window.clone());
            state.change_rules(now);
            Ok(())
        })
        .await
    }

    /// Ends a window: takes it away, whether it has begun or not.
    pub async fn drop_window(&self, tenant_id: TenantId, id: WindowId) -> Result<()> {
        self.call("end a maintenance window", |state, now| {
            if state.windows.get(&id).is_none_or(|window| window.tenant_id != tenant_id) {
                return refuse(StoreErrorKind::NotFound, "end a maintenance window", "there is no such window");
            }
            if let Some(MaintenanceWindow { ends_at, .. }) = state.windows.remove(&id) {
                state.rule_changes.push(RuleChange { id: id.0, tenant_id, ends_at, changed_at: 0 });
            }
            state.change_rules(now);
            Ok(())
        })
        .await
    }

    /// Gives a tenant other quotas.
    pub async fn set_quotas(&self, tenant_id: TenantId, to: &Quotas, now: i64) -> Result<()> {
        self.call("set quotas", |state, at| {
            let before = state.quotas.insert(tenant_id, *to).unwrap_or_default();
            state.change_rules(at);
            state.note_bound(Bounded::Tenant(tenant_id), to.max_concurrent, at);
            if before.max_fires_per_minute != to.max_fires_per_minute {
                state.rates.entry(tenant_id).or_default().reset(before.max_fires_per_minute, now);
                state.ask_again(tenant_id, now, at);
            }
            if before.retain_days != to.retain_days {
                state.cursors.remove(&to.retain_days);
            }
            Ok(())
        })
        .await
    }
}

impl State {
    /// The version follows the clock: what a standby has lost is not mistaken for what comes after it.
    pub(super) fn change_rules(&mut self, at: i64) {
        self.rule_version = self.clock(at).max(self.rule_version + 1);
    }

    /// After the rules have changed.
    fn note_bound(&mut self, of: Bounded, most: i32, at: i64) {
        self.rebounds.push(Rebound { of, most, version: self.rule_version, at });
    }

    fn ask_again(&mut self, tenant_id: TenantId, now: i64, at: i64) {
        let delayed = self.logs.values().filter(|row| {
            row.run.tenant_id == tenant_id
                && row.run.reason == Reason::OverQuota
                && row.run.status.is_claimable()
                && row.run.due_time > now
        });
        let delayed: Vec<LogId> = delayed.map(|row| row.run.id).collect();
        for id in delayed {
            let Some(row) = self.logs.get_mut(&id) else { continue };
            row.run.due_time = row.run.fire_time.max(now);
            row.run.reason = Reason::None;
            row.run.version += 1;
            self.events.push(format!("log {id} asks again for a slot at {at}"));
        }
    }

    /// Refuses new tasks that do not fit into the tenant's quota.
    pub(super) fn refuse_too_many_tasks(&self, tenant_id: TenantId, count: usize) -> Result<()> {
        let room = self.task_room(tenant_id);
        if room.is_some_and(|room| room < count as i64) {
            return refuse(StoreErrorKind::Invalid, "create tasks", "the tenant has as many as it may");
        }
        Ok(())
    }

    /// How many more tasks fit into the tenant's quota, if it has one.
    pub(super) fn task_room(&self, tenant_id: TenantId) -> Option<i64> {
        let most = self.quotas.get(&tenant_id).map(|quotas| quotas.max_tasks).filter(|most| *most > 0)?;
        let used = self.tasks.values().filter(|row| row.view.owner.tenant_id == tenant_id).count();
        Some(i64::from(most) - used as i64)
    }

    /// Fires of a tenant in a minute at most.
    pub(super) fn fires_per_minute(&self, tenant_id: TenantId) -> Option<i32> {
        self.quotas.get(&tenant_id).map(|quotas| quotas.max_fires_per_minute).filter(|most| *most > 0)
    }
}
