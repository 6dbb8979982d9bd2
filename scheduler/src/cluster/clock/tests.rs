//! A node's machine that is suspended, or whose clock a time service slews.

use super::super::Membership;
use super::{Clock, ClusterClock};
use crate::domain::NodeId;
use crate::store::{Beat, ClusterStore, Fence, LeaseName, Member, NodeHeartbeat, NodeInfo, NodeState, Result};
use async_trait::async_trait;
use carillon_protocol::LocalClock;
use carillon_protocol::testing::{SECOND_US, TestMachine};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A way to the database and back each, µs.
const WAY_US: i64 = 200;

/// A node's machine, and the database, whose clock is right until somebody sets it.
#[derive(Debug, Default, Clone)]
struct World {
    machine: TestMachine,
    set_back_us: Arc<AtomicI64>,
}

impl World {
    fn passes(&self, us: i64) {
        self.machine.passes(us);
    }

    fn database_us(&self) -> i64 {
        self.machine.true_us() - self.set_back_us.load(Relaxed)
    }

    fn sets_the_database_back(&self, us: i64) {
        self.set_back_us.fetch_add(us, Relaxed);
    }

    async fn clock(&self) -> Arc<ClusterClock> {
        Arc::new(ClusterClock::synchronised_over(LocalClock::over(self.machine.clone()), self).await.unwrap())
    }
}

/// A database that has no other node.
#[async_trait]
impl ClusterStore for World {
    async fn now_us(&self) -> Result<i64> {
        self.passes(WAY_US);
        let now = self.database_us();
        self.passes(WAY_US);
        Ok(now)
    }

    async fn join(&self, _: &NodeInfo) -> Result<Member> {
        Ok(Member { id: NodeId(1), incarnation: String::new(), ids_after: 0, lived_until: 0 })
    }

    async fn heartbeat(&self, _: &Member, _: &NodeHeartbeat) -> Result<Beat> {
        Ok(Beat::Renewed)
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        Ok(Vec::new())
    }

    async fn leave(&self, _: &Member) -> Result<()> {
        Ok(())
    }

    async fn take_lease(&self, _: LeaseName, _: NodeId, _: Option<Fence>, _: i64) -> Result<Option<Fence>> {
        Ok(None)
    }

    async fn release_lease(&self, _: Fence) -> Result<()> {
        Ok(())
    }
}

/// A node that has just joined, and its clock.
async fn joined(world: &World) -> (Arc<ClusterClock>, Membership) {
    let clock = world.clock().await;
    let info = NodeInfo::default();
    let node = Membership::join(Arc::new(world.clone()), clock.clone(), &info, 10_000).await.unwrap();
    (clock, node)
}

/// A node that has beaten for long enough to judge others.
async fn settled_node(world: &World) -> Membership {
    let (_, node) = joined(world).await;
    beats_for(world, &node, 12).await;
    assert!(node.in_touch() && node.is_settled());
    node
}

async fn beats_for(world: &World, node: &Membership, seconds: i64) {
    for _ in 0..seconds {
        world.passes(SECOND_US);
        node.heartbeat(0).await.unwrap();
        node.look().await.unwrap();
    }
}

#[tokio::test]
async fn after_a_suspension_a_node_counts_as_out_of_contact() {
    let world = World::default();
    let node = settled_node(&world).await;
    world.machine.is_suspended_for(60 * SECOND_US);
    // No worker has turned yet, and the view is the old one.
    assert!(!node.in_touch(), "it would tell executors to go on");
    assert!(!node.is_settled(), "it would take over from others");
    node.heartbeat(0).await.unwrap();
    assert!(node.in_touch());
    assert!(!node.is_settled(), "nobody else has had the time to be heard");
    beats_for(&world, &node, 9).await;
    assert!(!node.is_settled());
    beats_for(&world, &node, 2).await;
    assert!(node.is_settled());
}

#[tokio::test]
async fn what_a_database_s_clock_does_makes_contact_last_no_longer() {
    let world = World::default();
    let (clock, node) = joined(&world).await;
    world.sets_the_database_back(3_600 * SECOND_US);
    // It can be read, and not written to.
    for _ in 0..11 {
        world.passes(SECOND_US);
        clock.observe(&world).await.unwrap();
    }
    assert!(!node.in_touch(), "it would tell executors to go on for an hour");
}

#[tokio::test]
async fn between_two_readings_a_clock_that_is_slewed_fast_does_not_lead() {
    let world = World::default();
    let clock = world.clock().await;
    for slew_ppm in [0, 50_000, 83_333, 500, 0, 0, 50_000] {
        clock.observe(&world).await.unwrap();
        world.machine.is_slewed_by(slew_ppm);
        for _ in 0..1_000 {
            world.passes(1_000);
            let behind_us = world.database_us() - clock.now_us();
            assert!(behind_us >= 0, "{} µs ahead at {slew_ppm} ppm", -behind_us);
            // The way back, and what two clocks may drift apart in a second.
            assert!(behind_us <= WAY_US + 102, "{behind_us} µs behind at {slew_ppm} ppm");
        }
    }
}

#[tokio::test]
async fn after_an_outage_the_clock_is_read_before_anything_is_decided_by_it() {
    let world = World::default();
    let clock = world.clock().await;
    world.sets_the_database_back(10 * SECOND_US);
    world.passes(4 * SECOND_US);
    clock.refresh(&world).await.unwrap();
    assert!(clock.now_us() > world.database_us() + 9 * SECOND_US, "a look is due; until then it costs nothing");
    world.passes(2 * SECOND_US);
    clock.refresh(&world).await.unwrap();
    assert!(clock.now_us() <= world.database_us());
}

/// It would take the database for restored from a backup when the clock is set forward again.
#[tokio::test]
async fn a_heartbeat_counts_by_the_clock_that_it_was_written_by() {
    let world = World::default();
    let (clock, node) = joined(&world).await;
    world.sets_the_database_back(130 * SECOND_US);
    let written_at = world.database_us() / 1_000;
    node.heartbeat(0).await.unwrap();
    // Until the next look the node does not know.
    world.passes(SECOND_US);
    clock.observe(&world).await.unwrap();
    node.look().await.unwrap();
    world.sets_the_database_back(-130 * SECOND_US);
    world.passes(SECOND_US);
    clock.observe(&world).await.unwrap();
    node.look().await.unwrap();
    assert!(node.last_beat() <= written_at + SECOND_US / 1_000 + 1, "{} > {written_at}", node.last_beat());
    node.heartbeat(0).await.unwrap();
    assert!(node.last_beat() > written_at + 100_000);
}
