//! P11 of apps and tenants: what was dispatched since every node knew a bound is never more at once than it says.

use super::Evidence;
use super::turns::Going;
use crate::operations::KnownBound;
use carillon::domain::Run;
use carillon_simulation::store::Bounded;

/// A batch that was chosen before its node knew the bound is dispatched within this time, ms.
const CHOSEN_BEFORE_MS: i64 = 1_000;

/// The same while something is out of order: its statements are tried again after their time-out, of 8 s each.
const CHOSEN_BEFORE_IN_TROUBLE_MS: i64 = 20_000;

impl Evidence<'_> {
    /// Each bound, from when every node knew it until it was changed.
    pub fn bounds_are_kept(&mut self) {
        for known in self.world.bounds.lock().unwrap().clone() {
            // One that was lost with the last commits bounds nothing.
            if known.bound.most > 0 && self.state.rebounds.iter().any(|kept| kept.at == known.bound.at) {
                self.bound_is_kept(&known);
            }
        }
    }

    fn bound_is_kept(&mut self, KnownBound { bound, at }: &KnownBound) {
        let is_calm = self.is_calm(*at, *at);
        let from = at + if is_calm { CHOSEN_BEFORE_MS } else { CHOSEN_BEFORE_IN_TROUBLE_MS };
        let next = self.state.rebounds.iter().find(|next| next.of == bound.of && next.version > bound.version);
        let until = next.map_or(i64::MAX, |next| next.at);
        let is_of = |run: &Run| match bound.of {
            Bounded::App(app) => run.app_id == app,
            Bounded::Tenant(tenant) => run.tenant_id == tenant,
        };
        let of_bound = self.permits().filter(|(run, going)| is_of(run) && (from..until).contains(&going.from));
        let mut held: Vec<Going> = of_bound.map(|(_, going)| going).collect();
        held.sort_by_key(|run| run.from);
        self.at_most(bound.most as usize, &held, "P11 no more runs of an app or a tenant at once than allowed");
    }
}
