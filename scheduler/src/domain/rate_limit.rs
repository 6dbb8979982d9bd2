//! How many runs of a tenant may start in a minute, and when the others may.
//!
//! Each run takes a slot: an instant at which it may start. No window of sixty seconds holds more
//! slots than the quota, wherever it begins; a run takes the first slot from its due time on. A run
//! that comes while others wait queues behind them, a minute's share after the last, so that delayed
//! runs go out evenly and not in bursts. A more urgent run swaps slots with the first less urgent one
//! in that queue.
//!
//! Slots are counted by the second, rounding against the tenant: all slots of a second count until
//! the last of them is a minute old. Fires spread within seconds can thus reach the quota less a
//! sixtieth.

use super::reason::Reason;
use super::task_log::{Run, Status};
use super::{LogId, TenantId};
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
    pub id: LogId,
    /// Version of its row.
    pub version: i64,
    /// Failed attempts so far.
    pub failures: i32,
    /// Whose rate.
    pub tenant_id: TenantId,
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
    pub id: LogId,
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
            || !self.parent_id.is_none()
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
        let next_us = self.behind_us.saturating_add(share_us(per_minute));
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

    /// Takes the slot behind all that wait, for one of them.
    fn take_last(&mut self, per_minute: i32, waiting: &DelayedRun) -> i64 {
        let next_us = self.behind_us.saturating_add(share_us(per_minute));
        let from = div_ceil(next_us, 1_000);
        let slot = self.first_free(i64::from(per_minute.max(1)), from);
        self.add(slot);
        self.lowest = Some(self.lowest.map_or(waiting.priority, |lowest| lowest.min(waiting.priority)));
        self.behind_us = if slot == from { next_us } else { slot.saturating_mul(1_000) };
        slot
    }

    /// Whether a less urgent run than `request` may wait.
    #[must_use]
    pub fn has_less_urgent(&self, request: &SlotRequest) -> bool {
        self.behind_us > request.at.saturating_mul(1_000) && self.lowest.is_some_and(|lowest| lowest < request.priority)
    }

    /// No waiting run is less urgent than `priority`.
    pub fn found_none_below(&mut self, priority: i32) {
        self.lowest = self.lowest.map(|lowest| lowest.max(priority));
    }

    /// Forgets slots that no longer matter at `now` (ms) and later.
    pub fn forget(&mut self, now: i64) {
        let first_asked = now.max(self.behind_us / 1_000);
        self.taken.retain(|(last, _)| *last > first_asked - WINDOW_MS - STEP_MS);
    }

    /// Under another quota, waiting runs ask again. Under the old one (`per_minute`), the last minute
    /// was full.
    pub fn reset(&mut self, per_minute: i32, now: i64) {
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
pub type Rates = BTreeMap<TenantId, (i32, Rate)>;

/// Takes a slot for each of `requests` that has one in time, in their order. Returns those, and by tenant which of them may
/// have less urgent runs before them: for these [`overtake`] has the last word.
pub fn take_all(requests: &[SlotRequest], rates: &mut Rates) -> (Vec<Slot>, BTreeMap<TenantId, Vec<usize>>) {
    let mut urgent: BTreeMap<TenantId, Vec<usize>> = BTreeMap::new();
    let mut take = |(at, request): (usize, &SlotRequest)| {
        let Some((per_minute @ 1.., rate)) = rates.get_mut(&request.tenant_id) else { return Slot::Now };
        if rate.has_less_urgent(request) {
            urgent.entry(request.tenant_id).or_default().push(at);
        }
        rate.take(*per_minute, request)
    };
    let slots = requests.iter().enumerate().map(&mut take).collect();
    (slots, urgent)
}

/// Lets the runs of `urgent` (places in `requests`, the most urgent first) change their slots with less
/// urgent ones of `line` (by due time) that come earlier; returns those with their new slots. Where an urgent one has none in
/// time, the less urgent one takes a new slot of the tenant's `rate`, at the end: only who runs takes any.
pub fn overtake(
    requests: &[SlotRequest],
    slots: &mut [Slot],
    urgent: &[usize],
    mut line: Vec<DelayedRun>,
    (per_minute, rate): (i32, &mut Rate),
) -> Vec<DelayedRun> {
    let mut moved = Vec::new();
    for at in urgent {
        let (request, Some(slot)) = (&requests[*at], slots.get_mut(*at)) else { continue };
        let until = match *slot {
            Slot::Now => continue,
            Slot::Later(own) => own,
            Slot::Never => request.latest.saturating_add(1),
        };
        let may = |one: &DelayedRun| one.priority < request.priority && (request.at + 1..until).contains(&one.due_time);
        let Some(first) = line.iter().position(may) else { continue };
        let one = line.remove(first);
        let due_time = match std::mem::replace(slot, Slot::Later(one.due_time)) {
            Slot::Later(own) => own,
            _ => rate.take_last(per_minute, &one),
        };
        moved.push(DelayedRun { due_time, ..one });
    }
    moved
}

/// From one run that waits to the next, µs.
fn share_us(per_minute: i32) -> i64 {
    div_ceil(WINDOW_MS * 1_000, i64::from(per_minute.max(1)))
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
mod tests;
