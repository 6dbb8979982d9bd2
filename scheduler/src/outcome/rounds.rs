//! Which of the reaper's questions a round asks. What asks for all rows of a state is asked while there is a reason to:
//! nodes or executors have just come or gone, or the last answer was not the last word. And now and then in any case, of what is
//! due: a node can die with what only it knew. Most rows are of runs that are about to start, and they are well.

use crate::domain::NodeId;
use crate::store::{FROM_THE_FIRST, Place};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// After the last change of nodes or executors, every round asks everything for so long, ms: what was on its way has
/// arrived by then.
pub(super) const WATCH_MS: i64 = 60_000;

/// Without a reason, every so many rounds.
const SELDOM: u64 = 5;

/// What a round looks at besides what should have started of late: what is due before these instants, ms; nothing if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Looks {
    /// At what nodes that are gone have left, and at what is to be repeated for them.
    pub of_nodes: Option<i64>,
    /// At what executors that are gone had.
    pub of_executors: Option<i64>,
}

/// The rounds so far.
#[derive(Debug)]
pub(super) struct Rounds {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Rounds that have come to their end.
    done: u64,
    joined: Vec<(NodeId, i64)>,
    departures: u64,
    /// When nodes, executors changed last, ms; none before the first round.
    nodes_changed_at: Option<i64>,
    executors_changed_at: Option<i64>,
    /// Whether executors that are gone had runs of which nothing could be said yet.
    has_orphans: bool,
    /// Where the look at old runs goes on, due time in ms.
    old_from: i64,
    /// Behind which the look at open parents goes on.
    parents_after: Place,
}

impl Default for Rounds {
    fn default() -> Self {
        let state = State {
            done: 0,
            joined: Vec::new(),
            departures: 0,
            nodes_changed_at: None,
            executors_changed_at: None,
            has_orphans: false,
            old_from: i64::MIN,
            parents_after: FROM_THE_FIRST,
        };
        Self { state: Mutex::new(state) }
    }
}

impl Rounds {
    /// What the round that begins at `now` (ms) looks at, while these nodes live, whose processes joined then, and so many
    /// executors have gone so far.
    pub fn begin(&self, joined: &[(NodeId, i64)], departures: u64, now: i64) -> Looks {
        let mut state = self.lock();
        if state.nodes_changed_at.is_none() || state.joined != joined {
            state.joined = joined.to_vec();
            state.nodes_changed_at = Some(now);
        }
        if state.executors_changed_at.is_none() || state.departures != departures {
            state.departures = departures;
            state.executors_changed_at = Some(now);
        }
        let is_turn = state.done.is_multiple_of(SELDOM);
        let lately = |at: Option<i64>| at.is_some_and(|at| (at..=at + WATCH_MS).contains(&now));
        let look = |has_reason: bool| if has_reason { Some(i64::MAX) } else { Some(now).filter(|_| is_turn) };
        Looks {
            of_nodes: look(lately(state.nodes_changed_at)),
            of_executors: look(lately(state.executors_changed_at) || state.has_orphans),
        }
    }

    /// The round has come to its end; it counts if it could ask everything.
    pub fn end(&self, is_whole: bool) {
        self.lock().done += u64::from(is_whole);
    }

    /// Whether there are runs of executors that are gone of which nothing could be said yet.
    pub fn orphans_left(&self, has_orphans: bool) {
        self.lock().has_orphans = has_orphans;
    }

    /// Where the look at old runs goes on, due time in ms.
    pub fn old_from(&self) -> i64 {
        self.lock().old_from
    }

    /// It goes on there, or from the oldest on.
    pub fn old_done(&self, next: Option<i64>) {
        self.lock().old_from = next.unwrap_or(i64::MIN);
    }

    /// Behind which the look at open parents goes on.
    pub fn parents_after(&self) -> Place {
        self.lock().parents_after
    }

    /// It goes on behind that, or from the first on.
    pub fn parents_done(&self, last: Option<Place>) {
        self.lock().parents_after = last.unwrap_or(FROM_THE_FIRST);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_asked_after_a_change_and_what_is_due_seldom_without_one() {
        const ALL: Option<i64> = Some(i64::MAX);
        let rounds = Rounds::default();
        let round = |live: &[i64], departures, now| {
            let joined: Vec<_> = live.iter().map(|node| (NodeId(*node), 0)).collect();
            let looks = rounds.begin(&joined, departures, now);
            rounds.end(true);
            looks
        };
        let both = |until| Looks { of_nodes: until, of_executors: until };
        let calm = WATCH_MS + 1;
        assert_eq!(round(&[1, 2], 7, 0), both(ALL), "the first");
        assert_eq!(round(&[1, 2], 7, WATCH_MS), both(ALL), "still lately");
        let asked: Vec<_> = (0..10).map(|_| round(&[1, 2], 7, calm)).collect();
        assert_eq!(asked.iter().filter(|looks| **looks == both(Some(calm))).count(), 2);
        assert_eq!(asked.iter().filter(|looks| **looks == both(None)).count(), 8);
        // Of the rounds after a change, each asks; of what did not change, it is asked as seldom as before.
        let five = |live: &[i64], departures, now| {
            let looks: Vec<_> = (0..5).map(|_| round(live, departures, now)).collect();
            let count = |asked: &dyn Fn(&Looks) -> Option<i64>| {
                [ALL, Some(now)].map(|of| looks.iter().filter(|looks| asked(looks) == of).count())
            };
            (count(&|looks| looks.of_nodes), count(&|looks| looks.of_executors))
        };
        assert_eq!(five(&[1], 7, calm), ([5, 0], [0, 1]), "a node has gone");
        assert_eq!(five(&[1], 7, 3 * calm), ([0, 1], [0, 1]));
        assert_eq!(five(&[1], 8, 3 * calm), ([0, 1], [5, 0]), "an executor has gone");
        assert_eq!(five(&[1], 8, 5 * calm), ([0, 1], [0, 1]));
        rounds.orphans_left(true);
        assert_eq!(five(&[1], 8, 5 * calm), ([0, 1], [5, 0]), "nothing could be said of its runs");
    }

    #[test]
    fn a_round_that_failed_is_asked_again() {
        let rounds = Rounds::default();
        for _ in 0..3 {
            let looks = rounds.begin(&[(NodeId(1), 0)], 0, 0);
            assert!(looks.of_nodes.is_some() && looks.of_executors.is_some());
            rounds.end(false);
        }
        assert_eq!(rounds.lock().done, 0);
    }
}
