//! What `xxljob/` asks: the scripts that it sends.

use crate::domain::xxljob::Script;
use crate::domain::{TaskId, TenantId};
use crate::store::Result;
use async_trait::async_trait;
use std::collections::HashMap;

/// Scripts that are read at once at most: with 60,000 bytes each, 6 MB.
pub const SCRIPTS_AT_ONCE: usize = 100;

/// Asked by `xxljob/` for scripts.
#[async_trait]
pub trait ScriptStore: Send + Sync {
    /// These versions of the scripts of tasks, of the tenant named beside each, at most [`SCRIPTS_AT_ONCE`].
    async fn scripts(&self, wanted: &[(TaskId, i64, TenantId)]) -> Result<HashMap<(TaskId, i64), Script>>;
}
