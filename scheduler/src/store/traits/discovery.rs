//! What `discovery/` asks: where apps' executors are found that do not register themselves.

use super::plain_executors::AnnouncedBy;
use crate::domain::discovery::DiscoverySpec;
use crate::domain::{AppId, ExecutorId, Owner};
use crate::store::Result;
use async_trait::async_trait;

/// Where an app's executors are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorSource {
    /// Whose they are.
    pub owner: Owner,
    /// Where.
    pub spec: DiscoverySpec,
    /// Why Nacos was not read the last time; empty if it was.
    pub problem: String,
    /// Since when that is so, cluster ms; 0 before it was asked.
    pub since: i64,
    /// Grows with every change of `spec`.
    pub revision: i64,
    /// When that was changed, ms.
    pub updated_at: i64,
}

/// A plain executor as its announcements have left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedAt {
    /// Id.
    pub id: ExecutorId,
    /// `http://host:port`.
    pub address: String,
    /// Token.
    pub key_id: String,
    /// Tags.
    pub tags: Vec<String>,
    /// The word of who said so last, [`AnnouncedBy::as_str`].
    pub by: String,
}

/// Asked by `discovery/` for sources of executors, and for those that are announced of them.
#[async_trait]
pub trait DiscoveryStore: Send + Sync {
    /// Sources of apps from behind `after` on, by the app's id, at most `limit`.
    async fn sources(&self, after: AppId, limit: u64) -> Result<Vec<ExecutorSource>>;
    /// Notes of a source, if it is still of that revision, why Nacos was not read (empty: it was), and since when, ms; where that was
    /// noted before, it stays since then.
    async fn note_source(&self, owner: Owner, revision: i64, problem: &str, since: i64) -> Result<()>;
    /// The app's that are announced, at most `limit`.
    async fn announced_of(&self, owner: Owner, limit: u64) -> Result<Vec<AnnouncedAt>>;
    /// Sets the tags of one that is announced. `now` is cluster time, ms.
    async fn tag(&self, owner: Owner, id: ExecutorId, tags: &[String], now: i64) -> Result<()>;
    /// One that was announced by `by`, and by nobody else since, leaves; answers whether it was there.
    async fn withdraw_of(&self, owner: Owner, id: ExecutorId, by: AnnouncedBy, now: i64) -> Result<bool>;
}
