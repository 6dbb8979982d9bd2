//! A task: what an admin defines. Pure values; the words are those of API and console.

use super::cron::{CronSchedule, DstPolicy};
use super::reason::Reason;
use super::task_log::Run;
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

pub use super::routing::Routing;

/// `next_fire_at` of a task that will not fire by itself.
pub const NEVER: i64 = i64::MAX;

/// Most retries that a task may ask for.
pub const RETRIES_MAX: i32 = 1_000;

/// When a task fires by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Only by hand.
    None,
    /// Quartz cron in a zone.
    Cron(Box<CronSchedule>, Tz),
}

impl Schedule {
    /// The first fire strictly after `after` (epoch ms), or [`NEVER`].
    #[must_use]
    pub fn next_after(&self, after: i64) -> i64 {
        match self {
            Self::None => NEVER,
            Self::Cron(cron, zone) => cron.next_after(after, *zone, DstPolicy::default()).unwrap_or(NEVER),
        }
    }
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureStrategy {
    /// Nothing.
    Discard,
    /// Another attempt, up to `max_retries`.
    #[default]
    Retry,
}

/// What happens to a run that is later than the task's expiry time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiredStrategy {
    /// It ends as expired.
    Discard,
    /// It runs all the same. The default: a late payroll is better than none.
    #[default]
    Execute,
}

/// What happens to fires for which no log was written while no node was generating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisfireStrategy {
    /// They are left out; one expired row says so.
    Skip,
    /// One run stands for all of them.
    #[default]
    FireOnce,
}

/// What an unknown outcome means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Another attempt, once the old one is known to be dead.
    #[default]
    AtLeastOnce,
    /// A failure, never a second run.
    AtMostOnce,
}

/// What the engine needs of a task to plan, route and judge its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Id.
    pub id: i64,
    /// Tenant id.
    pub tenant_id: i64,
    /// App id.
    pub app_id: i64,
    /// Grows with every edit, start and stop.
    pub revision: i64,
    /// Name, unique within (tenant, app).
    pub name: String,
    /// Handler name.
    pub handler: String,
    /// Parameters of every run.
    pub params: String,
    /// When it fires.
    pub schedule: Schedule,
    /// Watermark: no log is written yet for this instant and later, epoch ms; [`NEVER`] when
    /// stopped or exhausted.
    pub next_fire_at: i64,
    /// Logs of earlier revisions may exist up to this instant, epoch ms.
    pub written_until: i64,
    /// How executors are chosen.
    pub routing: Routing,
    /// Tags that an executor must all have, compared exactly.
    pub tags: Vec<String>,
    /// What follows a failure.
    pub failure_strategy: FailureStrategy,
    /// Retries at most (first attempt not counted), 0..=[`RETRIES_MAX`].
    pub max_retries: i32,
    /// Between a failure and the next attempt, ms.
    pub retry_interval_ms: i64,
    /// What happens to a run that is too late.
    pub expired_strategy: ExpiredStrategy,
    /// Later than this after its fire time a run counts as expired, ms; 0 is never.
    pub expire_after_ms: i64,
    /// What happens to missed fires.
    pub misfire_strategy: MisfireStrategy,
    /// Time-out of a run, ms; 0 is none.
    pub timeout_ms: i64,
    /// What an unknown outcome means.
    pub delivery: Delivery,
}

impl Task {
    /// Whether `run` is too late at `now` (epoch ms) and must end as expired. Only an ordinary
    /// fire that was never handed over expires: a misfire that the policy fires once, a run
    /// started by hand and a retry are late on purpose.
    #[must_use]
    pub fn is_expired(&self, run: &Run, now: i64) -> bool {
        self.expired_strategy == ExpiredStrategy::Discard
            && self.expire_after_ms > 0
            && run.attempt == 0
            && !matches!(run.reason, Reason::MisfireFiredOnce | Reason::ByHand)
            && now > run.fire_time + self.expire_after_ms
    }
}
