//! What `housekeeping/` asks.

use crate::store::error::Result;
use async_trait::async_trait;

/// What a look of retention did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Logs deleted.
    pub deleted: u64,
    /// Whether there may be more to delete, or to look at.
    pub is_more: bool,
}

/// Asked by `housekeeping/`.
#[async_trait]
pub trait HousekeepingStore: Send + Sync {
    /// For how many days tenants keep their logs, each number once: 0 is the node's default, and
    /// always among them.
    async fn retentions(&self) -> Result<Vec<i32>>;
    /// Deletes ended logs, of whatever tenant, older than `before` (ms), at most `limit`, with what stands beside them. When
    /// these are fewer, also stale results, and what stands beside logs that are gone: at most `limit` of each. Shards stay
    /// for as long as their parent is open, and counts them.
    async fn purge(&self, before: i64, limit: u64) -> Result<Purged>;
    /// Looks at the next `limit` logs that are older than `before` (ms), from where the last look
    /// for these `days` ended, and deletes the ended ones of tenants that keep theirs so long, as
    /// [`HousekeepingStore::purge`] does. What has not ended, and shards of what has not, is left to [`HousekeepingStore::purge`].
    async fn purge_of(&self, days: i32, before: i64, limit: u64) -> Result<Purged>;
    /// Deletes executors and nodes gone since before `before` (ms), what routing remembers of addresses unused since then,
    /// backfills that were over by then, and the locks of what was deleted: at most `limit` of each. Answers how many.
    async fn purge_members(&self, before: i64, limit: u64) -> Result<u64>;
    /// Deletes sessions that were over at `before` (ms), and tokens that had ended or were revoked
    /// then, at most `limit` of each; answers how many.
    async fn purge_access(&self, before: i64, limit: u64) -> Result<u64>;
}
