//! The product's defaults, save three that make a simulation shorter: logs are written one
//! minute ahead, executors stop what they run after 20 s without contact, and there is little to
//! keep in memory.

use carillon::dispatch::DispatchSettings;
use carillon::engine::EngineSettings;
use carillon::housekeeping::{HousekeepingSettings, StatisticsSettings};
use carillon::outcome::ReaperSettings;
use carillon::pregenerate::PregenerateSettings;
use carillon::queue::LoaderSettings;
use carillon_protocol::ExecutorSettings;
use carillon_tests::model::Dice;

/// How long before its due time a run is dispatched, ms: the default, or (every third seed)
/// longer than the offline time-out, as promise 10 wants it.
pub fn lead_ms(dice: &Dice) -> i64 {
    if dice.happens("long lead", 333) { 12_000 } else { 3_000 }
}

/// How far ahead logs are written, ms.
pub const AHEAD_MS: i64 = 60_000;

/// A fire that is later than this and has no log was missed, ms.
pub const MISFIRE_AFTER_MS: i64 = 30_000;

const OFFLINE_AFTER_MS: i64 = 10_000;
const ABANDON_AFTER_MS: i64 = 20_000;
const ACCEPT_WINDOW_MS: i64 = 3_000;

/// Messages that the holders of a key may send, of each class.
pub const REQUESTS_PER_SECOND: u32 = 2_000;

/// Of the nodes.
pub fn engine(lead_ms: i64) -> EngineSettings {
    EngineSettings {
        offline_after_ms: OFFLINE_AFTER_MS,
        queue_capacity: 1_000,
        pregenerate: PregenerateSettings {
            ahead_ms: AHEAD_MS,
            misfire_after_ms: MISFIRE_AFTER_MS,
            lease_ttl_ms: OFFLINE_AFTER_MS,
        },
        loader: LoaderSettings { lead_ms, interval_ms: 5_000 },
        dispatch: DispatchSettings { lead_ms, accept_window_ms: ACCEPT_WINDOW_MS, misfire_after_ms: MISFIRE_AFTER_MS },
        reaper: ReaperSettings {
            accept_window_ms: ACCEPT_WINDOW_MS,
            offline_after_ms: OFFLINE_AFTER_MS,
            abandon_after_ms: ABANDON_AFTER_MS,
        },
        housekeeping: HousekeepingSettings { retain_ms: 86_400_000, lease_ttl_ms: 70_000 },
        statistics: StatisticsSettings { logs_ms: 86_400_000, task_minutes_ms: 86_400_000, figures_ms: 86_400_000 },
    }
}

/// Of the executors.
pub fn executors() -> ExecutorSettings {
    ExecutorSettings {
        heartbeat_interval_ms: 3_000,
        metadata_interval_ms: 30_000,
        offline_after_ms: OFFLINE_AFTER_MS as u64,
        abandon_after_ms: ABANDON_AFTER_MS as u64,
    }
}
