//! Whether the database's clock was set while no process was there that would have noticed.

use super::silence::SILENCE_MS;

/// The clock counts as set when an estimate of it changes by more than this, ms. By less, servers of one database may differ
/// whose clocks are read in turn, and those who compare times leave more room.
pub const CLOCK_STEP_MIN_MS: i64 = 250;

/// What was written by a clock that is further ahead of the clock now was written before that was set back, ms. Servers of one
/// database may differ by less.
pub const AHEAD_MAX_MS: i64 = 1_000;

/// How a machine's own clock stands to the cluster clock. For people, and for a process that joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// How far it is ahead, ms; negative when it is behind.
    pub offset_ms: i64,
    /// How wrong that can be at most, µs.
    pub uncertainty_us: i64,
}

/// How far ahead of the cluster clock a machine's own clock was at its last process, and is now.
pub type Readings = [Option<ClockReading>; 2];

/// A node makes ids until so long after its last heartbeat that was written, ms.
const UNSEEN_MAX_MS: i64 = 60_000;

/// What the processes before one that joins have left behind. Instants are epoch ms.
#[derive(Debug, Clone, Copy)]
pub struct LeftBehind {
    /// When the last one of its number was seen last; 0 if there was none.
    pub last_seen: i64,
    /// When any node was seen last.
    pub newest: Option<i64>,
    /// When a node last wrote down that it had heard an executor. After an outage that may come before its own heartbeat.
    pub heard: Option<i64>,
    /// What nodes have written down of a clock that was set back.
    pub told: Option<i64>,
    /// Of the machine.
    pub readings: Readings,
    /// Whether the last one of its number ran on another machine, or may have: the readings then show little.
    pub elsewhere: bool,
}

/// What a process that joins finds by it. Instants are epoch ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// It makes ids after this instant; 0 if the clock alone will do.
    pub ids_after: i64,
    /// What the clock said before it was last known to be set back; 0 for never.
    pub set_back_from: i64,
    /// The latest time that the clock has said to any node.
    pub lived_until: i64,
    /// Since when no node was heard of, if that is long.
    pub silent_since: Option<i64>,
}

impl LeftBehind {
    /// What follows from it at `now`, epoch ms.
    #[must_use]
    pub fn found_at(&self, now: i64) -> Found {
        let Self { last_seen, newest, heard, told, readings, elsewhere } = *self;
        let last_sign = newest.map(|newest| newest.max(heard.filter(|heard| *heard <= now).unwrap_or(0)));
        // On another machine nothing shows that the clock was set back by less than has passed.
        let is_unseen = elsewhere && last_seen + UNSEEN_MAX_MS > now;
        let may_repeat = last_seen > now || seems_set_back(readings) || is_unseen;
        let set_back_from = told.max(newest.filter(|newest| is_set_back(*newest, now))).unwrap_or(0);
        Found {
            ids_after: if may_repeat { last_seen + UNSEEN_MAX_MS } else { 0 },
            set_back_from,
            lived_until: newest.unwrap_or(0).max(set_back_from),
            silent_since: last_sign.filter(|at| passed_since(*at, readings, now) > SILENCE_MS),
        }
    }
}

/// Whether the cluster clock was set back to `now` (epoch ms) since it said `then`, which a node has left behind.
fn is_set_back(then: i64, now: i64) -> bool {
    then - now > AHEAD_MAX_MS
}

/// Whether it was, as far as a machine's own clock shows it. One that was itself set forward looks the same.
fn seems_set_back(readings: Readings) -> bool {
    set_back_by(readings).is_some_and(|by_ms| by_ms > 0)
}

/// How long ago, ms, it was that the cluster clock said `then` (epoch ms): it may have been set forward since, if a machine's own
/// clock shows it, and nothing contradicts.
fn passed_since(then: i64, readings: Readings, now: i64) -> i64 {
    let passed = now - then;
    let without_step = passed + set_back_by(readings).map_or(0, |by_ms| by_ms.min(0));
    if without_step < -AHEAD_MAX_MS { passed } else { without_step }
}

/// By how much the cluster clock was set back between the readings, ms; negative if it was set forward.
fn set_back_by([before, after]: Readings) -> Option<i64> {
    let (before, after) = before.zip(after)?;
    let uncertain_ms = (before.uncertainty_us + after.uncertainty_us).div_euclid(1_000) + 1;
    let by_ms = after.offset_ms - before.offset_ms;
    (by_ms.abs() > CLOCK_STEP_MIN_MS + uncertain_ms).then_some(by_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead_by(offset_ms: i64) -> Option<ClockReading> {
        Some(ClockReading { offset_ms, uncertainty_us: 20_000 })
    }

    #[test]
    fn a_time_that_is_still_to_come_was_written_before() {
        assert!(!is_set_back(51_000, 50_000), "servers may differ");
        assert!(is_set_back(51_001, 50_000));
    }

    #[test]
    fn a_machine_s_clock_shows_it_although_the_other_has_caught_up() {
        let seems = |before, after| seems_set_back([ahead_by(before), ahead_by(after)]);
        assert!(seems(-70, 1_930) && seems(-70, 222));
        assert!(!seems(-70, 221), "that may be an error");
        assert!(!seems(1_930, -70), "set forward");
        assert!(!seems_set_back([None, ahead_by(9_000)]));
    }

    #[test]
    fn ids_of_a_number_are_never_made_again() {
        let ids_after = |readings, elsewhere, now| {
            let last_seen = 100_000;
            let newest = Some(last_seen);
            LeftBehind { last_seen, newest, heard: None, told: None, readings, elsewhere }.found_at(now).ids_after
        };
        let same = [ahead_by(0), ahead_by(0)];
        assert_eq!(ids_after(same, false, 101_000), 0, "the machine's clock has seen no step");
        assert_eq!(ids_after(same, false, 99_000), 160_000, "set back");
        assert_eq!(ids_after([ahead_by(-2_000), ahead_by(0)], false, 101_000), 160_000, "by most of what has passed");
        assert_eq!(ids_after(same, true, 101_000), 160_000, "another machine");
        assert_eq!(ids_after(same, true, 160_000), 0);
    }

    #[test]
    fn time_that_was_set_forward_has_not_passed() {
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(-104_000)], 115_000), 1_000);
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(-200)], 115_000), 105_000, "that may be an error");
        assert_eq!(passed_since(10_000, [None, ahead_by(-104_000)], 115_000), 105_000);
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(104_000)], 115_000), 105_000, "set back");
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(-3_600_000)], 115_000), 105_000, "of the machine");
    }
}
