//! What the rooms ask of a store, in the words of the domain; one file for each room.

use crate::domain::{AppId, TenantId};

mod cluster;
mod dispatch;
mod executors;
mod housekeeping;
mod outcome;
mod pregenerate;
mod queue;

pub use cluster::*;
pub use dispatch::*;
pub use executors::*;
pub use housekeeping::*;
pub use outcome::*;
pub use pregenerate::*;
pub use queue::*;

/// Whose rows a caller may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Tenant id.
    pub tenant_id: TenantId,
    /// App id.
    pub app_id: AppId,
}
