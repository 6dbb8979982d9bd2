//! Runs that this node has sent to plain executors, or holds for them.

use super::run_door::Hold;
use crate::domain::ExecutorId;
use carillon_protocol::RunKey;
use dashmap::DashMap;
use std::sync::Arc;

/// Runs remembered at most. Of those that another node was told the end of, nothing else takes the note away.
const SENT_MAX: usize = 200_000;

/// A message is repeated for less long than this after it was sent, µs.
const REPEATED_FOR_US: i64 = 60_000_000;

/// What is known of a run that was sent.
#[derive(Debug, Clone)]
pub struct SentRun {
    /// To whom.
    pub executor_id: ExecutorId,
    /// Tells whether it has left, and when; withdraws it.
    pub hold: Hold,
}

/// Runs on their way, and those that have not ended.
#[derive(Debug, Default, Clone)]
pub struct SentRuns(Arc<DashMap<RunKey, SentRun>>);

impl SentRuns {
    /// Notes a run at `now_us` (cluster clock); `false` when it has been sent before, or may have been: a second message would be
    /// a second run.
    pub fn begin(&self, key: RunKey, run: SentRun, now_us: i64) -> bool {
        if self.0.len() >= SENT_MAX {
            let may_come_again = |run: &SentRun| run.hold.sent_us().is_none_or(|at| now_us - at < REPEATED_FOR_US);
            self.0.retain(|_, run| may_come_again(run));
        }
        match self.0.entry(key) {
            dashmap::Entry::Occupied(_) => false,
            dashmap::Entry::Vacant(place) => {
                place.insert(run);
                true
            }
        }
    }

    /// It did not arrive, or has ended.
    pub fn end(&self, key: RunKey) {
        self.0.remove(&key);
    }

    /// What is known of it.
    pub fn find(&self, key: RunKey) -> Option<SentRun> {
        self.0.get(&key).map(|run| run.clone())
    }

    /// When it was sent, cluster ms, if that was from here.
    pub fn sent_at(&self, key: RunKey) -> Option<i64> {
        self.0.get(&key)?.hold.sent_us().map(|us| us.div_euclid(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_room_what_was_sent_long_ago_is_forgotten() {
        let sent = SentRuns::default();
        let begin = |log: i64, sent_us: Option<i64>, now_us| {
            let hold = Hold::default();
            assert!(sent_us.is_none_or(|at| hold.send(at)));
            sent.begin(RunKey(log, 1), SentRun { executor_id: ExecutorId(1), hold }, now_us)
        };
        let now_us = 2 * REPEATED_FOR_US;
        assert!(begin(1, Some(now_us - REPEATED_FOR_US), now_us) && begin(2, Some(now_us - 1_000_000), now_us));
        assert!(begin(3, None, now_us));
        for log in 4..=SENT_MAX as i64 {
            assert!(begin(log, Some(1), now_us));
        }
        assert!(!begin(2, None, now_us), "it may be repeated");
        assert!(!begin(3, None, now_us), "it has not left");
        assert_eq!((sent.sent_at(RunKey(1, 1)), sent.sent_at(RunKey(2, 1))), (None, Some(119_000)));
        assert_eq!(sent.0.len(), 2);
        assert!(begin(1, None, now_us));
    }
}
