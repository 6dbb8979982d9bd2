//! Leases: one holder at a time, and a number that only grows.

use crate::fixture::World;
use carillon::domain::NodeId;
use carillon::store::{Fence, LeaseName, Writer};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

cases!(
    a_lease_is_renewed_by_its_holder_and_refused_to_others,
    a_released_lease_goes_on_under_a_larger_number,
    an_expired_lease_changes_hands_and_cannot_be_renewed,
    of_many_candidates_one_gets_the_lease,
    writing_with_a_lost_fence_writes_nothing,
    writing_with_a_valid_fence_renews_it,
);

const LEASE: LeaseName = LeaseName::Pregenerate;
const MINUTE: i64 = 60_000;

async fn take(world: &World, node: NodeId, held: Option<Fence>, ttl_ms: i64) -> Option<Fence> {
    world.store.take_lease(LEASE, node, held, ttl_ms).await.unwrap()
}

/// A life that is over soon, ms, yet longer than any statement takes.
const SHORT: i64 = 400;

/// Leases of that life are over after this.
async fn expire() {
    tokio::time::sleep(Duration::from_millis(450)).await;
}

async fn a_lease_is_renewed_by_its_holder_and_refused_to_others(world: World) {
    let first = take(&world, NodeId(1), None, MINUTE).await.expect("it is free");
    assert_eq!((first.lease, first.node), (LEASE, NodeId(1)));
    assert_eq!(take(&world, NodeId(2), None, MINUTE).await, None);
    assert_eq!(take(&world, NodeId(1), Some(first), MINUTE).await, Some(first), "renewed under its number");
    let forged = Fence { node: NodeId(2), ..first };
    assert_eq!(take(&world, NodeId(2), Some(forged), MINUTE).await, None);
    let other = world.store.take_lease(LeaseName::Housekeeping, NodeId(2), None, MINUTE).await.unwrap();
    assert!(other.is_some(), "another lease is another right");
}

async fn a_released_lease_goes_on_under_a_larger_number(world: World) {
    let first = take(&world, NodeId(1), None, MINUTE).await.unwrap();
    let stale = Fence { number: first.number - 1, ..first };
    world.store.release_lease(stale).await.unwrap();
    assert_eq!(take(&world, NodeId(2), None, MINUTE).await, None, "an old number releases nothing");
    world.store.release_lease(first).await.unwrap();
    let second = take(&world, NodeId(2), None, MINUTE).await.expect("it is free");
    assert!(second.number > first.number);
    world.store.release_lease(first).await.unwrap();
    assert_eq!(take(&world, NodeId(1), Some(first), MINUTE).await, None);
}

async fn an_expired_lease_changes_hands_and_cannot_be_renewed(world: World) {
    let first = take(&world, NodeId(1), None, SHORT).await.unwrap();
    expire().await;
    let second = take(&world, NodeId(2), None, SHORT).await.expect("it expired");
    assert!(second.number > first.number);
    assert_eq!(take(&world, NodeId(1), Some(first), MINUTE).await, None);
    expire().await;
    let third = take(&world, NodeId(2), Some(second), MINUTE).await.expect("it expired");
    assert!(third.number > second.number, "an expired lease is not renewed but acquired again");
}

async fn of_many_candidates_one_gets_the_lease(world: World) {
    let asked = (1..=8).map(|node| {
        let store = Arc::clone(if node % 2 == 0 { &world.store } else { &world.rival });
        tokio::spawn(async move { store.take_lease(LEASE, NodeId(node), None, MINUTE).await.unwrap() })
    });
    let got: Vec<Fence> = join_all(asked).await.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(got.len(), 1, "{got:?}");
}

async fn writing_with_a_lost_fence_writes_nothing(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let lost = take(&world, NodeId(1), None, SHORT).await.unwrap();
    expire().await;
    let expired = world.plan(&task, [world.now]);
    assert_eq!(world.store.write_ahead(Writer::Lease(lost), &[expired], world.now).await.unwrap(), None);
    take(&world, NodeId(2), None, MINUTE).await.expect("it expired");
    let plan = carillon::domain::plan::Plan { to: task.next_fire_at + 1, ..world.plan(&task, [world.now]) };
    assert_eq!(world.store.write_ahead(Writer::Lease(lost), &[plan], world.now).await.unwrap(), None);
    assert!(world.rows(task.id).await.is_empty());
    assert_eq!(world.task(task.id).await.next_fire_at, task.next_fire_at, "nor is the watermark moved");
}

async fn writing_with_a_valid_fence_renews_it(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let fence = Fence { ttl_ms: MINUTE, ..take(&world, NodeId(1), None, 1_000).await.unwrap() };
    let plan = world.plan(&task, [world.now]);
    let moved = world.store.write_ahead(Writer::Lease(fence), &[plan], world.now).await.unwrap();
    assert_eq!(moved, Some([task.id].into()));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(take(&world, NodeId(2), None, MINUTE).await, None, "it lives on");
}
