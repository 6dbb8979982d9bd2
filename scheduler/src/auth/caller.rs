//! Callers of the management API.

use crate::domain::TenantId;
use crate::domain::access::{Access, AccessScope, Permission};
use crate::domain::audit::Actor;
use futures_util::future::BoxFuture;

/// An authenticated caller, and what they may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// How the caller authenticated, and who they are: as the audit names them.
    pub actor: Actor,
    /// What the caller may do with these credentials.
    pub access: Access,
    /// The account that the caller's belongs to; 0 is the platform's.
    pub home_id: TenantId,
    /// The session, if the caller authenticated with one.
    pub session: Option<String>,
    /// Must choose another password first.
    pub must_change: bool,
    /// What a request that changes something must carry beside the cookie.
    pub csrf: Option<String>,
}

/// Asks whether a caller's credentials still grant what they did when a stream began.
pub type Recheck = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

impl Caller {
    /// Where the caller holds the permission; nowhere when they do not.
    #[must_use]
    pub fn access_scope(&self, permission: Permission) -> AccessScope {
        self.access.access_scope(permission).unwrap_or(AccessScope::Of(Vec::new()))
    }
}
