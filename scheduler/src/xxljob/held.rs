//! Runs that the node holds, and in which order they leave.

use super::run_door::Hold;
use crate::dispatch::Uncarried;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// An instant by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Cluster time, epoch µs.
    pub cluster_us: i64,
    /// `Clock::local_us`.
    pub local_us: i64,
}

/// A run that waits for its instant, or for a connection after it.
#[derive(Debug)]
pub struct Held {
    /// Cluster time, epoch ms.
    pub due_ms: i64,
    /// It is not sent at this instant or later: cluster time, epoch ms.
    pub accept_until_ms: i64,
    /// The same by `Clock::local_us`, as it was foreseen: where the cluster clock is set back, nobody waits for longer.
    pub give_back_us: i64,
    /// The whole request.
    pub bytes: Bytes,
    /// Whether it was sent.
    pub hold: Hold,
    /// Who waits for it.
    pub answer: oneshot::Sender<Result<Bytes, Uncarried>>,
    /// Its share of what the node holds.
    pub room: OwnedSemaphorePermit,
}

impl Held {
    /// Tells what became of it. Whoever has stopped waiting is told nothing.
    pub fn answer(self, outcome: Result<Bytes, Uncarried>) {
        // First there is room, then the caller goes on.
        drop(self.room);
        let _ = self.answer.send(outcome);
    }

    /// Whether it is too late to send it.
    pub fn is_over(&self, now: Now) -> bool {
        now.cluster_us >= self.accept_until_ms.saturating_mul(1_000) || now.local_us >= self.give_back_us
    }
}

/// What is told of a run that was not sent in time.
pub fn over() -> Uncarried {
    Uncarried::NotDelivered("it was not sent before it expired".to_owned())
}

/// Runs by due time, those of one millisecond in the order in which they came.
#[derive(Debug, Default)]
pub struct RunsByDue {
    by_due: BTreeMap<i64, VecDeque<Held>>,
    count: usize,
}

impl RunsByDue {
    /// Adds one. True if it is the only one of its millisecond.
    pub fn push(&mut self, held: Held) -> bool {
        let runs = self.by_due.entry(held.due_ms).or_default();
        runs.push_back(held);
        self.count += 1;
        runs.len() == 1
    }

    /// Puts back what was just taken.
    pub fn put_back(&mut self, held: Held) {
        self.by_due.entry(held.due_ms).or_default().push_front(held);
        self.count += 1;
    }

    /// The earliest, if it is due at `now_ms`.
    pub fn pop_due(&mut self, now_ms: i64) -> Option<Held> {
        let mut earliest = self.by_due.first_entry().filter(|entry| *entry.key() <= now_ms)?;
        let held = earliest.get_mut().pop_front();
        if earliest.get().is_empty() {
            earliest.remove();
        }
        self.count -= usize::from(held.is_some());
        held
    }

    /// Takes out those that were not sent in time.
    pub fn take_over(&mut self, now: Now) -> Vec<Held> {
        let mut taken = Vec::new();
        self.by_due.retain(|_, runs| {
            if runs.iter().any(|held| held.is_over(now)) {
                let (over, kept) = std::mem::take(runs).into_iter().partition::<Vec<_>, _>(|held| held.is_over(now));
                taken.extend(over);
                *runs = kept.into();
            }
            !runs.is_empty()
        });
        self.count -= taken.len();
        taken
    }

    /// Takes out all.
    pub fn take_all(&mut self) -> impl Iterator<Item = Held> + use<> {
        self.count = 0;
        std::mem::take(&mut self.by_due).into_values().flatten()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    /// A run with nobody's answer.
    pub fn held(due_ms: i64, accept_until_ms: i64, text: &str) -> (Held, oneshot::Receiver<Result<Bytes, Uncarried>>) {
        let (answer, answered) = oneshot::channel();
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (bytes, hold) = (Bytes::copy_from_slice(text.as_bytes()), Hold::default());
        let give_back_us = accept_until_ms * 1_000;
        (Held { due_ms, accept_until_ms, give_back_us, bytes, hold, answer, room }, answered)
    }

    fn texts(runs: impl IntoIterator<Item = Held>) -> Vec<String> {
        runs.into_iter().map(|held| String::from_utf8(held.bytes.to_vec()).unwrap()).collect()
    }

    fn at_ms(ms: i64) -> Now {
        Now { cluster_us: ms * 1_000, local_us: ms * 1_000 }
    }

    #[test]
    fn the_earliest_leave_first_and_none_before_its_time() {
        let mut runs = RunsByDue::default();
        let firsts = [(5, "b"), (3, "a"), (5, "c"), (9, "d")].map(|(due, text)| runs.push(held(due, 20, text).0));
        assert_eq!(firsts, [true, true, false, true]);
        assert!(runs.pop_due(2).is_none());
        let left: Vec<Held> = std::iter::from_fn(|| runs.pop_due(8)).collect();
        assert_eq!((texts(left), runs.len()), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 1));
        runs.put_back(held(5, 20, "c").0);
        assert_eq!(texts(runs.pop_due(9)), ["c"]);
        assert_eq!((texts(runs.take_all()), runs.is_empty()), (vec!["d".to_owned()], true));
    }

    #[test]
    fn what_is_over_is_taken_out_by_either_clock() {
        let mut runs = RunsByDue::default();
        for (due, until, text) in [(5, 10, "a"), (5, 11, "b"), (6, 10, "c"), (7, 12, "d")] {
            runs.push(held(due, until, text).0);
        }
        assert!(runs.take_over(at_ms(9)).is_empty());
        assert_eq!((texts(runs.take_over(at_ms(10))), runs.len()), (vec!["a".to_owned(), "c".to_owned()], 2));
        // The cluster clock was set back.
        let set_back = Now { cluster_us: 0, local_us: 11_000 };
        assert_eq!((texts(runs.take_over(set_back)), runs.len()), (vec!["b".to_owned()], 1));
        assert_eq!(texts(runs.pop_due(7)), ["d"]);
    }
}
