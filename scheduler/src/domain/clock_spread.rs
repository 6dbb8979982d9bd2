//! Whether several database servers answer whose clocks differ, as what they wrote and read shows it.
//!
//! A heartbeat carries the clock of the server that wrote it. Whoever reads it reads it later; if the clock of the server
//! that answers is earlier all the same, it is behind the writer's by at least the difference. So this never finds what is not
//! there, and it finds a difference as soon as a heartbeat is read within that time. The server that is ahead sees nothing:
//! the nodes that use the other one do.

use super::NodeId;
use std::collections::BTreeMap;

/// From here on it is worth telling, ms.
pub const CLOCK_SPREAD_MAX_MS: i64 = 100;

/// Heartbeats of one node that are judged together. How soon one is read differs from one to the next: small differences
/// show in few of them.
const BEATS: u32 = 100;

/// What one node has seen so far.
#[derive(Debug, Default)]
pub struct ClockSpread(BTreeMap<NodeId, Seen>);

#[derive(Debug, Default)]
struct Seen {
    last_beat: i64,
    beats: u32,
    now: Ahead,
    before: Ahead,
}

/// How far heartbeats were ahead of the clock that they were read by, ms: the farthest two. One alone may have been written
/// just before the clock of the only server was set back.
#[derive(Debug, Default, Clone, Copy)]
struct Ahead {
    farthest: i64,
    second: i64,
}

impl Ahead {
    fn note(&mut self, ahead: i64) {
        self.second = self.second.max(ahead.min(self.farthest));
        self.farthest = self.farthest.max(ahead);
    }
}

impl ClockSpread {
    /// Takes a node's last heartbeat, epoch ms by the clock of whoever wrote it, as read at `read_at`, epoch ms by the clock
    /// of the server that answered. Each counts when it is read first.
    pub fn see(&mut self, node: NodeId, beat: i64, read_at: i64) {
        let seen = self.0.entry(node).or_default();
        if seen.last_beat == beat {
            return;
        }
        seen.last_beat = beat;
        if seen.beats == BEATS {
            (seen.before, seen.now, seen.beats) = (seen.now, Ahead::default(), 0);
        }
        seen.beats += 1;
        seen.now.note(beat - read_at);
    }

    /// Forgets nodes that are no longer there.
    pub fn keep(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.0.retain(|node, _| is_there(*node));
    }

    /// By how much clocks of servers differ at least, ms; 0 if nothing shows that they do.
    #[must_use]
    pub fn least_ms(&self) -> i64 {
        self.0.values().map(|seen| seen.now.second.max(seen.before.second)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    /// Heartbeats every 3 s by a clock that is ahead of the reader's by so much, each read up to a second later.
    fn least(ahead_ms: i64, beats: i64) -> i64 {
        let mut spread = ClockSpread::default();
        for number in 0..beats {
            let written = 1_000_000 + number * 3_000;
            // A prime step: the delays are spread evenly over the second.
            let read_at = written + number * 617 % 1_000;
            spread.see(NODE, written + ahead_ms, read_at);
            spread.see(NODE, written + ahead_ms, read_at + 1_000);
        }
        spread.least_ms()
    }

    #[test]
    fn one_clock_is_never_said_to_differ() {
        assert_eq!(least(0, 500), 0);
        assert_eq!(least(-5_000, 500), 0, "the other side sees it");
    }

    #[test]
    fn clocks_that_differ_are_found_out() {
        assert!(least(10_000, 2) > 9_000, "at once");
        assert!((1_000..1_500).contains(&least(1_500, 50)));
        let small = least(150, 100);
        assert!((101..=150).contains(&small), "{small}");
    }

    #[test]
    fn one_step_back_of_the_only_clock_is_no_difference() {
        let mut spread = ClockSpread::default();
        spread.see(NODE, 100_000, 90_000);
        spread.see(NODE, 93_000, 93_500);
        assert_eq!(spread.least_ms(), 0);
    }

    #[test]
    fn what_was_mended_is_forgotten() {
        let mut spread = ClockSpread::default();
        let mut at = 0;
        let mut see = |ahead: i64, spread: &mut ClockSpread| {
            at += 3_000;
            spread.see(NODE, at + ahead, at + 10);
        };
        for _ in 0..3 {
            see(500, &mut spread);
        }
        assert_eq!(spread.least_ms(), 490);
        for _ in 0..2 * BEATS {
            see(0, &mut spread);
        }
        assert_eq!(spread.least_ms(), 0);
        spread.see(NODE, 10_000_000, 0);
        spread.keep(|_| false);
        assert_eq!(spread.least_ms(), 0);
    }
}
