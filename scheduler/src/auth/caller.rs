//! Who asks the management API.

use crate::domain::TenantId;
use crate::domain::access::{Access, AccessScope, Permission};
use crate::domain::audit::Actor;

/// Somebody who has proved who he is, and what he may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// How, and who: as the audit names him.
    pub actor: Actor,
    /// What he may do with what he has shown.
    pub access: Access,
    /// The account that the caller's belongs to; 0 is the platform's.
    pub home_id: TenantId,
    /// His session, if that is what he has shown.
    pub session: Option<String>,
    /// Must choose another password first.
    pub must_change: bool,
    /// What a request that changes something must carry beside the cookie.
    pub csrf: Option<String>,
}

impl Caller {
    /// Where he holds the permission; nowhere when he does not.
    #[must_use]
    pub fn access_scope(&self, permission: Permission) -> AccessScope {
        self.access.access_scope(permission).unwrap_or(AccessScope::Of(Vec::new()))
    }
}
