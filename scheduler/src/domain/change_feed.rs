//! Hints about changes for callers who may read the changed objects: hints to read again, never the objects.

use super::access::{Access, AccessScope, PLATFORM, Permission, TenantScope};
use super::{AppId, TenantId};
use std::collections::BTreeSet;

macro_rules! kinds {
    ($($name:ident, $word:literal, $needs:ident, $breadth:ident;)*) => {
        /// A kind of thing that changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ChangeKind {
            $(#[doc = concat!("`", $word, "`")] $name,)*
        }

        /// Every kind: its word, what one needs to look at it, whose it is.
        pub const KINDS: &[(ChangeKind, &str, Permission, ChangeOwner)] =
            &[$((ChangeKind::$name, $word, Permission::$needs, ChangeOwner::$breadth),)*];
    };
}

/// Whose things of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOwner {
    /// An app's: callers who may read one app of a tenant get the hints of the whole tenant.
    App,
    /// A tenant's as a whole.
    Tenant,
    /// A tenant's, or all tenants': those of the platform can be seen from every tenant.
    Shared,
}

kinds! {
    Tasks, "tasks", TasksRead, App;
    TaskLogs, "task_logs", TaskLogsRead, App;
    Apps, "apps", AppsRead, App;
    Keys, "keys", KeysRead, App;
    Executors, "executors", ExecutorsRead, App;
    Nodes, "nodes", NodesRead, Tenant;
    Tenants, "tenants", TenantsRead, App;
    Users, "users", UsersRead, Tenant;
    Roles, "roles", RolesRead, Shared;
    Tokens, "tokens", TokensRead, Tenant;
    Calendars, "calendars", CalendarsRead, Tenant;
    Quotas, "quotas", QuotasRead, Tenant;
    Maintenance, "maintenance", MaintenanceRead, Tenant;
    Backfills, "backfills", BackfillsRead, App;
    Statistics, "statistics", StatisticsRead, App;
    Audit, "audit", AuditRead, Tenant;
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeKinds(u32);

const _: () = assert!(KINDS.len() <= 32);

impl ChangeKinds {
    /// Every kind.
    #[must_use]
    pub fn all() -> Self {
        KINDS.iter().map(|(kind, ..)| *kind).collect()
    }

    /// Whether it has this one.
    #[must_use]
    pub fn has(self, kind: ChangeKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of both.
    #[must_use]
    pub fn either(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Its words, in their order.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        KINDS.iter().filter(|(kind, ..)| self.has(*kind)).map(|(_, word, ..)| *word).collect()
    }
}

impl FromIterator<ChangeKind> for ChangeKinds {
    fn from_iter<T: IntoIterator<Item = ChangeKind>>(kinds: T) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u8))
    }
}

/// Where something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeScope {
    /// In what belongs to no tenant.
    Platform,
    /// Possibly in every tenant: callers who may read such objects anywhere get the hint.
    Everywhere,
    /// In this tenant.
    Tenant(TenantId),
}

impl ChangeScope {
    /// Where things of this tenant are; [`PLATFORM`] stands for none.
    #[must_use]
    pub fn of(tenant_id: TenantId) -> Self {
        if tenant_id == PLATFORM { Self::Platform } else { Self::Tenant(tenant_id) }
    }
}

/// Whose changes a caller gets hints about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedTenants {
    /// Of all tenants.
    All,
    /// Only those of these tenants, and what belongs to none.
    Of(BTreeSet<TenantId>),
}

impl WatchedTenants {
    /// Whether it includes all that `other` does.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Of(_), Self::All) => false,
            (Self::Of(some), Self::Of(others)) => others.is_subset(some),
        }
    }
}

/// What a caller may get hints about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Where each kind can be looked at.
    scopes: Vec<(ChangeKind, ChangeOwner, AccessScope)>,
    /// The only tenant that is asked for.
    only: Option<TenantId>,
}

impl Subscription {
    /// What a caller with this access may get hints about; with `tenant`, only that one and what belongs to none.
    #[must_use]
    pub fn of(access: &Access, only: Option<TenantId>) -> Self {
        let held = KINDS
            .iter()
            .filter_map(|(kind, _, needs, change_owner)| Some((*kind, *change_owner, access.access_scope(*needs)?)));
        Self { scopes: held.collect(), only }
    }

    /// Those of the kinds that changed there of which it may be told.
    #[must_use]
    pub fn of_these(&self, scope: ChangeScope, kinds: ChangeKinds) -> ChangeKinds {
        let matches = |(kind, change_owner, access_scope): &&(ChangeKind, ChangeOwner, AccessScope)| {
            kinds.has(*kind) && self.matches(scope, *change_owner, access_scope)
        };
        self.scopes.iter().filter(matches).map(|(kind, ..)| *kind).collect()
    }

    fn matches(&self, scope: ChangeScope, change_owner: ChangeOwner, access_scope: &AccessScope) -> bool {
        match (scope, change_owner) {
            (ChangeScope::Everywhere, _) => self.only.is_none_or(|only| access_scope.touches(only)),
            (ChangeScope::Platform, ChangeOwner::Shared) => true,
            (ChangeScope::Platform, _) => *access_scope == AccessScope::All,
            (ChangeScope::Tenant(id), _) if self.only.is_some_and(|only| only != id) => false,
            (ChangeScope::Tenant(id), ChangeOwner::App) => access_scope.touches(id),
            (ChangeScope::Tenant(id), ChangeOwner::Tenant | ChangeOwner::Shared) => access_scope.has(id, AppId::NONE),
        }
    }

    /// Whose changes must be looked for.
    #[must_use]
    pub fn watched_tenants(&self) -> WatchedTenants {
        if let Some(only) = self.only {
            return WatchedTenants::Of([only].into());
        }
        let mut tenants = BTreeSet::new();
        for (_, _, access_scope) in &self.scopes {
            match access_scope {
                AccessScope::All => return WatchedTenants::All,
                AccessScope::Of(slots) => tenants.extend(slots.iter().map(|slot: &TenantScope| slot.tenant_id)),
            }
        }
        WatchedTenants::Of(tenants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::{Grant, PermissionSet};

    fn access(words: &[&str], tenant_id: TenantId, apps: &[AppId]) -> Access {
        let permissions = PermissionSet::parse(words.iter().copied()).unwrap();
        Access::new(vec![Grant { permissions, tenant_id, apps: apps.to_vec() }])
    }

    fn heard(access: &Access, only: Option<TenantId>, scope: ChangeScope) -> Vec<&'static str> {
        Subscription::of(access, only).of_these(scope, ChangeKinds::all()).words()
    }

    #[test]
    fn changes_of_unreadable_tenants_are_not_sent() {
        let ann = access(&["tasks.read", "users.read", "nodes.read"], TenantId(1), &[]);
        assert_eq!(heard(&ann, None, ChangeScope::Tenant(TenantId(1))), ["tasks", "users"]);
        assert_eq!(heard(&ann, None, ChangeScope::Tenant(TenantId(2))), [""; 0]);
        assert_eq!(heard(&ann, None, ChangeScope::Platform), [""; 0]);
        let of_an_app = access(&["tasks.read", "users.read"], TenantId(1), &[AppId(7)]);
        assert_eq!(
            heard(&of_an_app, None, ChangeScope::Tenant(TenantId(1))),
            ["tasks"],
            "users are the whole tenant's"
        );
        let nobody = access(&[], TenantId(1), &[]);
        assert_eq!(heard(&nobody, None, ChangeScope::Everywhere), [""; 0]);
    }

    #[test]
    fn a_subscriber_to_one_tenant_gets_only_its_changes() {
        let admin = Access::everything();
        assert_eq!(heard(&admin, Some(TenantId(1)), ChangeScope::Tenant(TenantId(1))).len(), KINDS.len());
        assert_eq!(heard(&admin, Some(TenantId(1)), ChangeScope::Tenant(TenantId(2))), [""; 0]);
        assert_eq!(heard(&admin, Some(TenantId(1)), ChangeScope::Platform).len(), KINDS.len());
        let elsewhere = access(&["statistics.read"], TenantId(2), &[]);
        assert_eq!(heard(&elsewhere, Some(TenantId(1)), ChangeScope::Everywhere), [""; 0]);
        assert_eq!(heard(&elsewhere, None, ChangeScope::Everywhere), ["statistics"]);
    }

    #[test]
    fn watched_tenants_are_as_many_as_the_access_scope() {
        assert_eq!(Subscription::of(&Access::everything(), None).watched_tenants(), WatchedTenants::All);
        assert_eq!(
            Subscription::of(&Access::everything(), Some(TenantId(3))).watched_tenants(),
            WatchedTenants::Of([TenantId(3)].into())
        );
        assert_eq!(
            Subscription::of(&access(&["tasks.read"], TenantId(1), &[AppId(7)]), None).watched_tenants(),
            WatchedTenants::Of([TenantId(1)].into())
        );
    }

    #[test]
    fn an_entry_of_the_audit_says_what_changed() {}
}
