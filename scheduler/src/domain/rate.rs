//! How many runs of a tenant may start in a minute, and when the others may.
//!
//! Each run takes a place: an instant at which it may start. No window of sixty seconds holds more
//! places than the quota, wherever it begins; a run takes the first place from its due time on. Who
//! comes while others wait for theirs stands behind them, a minute's share apart from the last, so
//! that what was held up goes out evenly and not in heaps. A more urgent run changes places with the
//! first less urgent one of that line.
//!
//! Places are counted by the second, in the disfavour of the tenant: all of a second count until
//! the last of them is a minute old. What is spread within seconds can thus reach the quota but for
//! a sixtieth.

use super::reason::Reason;
use super::task_log::{Run, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The more, the more urgent.
    pub priority: i32,
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

/// A run that waits for its place, and may change it with a more urgent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Task log id.
    pub id: i64,
    /// Version of its row.
    pub version: i64,
    /// Failed attempts so far.
    pub failures: i32,
    /// Its priority.
    pub priority: i32,
    /// Its place, ms.
    pub due_time: i64,
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
    /// The lowest priority among those that wait, as far as it is known.
    #[serde(default)]
    lowest: Option<i32>,
}

impl Rate {
    /// Takes the first place for `ask` under a quota of `per_minute`; none, when it would come too
    /// late.
    pub fn take(&mut self, per_minute: i32, ask: &Ask) -> Place {
        let Ask { at, latest, priority, .. } = *ask;
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
        self.lowest = Some(self.lowest.filter(|_| stands_in_line).map_or(priority, |lowest| lowest.min(priority)));
        self.behind_us = if stands_in_line && place == from { next_us } else { place.saturating_mul(1_000) };
        Place::Later(place)
    }

    /// Whether a less urgent run than `ask` may wait.
    #[must_use]
    pub fn has_less_urgent(&self, ask: &Ask) -> bool {
        self.behind_us > ask.at.saturating_mul(1_000) && self.lowest.is_some_and(|lowest| lowest < ask.priority)
    }

    /// Nobody who waits is less urgent than `priority`.
    pub fn found_none_below(&mut self, priority: i32) {
        self.lowest = self.lowest.map(|lowest| lowest.max(priority));
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

/// Quota of fires in a minute (0: none) and places taken, by tenant.
pub type Rates = BTreeMap<i64, (i32, Rate)>;

/// Takes a place for each of `asks`, in their order. Answers those, and by tenant which of them may
/// have less urgent runs before them: for these [`overtake`] has the last word.
pub fn take_all(asks: &[Ask], rates: &mut Rates) -> (Vec<Place>, BTreeMap<i64, Vec<usize>>) {
    let mut urgent: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    let mut take = |(at, ask): (usize, &Ask)| {
        let Some((per_minute @ 1.., rate)) = rates.get_mut(&ask.tenant_id) else { return Place::Now };
        let is_urgent = rate.has_less_urgent(ask);
        if is_urgent {
            urgent.entry(ask.tenant_id).or_default().push(at);
        }
        rate.take(*per_minute, &Ask { latest: if is_urgent { i64::MAX } else { ask.latest }, ..*ask })
    };
    let places = asks.iter().enumerate().map(&mut take).collect();
    (places, urgent)
}

/// Lets the runs of `urgent` (places in `asks`, the most urgent first) change their places with less
/// urgent ones of `line` (by due time) that come earlier; answers those with their new places.
pub fn overtake(asks: &[Ask], places: &mut [Place], urgent: &[usize], mut line: Vec<Waiting>) -> Vec<Waiting> {
    let mut moved = Vec::new();
    for at in urgent {
        let (ask, Some(place)) = (&asks[*at], places.get_mut(*at)) else { continue };
        let Place::Later(own) = *place else { continue };
        let until = own.min(ask.latest.saturating_add(1));
        let may = |one: &Waiting| one.priority < ask.priority && (ask.at + 1..until).contains(&one.due_time);
        if let Some(first) = line.iter().position(may) {
            let one = line.remove(first);
            *place = Place::Later(one.due_time);
            moved.push(Waiting { due_time: own, ..one });
        } else if own > ask.latest {
            *place = Place::Never;
        }
    }
    moved
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

    fn ask(at: i64, latest: i64) -> Ask {
        let (id, version, failures, tenant_id, back_to) = (1, 1, 0, 1, Status::Init);
        Ask { id, version, failures, tenant_id, priority: 5, at, latest, back_to }
    }

    fn take(rate: &mut Rate, per_minute: i32, at: i64) -> Place {
        rate.take(per_minute, &ask(at, i64::MAX))
    }

    fn places(rate: &mut Rate, per_minute: i32, at: &[i64]) -> Vec<i64> {
        at.iter().map(|at| instant(take(rate, per_minute, *at), *at)).collect()
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
                    assert_eq!(rate.take(per_minute, &ask(at, at)), Place::Now, "{per_minute} at {at}");
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
            assert_eq!(take(&mut rate, 60, at + 1_000), Place::Now);
            assert_eq!(take(&mut rate, 60, at), Place::Now);
        }
    }

    #[test]
    fn who_cannot_have_it_in_time_takes_none() {
        let mut rate = Rate::default();
        assert_eq!(places(&mut rate, 1, &[0, 0]), [0, MINUTE]);
        assert_eq!(rate.take(1, &ask(0, 2 * MINUTE - 1)), Place::Never);
        assert_eq!(rate.take(1, &ask(0, 2 * MINUTE)), Place::Later(2 * MINUTE));
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
            take(&mut rate, 600, 7);
            rate.forget(7);
        }
        assert!(rate.taken.len() <= 62, "{}", rate.taken.len());
        let last = rate.behind(7).unwrap();
        // Ten a second, but for a sixtieth.
        let evenly = (100_000 - 600) * 100;
        assert!((evenly..=60_007 + evenly * 62 / 60).contains(&last), "{last}");
    }

    #[test]
    fn the_urgent_change_places_with_the_first_that_are_less() {
        let waiting = |id, priority, due_time| Waiting { id, version: 1, failures: 0, priority, due_time };
        let urgent = |priority, at| Ask { priority, ..ask(at, i64::MAX) };
        let line =
            vec![waiting(1, 1, 90), waiting(2, 8, 110), waiting(3, 5, 120), waiting(4, 1, 130), waiting(5, 1, 140)];
        let asks = [urgent(9, 100), urgent(5, 0), urgent(6, 115), urgent(6, 100), urgent(2, 100), urgent(2, 100)];
        let mut places =
            [Place::Later(200), Place::Now, Place::Later(210), Place::Later(220), Place::Later(230), Place::Later(139)];
        let moved = overtake(&asks, &mut places, &[0, 2, 3, 4, 5], line);
        let at = |place| Place::Later(place);
        assert_eq!(places, [at(110), Place::Now, at(120), at(130), at(140), at(139)]);
        let moved: Vec<(i64, i64)> = moved.iter().map(|one| (one.id, one.due_time)).collect();
        assert_eq!(moved, [(2, 200), (3, 210), (4, 220), (5, 230)]);
        let asks = [100, 99].map(|latest| Ask { priority: 9, ..ask(50, latest) });
        let mut places = [at(200), at(210)];
        let line = vec![waiting(1, 1, 100), waiting(2, 1, 101)];
        let moved = overtake(&asks, &mut places, &[0, 1], line);
        assert_eq!((places, moved.len()), ([at(100), Place::Never], 1), "who cannot wait so long does not");
    }

    #[test]
    fn it_is_known_whether_anybody_less_urgent_waits() {
        let urgent = |priority| Ask { priority, ..ask(0, i64::MAX) };
        let mut rate = Rate::default();
        for priority in [5, 5, 7] {
            rate.take(1, &urgent(priority));
        }
        assert_eq!([5, 6].map(|priority| rate.has_less_urgent(&urgent(priority))), [false, true]);
        rate.found_none_below(7);
        assert_eq!([7, 8].map(|priority| rate.has_less_urgent(&urgent(priority))), [false, true]);
        rate.take(1, &urgent(2));
        assert!(rate.has_less_urgent(&urgent(3)));
        assert!(!rate.has_less_urgent(&Ask { at: 400_000, ..urgent(9) }), "nobody waits any more");
        for _ in 0..2 {
            rate.take(1, &Ask { at: 400_000, ..urgent(5) });
        }
        assert!(!rate.has_less_urgent(&Ask { at: 400_000, ..urgent(4) }), "that was another line");
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
                let place = instant(take(&mut rate, per_minute, at), at);
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
                let place = instant(take(&mut rate, per_minute, now), now);
                prop_assert!(has_line || near >= per_minute as usize || place == now, "{near} near {now}, but {place}");
                got.push(place);
            }
        }
    }
}
