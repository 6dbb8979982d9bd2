//! What has changed, told to those who may look at it: a hint to look again, never the thing itself.

use super::access::{Access, PLATFORM, Permission, Place, Reach};
use std::collections::BTreeSet;

macro_rules! kinds {
    ($($name:ident, $word:literal, $needs:ident, $breadth:ident;)*) => {
        /// A kind of thing that changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum NewsKind {
            $(#[doc = concat!("`", $word, "`")] $name,)*
        }

        /// Every kind: its word, what one needs to look at it, whose it is.
        pub const KINDS: &[(NewsKind, &str, Permission, Whose)] =
            &[$((NewsKind::$name, $word, Permission::$needs, Whose::$breadth),)*];
    };
}

/// Whose things of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// An app's: whoever may look at one app of a tenant hears of the tenant's.
    App,
    /// A tenant's as a whole.
    Tenant,
    /// A tenant's, or everybody's: those of the platform can be seen from every tenant.
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
pub struct NewsKinds(u32);

const _: () = assert!(KINDS.len() <= 32);

impl NewsKinds {
    /// Every kind.
    #[must_use]
    pub fn all() -> Self {
        KINDS.iter().map(|(kind, ..)| *kind).collect()
    }

    /// Whether it has this one.
    #[must_use]
    pub fn has(self, kind: NewsKind) -> bool {
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

impl FromIterator<NewsKind> for NewsKinds {
    fn from_iter<T: IntoIterator<Item = NewsKind>>(kinds: T) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u8))
    }
}

/// Where something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// In what belongs to no tenant.
    Platform,
    /// Perhaps in every tenant: whoever may look at such things anywhere hears of it.
    Everywhere,
    /// In this tenant.
    Tenant(i64),
}

impl Spot {
    /// Where things of this tenant are; [`PLATFORM`] stands for none.
    #[must_use]
    pub fn of(tenant_id: i64) -> Self {
        if tenant_id == PLATFORM { Self::Platform } else { Self::Tenant(tenant_id) }
    }
}

/// Whose changes somebody hears of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ear {
    /// Everybody's.
    All,
    /// Only those of these tenants, and what belongs to none.
    Of(BTreeSet<i64>),
}

impl Ear {
    /// Whether whoever listens so hears all that `other` does.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Of(_), Self::All) => false,
            (Self::Of(some), Self::Of(others)) => others.is_subset(some),
        }
    }
}

/// What somebody may hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hearing {
    /// Where each kind can be looked at.
    reaches: Vec<(NewsKind, Whose, Reach)>,
    /// The only tenant that is asked for.
    only: Option<i64>,
}

impl Hearing {
    /// What whoever has this access may hear of; only of one tenant, and of what belongs to none.
    #[must_use]
    pub fn of(access: &Access, only: Option<i64>) -> Self {
        let held = KINDS.iter().filter_map(|(kind, _, needs, whose)| Some((*kind, *whose, access.reach(*needs)?)));
        Self { reaches: held.collect(), only }
    }

    /// Those of the kinds that changed there of which it may be told.
    #[must_use]
    pub fn of_these(&self, spot: Spot, kinds: NewsKinds) -> NewsKinds {
        let hears =
            |(kind, whose, reach): &&(NewsKind, Whose, Reach)| kinds.has(*kind) && self.hears(spot, *whose, reach);
        self.reaches.iter().filter(hears).map(|(kind, ..)| *kind).collect()
    }

    fn hears(&self, spot: Spot, whose: Whose, reach: &Reach) -> bool {
        match (spot, whose) {
            (Spot::Everywhere, _) => self.only.is_none_or(|only| reach.touches(only)),
            (Spot::Platform, Whose::Shared) => true,
            (Spot::Platform, _) => *reach == Reach::All,
            (Spot::Tenant(id), _) if self.only.is_some_and(|only| only != id) => false,
            (Spot::Tenant(id), Whose::App) => reach.touches(id),
            (Spot::Tenant(id), Whose::Tenant | Whose::Shared) => reach.has(id, 0),
        }
    }

    /// Whose changes must be looked for.
    #[must_use]
    pub fn ear(&self) -> Ear {
        if let Some(only) = self.only {
            return Ear::Of([only].into());
        }
        let mut tenants = BTreeSet::new();
        for (_, _, reach) in &self.reaches {
            match reach {
                Reach::All => return Ear::All,
                Reach::Of(places) => tenants.extend(places.iter().map(|place: &Place| place.tenant_id)),
            }
        }
        Ear::Of(tenants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::{Grant, PermissionSet};

    fn access(words: &[&str], tenant_id: i64, apps: &[i64]) -> Access {
        let permissions = PermissionSet::parse(words.iter().copied()).unwrap();
        Access::new(vec![Grant { permissions, tenant_id, apps: apps.to_vec() }])
    }

    fn heard(access: &Access, only: Option<i64>, spot: Spot) -> Vec<&'static str> {
        Hearing::of(access, only).of_these(spot, NewsKinds::all()).words()
    }

    #[test]
    fn nobody_hears_of_what_he_may_not_look_at() {
        let ann = access(&["tasks.read", "users.read", "nodes.read"], 1, &[]);
        assert_eq!(heard(&ann, None, Spot::Tenant(1)), ["tasks", "users"]);
        assert_eq!(heard(&ann, None, Spot::Tenant(2)), [""; 0]);
        assert_eq!(heard(&ann, None, Spot::Platform), [""; 0]);
        let of_an_app = access(&["tasks.read", "users.read"], 1, &[7]);
        assert_eq!(heard(&of_an_app, None, Spot::Tenant(1)), ["tasks"], "users are the whole tenant's");
        let nobody = access(&[], 1, &[]);
        assert_eq!(heard(&nobody, None, Spot::Everywhere), [""; 0]);
    }

    #[test]
    fn whoever_asks_for_one_tenant_hears_of_that_one() {
        let admin = Access::everything();
        assert_eq!(heard(&admin, Some(1), Spot::Tenant(1)).len(), KINDS.len());
        assert_eq!(heard(&admin, Some(1), Spot::Tenant(2)), [""; 0]);
        assert_eq!(heard(&admin, Some(1), Spot::Platform).len(), KINDS.len());
        let elsewhere = access(&["statistics.read"], 2, &[]);
        assert_eq!(heard(&elsewhere, Some(1), Spot::Everywhere), [""; 0]);
        assert_eq!(heard(&elsewhere, None, Spot::Everywhere), ["statistics"]);
    }

    #[test]
    fn ears_are_as_wide_as_the_reach() {
        assert_eq!(Hearing::of(&Access::everything(), None).ear(), Ear::All);
        assert_eq!(Hearing::of(&Access::everything(), Some(3)).ear(), Ear::Of([3].into()));
        assert_eq!(Hearing::of(&access(&["tasks.read"], 1, &[7]), None).ear(), Ear::Of([1].into()));
    }

    #[test]
    fn an_entry_of_the_audit_says_what_changed() {}
}
