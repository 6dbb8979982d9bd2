//! The order in which runs leave the queue, and how many of each tenant may be on their way: data
//! without locks, threads or clock.
//!
//! ```text
//! waiting ── look-at instant reached ──▶ due, by tenant ── taken, 32 at a turn ──▶ under way ── finished
//! one heap: (instant, id)                one heap each:                            a number for each tenant
//!                                        (priority, due time, id)
//! ```

use crate::domain::clock_step::CLOCK_STEP_MIN_MS;
use crate::domain::{LogId, Run, TenantId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

/// Runs of one tenant in a row: enough for neighbours of one task to stay together, few enough for
/// fifteen tenants in a batch.
pub const TURN_RUNS: usize = 32;

/// Runs under way that all tenants share.
pub const UNDER_WAY_MAX: usize = 8_000;

/// A tenant may have so many under way, whatever the others have.
pub const UNDER_WAY_FLOOR: usize = 500;

/// A run that is due is put off for no longer than this, ms.
const PUT_OFF_MAX_MS: i64 = 15_000;

/// The most urgent priority.
const PRIORITY_MAX: i32 = 9;

/// Queued runs in the order in which they leave, and the numbers of those that left.
#[derive(Default)]
pub struct FairQueue {
    /// (look at, log id): not due yet.
    waiting: BinaryHeap<Reverse<(i64, LogId)>>,
    /// Every run inside, waiting or due: the heaps move small keys, not whole runs.
    runs: BTreeMap<LogId, Run>,
    /// Those with runs inside or under way.
    tenants: HashMap<TenantId, Tenant>,
    /// Tenants with due runs, whose turn is next in front.
    turns: VecDeque<TenantId>,
    under_way: usize,
    /// What the last take went by, epoch ms.
    taken_until: i64,
}

#[derive(Default)]
struct Tenant {
    /// (rank, log id), see [`rank`].
    due: BinaryHeap<Reverse<(u64, LogId)>>,
    queued: usize,
    under_way: usize,
}

/// Which of a page may come in.
pub struct Admission {
    /// These.
    pub admitted: Vec<Run>,
    /// Their tenants have enough in memory.
    pub refused: Vec<Run>,
}

impl FairQueue {
    /// Runs inside.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Runs inside and under way: what is in memory.
    pub fn held(&self) -> usize {
        self.runs.len() + self.under_way
    }

    /// Every run inside.
    pub fn runs(&self) -> &BTreeMap<LogId, Run> {
        &self.runs
    }

    /// When the next waiting run is to be looked at.
    pub fn next_look(&self) -> Option<i64> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// The earliest instant for which a run is ready by `until` that may leave.
    pub fn oldest_ready(&self, until: i64) -> Option<i64> {
        let limit = UNDER_WAY_FLOOR.max(UNDER_WAY_MAX.saturating_sub(self.under_way));
        let may_go = self.tenants.values().filter(|tenant| tenant.under_way < limit);
        let first = may_go.filter_map(|tenant| tenant.due.peek());
        let due = first.filter_map(|Reverse((_, id))| Some(self.runs.get(id)?.due_time));
        self.next_look().into_iter().chain(due).filter(|at| *at <= until).min()
    }

    /// Adds a run to be looked at from `at` on. Of a run that is already inside the newer version
    /// stays, in the place of the older one; of the same version, which a database that has lost commits may give twice, the
    /// one that was read last.
    pub fn push(&mut self, at: i64, run: Run) {
        match self.runs.get_mut(&run.id) {
            // An older copy must not displace the row as it is now.
            Some(inside) if inside.version > run.version => {}
            Some(inside) => *inside = run,
            None => {
                self.tenants.entry(run.tenant_id).or_default().queued += 1;
                // What is put off for longer is so by a clock that was set back since.
                let at = at.min(run.due_time.max(self.taken_until + PUT_OFF_MAX_MS));
                self.waiting.push(Reverse((at, run.id)));
                self.runs.insert(run.id, run);
            }
        }
    }

    /// Takes up to `max` runs to be looked at by `until`: tenants in turn, each its most urgent
    /// first. Those that have their share under way are passed over; returns whether there were
    /// any. They are few: each has at least [`UNDER_WAY_FLOOR`] under way.
    pub fn take(&mut self, until: i64, max: usize) -> (Vec<Run>, bool) {
        if until < self.taken_until - CLOCK_STEP_MIN_MS {
            self.start_over();
        }
        self.taken_until = until;
        self.ripen(until);
        let mut taken = Vec::new();
        let (mut passed_over, mut in_a_row) = (false, 0);
        while taken.len() < max && in_a_row < self.turns.len() {
            let Some(id) = self.turns.pop_front() else { break };
            let limit = UNDER_WAY_FLOOR.max(UNDER_WAY_MAX.saturating_sub(self.under_way));
            let Some(tenant) = self.tenants.get_mut(&id) else { continue };
            let turn = TURN_RUNS.min(max - taken.len()).min(limit.saturating_sub(tenant.under_way));
            if turn == 0 {
                passed_over = true;
                in_a_row += 1;
                self.turns.push_back(id);
                continue;
            }
            in_a_row = 0;
            let before = taken.len();
            let keys = std::iter::from_fn(|| tenant.due.pop()).take(turn);
            taken.extend(keys.filter_map(|Reverse((_, run))| self.runs.remove(&run)));
            let count = taken.len() - before;
            tenant.queued -= count;
            tenant.under_way += count;
            self.under_way += count;
            if tenant.due.is_empty() {
                // A burst's memory goes with the burst.
                tenant.due.shrink_to(TURN_RUNS);
            } else {
                self.turns.push_back(id);
            }
        }
        (taken, passed_over)
    }

    /// `count` runs of the tenant are no longer under way.
    pub fn finish(&mut self, tenant: TenantId, count: usize) {
        let Some(entry) = self.tenants.get_mut(&tenant) else { return };
        let count = count.min(entry.under_way);
        entry.under_way -= count;
        self.under_way -= count;
        if entry.under_way == 0 && entry.queued == 0 {
            self.tenants.remove(&tenant);
        }
    }

    /// Which of `runs` may come into a queue of `capacity`. A tenant may hold as many as there is
    /// room left for all, times a weight that grows with the priority of the run: alone it
    /// gets 6/7 of the queue for its ordinary runs, and half of it for a backfill; two get 6/13
    /// each. However many burst, there is room left for the others, and for a bursting tenant's
    /// own more urgent runs.
    ///
    /// `blocked` counts runs that wait beside the queue, by tenant: they are in memory, too.
    pub fn admit(&self, capacity: usize, blocked: &BTreeMap<TenantId, usize>, runs: Vec<Run>) -> Admission {
        let mut room = capacity.saturating_sub(self.held() + blocked.values().sum::<usize>());
        let mut held: HashMap<TenantId, usize> = HashMap::new();
        let (admitted, refused) = runs.into_iter().partition(|run| {
            let held = held.entry(run.tenant_id).or_insert_with(|| {
                let inside = self.tenants.get(&run.tenant_id).map_or(0, |tenant| tenant.queued + tenant.under_way);
                inside + blocked.get(&run.tenant_id).copied().unwrap_or(0)
            });
            let fits = room > 0 && *held < room.saturating_mul(weight(run.priority));
            if fits {
                *held += 1;
                room -= 1;
            }
            fits
        });
        Admission { admitted, refused }
    }

    /// Empties the queue; what is under way stays so.
    pub fn drain(&mut self) -> Vec<Run> {
        self.waiting.clear();
        self.turns.clear();
        self.tenants.retain(|_, tenant| {
            tenant.due.clear();
            tenant.queued = 0;
            tenant.under_way > 0
        });
        std::mem::take(&mut self.runs).into_values().collect()
    }

    /// As if all had just come: the clock was set back. By the time before, what is due may be far from it, and what was put off
    /// for a moment would wait until then.
    fn start_over(&mut self) {
        self.turns.clear();
        self.tenants.values_mut().for_each(|tenant| tenant.due.clear());
        self.waiting = self.runs.values().map(|run| Reverse((run.due_time, run.id))).collect();
    }

    /// Moves what is to be looked at by `until` to its tenant's due runs.
    fn ripen(&mut self, until: i64) {
        while let Some(Reverse((at, id))) = self.waiting.peek().copied() {
            if at > until {
                break;
            }
            self.waiting.pop();
            let Some(run) = self.runs.get(&id) else { continue };
            let tenant = self.tenants.entry(run.tenant_id).or_default();
            if tenant.due.is_empty() {
                self.turns.push_back(run.tenant_id);
            }
            tenant.due.push(Reverse((rank(run), id)));
        }
        if self.waiting.len() < self.waiting.capacity() / 4 {
            self.waiting.shrink_to(self.waiting.len() * 2);
        }
    }
}

/// Orders the due runs of a tenant: the higher priority first, then the earlier due time. Both in
/// one number, so that a due run costs no more memory than a waiting one: four bits and 48, which
/// are 8,900 years of milliseconds.
fn rank(run: &Run) -> u64 {
    let due_time = run.due_time.clamp(0, (1 << 48) - 1) as u64;
    let after = PRIORITY_MAX - run.priority.clamp(0, PRIORITY_MAX);
    (after as u64) << 48 | due_time
}

fn weight(priority: i32) -> usize {
    priority.clamp(0, PRIORITY_MAX) as usize + 1
}

#[cfg(test)]
mod tests;
