//! Who may do what, and where: permissions in two dimensions. A grant gives a role's permissions in
//! one tenant, optionally only in some of its apps, or on the whole platform. Everything else is denied.

use super::{AppId, TenantId};
use crate::domain::UserId;

pub mod permission;
pub mod role;

#[cfg(test)]
mod tests;

pub use permission::{PERMISSIONS, Permission, PermissionLevel, PermissionSet};
pub use role::{BUILT_IN, BUILT_IN_MAX, BuiltIn, PLATFORM_ADMIN, built_in};

/// Denotes the whole platform in place of a tenant's id.
pub const PLATFORM: TenantId = TenantId::NONE;

/// The grantor of a grant that comes from a group of single sign-on.
pub const BY_GROUP: UserId = UserId(-1);

/// Longest name to sign in with, characters.
const USER_NAME_CHARS_MAX: usize = 64;

/// Whether this can be a name to sign in with. Databases may consider other names equal that are
/// not (`ann` and `ann ` on MariaDB), so they are never queried for such names.
#[must_use]
pub fn is_user_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    name.len() <= USER_NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain)
}

/// Permissions in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What it allows.
    pub permissions: PermissionSet,
    /// In which tenant; [`PLATFORM`] is all of them, and what belongs to none.
    pub tenant_id: TenantId,
    /// Only in these apps of the tenant; empty is all of them.
    pub apps: Vec<AppId>,
}

/// Everything that a caller may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    grants: Vec<Grant>,
}

/// Where a permission is held: the condition of every statement that reads or writes what belongs
/// to tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessScope {
    /// Everywhere: the engine itself, or a caller who holds the permission on the platform.
    All,
    /// In these tenants, each possibly only in some apps.
    Of(Vec<TenantScope>),
}

/// A tenant, or some of its apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantScope {
    /// Tenant.
    pub tenant_id: TenantId,
    /// Only these apps; empty is all of them.
    pub apps: Vec<AppId>,
}

impl AccessScope {
    /// All of one tenant.
    #[must_use]
    pub fn tenant(tenant_id: TenantId) -> Self {
        Self::Of(vec![TenantScope { tenant_id, apps: Vec::new() }])
    }

    /// Whether objects of this app of this tenant are within. Objects of the tenant itself have the
    /// app 0, and are out of reach of callers who have only some of its apps.
    #[must_use]
    pub fn has(&self, tenant_id: TenantId, app_id: AppId) -> bool {
        match self {
            Self::All => true,
            Self::Of(tenants) => tenants.iter().any(|tenant_scope| {
                tenant_scope.tenant_id == tenant_id
                    && (tenant_scope.apps.is_empty() || tenant_scope.apps.contains(&app_id))
            }),
        }
    }

    /// Which rows are within: those of any of these tenants and apps; `None` is every row. Rows without an app
    /// (`has_app` false) belong to a tenant as a whole, and are out of reach of callers who have only some of its apps.
    #[must_use]
    pub fn alternatives(&self, has_app: bool) -> Option<Vec<&TenantScope>> {
        match self {
            Self::All => None,
            Self::Of(tenants) => Some(tenants.iter().filter(|scope| has_app || scope.apps.is_empty()).collect()),
        }
    }

    /// Whether the tenant, or some of its apps, are within.
    #[must_use]
    pub fn touches(&self, tenant_id: TenantId) -> bool {
        match self {
            Self::All => true,
            Self::Of(tenants) => tenants.iter().any(|tenant_scope| tenant_scope.tenant_id == tenant_id),
        }
    }
}

impl Access {
    /// The access that these grants give. Permissions that apply only to the platform are ignored in
    /// grants for tenants.
    #[must_use]
    pub fn new(grants: Vec<Grant>) -> Self {
        let within = PermissionSet::of_tenants();
        let cut = |grant: Grant| match grant.tenant_id {
            PLATFORM => grant,
            _ => Grant { permissions: grant.permissions.both(within), ..grant },
        };
        Self { grants: grants.into_iter().map(cut).collect() }
    }

    /// Everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::new(vec![Grant { permissions: PermissionSet::all(), tenant_id: PLATFORM, apps: Vec::new() }])
    }

    /// The part of it that a token with these permissions, optionally for one tenant only, has.
    #[must_use]
    pub fn narrowed(&self, permissions: PermissionSet, tenant_id: TenantId) -> Self {
        let within = |grant: &&Grant| tenant_id == PLATFORM || [PLATFORM, tenant_id].contains(&grant.tenant_id);
        let narrow = |grant: &Grant| Grant {
            permissions: grant.permissions.both(permissions),
            tenant_id: if tenant_id == PLATFORM { grant.tenant_id } else { tenant_id },
            apps: grant.apps.clone(),
        };
        Self::new(self.grants.iter().filter(within).map(narrow).collect())
    }

    /// What is granted.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Where the permission is held; empty when it is held nowhere.
    #[must_use]
    pub fn access_scope(&self, permission: Permission) -> Option<AccessScope> {
        let mut tenants: Vec<TenantScope> = Vec::new();
        for grant in self.grants.iter().filter(|grant| grant.permissions.has(permission)) {
            if grant.tenant_id == PLATFORM {
                return Some(AccessScope::All);
            }
            match tenants.iter_mut().find(|tenant_scope| tenant_scope.tenant_id == grant.tenant_id) {
                None => tenants.push(TenantScope { tenant_id: grant.tenant_id, apps: grant.apps.clone() }),
                // One of the two has all apps.
                Some(tenant_scope) if tenant_scope.apps.is_empty() || grant.apps.is_empty() => {
                    tenant_scope.apps.clear();
                }
                Some(tenant_scope) => {
                    tenant_scope.apps.extend(&grant.apps);
                    tenant_scope.apps.sort_unstable();
                    tenant_scope.apps.dedup();
                }
            }
        }
        if tenants.is_empty() { None } else { Some(AccessScope::Of(tenants)) }
    }

    /// Where anything at all is held.
    #[must_use]
    pub fn anywhere(&self) -> AccessScope {
        if self.grants.iter().any(|grant| grant.tenant_id == PLATFORM && !grant.permissions.is_empty()) {
            return AccessScope::All;
        }
        let held = self.grants.iter().filter(|grant| grant.tenant_id != PLATFORM && !grant.permissions.is_empty());
        AccessScope::Of(
            held.map(|grant| TenantScope { tenant_id: grant.tenant_id, apps: grant.apps.clone() }).collect(),
        )
    }

    /// Whether the permission is held for this app of this tenant (0: the tenant itself), or
    /// ([`PLATFORM`]) on the platform.
    #[must_use]
    pub fn holds(&self, permission: Permission, tenant_id: TenantId, app_id: AppId) -> bool {
        self.access_scope(permission).is_some_and(|access_scope| access_scope.has(tenant_id, app_id))
    }

    /// The permissions of `grant` that are not held where it gives them: callers cannot grant what they
    /// do not hold.
    #[must_use]
    pub fn lacks(&self, grant: &Grant) -> PermissionSet {
        let given = Self::new(vec![grant.clone()]);
        let given = given.grants.first().map_or_else(PermissionSet::default, |grant| grant.permissions);
        let held = |permission: Permission| {
            if grant.apps.is_empty() {
                return self.holds(permission, grant.tenant_id, AppId::NONE);
            }
            grant.apps.iter().all(|app| self.holds(permission, grant.tenant_id, *app))
        };
        given.iter().filter(|permission| !held(*permission)).collect()
    }

    /// Whether this access includes everything that `other` may do.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.grants.iter().all(|grant| self.lacks(grant).is_empty())
    }
}
