//! P11 of apps and tenants: what was dispatched since every node knew a bound is never more at once than it says.

use super::Evidence;
use super::turns::Going;
use crate::operations::{BoundChange, Bounded};
use carillon::domain::Run;

/// A batch that was chosen before its node knew the bound is dispatched within this time, ms.
const CHOSEN_BEFORE_MS: i64 = 1_000;

/// The same while something is out of order: its statements are tried again.
const CHOSEN_BEFORE_IN_TROUBLE_MS: i64 = 12_000;

impl Evidence<'_> {
    /// Each bound, for as long as every node went by it.
    pub fn bounds_are_kept(&mut self) {
        let all = self.world.bounds.lock().unwrap().clone();
        for of in [Bounded::App, Bounded::Tenant] {
            let changes: Vec<BoundChange> = all.iter().filter(|change| change.of == of).copied().collect();
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
        let is_of = |run: &Run| match of {
            Bounded::App => run.app_id == owner.app_id,
            Bounded::Tenant => run.tenant_id == owner.tenant_id,
        };
        let of_bound = self.permits().filter(|(run, going)| is_of(run) && (from..until).contains(&going.from));
        let mut held: Vec<Going> = of_bound.map(|(_, going)| going).collect();
        held.sort_by_key(|run| run.from);
        self.at_most(most as usize, &held, "P11 no more runs of an app or a tenant at once than allowed");
    }
}
