//! P11 of apps and tenants: what was dispatched since every node knew a bound is never more at once than it says.

use super::Evidence;
use super::turns::Going;
use crate::operations::{BoundChange, Bounded};
use carillon::domain::LogId;
use carillon_protocol::RunKey;
use carillon_simulation::store::LogRow;

/// A batch that was chosen before its node knew the bound is dispatched within this time, ms.
const CHOSEN_BEFORE_MS: i64 = 1_000;

/// The same while something is out of order: its statements are tried again.
const CHOSEN_BEFORE_IN_TROUBLE_MS: i64 = 12_000;

impl Evidence<'_> {
    /// Each bound, for as long as every node went by it.
    pub fn bounds_are_kept(&mut self) {
        for of in [Bounded::App, Bounded::Tenant] {
            let mut changes: Vec<BoundChange> = self.world.bounds.lock().unwrap().clone();
            changes.retain(|change| change.of == of);
            for (place, change) in changes.iter().enumerate() {
                let until = changes.get(place + 1).map_or(i64::MAX, |next| next.at);
                if let Some(most) = change.most {
                    self.bound_is_kept(of, most, change.at, until);
                }
            }
        }
    }

    fn bound_is_kept(&mut self, of: Bounded, most: i32, known_at: i64, until: i64) {
        let is_calm = self.is_calm(known_at, known_at);
        let from = known_at + if is_calm { CHOSEN_BEFORE_MS } else { CHOSEN_BEFORE_IN_TROUBLE_MS };
        let owner = self.world.tenants[0].owner;
        let is_of = |row: &&LogRow| match of {
            Bounded::App => row.run.app_id == owner.app_id,
            Bounded::Tenant => row.run.tenant_id == owner.tenant_id,
        };
        // Shards go by their parent's permit.
        let rows = self.state.logs.values().filter(is_of).filter(|row| row.run.parent_id.is_none());
        let mut held: Vec<Going> = rows.flat_map(|row| self.dispatched(row.run.id, from, until)).collect();
        held.sort_by_key(|run| run.from);
        self.at_most(most as usize, &held, "P11 no more runs of an app or a tenant at once than allowed");
    }

    /// Attempts that were dispatched in this time, each until its end was committed.
    fn dispatched(&self, log: LogId, from: i64, until: i64) -> Vec<Going> {
        let marks = self.state.dispatch_marks.range((log, 0)..(LogId(log.0 + 1), 0));
        let within = marks.filter(|(_, mark)| (from..until).contains(&mark.at));
        let end = |key| self.state.ends.get(key).map_or(i64::MAX, |end| end.at);
        within.map(|(key, mark)| Going { key: RunKey(log.0, key.1), from: mark.at, to: end(key) }).collect()
    }
}
