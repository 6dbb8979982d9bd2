//! P3 of backfills: their runs come last. Of what there is room for in the memory of a node, a tenant may hold no more for them
//! than it leaves to all; where it holds more, they wait in the database.

use super::Evidence;
use super::punctuality::{SOON_MS, longest};
use carillon::domain::{NodeId, Run, TenantId, Trigger};
use carillon_simulation::executor::Start;
use carillon_simulation::store::{Move, Stay};
use std::collections::BTreeSet;

impl Evidence<'_> {
    /// Whether a run of a backfill waited because no node had room for it.
    pub fn waits_for_room(&self, run: &Run, start: &Start) -> bool {
        run.trigger == Trigger::Backfill
            && self.longest_with_room(run.tenant_id, self.due_at(start), start.at) <= SOON_MS
    }

    /// The longest time in which one of the nodes would have taken a run of the tenant's backfills.
    fn longest_with_room(&self, tenant: TenantId, from: i64, until: i64) -> i64 {
        let goes_on = |stay: &&Stay| stay.from <= until && stay.to >= from;
        let stays: Vec<&Stay> = self.state.stays.all().iter().filter(goes_on).collect();
        let changes = stays.iter().flat_map(|stay| [stay.from, stay.to]);
        let moves = self.state.moves.iter().map(|one| one.at);
        longest(changes.chain(moves), from, until, |at| {
            self.nodes_at(at).into_iter().any(|node| {
                let held = || stays.iter().filter(|stay| stay.node == node && stay.from <= at && stay.to > at);
                let room = self.world.shape.capacity.saturating_sub(held().count());
                held().filter(|stay| stay.tenant == tenant).count() < room
            })
        })
    }

    /// Who had joined by then (epoch ms), and not left.
    fn nodes_at(&self, at: i64) -> BTreeSet<NodeId> {
        let mut there = BTreeSet::new();
        for Move { node, is_there, .. } in self.state.moves.iter().take_while(|one| one.at <= at) {
            if *is_there {
                there.insert(*node);
            } else {
                there.remove(node);
            }
        }
        there
    }
}
