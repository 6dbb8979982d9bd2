//! When nothing is out of order: what a fault may have done to a run, and what not.

use super::{Evidence, WEAKENED_MS};
use crate::faults::{Fault, Mishap, Planned};
use crate::operations::Intended;
use crate::settings::{ABANDON_AFTER_MS, HEARTBEAT_MS, LOADER_MS, OFFLINE_AFTER_MS};
use crate::world::MENDED_AT_MS;
use carillon::domain::{TaskId, TenantId};
use carillon_simulation::STATEMENT_MAX_MS;

/// For so long after it is over a fault may be felt, ms: as long as the settings let it take until all is as it was. The page
/// docs/reliability.md tells these times.
fn felt_for(fault: &Fault) -> i64 {
    match fault {
        // Executors are heard again at their next heartbeats; those that were replaced, or silent, count as online until then.
        Fault::Doubled { .. }
        | Fault::Overtaken { .. }
        | Fault::Loss { .. }
        | Fault::Cut { .. }
        | Fault::Island { .. }
        | Fault::Kill { .. }
        | Fault::Befalls { .. } => OFFLINE_AFTER_MS + HEARTBEAT_MS,
        // The others find out, and load what it had.
        Fault::Crash { .. } | Fault::CrashAtCommit { .. } | Fault::Stop { .. } | Fault::Pause { .. } => {
            OFFLINE_AFTER_MS + HEARTBEAT_MS + LOADER_MS
        }
        // A last statement comes to its end; after a long outage nodes and executors are new to each other; what is due is
        // loaded.
        Fault::StoreAway { .. }
        | Fault::ReadOnly { .. }
        | Fault::Slow { .. }
        | Fault::Behind { .. }
        | Fault::Doubt { .. }
        | Fault::LateCommits { .. }
        | Fault::GivenUp { .. }
        | Fault::Deadlocks { .. } => STATEMENT_MAX_MS + 2 * OFFLINE_AFTER_MS + LOADER_MS,
        Fault::LostCommits { .. } | Fault::ClockSet { .. } => WEAKENED_MS,
        // These disturb nothing.
        Fault::Lag { .. }
        | Fault::Wall { .. }
        | Fault::Drift { .. }
        | Fault::Edit { .. }
        | Fault::HalfEdit { .. }
        | Fault::Restart { .. }
        | Fault::HalfRestart { .. }
        | Fault::Burst { .. } => 0,
    }
}

/// An executor that drains stops what takes longer, and has delivered what came of it, within this time, ms.
const DRAINS_MS: i64 = 37_000;

/// A node that is stopped has left within this time, and one that is started has joined, ms.
const LEAVES_MS: i64 = 5_000;

/// The cluster has found itself so long after its beginning, ms.
const FOUND_AFTER_MS: i64 = 12_000;

/// Around a change of a task its own runs may come a little later, ms.
const CHANGE_MS: i64 = 8_000;

/// What a window or a bound has held back has caught up so long after its end, ms.
const HELD_BACK_MS: i64 = 20_000;

/// After so many runs at once those of the same tenant may be late, ms.
const BURST_MS: i64 = 40_000;

impl Evidence<'_> {
    /// Faults whose effects may reach into this time (epoch ms).
    pub fn disturbances(&self, from: i64, until: i64) -> impl Iterator<Item = &Planned> {
        let (from, until) = (from - self.world.began, until - self.world.began);
        let reaches = move |planned: &&Planned| {
            self.is_out_of_order_by(planned)
                && planned.at <= until
                && planned.until().min(MENDED_AT_MS) + self.felt_for(planned) >= from
        };
        self.world.faults.iter().filter(reaches)
    }

    /// Nobody believes that an executor of the release before is gone until it would have stopped by itself.
    fn felt_for(&self, planned: &Planned) -> i64 {
        let patience = ABANDON_AFTER_MS + 2 * OFFLINE_AFTER_MS;
        let is_in_doubt = self.world.shape.older_executor.is_some_and(|older| {
            planned.executor().map_or(matches!(planned.fault, Fault::Loss { .. }), |executor| executor == older)
        });
        let drains = matches!(
            planned.fault,
            Fault::Befalls { mishap: Mishap::Drain | Mishap::LeavesUnheard, .. } if self.world.shape.long_runs
        );
        felt_for(&planned.fault) + if is_in_doubt { patience } else { 0 } + if drains { DRAINS_MS } else { 0 }
    }

    /// A node that is stopped in good order is missed only when no other is there (P7).
    fn is_out_of_order_by(&self, planned: &Planned) -> bool {
        let Fault::Stop { node, .. } = planned.fault else { return planned.disturbs() };
        let stops_too = |other: &&Planned| {
            let of_another = matches!(other.fault, Fault::Stop { node: another, .. } if another != node);
            of_another && other.at <= planned.until() + LEAVES_MS && planned.at <= other.until() + LEAVES_MS
        };
        self.world.nodes.len() < 2 + self.world.faults.iter().filter(stops_too).count()
    }

    /// Whether nothing was out of order in this time (epoch ms), nor shortly before.
    pub fn is_calm(&self, from: i64, until: i64) -> bool {
        self.has_begun(from) && self.disturbances(from, until).next().is_none()
    }

    /// The same for one tenant: what befalls executors of others is none of its concern.
    pub fn is_calm_for(&self, tenant: TenantId, from: i64, until: i64) -> bool {
        self.has_begun(from) && !self.disturbances(from, until).any(|planned| self.may_concern(planned, tenant))
    }

    fn may_concern(&self, planned: &Planned, tenant: TenantId) -> bool {
        planned.executor().is_none_or(|executor| {
            let mut owners = self.world.tenants.iter().filter(|of| of.executors.contains(&executor));
            owners.any(|of| of.owner.tenant_id == tenant)
        })
    }

    /// Whether nothing was out of order but the database's clock.
    pub fn is_calm_but_for_clocks(&self, from: i64, until: i64) -> bool {
        let sets_clock = |planned: &Planned| matches!(planned.fault, Fault::ClockSet { .. });
        self.disturbances(from, until).all(sets_clock)
    }

    /// Whether nodes and executors had found each other by then.
    pub fn has_begun(&self, at: i64) -> bool {
        at >= self.world.began + FOUND_AFTER_MS
    }

    /// Whether a task was changed in this time, or almost.
    pub fn is_changed(&self, task: TaskId, from: i64, until: i64) -> bool {
        let near = from - CHANGE_MS..=until + CHANGE_MS;
        self.state.changes.iter().any(|change| change.task == task && near.contains(&change.at))
    }

    /// Whether people have kept runs of the tenant back in this time (epoch ms), by a window or a bound.
    pub fn is_held_back(&self, tenant: TenantId, from: i64, until: i64) -> bool {
        let holds = |intended: &Intended| {
            let Some((begin, end)) = intended.operation.holds_back() else { return false };
            let at = self.world.began + intended.at;
            // A window is by the database's clock, a bound by the patience of people.
            let shown = self.clock.at(at);
            let (begin, end) =
                ((at + begin).min(self.clock.first(shown + begin)), (at + end).max(self.clock.last(shown + end)));
            begin <= until && from <= end + HELD_BACK_MS
        };
        tenant == self.world.tenants[0].owner.tenant_id
            && (self.world.operations.iter().any(holds) || self.has_bound(from, until))
    }

    /// Whether a bound stood in this time. People set it through a node: while none can work, that is later than they want.
    fn has_bound(&self, from: i64, until: i64) -> bool {
        let rebounds = &self.state.rebounds;
        rebounds.iter().enumerate().filter(|(_, bound)| bound.most > 0 && bound.at <= until).any(|(place, bound)| {
            let next = rebounds[place + 1..].iter().find(|other| other.of == bound.of);
            next.is_none_or(|next| from <= next.at + HELD_BACK_MS)
        })
    }

    /// Whether the tenant itself had more to do then than it may expect to be done in time.
    pub fn is_crowded(&self, tenant: TenantId, at: i64) -> bool {
        let quotas = self.state.quotas.get(&tenant).copied().unwrap_or_default();
        let bursts = |planned: &Planned| match planned.fault {
            Fault::Burst { tenant: index, .. } => {
                let owner = self.world.tenants[index].owner;
                let from = self.world.began + planned.at;
                owner.tenant_id == tenant && (from..from + BURST_MS).contains(&at)
            }
            _ => false,
        };
        quotas.max_concurrent > 0 || quotas.max_fires_per_minute > 0 || self.world.faults.iter().any(bursts)
    }
}
