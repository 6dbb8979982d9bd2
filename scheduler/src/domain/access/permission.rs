//! Permissions: one for each operation of the management API. Operations that only read one kind of
//! object share one.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The scope in which a permission can be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionLevel {
    /// In a tenant.
    Tenant,
    /// Only when it is granted for the whole platform.
    Platform,
}

macro_rules! permissions {
    ($($name:ident, $word:literal, $level:ident, $says:literal;)*) => {
        /// Permission to use operations of the management API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Permission {
            $(#[doc = $says] $name,)*
        }

        /// Every permission: its word, where it has a meaning, what it allows.
        pub const PERMISSIONS: &[(Permission, &str, PermissionLevel, &str)] =
            &[$((Permission::$name, $word, PermissionLevel::$level, $says),)*];
    };
}

permissions! {
    TenantsRead, "tenants.read", Tenant, "See tenants";
    TenantsCreate, "tenants.create", Platform, "Create tenants";
    TenantsEdit, "tenants.edit", Platform, "Edit descriptions of tenants";
    TenantsDelete, "tenants.delete", Platform, "Delete empty tenants";
    QuotasRead, "quotas.read", Tenant, "See a tenant's quotas and their use";
    QuotasEdit, "quotas.edit", Platform, "Set a tenant's quotas";
    MaintenanceRead, "maintenance.read", Tenant, "See maintenance windows";
    MaintenanceCreate, "maintenance.create", Tenant, "Create maintenance windows";
    MaintenanceDelete, "maintenance.delete", Tenant, "End maintenance windows";
    AppsRead, "apps.read", Tenant, "See apps";
    AppsCreate, "apps.create", Tenant, "Create apps, each with its first key";
    AppsEdit, "apps.edit", Tenant, "Edit apps: description, concurrency limit, signature method";
    AppsDelete, "apps.delete", Tenant, "Delete apps that have no task";
    DiscoveryEdit, "discovery.edit", Tenant, "Say where executors of apps are found: fixed addresses, a service in Nacos";
    KeysRead, "keys.read", Tenant, "See executors' keys, without their secrets";
    KeysCreate, "keys.create", Tenant, "Create executors' keys";
    KeysRotate, "keys.rotate", Tenant, "Replace executors' keys";
    KeysRevoke, "keys.revoke", Tenant, "Revoke executors' keys";
    ExecutorsRead, "executors.read", Tenant, "See executors";
    ExecutorsEdit, "executors.edit", Tenant, "Disable executors and set their weights";
    TasksRead, "tasks.read", Tenant, "See tasks, export them, preview their fires";
    TasksCreate, "tasks.create", Tenant, "Create tasks";
    TasksEdit, "tasks.edit", Tenant, "Edit tasks";
    TasksDelete, "tasks.delete", Tenant, "Delete tasks";
    TasksStart, "tasks.start", Tenant, "Start tasks";
    TasksStop, "tasks.stop", Tenant, "Stop tasks";
    TasksPause, "tasks.pause", Tenant, "Pause tasks";
    TasksRun, "tasks.run", Tenant, "Run tasks manually";
    TasksApply, "tasks.apply", Tenant, "Apply task files: create, edit, start, stop and pause tasks at once";
    ScriptsRead, "scripts.read", Tenant, "Read scripts of tasks, and their earlier versions";
    ScriptsEdit, "scripts.edit", Tenant, "Write scripts, and make tasks of scripts calls of a handler again";
    ScriptsAllow, "scripts.allow", Tenant, "Allow an app's tasks to be scripts, or forbid it";
    BackfillsRead, "backfills.read", Tenant, "See backfills";
    BackfillsCreate, "backfills.create", Tenant, "Run past fires";
    BackfillsCancel, "backfills.cancel", Tenant, "Cancel backfills";
    TaskLogsRead, "task_logs.read", Tenant, "See task logs";
    TaskLogsCancel, "task_logs.cancel", Tenant, "Cancel and kill runs";
    TaskLogsOutput, "task_logs.output", Tenant, "Read log output of runs";
    CalendarsRead, "calendars.read", Tenant, "See calendars";
    CalendarsEdit, "calendars.edit", Tenant, "Write calendars";
    CalendarsDelete, "calendars.delete", Tenant, "Delete calendars";
    StatisticsRead, "statistics.read", Tenant, "See statistics";
    UsersRead, "users.read", Tenant, "See users and their grants";
    UsersCreate, "users.create", Tenant, "Create users";
    UsersEdit, "users.edit", Tenant, "Edit and disable users, reset passwords, end sessions";
    UsersDelete, "users.delete", Tenant, "Delete users";
    RolesRead, "roles.read", Tenant, "See roles";
    RolesCreate, "roles.create", Tenant, "Create roles";
    RolesEdit, "roles.edit", Tenant, "Edit roles";
    RolesDelete, "roles.delete", Tenant, "Delete roles";
    GrantsCreate, "grants.create", Tenant, "Grant roles to users";
    GrantsDelete, "grants.delete", Tenant, "Revoke roles from users";
    TokensRead, "tokens.read", Tenant, "See API tokens of others";
    TokensRevoke, "tokens.revoke", Tenant, "Revoke API tokens of others";
    AuditRead, "audit.read", Tenant, "Search the audit";
    NodesRead, "nodes.read", Platform, "See nodes";
    ClustersRead, "clusters.read", Platform, "See other clusters";
    ClusterResume, "cluster.resume", Platform, "Decide about the past after the database was restored";
    SettingsRead, "settings.read", Platform, "See the settings of nodes, without secrets";
    MetricsRead, "metrics.read", Platform, "Read the node's metrics";
}

impl Permission {
    /// Its word, as the API and the documents write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        PERMISSIONS[self as usize].1
    }

    /// Where it has a meaning.
    #[must_use]
    pub fn level(self) -> PermissionLevel {
        PERMISSIONS[self as usize].2
    }

    /// The permission of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        PERMISSIONS.iter().find(|(_, known, ..)| *known == word).map(|(permission, ..)| *permission)
    }
}

/// A set of permissions; as JSON a list of their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionSet(u128);

const _: () = assert!(PERMISSIONS.len() <= 128);

impl PermissionSet {
    /// Every permission.
    #[must_use]
    pub fn all() -> Self {
        PERMISSIONS.iter().map(|(permission, ..)| *permission).collect()
    }

    /// Every permission that has a meaning within a tenant.
    #[must_use]
    pub fn of_tenants() -> Self {
        let within = PERMISSIONS.iter().filter(|(_, _, level, _)| *level == PermissionLevel::Tenant);
        within.map(|(permission, ..)| *permission).collect()
    }

    /// Whether it has this one.
    #[must_use]
    pub fn has(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u8) != 0
    }

    /// Those that both have.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those of both.
    #[must_use]
    pub fn either(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that `other` does not have.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its permissions in their order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        PERMISSIONS.iter().map(|(permission, ..)| *permission).filter(move |permission| self.has(*permission))
    }

    /// Its words.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        self.iter().map(Permission::as_str).collect()
    }

    /// The set of these words.
    ///
    /// # Errors
    /// The first word that is not a permission.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        words.into_iter().map(|word| Permission::parse(word).ok_or_else(|| word.to_owned())).collect()
    }

    /// The set of those words that are permissions: a newer version may have written others.
    #[must_use]
    pub fn known<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().filter_map(Permission::parse).collect()
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<T: IntoIterator<Item = Permission>>(permissions: T) -> Self {
        Self(permissions.into_iter().fold(0, |set, permission| set | 1 << permission as u8))
    }
}

impl Serialize for PermissionSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.words().serialize(to)
    }
}

impl<'de> Deserialize<'de> for PermissionSet {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(from)?;
        Self::parse(words.iter().map(String::as_str))
            .map_err(|word| D::Error::custom(format!("`{word}` is not a permission; docs/permissions.md lists them")))
    }
}
