//! P3 where nodes are full: of what there is room for in the memory of a node, a tenant may hold no more than it leaves to all, times a
//! weight that grows with the priority of the run; a run that finds no room waits in the database.

use super::Evidence;
use super::punctuality::{SOON_MS, longest};
use carillon::domain::task_log::PRIORITY_DEFAULT;
use carillon::domain::{NodeId, Run, TenantId};
use carillon_simulation::executor::Start;
use carillon_simulation::store::{Move, Stay};
use std::collections::{BTreeMap, BTreeSet};

/// Runs in memory of which no row tells: those that are on their way to executors, and those that wait for others while they are
/// tried, which count twice.
const UNSEEN: usize = 12;

/// What a node has in memory is gone from there a little before its row says so, and the other way round.
const SEEN_MS: i64 = 2_000;

/// Of the most urgent runs that a simulation has.
const WEIGHT: usize = 1 + PRIORITY_DEFAULT as usize;

impl Evidence<'_> {
    /// Nobody takes more of a node's memory at once than is left for all, times the weight of their runs.
    pub fn shares_are_kept(&mut self) {
        let stays = self.state.stays.all();
        let mut taken: BTreeMap<(i64, NodeId, TenantId), usize> = BTreeMap::new();
        for stay in stays {
            *taken.entry((stay.from, stay.node, stay.tenant)).or_default() += 1;
        }
        for ((at, node, tenant), count) in taken {
            let before = || stays.iter().filter(|stay| stay.node == node && stay.from < at && stay.to > at);
            let (all, own) = (before().count(), before().filter(|stay| stay.tenant == tenant).count());
            // Before the last of these came.
            let (all, own) = (all + count - 1, own + count - 1);
            let room = self.world.shape.capacity.saturating_sub(all);
            if own >= (room + UNSEEN).saturating_mul(WEIGHT) && self.is_calm(at - SEEN_MS, at) {
                let detail = format!("tenant {tenant} had {own} of {all} with node {node} at {at}, and took one more");
                self.breaks("P3 a tenant leaves room to the others", None, detail);
            }
        }
    }

    /// Whether a run waited because no node had room for it.
    pub fn waits_for_room(&self, run: &Run, start: &Start) -> bool {
        self.longest_with_room(run, self.due_at(start), start.at) <= SOON_MS
    }

    /// The longest time in which one of the nodes would have taken a run of its tenant and priority.
    fn longest_with_room(&self, run: &Run, from: i64, until: i64) -> i64 {
        let weight = usize::try_from(run.priority + 1).unwrap_or(1);
        let goes_on = |stay: &&Stay| stay.from <= until && stay.to >= from;
        let stays: Vec<&Stay> = self.state.stays.all().iter().filter(goes_on).collect();
        let changes = stays.iter().flat_map(|stay| [stay.from, stay.to]);
        let moves = self.state.moves.iter().map(|one| one.at);
        longest(changes.chain(moves), from, until, |at| {
            self.nodes_at(at).into_iter().any(|node| {
                let held = || stays.iter().filter(|stay| stay.node == node && stay.from <= at && stay.to > at);
                let room = self.world.shape.capacity.saturating_sub(held().count() + UNSEEN);
                held().filter(|stay| stay.tenant == run.tenant_id).count() < room.saturating_mul(weight)
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
