//! What `housekeeping/` asks for statistics.

use super::cluster::Fence;
use crate::domain::TaskId;
use crate::domain::statistics::Grain;
use crate::store::error::Result;
use async_trait::async_trait;

/// How long the lease of statistics lives without renewal, ms.
pub const STATISTICS_LEASE_MS: i64 = 30_000;

/// A minute to count, or an hour to add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    /// [`Grain::TaskMinute`] or [`Grain::TaskHour`].
    pub grain: Grain,
    /// When it starts, ms.
    pub start: i64,
    /// Grows with every reason to count it; who counted by an older number is not done.
    pub marks: i64,
    /// All tasks, or only those with runs that had not ended.
    pub is_full: bool,
    /// Counts so far that found runs that had not ended.
    pub tries: i32,
}

/// What a count has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// When to count again what had not ended, ms; nothing when all had.
    pub again_at: Option<i64>,
    /// Whether there is anything new to add up.
    pub is_change: bool,
}

/// A part of the tasks of an hour: those whose id modulo `of` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub index: i64,
    /// Number of parts.
    pub of: i64,
}

/// Asked by `housekeeping/` for statistics. What writes checks the fence and answers `false`, and
/// nothing is written, when another node holds the lease. Everything can be repeated.
#[async_trait]
pub trait StatisticsStore: Send + Sync {
    /// Puts the minutes that ended by `until` (ms) and were never on the list onto it, those
    /// before `since` left out.
    async fn list_minutes(&self, fence: Fence, since: i64, until: i64) -> Result<bool>;
    /// What is to be counted by `now` (ms): minutes, then hours, oldest first.
    async fn to_count(&self, now: i64, limit: u64) -> Result<Vec<Counting>>;
    /// Tasks with fires in the minute that starts then (ms), by id, and how many logs each has there.
    async fn tasks_fired(&self, minute: i64) -> Result<Vec<(TaskId, u64)>>;
    /// Tasks of whose fires in a counted minute some had not ended, by id, and how many fires each had.
    async fn tasks_open(&self, minute: i64) -> Result<Vec<(TaskId, u64)>>;
    /// Fires of a counted minute that had not ended.
    async fn open_runs(&self, minute: i64) -> Result<u64>;
    /// Counts the logs of these tasks that fired in the minute.
    async fn count_tasks(&self, fence: Fence, minute: i64, tasks: &[TaskId]) -> Result<bool>;
    /// Adds a minute's tasks up for each tenant, and for all.
    async fn sum_minute(&self, fence: Fence, minute: i64) -> Result<bool>;
    /// Rows of tasks' minutes in an hour.
    async fn rows_of_hour(&self, hour: i64) -> Result<u64>;
    /// Adds the minutes of a part of the tasks up to the hour.
    async fn sum_task_hours(&self, fence: Fence, hour: i64, part: Part) -> Result<bool>;
    /// Adds the minutes of the tenants up to the hour.
    async fn sum_tenant_hours(&self, fence: Fence, hour: i64) -> Result<bool>;
    /// Takes it off the list, or puts it off; has the hour of a minute with news added up. One
    /// that was marked since it was read stays.
    async fn counted(&self, fence: Fence, of: &Counting, found: Counted, now: i64) -> Result<bool>;
    /// Deletes figures of periods that started before `before` (ms), at most `limit` rows; answers
    /// whether there may be more.
    async fn purge_figures(&self, grain: Grain, before: i64, limit: u64) -> Result<bool>;
}
