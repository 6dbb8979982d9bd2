//! What holds for whole apps and tenants: bounds, and maintenance windows.

use super::quota::Quotas;
use super::silence::{self, Silence};
use super::{AppId, TenantId, WindowId};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use utoipa::ToSchema;

/// What a maintenance window does to runs that are due in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowAction {
    /// They end as expired.
    #[default]
    Skip,
    /// They start at its end.
    Postpone,
}

/// A time in which a tenant's tasks do not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceWindow {
    /// Id.
    pub id: WindowId,
    /// Tenant.
    pub tenant_id: TenantId,
    /// First instant, epoch ms.
    pub starts_at: i64,
    /// First instant after it, epoch ms.
    pub ends_at: i64,
    /// What it does.
    pub action: WindowAction,
    /// For people.
    pub note: String,
}

/// A change of rules that runs written before have to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleChange {
    /// Of the maintenance window that was taken away, or of the tenant whose quota of fires has changed.
    pub id: i64,
    /// Tenant.
    pub tenant_id: TenantId,
    /// When that window would have ended, epoch ms; 0 for a quota.
    pub ends_at: i64,
    /// When the quota was changed, epoch ms.
    pub changed_at: i64,
}

/// Every rule, as a node last read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Grows with every change.
    pub version: i64,
    /// Runs at once at most, by app.
    pub apps: HashMap<AppId, i32>,
    /// Apps whose tasks may be scripts.
    pub scripts: HashSet<AppId>,
    /// Quotas of tenants that have any.
    pub tenants: HashMap<TenantId, Quotas>,
    /// Windows that have not ended, by tenant.
    pub windows: HashMap<TenantId, Vec<MaintenanceWindow>>,
    /// Times without any node, newest first.
    pub silences: Vec<Silence>,
    /// Changes that runs written before may still have to follow.
    pub changes: Vec<RuleChange>,
}

impl Rules {
    /// The window in which `at` (epoch ms) lies for a tenant; of several, the one that ends last.
    #[must_use]
    pub fn window_at(&self, tenant_id: TenantId, at: i64) -> Option<&MaintenanceWindow> {
        let windows = self.windows.get(&tenant_id)?;
        windows.iter().filter(|window| (window.starts_at..window.ends_at).contains(&at)).max_by_key(|w| w.ends_at)
    }

    /// Whether a run that was due then (epoch ms) may have run before the database was restored, and is not to run again.
    #[must_use]
    pub fn skips(&self, due_time: i64) -> bool {
        silence::is_skipped(&self.silences, due_time)
    }

    /// Runs at once of a tenant at most.
    #[must_use]
    pub fn concurrent(&self, tenant_id: TenantId) -> Option<i32> {
        self.tenants.get(&tenant_id).map(|quotas| quotas.max_concurrent).filter(|most| *most > 0)
    }

    /// Fires of a tenant in a minute at most.
    #[must_use]
    pub fn fires_per_minute(&self, tenant_id: TenantId) -> Option<i32> {
        self.tenants.get(&tenant_id).map(|quotas| quotas.max_fires_per_minute).filter(|most| *most > 0)
    }

    /// Whether tasks of the app may be scripts.
    #[must_use]
    pub fn allows_scripts(&self, app_id: AppId) -> bool {
        self.scripts.contains(&app_id)
    }

    /// Whether runs of the app are bounded beyond their task.
    #[must_use]
    pub fn bounds(&self, tenant_id: TenantId, app_id: AppId) -> bool {
        self.apps.contains_key(&app_id) || self.concurrent(tenant_id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_half_open_and_the_longest_counts() {
        let window = |id, starts_at, ends_at| MaintenanceWindow {
            id,
            tenant_id: TenantId(7),
            starts_at,
            ends_at,
            action: WindowAction::Skip,
            note: String::new(),
        };
        let windows = HashMap::from([(TenantId(7), vec![window(WindowId(1), 10, 20), window(WindowId(2), 15, 30)])]);
        let rules = Rules { windows, ..Rules::default() };
        let id = |tenant, at| rules.window_at(tenant, at).map(|window| window.id.0);
        assert_eq!(
            [9, 10, 15, 19, 20, 29, 30].map(|at| id(TenantId(7), at)),
            [None, Some(1), Some(2), Some(2), Some(2), Some(2), None]
        );
        assert_eq!(id(TenantId(8), 15), None);
    }
}
