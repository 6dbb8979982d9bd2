//! What carillon sends to an executor. [`bytes`](super::bytes) makes bodies of these.

use carillon_protocol::BlockStrategy;
use serde::Serialize;

/// Body of `/beat`. 2.x sends the JSON text `""`, 3.3 and later nothing; no executor reads it.
pub const BEAT_BODY: &[u8] = b"";

/// `POST /run`: start a run. The fields go out in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunBody<'a> {
    /// Number of the task, from 1. Executors queue, discard, cover and kill by it.
    pub job_id: i32,
    /// Handler name; without one for scripts.
    pub executor_handler: &'a str,
    /// Parameters as entered.
    pub executor_params: &'a str,
    /// What to do while an earlier run of the task goes on.
    pub executor_block_strategy: Block,
    /// Time-out, seconds; 0 is none. See [`timeout_s`].
    pub executor_timeout: i32,
    /// The attempt's number, 1..=[`NUMBER_MAX`](crate::domain::xxljob::number::NUMBER_MAX).
    pub log_id: i64,
    /// When the log was made, epoch ms: names the folder of its log file, so it is the same in [`LogBody`].
    pub log_date_time: i64,
    /// `BEAN` for a handler by name; else the kind of the script.
    pub glue_type: &'a str,
    /// The script; else empty.
    pub glue_source: &'a str,
    /// When the script was changed, epoch ms; with another value it is taken for another script.
    pub glue_updatetime: i64,
    /// Shard of this run, from 0.
    pub broadcast_index: i32,
    /// Number of shards, 1 when not sharded.
    pub broadcast_total: i32,
}

/// A block strategy in xxl-job's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Block {
    /// Waits until the earlier run has ended.
    SerialExecution,
    /// Is refused.
    DiscardLater,
    /// Has it stopped.
    CoverEarly,
}

impl Block {
    /// The nearest word for a strategy: there is none for runs beside each other, which these executors cannot have. `None` for
    /// one that this release does not know.
    #[must_use]
    pub fn of(strategy: BlockStrategy) -> Option<Self> {
        match strategy {
            BlockStrategy::Concurrent | BlockStrategy::Serial => Some(Self::SerialExecution),
            BlockStrategy::DiscardLater => Some(Self::DiscardLater),
            BlockStrategy::CoverEarly => Some(Self::CoverEarly),
            BlockStrategy::Other => None,
        }
    }
}

/// A time-out of `timeout_ms` in whole seconds, rounded up; 0, and what is less, is none. At most `i32::MAX`.
#[must_use]
pub fn timeout_s(timeout_ms: i64) -> i32 {
    let seconds = timeout_ms.max(0).unsigned_abs().div_ceil(1_000);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// `POST /kill` and `POST /idleBeat`: about the runs of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobBody {
    /// As [`RunBody::job_id`].
    pub job_id: i32,
}

/// `POST /log`: what a run logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogBody {
    /// As [`RunBody::log_date_time`]; without the last letter on the wire.
    pub log_date_tim: i64,
    /// As [`RunBody::log_id`].
    pub log_id: i64,
    /// First line, from 1.
    pub from_line_num: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_outs_are_rounded_up() {
        for (ms, seconds) in [(0, 0), (-1, 0), (1, 1), (1_000, 1), (1_001, 2), (i64::MIN, 0), (i64::MAX, i32::MAX)] {
            assert_eq!(timeout_s(ms), seconds, "{ms}");
        }
    }

    #[test]
    fn strategies_have_their_words() {
        let word = |strategy| serde_json::to_string(&Block::of(strategy)).unwrap();
        assert_eq!(word(BlockStrategy::Concurrent), r#""SERIAL_EXECUTION""#);
        assert_eq!(word(BlockStrategy::Serial), r#""SERIAL_EXECUTION""#);
        assert_eq!(word(BlockStrategy::DiscardLater), r#""DISCARD_LATER""#);
        assert_eq!(word(BlockStrategy::CoverEarly), r#""COVER_EARLY""#);
        assert_eq!(word(BlockStrategy::Other), "null");
    }
}
