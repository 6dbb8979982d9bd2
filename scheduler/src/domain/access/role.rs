//! Roles: named sets of permissions. The built-in ones are part of the program, so that an upgrade
//! gives them the permissions of new operations; their ids never change.

use super::permission::{Permission, PermissionSet};
use crate::domain::RoleId;

/// Id of the role that holds everything.
pub const PLATFORM_ADMIN: RoleId = RoleId(1);

/// Ids below this belong to built-in roles; nodes make larger ones.
pub const BUILT_IN_MAX: RoleId = RoleId(100);

/// A role of the program.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    /// Fixed.
    pub id: RoleId,
    /// Its name.
    pub name: &'static str,
    /// For people.
    pub description: &'static str,
    permissions: fn() -> PermissionSet,
}

impl BuiltIn {
    /// What it allows.
    #[must_use]
    pub fn permissions(&self) -> PermissionSet {
        (self.permissions)()
    }
}

/// Every built-in role.
pub const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn {
        id: PLATFORM_ADMIN,
        name: "platform admin",
        description: "Everything, in every tenant",
        permissions: PermissionSet::all,
    },
    BuiltIn {
        id: RoleId(2),
        name: "tenant admin",
        description: "Everything within a tenant, including its users",
        permissions: PermissionSet::of_tenants,
    },
    BuiltIn {
        id: RoleId(3),
        name: "operator",
        description: "Starts, stops and pauses tasks, runs and kills runs, and reads; changes no definitions",
        permissions: operator,
    },
    BuiltIn { id: RoleId(4), name: "viewer", description: "Reads tasks, runs and their output", permissions: viewer },
];

/// The built-in role of that id.
#[must_use]
pub fn built_in(id: RoleId) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|role| role.id == id)
}

fn viewer() -> PermissionSet {
    use Permission as P;
    [
        P::TenantsRead,
        P::QuotasRead,
        P::MaintenanceRead,
        P::AppsRead,
        P::ExecutorsRead,
        P::TasksRead,
        P::BackfillsRead,
        P::TaskLogsRead,
        P::TaskLogsOutput,
        P::CalendarsRead,
        P::StatisticsRead,
    ]
    .into_iter()
    .collect()
}

fn operator() -> PermissionSet {
    use Permission as P;
    let more: PermissionSet = [
        P::MaintenanceCreate,
        P::MaintenanceDelete,
        P::KeysRead,
        P::ExecutorsEdit,
        P::TasksStart,
        P::TasksStop,
        P::TasksPause,
        P::TasksRun,
        P::BackfillsCreate,
        P::BackfillsCancel,
        P::TaskLogsCancel,
    ]
    .into_iter()
    .collect();
    viewer().either(more)
}
