//! Whether more is due than this node and its database carry.
//!
//! Three facts tell it, whatever the cause: how late the node claims, how late it dispatches, and how far ahead the lease
//! holder has written what it is most behind with. Pre-generation makes way when the first two are bad: what is not written
//! costs nothing, and what was missed is written as such in a cheaper way.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A run that waits longer than this for a node is late, ms …
const LATE_MS: i64 = 5_000;
/// … and not any more below this.
const PROMPT_MS: i64 = 1_000;

/// It must be so for this long before it is called overload, ms …
const BEGINS_AFTER_MS: i64 = 5_000;
/// … and be over for this long before it is called that.
const ENDS_AFTER_MS: i64 = 30_000;

/// Logs should never be written less far ahead than this, ms.
const AHEAD_MIN_MS: i64 = 10_000;

/// Pre-generation makes way when a run is dispatched later than it should be by this, ms: half of the default lead.
const MAKE_WAY_MS: i64 = 1_500;

/// How far behind a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behind {
    /// How long the longest waiting run has been due without a node claiming it, ms.
    pub claiming_ms: i64,
    /// How long the longest waiting run in memory has been ready for its dispatch, ms; what waits for others, or for its
    /// tenant's share, does not count.
    pub dispatching_ms: i64,
    /// How far ahead the task that is most behind has been written, ms; negative when fires have passed. `None` without
    /// the lease.
    pub written_ahead_ms: Option<i64>,
}

/// A time in which more was due than was carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overload {
    /// Since when, epoch ms.
    pub since: i64,
    /// The worst of it.
    pub worst: Behind,
}

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadChange {
    /// Overload begins.
    Begins(Overload),
    /// It is over.
    Ends(Overload),
}

/// Watches one node.
#[derive(Debug)]
pub struct LoadWatch {
    ahead_min_ms: i64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    behind: Behind,
    overload: Option<Overload>,
    /// Since when it has been otherwise than `overload` says, epoch ms.
    otherwise_since: Option<i64>,
}

impl LoadWatch {
    /// Of a node that should write logs `ahead_ms` ahead.
    #[must_use]
    pub fn new(ahead_ms: i64) -> Self {
        Self { ahead_min_ms: AHEAD_MIN_MS.min(ahead_ms / 2), state: Mutex::default() }
    }

    /// How long the longest waiting run that the node could claim has been due, ms; 0 if there was none.
    pub fn claiming(&self, late_ms: i64) {
        self.lock().behind.claiming_ms = late_ms.max(0);
    }

    /// How long the longest waiting run in memory has been ready, ms.
    pub fn dispatching(&self, late_ms: i64) {
        self.lock().behind.dispatching_ms = late_ms.max(0);
    }

    /// How far ahead the task that is most behind has been written, ms; `None` when another node sees to it.
    pub fn written_ahead(&self, ahead_ms: Option<i64>) {
        self.lock().behind.written_ahead_ms = ahead_ms;
    }

    /// The facts as they were last told.
    pub fn behind(&self) -> Behind {
        self.lock().behind
    }

    /// The overload that lasts.
    pub fn overload(&self) -> Option<Overload> {
        self.lock().overload
    }

    /// Whether runs are dispatched so late that pre-generation should make way.
    pub fn should_make_way(&self) -> bool {
        let behind = self.behind();
        behind.dispatching_ms > MAKE_WAY_MS || behind.claiming_ms > MAKE_WAY_MS
    }

    /// Decides, at `now` (epoch ms): to be called every second or so.
    pub fn look(&self, now: i64) -> Option<LoadChange> {
        let mut state = self.lock();
        let behind = state.behind;
        if let Some(overload) = &mut state.overload {
            overload.worst = worse(overload.worst, behind);
        }
        let is_otherwise = match state.overload {
            None => self.is_overload(behind),
            Some(_) => self.is_calm(behind),
        };
        if !is_otherwise {
            state.otherwise_since = None;
            return None;
        }
        let since = *state.otherwise_since.get_or_insert(now);
        let after = if state.overload.is_some() { ENDS_AFTER_MS } else { BEGINS_AFTER_MS };
        if now - since < after {
            return None;
        }
        state.otherwise_since = None;
        if let Some(overload) = state.overload.take() {
            return Some(LoadChange::Ends(overload));
        }
        let overload = Overload { since, worst: behind };
        state.overload = Some(overload);
        Some(LoadChange::Begins(overload))
    }

    fn is_overload(&self, behind: Behind) -> bool {
        behind.claiming_ms > LATE_MS
            || behind.dispatching_ms > LATE_MS
            || behind.written_ahead_ms.is_some_and(|ahead| ahead < self.ahead_min_ms)
    }

    fn is_calm(&self, behind: Behind) -> bool {
        behind.claiming_ms < PROMPT_MS
            && behind.dispatching_ms < PROMPT_MS
            && behind.written_ahead_ms.is_none_or(|ahead| ahead > self.ahead_min_ms * 3 / 2)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn worse(one: Behind, other: Behind) -> Behind {
    Behind {
        claiming_ms: one.claiming_ms.max(other.claiming_ms),
        dispatching_ms: one.dispatching_ms.max(other.dispatching_ms),
        written_ahead_ms: match (one.written_ahead_ms, other.written_ahead_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks each second from `from` on, for `seconds`; the changes, each with its second.
    fn looks(watch: &LoadWatch, from: i64, seconds: i64) -> Vec<(i64, LoadChange)> {
        (from..from + seconds).filter_map(|second| Some((second, watch.look(second * 1_000)?))).collect()
    }

    #[test]
    fn what_lasts_is_overload_and_what_passes_is_not() {
        let watch = LoadWatch::new(180_000);
        watch.claiming(LATE_MS + 1);
        assert_eq!(looks(&watch, 0, 4), []);
        watch.claiming(0);
        assert_eq!(looks(&watch, 4, 1), []);
        watch.claiming(LATE_MS + 1);
        let changes = looks(&watch, 5, 100);
        assert!(matches!(changes[..], [(10, LoadChange::Begins(Overload { since: 5_000, .. }))]), "{changes:?}");
        assert!(watch.overload().is_some() && watch.should_make_way());
    }

    #[test]
    fn it_is_over_when_all_has_been_well_for_a_while() {
        let watch = LoadWatch::new(180_000);
        watch.written_ahead(Some(-40_000));
        assert_eq!(looks(&watch, 0, 6).len(), 1);
        watch.written_ahead(Some(12_000));
        assert_eq!(looks(&watch, 6, 100), [], "it is in between");
        watch.written_ahead(Some(170_000));
        assert_eq!(looks(&watch, 106, 29), []);
        watch.dispatching(PROMPT_MS);
        assert_eq!(looks(&watch, 135, 1), [], "once more");
        watch.dispatching(0);
        let changes = looks(&watch, 136, 100);
        let [(166, LoadChange::Ends(Overload { since: 0, worst }))] = changes[..] else { panic!("{changes:?}") };
        assert_eq!(worst, Behind { claiming_ms: 0, dispatching_ms: PROMPT_MS, written_ahead_ms: Some(-40_000) });
        assert_eq!(watch.overload(), None);
    }

    #[test]
    fn a_node_that_writes_little_ahead_is_not_overloaded_for_that() {
        let watch = LoadWatch::new(7_000);
        watch.written_ahead(Some(4_000));
        assert_eq!(looks(&watch, 0, 60), []);
    }
}
