//! How many runs of a tenant may start in a minute, and when the others may.
//!
//! Each run takes a place: an instant at which it may start. No window of sixty seconds holds more
//! places than the quota, wherever it begins; a run takes the first place from its due time on. Who
//! comes while others wait for theirs stands behind them, a minute's share apart from the last, so
//! that what was held up goes out evenly and not in heaps.
//!
//! Places are counted by the second, in the disfavour of the tenant: all of a second count until
//! the last of them is a minute old. What is spread within seconds can thus reach the quota but for
//! a sixtieth.

use super::reason::Reason;
use super::task_log::{Run, Status};
use serde::{Deserialize, Serialize};

/// The quota is of each window of this length, ms.
pub const WINDOW_MS: i64 = 60_000;

/// No run waits longer for its place, ms: seven days. It is refused instead.
pub const DELAY_MS_MAX: i64 = 7 * 86_400_000;

/// Places within one second are one number.
const STEP_MS: i64 = 1_000;

/// A run that asks for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Task log id.
    pub id: i64,
    /// Version of its row.
    pub version: i64,
    /// Failed attempts so far.
    pub failures: i32,
    /// Whose rate.
    pub tenant_id: i64,
    /// From when on it could start, ms.
    pub at: i64,
    /// A place after this instant (ms) is none.
    pub latest: i64,
    /// Where it waits for a later place.
    pub back_to: Status,
}

/// What it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It may start when it could.
    Now,
    /// It may start at this later instant, ms.
    Later(i64),
    /// There is none in time.
    Never,
}

impl Run {
    /// Whether it has its place in the tenant's rate: a fire counts once, however often it is
    /// handed over, and a shard goes by its parent's.
    #[must_use]
    pub fn has_place(&self) -> bool {
        let looked_for_executors = matches!(self.reason, Reason::NoExecutor | Reason::NotAccepted | Reason::AllBusy);
        self.is_paced
            || self.parent_id > 0
            || self.attempt > 0
            || self.reason == Reason::OverQuota
            || looked_for_executors
    }
}

/// The places that a tenant's runs have taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// (last place, number of places) of each second that has any, by time.
    #[serde(default)]
    taken: Vec<(i64, i64)>,
    /// The last place given to a run that had to wait, epoch µs.
    #[serde(default)]
    behind_us: i64,
}

impl Rate {
    /// Takes the first place from `at` (ms) on under a quota of `per_minute`; none, when it would
    /// come after `latest` (ms).
    pub fn take(&mut self, per_minute: i32, at: i64, latest: i64) -> Place {
        let most = i64::from(per_minute.max(1));
        let next_us = self.behind_us.saturating_add(div_ceil(WINDOW_MS * 1_000, most));
        let stands_in_line = self.behind_us > at.saturating_mul(1_000);
        let from = if stands_in_line { div_ceil(next_us, 1_000) } else { at };
        let place = self.first_free(most, from);
        if place > latest {
            return Place::Never;
        }
        self.add(place);
        if place <= at {
            return Place::Now;
        }
        self.behind_us = if stands_in_line && place == from { next_us } else { place.saturating_mul(1_000) };
        Place::Later(place)
    }

    /// Forgets what can be in nobody's way at `now` (ms) and later.
    pub fn forget(&mut self, now: i64) {
        let first_asked = now.max(self.behind_us / 1_000);
        self.taken.retain(|(last, _)| *last > first_asked - WINDOW_MS - STEP_MS);
    }

    /// Under another quota those that wait ask anew. Under the old one (`per_minute`) as many went
    /// out in the last minute as may.
    pub fn begin_anew(&mut self, per_minute: i32, now: i64) {
        if self.behind_us > now.saturating_mul(1_000) {
            self.taken = vec![(now, i64::from(per_minute))];
        }
        self.behind_us = 0;
    }

    /// Places in the minute before `now` (ms), under a quota of `per_minute`: while runs wait for
    /// theirs, all of them.
    #[must_use]
    pub fn used(&self, per_minute: i32, now: i64) -> i64 {
        if self.behind(now).is_some() {
            return i64::from(per_minute);
        }
        let in_it = self.taken.iter().filter(|(last, _)| (now - WINDOW_MS + 1..=now).contains(last));
        in_it.map(|(_, count)| count).sum()
    }

    /// The last place of a run that waits at `now` (ms).
    #[must_use]
    pub fn behind(&self, now: i64) -> Option<i64> {
        Some(self.behind_us / 1_000).filter(|at| *at > now)
    }

    fn first_free(&self, most: i64, from: i64) -> i64 {
        let mut at = from;
        // Each step leaves an entry behind.
        while let Some(next) = self.free_after(most, at) {
            at = next;
        }
        at
    }

    /// When windows that hold `at` are full: the earliest instant that may lie in none of those.
    fn free_after(&self, most: i64, at: i64) -> Option<i64> {
        let near = self.taken.iter().filter(|(last, _)| *last > at - WINDOW_MS);
        if near.map(|(_, count)| count).sum::<i64>() < most {
            return None;
        }
        let begins = self.taken.iter().map(|(last, _)| *last).filter(|last| (at - WINDOW_MS + 1..=at).contains(last));
        if let Some(full) = begins.filter(|begin| self.within(*begin) >= most).max() {
            return Some(full + WINDOW_MS);
        }
        // Full of what comes later: there is room among that, or after it.
        let later = || self.taken.iter().map(|(last, _)| *last).find(|last| *last > at);
        if self.within(at) >= most { later() } else { None }
    }

    /// Places in the window that begins at `begin`.
    fn within(&self, begin: i64) -> i64 {
        let in_it = self.taken.iter().filter(|(last, _)| *last >= begin && second(*last) < begin + WINDOW_MS);
        in_it.map(|(_, count)| count).sum()
    }

    fn add(&mut self, place: i64) {
        let at = self.taken.partition_point(|(last, _)| second(*last) < second(place));
        match self.taken.get_mut(at).filter(|(last, _)| second(*last) == second(place)) {
            Some((last, count)) => (*last, *count) = (place.max(*last), *count + 1),
            None => self.taken.insert(at, (place, 1)),
        }
    }
}

/// Begin of the second of an instant, ms.
fn second(at: i64) -> i64 {
    at.div_euclid(STEP_MS) * STEP_MS
}

/// Rounded up; `by` is positive.
fn div_ceil(number: i64, by: i64) -> i64 {
    number.div_euclid(by) + i64::from(number.rem_euclid(by) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: i64 = WINDOW_MS;

    fn places(rate: &mut Rate, per_minute: i32, at: &[i64]) -> Vec<i64> {
        at.iter().map(|at| instant(rate.take(per_minute, *at, i64::MAX), *at)).collect()
    }

    fn instant(place: Place, at: i64) -> i64 {
        match place {
            Place::Now => at,
            Place::Later(place) => place,
            Place::Never => panic!("there is no bound"),
        }
    }

    #[test]
    fn a_minutes_worth_goes_at_once_and_the_rest_evenly_from_the_next_minute_on() {
        let mut rate = Rate::default();
        let got = places(&mut rate, 4, &[500; 7]);
        assert_eq!(got, [500, 500, 500, 500, 60_500, 75_500, 90_500]);
        // Also who comes later stands behind them.
        assert_eq!(places(&mut rate, 4, &[90_000, 200_000]), [105_500, 200_000]);
        assert_eq!((rate.used(4, 90_500), rate.behind(90_500)), (4, Some(105_500)));
        assert_eq!((rate.used(4, 120_500), rate.behind(105_500)), (3, None));
    }

    #[test]
    fn what_keeps_to_its_quota_is_never_delayed() {
        for (per_minute, heap) in [(60, 1), (120, 2), (6_000, 100)] {
            let mut rate = Rate::default();
            for at in (0..300_000).step_by(1_000) {
                for _ in 0..heap {
                    assert_eq!(rate.take(per_minute, at, at), Place::Now, "{per_minute} at {at}");
                }
                rate.forget(at);
            }
            assert!(rate.taken.len() < 65);
        }
    }

    /// Two nodes hand over at the same time, one of them a little behind.
    #[test]
    fn places_need_not_be_asked_for_in_their_order() {
        let mut rate = Rate::default();
        for at in (0..300_000).step_by(2_000) {
            assert_eq!(rate.take(60, at + 1_000, i64::MAX), Place::Now);
            assert_eq!(rate.take(60, at, i64::MAX), Place::Now);
        }
    }

    #[test]
    fn who_cannot_have_it_in_time_takes_none() {
        let mut rate = Rate::default();
        assert_eq!(places(&mut rate, 1, &[0, 0]), [0, MINUTE]);
        assert_eq!(rate.take(1, 0, 2 * MINUTE - 1), Place::Never);
        assert_eq!(rate.take(1, 0, 2 * MINUTE), Place::Later(2 * MINUTE));
    }

    #[test]
    fn another_quota_counts_what_went_out_under_the_old_one() {
        let mut rate = Rate::default();
        places(&mut rate, 60, &[0; 600]);
        rate.begin_anew(60, 200_000);
        assert_eq!(places(&mut rate, 61, &[200_000; 3]), [200_000, 260_000, 260_984]);
        let mut calm = Rate::default();
        places(&mut calm, 60, &[0; 6]);
        calm.begin_anew(60, 1_000);
        assert_eq!(places(&mut calm, 7, &[1_000; 2]), [1_000, 60_000]);
    }

    #[test]
    fn a_backlog_takes_no_room() {
        let mut rate = Rate::default();
        for _ in 0..100_000 {
            rate.take(600, 7, i64::MAX);
            rate.forget(7);
        }
        assert!(rate.taken.len() <= 62, "{}", rate.taken.len());
        let last = rate.behind(7).unwrap();
        // Ten a second, but for a sixtieth.
        let evenly = (100_000 - 600) * 100;
        assert!((evenly..=60_007 + evenly * 62 / 60).contains(&last), "{last}");
    }

    proptest! {
        /// (how long after the last one it is asked for, how much earlier or later it is due)
        #[test]
        fn no_minute_holds_more_than_the_quota(
            per_minute in 1i32..12,
            steps in prop::collection::vec((0i64..9_000, -500i64..4_000), 1..120),
        ) {
            let (mut rate, mut now) = (Rate::default(), 1_000_000);
            let (mut got, mut last_late) = (Vec::new(), i64::MIN);
            for (passed, due) in steps {
                now += passed;
                rate.forget(now);
                let at = now.max(now + due);
                let place = instant(rate.take(per_minute, at, i64::MAX), at);
                prop_assert!(place >= at);
                if place > at {
                    prop_assert!(place >= last_late, "the line keeps its order");
                    last_late = place;
                }
                got.push(place);
            }
            let mut sorted = got.clone();
            sorted.sort_unstable();
            for begin in &sorted {
                let within = sorted.iter().filter(|at| (*begin..begin + MINUTE).contains(*at)).count();
                prop_assert!(within <= per_minute as usize, "{within} from {begin} on: {sorted:?}");
            }
        }

        /// Where a window of twice the length has room, and nobody waits already, nobody waits.
        #[test]
        fn nobody_waits_without_need(
            per_minute in 1i32..12,
            steps in prop::collection::vec(0i64..20_000, 1..80),
        ) {
            let (mut rate, mut now, mut got) = (Rate::default(), 1_000_000, Vec::<i64>::new());
            for passed in steps {
                now += passed;
                rate.forget(now);
                let has_line = rate.behind(now).is_some();
                let near = got.iter().filter(|at| **at > now - MINUTE - STEP_MS).count();
                let place = instant(rate.take(per_minute, now, i64::MAX), now);
                prop_assert!(has_line || near >= per_minute as usize || place == now, "{near} near {now}, but {place}");
                got.push(place);
            }
        }
    }
}
