//! How often and when each task used each address: what "least frequently" and "least recently
//! used" go by. It is in the database, so that it survives restarts and every node sees it; a
//! batch works on a copy and returns what changed.
//!
//! Addresses come and go, so a bare count would mislead: one that was away would get every run until it
//! had caught up with those that stayed. Therefore an address that is seen for the first time starts at
//! the smallest count of the others, which is stored at once, and no address counts as more than
//! [`TURNS_BEHIND_MAX`] turns behind the leader. That also settles what a change of weight does to old
//! counts, and lets rows of unused addresses be deleted at any time.

use crate::domain::TaskId;
use crate::domain::executor::Executor;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Turns (of the executor with the smallest weight) that an address counts as behind the most used
/// one at most: more than nodes that choose at the same time drift apart, and few enough for an
/// executor that returns.
const TURNS_BEHIND_MAX: i64 = 4;

/// How a task has used an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// How often.
    pub count: i64,
    /// When last: a number that only grows within the task, with no other meaning.
    pub last: i64,
}

/// What a batch adds to a stored [`Use`]. Nodes add at the same time, so it is not a value to
/// overwrite with: `count` becomes max(stored count or 0, `floor`) + `added`, and `last` becomes
/// max(stored last or 0, `last`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseChange {
    /// Task.
    pub task_id: TaskId,
    /// Executor's address.
    pub address: String,
    /// Where the count must at least have stood before these uses.
    pub floor: i64,
    /// How many uses these are; 0 for an address that was seen for the first time and not used.
    pub added: i64,
    /// The last of them.
    pub last: i64,
}

/// The uses of the tasks of one batch.
#[derive(Debug, Default)]
pub struct Uses {
    tasks: HashMap<TaskId, TaskUses>,
}

impl Uses {
    /// Takes over what is stored.
    pub fn insert(&mut self, task_id: TaskId, address: String, stored: Use) {
        self.of(task_id).insert(address, stored);
    }

    /// What changed since the last call, in the order of (task, address), so that nodes that
    /// store at the same time lock in the same order.
    pub fn take_changes(&mut self) -> Vec<UseChange> {
        let mut changes = Vec::new();
        for (task_id, uses) in &mut self.tasks {
            for entry in uses.entries.iter_mut().filter(|entry| entry.changed) {
                let Entry { address, floor, added, last, .. } = entry;
                let (address, last) = (address.clone(), *last);
                changes.push(UseChange { task_id: *task_id, address, floor: *floor, added: *added, last });
                entry.floor = entry.count();
                entry.added = 0;
                entry.changed = false;
            }
        }
        changes.sort_by(|a, b| (a.task_id, &a.address).cmp(&(b.task_id, &b.address)));
        changes
    }

    pub(super) fn of(&mut self, task_id: TaskId) -> &mut TaskUses {
        self.tasks.entry(task_id).or_default()
    }
}

/// The uses of one task.
#[derive(Debug, Default)]
pub(super) struct TaskUses {
    entries: Vec<Entry>,
    /// Places in `entries`.
    places: HashMap<String, usize>,
    /// The last use of all.
    last: i64,
}

#[derive(Debug)]
struct Entry {
    address: String,
    floor: i64,
    added: i64,
    last: i64,
    /// Stored, or seen by [`TaskUses::welcome`].
    known: bool,
    changed: bool,
}

impl Entry {
    fn count(&self) -> i64 {
        self.floor.saturating_add(self.added)
    }
}

impl TaskUses {
    fn insert(&mut self, address: String, stored: Use) {
        let slot = self.slot(&address);
        self.last = self.last.max(stored.last);
        if let Some(entry) = self.entries.get_mut(slot) {
            *entry =
                Entry { address, floor: stored.count.max(0), added: 0, last: stored.last, known: true, changed: false };
        }
    }

    fn slot(&mut self, address: &str) -> usize {
        if let Some(slot) = self.places.get(address) {
            return *slot;
        }
        let slot = self.entries.len();
        self.entries.push(Entry {
            address: address.to_owned(),
            floor: 0,
            added: 0,
            last: 0,
            known: false,
            changed: false,
        });
        self.places.insert(address.to_owned(), slot);
        slot
    }

    /// Where the addresses of `executors` are kept; stays true as long as this lives.
    pub fn slots(&mut self, executors: &[Arc<Executor>]) -> Vec<usize> {
        executors.iter().map(|executor| self.slot(&executor.address)).collect()
    }

    /// Gives those of `executors` that are new their start, before the first of them is chosen.
    pub fn welcome(&mut self, executors: &[Arc<Executor>], slots: &[usize]) {
        let known = self.standings(executors, slots).zip(slots);
        let known = known.filter(|(_, slot)| self.entries.get(**slot).is_some_and(|entry| entry.known));
        let least = known.map(|(standing, _)| standing).min_by(by_ratio).unwrap_or((0, 1));
        for (executor, slot) in executors.iter().zip(slots) {
            if let Some(entry) = self.entries.get_mut(*slot).filter(|entry| !entry.known) {
                entry.floor = scale(least, executor.share().max(1), least.1 - 1);
                entry.known = true;
                entry.changed = true;
            }
        }
    }

    /// The place of the executor with the fewest uses for its weight, the first of several. The
    /// use is counted.
    pub fn least_frequent(&mut self, executors: &[Arc<Executor>], slots: &[usize]) -> Option<usize> {
        let standings = self.standings(executors, slots).enumerate();
        let (place, (count, _)) = standings.min_by(|(_, a), (_, b)| by_ratio(a, b))?;
        self.count_use(*slots.get(place)?, count);
        Some(place)
    }

    /// As what each counts: its uses, or what it is lifted to behind the leader; and its weight.
    fn standings(&self, executors: &[Arc<Executor>], slots: &[usize]) -> impl Iterator<Item = (i64, i64)> {
        let shares = executors.iter().map(|executor| executor.share().max(1));
        let lightest = shares.clone().min().unwrap_or(1);
        let counts = slots.iter().map(|slot| self.entries.get(*slot).map_or(0, Entry::count)).zip(shares);
        let leader = counts.clone().max_by(by_ratio).unwrap_or((0, 1));
        counts.map(move |(count, share)| {
            let behind = TURNS_BEHIND_MAX * share / lightest;
            (count.max(scale(leader, share, 0).saturating_sub(behind)), share)
        })
    }

    /// The place of the executor that was unused for longest, the first of several. The use is
    /// counted.
    pub fn least_recent(&mut self, slots: &[usize]) -> Option<usize> {
        let lasts = slots.iter().filter_map(|slot| self.entries.get(*slot)).map(|entry| entry.last);
        let (place, _) = lasts.enumerate().min_by_key(|(_, last)| *last)?;
        self.count_use(*slots.get(place)?, 0);
        Some(place)
    }

    /// One use more, by an entry that counts as standing at `standing` before it.
    fn count_use(&mut self, slot: usize, standing: i64) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        self.last = self.last.saturating_add(1);
        entry.floor = entry.floor.max(standing.saturating_sub(entry.added));
        entry.added += 1;
        entry.last = self.last;
        entry.known = true;
        entry.changed = true;
    }
}

/// Compares counts for their weights without dividing.
fn by_ratio(a: &(i64, i64), b: &(i64, i64)) -> Ordering {
    (i128::from(a.0) * i128::from(b.1)).cmp(&(i128::from(b.0) * i128::from(a.1)))
}

/// The count that stands to `share` as the given one to its own, with `carry` to round up.
fn scale((count, own): (i64, i64), share: i64, carry: i64) -> i64 {
    let scaled = (i128::from(count) * i128::from(share) + i128::from(carry)) / i128::from(own);
    i64::try_from(scaled).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fleet;
    use super::*;

    /// Chooses `runs` times by `least_frequent`; the ids chosen.
    fn frequent(uses: &mut Uses, executors: &[Arc<Executor>], runs: usize) -> Vec<i64> {
        let uses = uses.of(TaskId(1));
        let slots = uses.slots(executors);
        uses.welcome(executors, &slots);
        (0..runs).map(|_| executors[uses.least_frequent(executors, &slots).unwrap()].id.0).collect()
    }

    fn recent(uses: &mut Uses, executors: &[Arc<Executor>], runs: usize) -> Vec<i64> {
        let uses = uses.of(TaskId(1));
        let slots = uses.slots(executors);
        (0..runs).map(|_| executors[uses.least_recent(&slots).unwrap()].id.0).collect()
    }

    fn stored(fleet: &[Arc<Executor>], counts: &[i64]) -> Uses {
        let mut uses = Uses::default();
        for (executor, count) in fleet.iter().zip(counts) {
            uses.insert(TaskId(1), executor.address.clone(), Use { count: *count, last: *count });
        }
        uses
    }

    #[test]
    fn the_least_used_comes_next_and_ties_go_by_address() {
        let fleet = fleet(&[1, 1, 1]);
        assert_eq!(frequent(&mut Uses::default(), &fleet, 5), [1, 2, 3, 1, 2]);
        assert_eq!(frequent(&mut stored(&fleet, &[7, 5, 6]), &fleet, 5), [2, 2, 3, 1, 2]);
        assert_eq!(Uses::default().of(TaskId(1)).least_frequent(&[], &[]), None);
        assert_eq!(Uses::default().of(TaskId(1)).least_recent(&[]), None);
    }

    #[test]
    fn uses_are_weighed() {
        let fleet = fleet(&[1, 4]);
        let chosen = frequent(&mut Uses::default(), &fleet, 50);
        assert_eq!(chosen.iter().filter(|id| **id == 1).count(), 10);
        // A new weight counts from now on; the past is not made up for.
        let chosen = frequent(&mut stored(&fleet, &[1_000, 1_000]), &fleet, 50);
        assert!((6..=10).contains(&chosen.iter().filter(|id| **id == 1).count()), "{chosen:?}");
    }

    #[test]
    fn a_newcomer_begins_with_the_others() {
        let fleet = fleet(&[1, 1, 1, 2]);
        let mut uses = stored(&fleet, &[1_000, 1_001]);
        assert_eq!(frequent(&mut uses, &fleet, 6), [1, 3, 4, 4, 1, 2]);
        let change = |id: i64, floor, added, last| {
            let address = fleet[id as usize - 1].address.clone();
            UseChange { task_id: TaskId(1), address, floor, added, last }
        };
        let expect = [
            change(1, 1_000, 2, 1_006),
            change(2, 1_001, 1, 1_007),
            change(3, 1_000, 1, 1_003),
            change(4, 2_000, 2, 1_005),
        ];
        assert_eq!(uses.take_changes(), expect);
    }

    /// One that was seen and not chosen has its start stored: it is not new again for the next.
    #[test]
    fn last_seen_times_are_stored() {
        let fleet = fleet(&[1, 1]);
        let mut uses = Uses::default();
        frequent(&mut uses, &fleet, 1);
        let changes = uses.take_changes();
        assert_eq!(changes.iter().map(|change| (change.floor, change.added)).collect::<Vec<_>>(), [(0, 1), (0, 0)]);
    }

    #[test]
    fn a_returning_subscriber_is_told_to_reload() {
        let fleet = fleet(&[1, 1, 1]);
        for counts in [[1_000, 3, 1_000], [1_000, 3, 4]] {
            let mut uses = stored(&fleet, &counts);
            let chosen = frequent(&mut uses, &fleet, 30);
            assert!(chosen.iter().filter(|id| **id == 2).count() <= 10 + TURNS_BEHIND_MAX as usize, "{chosen:?}");
            let lifted = uses.take_changes().into_iter().find(|change| change.address == fleet[1].address).unwrap();
            assert_eq!(lifted.floor, 1_000 - TURNS_BEHIND_MAX);
        }
    }

    #[test]
    fn the_longest_unused_comes_next() {
        let fleet = fleet(&[1, 1, 1]);
        assert_eq!(recent(&mut Uses::default(), &fleet, 5), [1, 2, 3, 1, 2]);
        assert_eq!(recent(&mut stored(&fleet, &[30, 10, 20]), &fleet, 4), [2, 3, 1, 2]);
        // Never used comes first, once.
        assert_eq!(recent(&mut stored(&fleet, &[30, 10]), &fleet, 4), [3, 2, 1, 3]);
    }

    #[test]
    fn changes_are_handed_back_once_and_add_up() {
        let fleet = fleet(&[1]);
        let mut uses = stored(&fleet, &[10]);
        frequent(&mut uses, &fleet, 2);
        let [first] = uses.take_changes().try_into().unwrap();
        assert_eq!((first.floor, first.added, first.last), (10, 2, 12));
        assert_eq!(uses.take_changes(), []);
        frequent(&mut uses, &fleet, 1);
        let [second] = uses.take_changes().try_into().unwrap();
        assert_eq!((second.floor, second.added, second.last), (12, 1, 13));
    }

    #[test]
    fn absurd_counts_are_survived() {
        let fleet = fleet(&[1, 100]);
        frequent(&mut stored(&fleet, &[i64::MAX, i64::MIN]), &fleet, 5);
        recent(&mut stored(&fleet, &[i64::MAX, i64::MIN]), &fleet, 5);
    }
}
