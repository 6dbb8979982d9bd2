//! Whether the database's clock was set while no process was there that would have noticed.

/// The clock counts as set when an estimate of it changes by more than this, ms. By less, servers of one database may differ
/// whose clocks are read in turn, and those who compare times leave more room.
pub const CLOCK_STEP_MIN_MS: i64 = 250;

/// What was written by a clock that is further ahead of the clock now was written before that was set back, ms. Servers of one
/// database may differ by less.
const AHEAD_MAX_MS: i64 = 1_000;

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

/// What the cluster clock said, epoch ms, before it was set back to `now` (epoch ms), as far as what nodes left behind shows it:
/// the newest time that one of them was seen at, and a machine's own clock. One that was itself set forward looks the same.
#[must_use]
pub fn set_back_from(newest: Option<i64>, readings: Readings, now: i64) -> Option<i64> {
    let seen = newest.filter(|newest| newest - now > AHEAD_MAX_MS);
    let by_machine = set_back_by(readings).filter(|by_ms| *by_ms > 0).map(|by_ms| now + by_ms);
    seen.max(by_machine)
}

/// How long ago, ms, it was that the cluster clock said `then` (epoch ms), if it has not been set forward since, as far as a
/// machine's own clock shows it.
#[must_use]
pub fn passed_since(then: i64, readings: Readings, now: i64) -> i64 {
    now - then + set_back_by(readings).map_or(0, |by_ms| by_ms.min(0))
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
    fn times_that_are_still_to_come_were_written_before() {
        assert_eq!(set_back_from(None, [None, None], 50_000), None);
        assert_eq!(set_back_from(Some(51_000), [None, None], 50_000), None, "servers may differ");
        assert_eq!(set_back_from(Some(51_001), [None, None], 50_000), Some(51_001));
    }

    #[test]
    fn a_machine_of_which_the_clock_has_fallen_behind_shows_it_although_it_has_caught_up() {
        let now = 50_000;
        assert_eq!(set_back_from(Some(40_000), [ahead_by(-70), ahead_by(1_930)], now), Some(52_000));
        assert_eq!(set_back_from(Some(40_000), [ahead_by(-70), ahead_by(221)], now), None, "that may be an error");
        assert_eq!(set_back_from(Some(40_000), [ahead_by(-70), ahead_by(222)], now), Some(50_292));
        assert_eq!(set_back_from(Some(40_000), [ahead_by(1_930), ahead_by(-70)], now), None, "set forward");
        assert_eq!(set_back_from(Some(40_000), [None, ahead_by(9_000)], now), None);
        assert_eq!(set_back_from(Some(53_000), [ahead_by(0), ahead_by(2_000)], now), Some(53_000), "the later");
    }

    #[test]
    fn time_that_was_set_forward_has_not_passed() {
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(-104_000)], 115_000), 1_000);
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(-200)], 115_000), 105_000, "that may be an error");
        assert_eq!(passed_since(10_000, [None, ahead_by(-104_000)], 115_000), 105_000);
        assert_eq!(passed_since(10_000, [ahead_by(0), ahead_by(104_000)], 115_000), 105_000, "set back");
    }
}
