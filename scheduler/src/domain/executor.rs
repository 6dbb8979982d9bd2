//! A running process that takes runs, as routing sees it.

use std::collections::HashSet;

/// One executor process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    /// Id, one per process start.
    pub id: i64,
    /// Tenant id.
    pub tenant_id: i64,
    /// App id.
    pub app_id: i64,
    /// Random per process start.
    pub instance: String,
    /// Key that it registered with, and that messages to it are signed with.
    pub key_id: String,
    /// `http://host:port`.
    pub address: String,
    /// Tags, compared exactly.
    pub tags: HashSet<String>,
    /// Handler names.
    pub handlers: HashSet<String>,
    /// Last committed heartbeat, cluster ms.
    pub heartbeat_at: i64,
    /// Takes no new runs.
    pub draining: bool,
    /// Grows when the description changes.
    pub described_at: i64,
}

impl Executor {
    /// Whether it can run `handler` and has every tag of `tags`.
    #[must_use]
    pub fn fits(&self, handler: &str, tags: &[String]) -> bool {
        !self.draining && self.handlers.contains(handler) && tags.iter().all(|tag| self.tags.contains(tag))
    }
}
