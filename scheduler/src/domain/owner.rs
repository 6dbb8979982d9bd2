//! The app, and with it the tenant, that something belongs to.

use super::{AppId, TenantId};

/// Whose rows a caller may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Tenant id.
    pub tenant_id: TenantId,
    /// App id.
    pub app_id: AppId,
}
