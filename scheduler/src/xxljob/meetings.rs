//! Executors whose library keeps one task object for each handler ([`Library::Go`](crate::domain::xxljob::Library::Go)): all runs of
//! that handler have it in common, and call back with the number of the one that began last. So no two of them are open there at once,
//! of whichever tasks they are.
//!
//! Which of two goes, both say by their rows, which are there before anything is sent: the one that was dispatched first. Each looks
//! only when all that were dispatched before it can be seen, and one whose own row came late gives way to all.

use super::standin::StandIn;
use crate::dispatch::SendError;
use crate::domain::xxljob::said::Said;
use crate::domain::{Executor, LogId};
use crate::store::DispatchedRun;
use carillon_protocol::{BlockStrategy, DispatchItem};
use std::fmt;
use std::time::Duration;

/// A row is there so long after the instant that it names as that of its dispatch, ms; runs are dispatched twice as long before they
/// are due.
const SEEN_MS: i64 = 100;

/// Clocks of nodes do not differ by more, ms.
const MARGIN_MS: i64 = 20;

/// A run that has the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meeting {
    /// Its log.
    log: LogId,
    /// Whether it is of the same task.
    is_same_task: bool,
}

impl Meeting {
    /// What that means for a run with this block strategy.
    pub fn said(self, strategy: BlockStrategy) -> Said {
        if self.is_same_task && strategy == BlockStrategy::DiscardLater { Said::Blocked } else { Said::Busy }
    }
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} has the handler there, and its library keeps no two runs of one handler apart", self.log)
    }
}

/// Whether `other` goes before `mine`. `is_late`: others may have looked before `mine` was there.
fn goes_first(other: &DispatchedRun, mine: &DispatchedRun, is_late: bool) -> bool {
    is_late || (other.dispatched_at, other.run.id) < (mine.dispatched_at, mine.run.id)
}

impl StandIn {
    /// The run that this one must not meet there, if there is one.
    pub(super) async fn meets(&self, to: &Executor, item: &DispatchItem) -> Result<Option<Meeting>, SendError> {
        let log = LogId(item.log);
        let begun_at = self.now_ms();
        let mut open = self.open_runs(to, log).await?;
        let find = |open: &[DispatchedRun]| open.iter().find(|row| row.run.id == log).cloned();
        let gone = || SendError::NotDelivered("it was taken back before it was sent".to_owned());
        let mine = find(&open).ok_or_else(gone)?;
        let wait_ms = mine.dispatched_at + SEEN_MS - begun_at;
        if wait_ms > 0 {
            tokio::time::sleep(Duration::from_millis(wait_ms.min(SEEN_MS).unsigned_abs())).await;
            open = self.open_runs(to, log).await?;
        }
        let is_late = wait_ms < MARGIN_MS;
        open.retain(|row| row.run.id != log && goes_first(row, &mine, is_late));
        if open.is_empty() {
            return Ok(None);
        }
        let runs: Vec<_> = open.iter().map(|row| row.run.clone()).collect();
        let tasks = self.parts.tasks.of(&runs).await.map_err(|error| SendError::NotDelivered(error.to_string()))?;
        let has_it =
            |row: &&DispatchedRun| tasks.get(row.run.task_id).is_some_and(|task| task.handler() == item.handler);
        let meeting =
            |row: &DispatchedRun| Meeting { log: row.run.id, is_same_task: row.run.task_id == mine.run.task_id };
        Ok(open.iter().find(has_it).map(meeting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task_log::test::run_of;
    use crate::domain::{NodeId, Reason};

    #[test]
    fn of_two_exactly_one_goes_first() {
        let row = |id, dispatched_at| DispatchedRun {
            run: run_of(id, 1_000),
            node_id: NodeId(1),
            dispatched_at,
            finished_at: 0,
            stopping: Reason::None,
        };
        for (one, other) in [(row(1, 800), row(2, 800)), (row(2, 800), row(1, 801)), (row(1, 799), row(2, 800))] {
            assert!(goes_first(&one, &other, false) && !goes_first(&other, &one, false));
            assert!(goes_first(&other, &one, true), "nobody knows who has looked");
        }
    }

    #[test]
    fn only_a_run_of_its_own_task_discards_it() {
        let of = |is_same_task, strategy| Meeting { log: LogId(1), is_same_task }.said(strategy);
        assert_eq!(of(true, BlockStrategy::DiscardLater), Said::Blocked);
        assert_eq!(of(false, BlockStrategy::DiscardLater), Said::Busy);
        assert_eq!(of(true, BlockStrategy::Serial), Said::Busy);
    }
}
