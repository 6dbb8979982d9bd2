//! What a node asks about executors that do not register themselves, and for which it speaks.

use crate::domain::{ExecutorId, Owner};
use crate::store::Result;
use async_trait::async_trait;

/// Who says that an executor is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnouncedBy {
    /// The process itself, again and again.
    Registry,
    /// A person, once.
    Fixed,
    /// Nacos, where it is an instance of a service.
    Nacos,
}

impl AnnouncedBy {
    /// As it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Fixed => "fixed",
            Self::Nacos => "nacos",
        }
    }
}

/// That a plain executor is at an address.
#[derive(Debug, Clone, Copy)]
pub struct Announcement<'a> {
    /// Whose it is.
    pub owner: Owner,
    /// The token that proves it.
    pub key_id: &'a str,
    /// `http://host:port`, perhaps with a path; with the app, what it is known by.
    pub address: &'a str,
    /// What it calls with, for people and for what differs between clients; empty when that is not known. Only what it says itself
    /// replaces what is known.
    pub version: &'a str,
    /// Who says so.
    pub by: AnnouncedBy,
    /// Until when that counts, cluster ms; 0 until it is withdrawn.
    pub until: i64,
    /// What is known of it, as tags; nothing where the announcement does not tell.
    pub tags: Option<&'a [String]>,
}

/// A plain executor that is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Id.
    pub id: ExecutorId,
    /// Owner.
    pub owner: Owner,
    /// Random per announcement that found none there: as [`Executor::instance`](crate::domain::Executor::instance).
    pub instance: String,
    /// Token.
    pub key_id: String,
    /// As [`Announcement::address`].
    pub address: String,
    /// Last time that it answered, cluster ms.
    pub heartbeat_at: i64,
}

/// Asked by `xxljob/`, `discovery/` and `api/` for plain executors.
#[async_trait]
pub trait PlainExecutorStore: Send + Sync {
    /// Notes that an executor is there, and alive by the database's clock, if it says so itself. `now` is cluster time, ms.
    async fn announce(
        &self,
        announcement: &Announcement<'_>,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<ExecutorId>;
    /// It leaves: no run is sent there any more. Answers its id if it was there.
    async fn withdraw(&self, owner: Owner, address: &str, now: i64) -> Result<Option<ExecutorId>>;
    /// Those that are announced, by id from behind `after` on, at most `limit`.
    async fn announced(&self, after: ExecutorId, limit: u64) -> Result<Vec<Announced>>;
    /// Ends announcements whose time is over at `now` (cluster ms); answers how many.
    async fn end_announcements(&self, now: i64) -> Result<u64>;
}
