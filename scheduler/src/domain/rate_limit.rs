//! How many runs of a tenant may start in a minute, and when the others may.
//!
//! Each run takes a slot: an instant at which it may start. No window of sixty seconds holds more
//! slots than the quota, wherever it begins; a run takes the first slot from its due time on. Who
//! comes while others wait for theirs stands behind them, a minute's share apart from the last, so
//! that what was held up goes out evenly and not in heaps. A more urgent run changes slots with the
//! first less urgent one of that line.
//!
//! Slots are counted by the second, in the disfavour of the tenant: all of a second count until
//! the last of them is a minute old. What is spread within seconds can thus reach the quota but for
//! a sixtieth.

use super::reason::Reason;
use super::task_log::{Run, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The quota is of each window of this length, ms.
pub const WINDOW_MS: i64 = 60_000;

/// No run waits longer for its slot, ms: seven days. It is refused instead.
pub const DELAY_MS_MAX: i64 = 7 * 86_400_000;

/// Slots within one second are one number.
const STEP_MS: i64 = 1_000;

/// A run that asks for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRequest {
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
    /// A slot after this instant (ms) is none.
    pub latest: i64,
    /// Where it waits for a later slot.
    pub back_to: Status,
}

/// What it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// It may start when it could.
    Now,
    /// It may start at this later instant, ms.
    Later(i64),
    /// There is none in time.
    Never,
}

/// A run that waits for its slot, and may change it with a more urgent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayedRun {
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
    /// Whether it has its slot in the tenant's rate limit: a fire counts once, however often it is
    /// dispatched, and a shard goes by its parent's.
    #[must_use]
    pub fn has_slot(&self) -> bool {
        let looked_for_executors = matches!(self.reason, Reason::NoExecutor | Reason::NotAccepted | Reason::AllBusy);
        self.has_rate_slot
            || self.parent_id > 0
            || self.attempt > 0
            || self.reason == Reason::OverQuota
            || looked_for_executors
    }
}

/// The slots that a tenant's runs have taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// (last slot, number of slots) of each second that has any, by time.
    #[serde(default)]
    taken: Vec<(i64, i64)>,
    /// The last slot given to a run that had to wait, epoch µs.
    #[serde(default)]
    behind_us: i64,
    /// The lowest priority among those that wait, as far as it is known.
    #[serde(default)]
    lowest: Option<i32>,
}

impl Rate {
    /// Takes the first slot for `request` under a quota of `per_minute`; none, when it would come too
    /// late.
    pub fn take(&mut self, per_minute: i32, request: &SlotRequest) -> Slot {
        let SlotRequest { at, latest, priority, .. } = *request;
        let most = i64::from(per_minute.max(1));
        let next_us = self.behind_us.saturating_add(div_ceil(WINDOW_MS * 1_000, most));
        let stands_in_line = self.behind_us > at.saturating_mul(1_000);
        let from = if stands_in_line { div_ceil(next_us, 1_000) } else { at };
        let slot = self.first_free(most, from);
        if slot > latest {
            return Slot::Never;
        }
        self.add(slot);
        if slot <= at {
            return Slot::Now;
        }
        self.lowest = Some(self.lowest.filter(|_| stands_in_line).map_or(priority, |lowest| lowest.min(priority)));
        self.behind_us = if stands_in_line && slot == from { next_us } else { slot.saturating_mul(1_000) };
        Slot::Later(slot)
    }

    /// Whether a less urgent run than `request` may wait.
    #[must_use]
    pub fn has_less_urgent(&self, request: &SlotRequest) -> bool {
        self.behind_us > request.at.saturating_mul(1_000) && self.lowest.is_some_and(|lowest| lowest < request.priority)
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

    /// Slots in the minute before `now` (ms), under a quota of `per_minute`: while runs wait for
    /// theirs, all of them.
    #[must_use]
    pub fn used(&self, per_minute: i32, now: i64) -> i64 {
        if self.behind(now).is_some() {
            return i64::from(per_minute);
        }
        let in_it = self.taken.iter().filter(|(last, _)| (now - WINDOW_MS + 1..=now).contains(last));
        in_it.map(|(_, count)| count).sum()
    }

    /// The last slot of a run that waits at `now` (ms).
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

    /// Slots in the window that begins at `begin`.
    fn within(&self, begin: i64) -> i64 {
        let in_it = self.taken.iter().filter(|(last, _)| *last >= begin && second(*last) < begin + WINDOW_MS);
        in_it.map(|(_, count)| count).sum()
    }

    fn add(&mut self, slot: i64) {
        let at = self.taken.partition_point(|(last, _)| second(*last) < second(slot));
        match self.taken.get_mut(at).filter(|(last, _)| second(*last) == second(slot)) {
            Some((last, count)) => (*last, *count) = (slot.max(*last), *count + 1),
            None => self.taken.insert(at, (slot, 1)),
        }
    }
}

/// Quota of fires in a minute (0: none) and slots taken, by tenant.
pub type Rates = BTreeMap<i64, (i32, Rate)>;

/// Takes a slot for each of `requests`, in their order. Answers those, and by tenant which of them may
/// have less urgent runs before them: for these [`overtake`] has the last word.
pub fn take_all(requests: &[SlotRequest], rates: &mut Rates) -> (Vec<Slot>, BTreeMap<i64, Vec<usize>>) {
    let mut urgent: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    let mut take = |(at, request): (usize, &SlotRequest)| {
        let Some((per_minute @ 1.., rate)) = rates.get_mut(&request.tenant_id) else { return Slot::Now };
        let is_urgent = rate.has_less_urgent(request);
        if is_urgent {
            urgent.entry(request.tenant_id).or_default().push(at);
        }
        rate.take(*per_minute, &SlotRequest { latest: if is_urgent { i64::MAX } else { request.latest }, ..*request })
    };
    let slots = requests.iter().enumerate().map(&mut take).collect();
    (slots, urgent)
}

/// Lets the runs of `urgent` (places in `requests`, the most urgent first) change their slots with less
/// urgent ones of `line` (by due time) that come earlier; answers those with their new slots.
pub fn overtake(
    requests: &[SlotRequest],
    slots: &mut [Slot],
    urgent: &[usize],
    mut line: Vec<DelayedRun>,
) -> Vec<DelayedRun> {
    let mut moved = Vec::new();
    for at in urgent {
        let (request, Some(slot)) = (&requests[*at], slots.get_mut(*at)) else { continue };
        let Slot::Later(own) = *slot else { continue };
        let until = own.min(request.latest.saturating_add(1));
        let may = |one: &DelayedRun| one.priority < request.priority && (request.at + 1..until).contains(&one.due_time);
        if let Some(first) = line.iter().position(may) {
            let one = line.remove(first);
            *slot = Slot::Later(one.due_time);
            moved.push(DelayedRun { due_time: own, ..one });
        } else if own > request.latest {
            *slot = Slot::Never;
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

    fn request(at: i64, latest: i64) -> SlotRequest {
        let (id, version, failures, tenant_id, back_to) = (1, 1, 0, 1, Status::Init);
        SlotRequest { id, version, failures, tenant_id, priority: 5, at, latest, back_to }
    }

    fn take(rate: &mut Rate, per_minute: i32, at: i64) -> Slot {
        rate.take(per_minute, &request(at, i64::MAX))
    }

    fn slots(rate: &mut Rate, per_minute: i32, at: &[i64]) -> Vec<i64> {
        at.iter().map(|at| instant(take(rate, per_minute, *at), *at)).collect()
    }

    fn instant(slot: Slot, at: i64) -> i64 {
        match slot {
            Slot::Now => at,
            Slot::Later(slot) => slot,
            Slot::Never => panic!("there is no bound"),
        }
    }

    #[test]
    fn a_minutes_worth_goes_at_once_and_the_rest_evenly_from_the_next_minute_on() {
        let mut rate = Rate::default();
        let got = slots(&mut rate, 4, &[500; 7]);
        assert_eq!(got, [500, 500, 500, 500, 60_500, 75_500, 90_500]);
        // Also who comes later stands behind them.
        assert_eq!(slots(&mut rate, 4, &[90_000, 200_000]), [105_500, 200_000]);
        assert_eq!((rate.used(4, 90_500), rate.behind(90_500)), (4, Some(105_500)));
        assert_eq!((rate.used(4, 120_500), rate.behind(105_500)), (3, None));
    }

    #[test]
    fn what_keeps_to_its_quota_is_never_delayed() {
        for (per_minute, heap) in [(60, 1), (120, 2), (6_000, 100)] {
            let mut rate = Rate::default();
            for at in (0..300_000).step_by(1_000) {
                for _ in 0..heap {
                    assert_eq!(rate.take(per_minute, &request(at, at)), Slot::Now, "{per_minute} at {at}");
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
            assert_eq!(take(&mut rate, 60, at + 1_000), Slot::Now);
            assert_eq!(take(&mut rate, 60, at), Slot::Now);
        }
    }

    #[test]
    fn who_cannot_have_it_in_time_takes_none() {
        let mut rate = Rate::default();
        assert_eq!(slots(&mut rate, 1, &[0, 0]), [0, MINUTE]);
        assert_eq!(rate.take(1, &request(0, 2 * MINUTE - 1)), Slot::Never);
        assert_eq!(rate.take(1, &request(0, 2 * MINUTE)), Slot::Later(2 * MINUTE));
    }

    #[test]
    fn another_quota_counts_what_went_out_under_the_old_one() {
        let mut rate = Rate::default();
        slots(&mut rate, 60, &[0; 600]);
        rate.begin_anew(60, 200_000);
        assert_eq!(slots(&mut rate, 61, &[200_000; 3]), [200_000, 260_000, 260_984]);
        let mut calm = Rate::default();
        slots(&mut calm, 60, &[0; 6]);
        calm.begin_anew(60, 1_000);
        assert_eq!(slots(&mut calm, 7, &[1_000; 2]), [1_000, 60_000]);
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
        let waiting = |id, priority, due_time| DelayedRun { id, version: 1, failures: 0, priority, due_time };
        let urgent = |priority, at| SlotRequest { priority, ..request(at, i64::MAX) };
        let line =
            vec![waiting(1, 1, 90), waiting(2, 8, 110), waiting(3, 5, 120), waiting(4, 1, 130), waiting(5, 1, 140)];
        let requests = [urgent(9, 100), urgent(5, 0), urgent(6, 115), urgent(6, 100), urgent(2, 100), urgent(2, 100)];
        let mut slots =
            [Slot::Later(200), Slot::Now, Slot::Later(210), Slot::Later(220), Slot::Later(230), Slot::Later(139)];
        let moved = overtake(&requests, &mut slots, &[0, 2, 3, 4, 5], line);
        let at = |slot| Slot::Later(slot);
        assert_eq!(slots, [at(110), Slot::Now, at(120), at(130), at(140), at(139)]);
        let moved: Vec<(i64, i64)> = moved.iter().map(|one| (one.id, one.due_time)).collect();
        assert_eq!(moved, [(2, 200), (3, 210), (4, 220), (5, 230)]);
        let requests = [100, 99].map(|latest| SlotRequest { priority: 9, ..request(50, latest) });
        let mut slots = [at(200), at(210)];
        let line = vec![waiting(1, 1, 100), waiting(2, 1, 101)];
        let moved = overtake(&requests, &mut slots, &[0, 1], line);
        assert_eq!((slots, moved.len()), ([at(100), Slot::Never], 1), "who cannot wait so long does not");
    }

    #[test]
    fn it_is_known_whether_anybody_less_urgent_waits() {
        let urgent = |priority| SlotRequest { priority, ..request(0, i64::MAX) };
        let mut rate = Rate::default();
        for priority in [5, 5, 7] {
            rate.take(1, &urgent(priority));
        }
        assert_eq!([5, 6].map(|priority| rate.has_less_urgent(&urgent(priority))), [false, true]);
        rate.found_none_below(7);
        assert_eq!([7, 8].map(|priority| rate.has_less_urgent(&urgent(priority))), [false, true]);
        rate.take(1, &urgent(2));
        assert!(rate.has_less_urgent(&urgent(3)));
        assert!(!rate.has_less_urgent(&SlotRequest { at: 400_000, ..urgent(9) }), "nobody waits any more");
        for _ in 0..2 {
            rate.take(1, &SlotRequest { at: 400_000, ..urgent(5) });
        }
        assert!(!rate.has_less_urgent(&SlotRequest { at: 400_000, ..urgent(4) }), "that was another line");
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
                let slot = instant(take(&mut rate, per_minute, at), at);
                prop_assert!(slot >= at);
                if slot > at {
                    prop_assert!(slot >= last_late, "the line keeps its order");
                    last_late = slot;
                }
                got.push(slot);
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
                let slot = instant(take(&mut rate, per_minute, now), now);
                prop_assert!(has_line || near >= per_minute as usize || slot == now, "{near} near {now}, but {slot}");
                got.push(slot);
            }
        }
    }
}
