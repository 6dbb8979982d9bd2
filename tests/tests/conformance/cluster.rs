//! Nodes, heartbeats, the clock.

use crate::fixture::World;
use carillon::domain::NodeId;
use carillon::store::{Beat, ClockReading, NodeHeartbeat, NodeInfo};
use carillon_tests::{Database, Kind};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;

cases!(
    each_name_has_one_number_and_a_new_process_replaces_the_old,
    a_node_that_left_is_listed_as_such_until_it_beats,
    a_node_says_how_its_clock_stands,
    a_heartbeat_is_never_read_before_it_was_written,
    nodes_that_join_at_once_get_numbers_of_their_own,
    the_clock_is_the_time_and_moves_on,
);

fn node(name: &str) -> NodeInfo {
    NodeInfo { name: name.to_owned(), address: format!("http://{name}:1"), version: "1".to_owned() }
}

fn beat(queue_depth: u64) -> NodeHeartbeat {
    NodeHeartbeat { queue_depth, clock: None, last: 0 }
}

async fn each_name_has_one_number_and_a_new_process_replaces_the_old(world: World) {
    let store = &world.store;
    let a = store.join(&node("a")).await.unwrap();
    let b = store.join(&node("b")).await.unwrap();
    assert_ne!(a.id, b.id);
    assert_eq!(store.heartbeat(&a, &beat(3)).await.unwrap(), Beat::Renewed);

    let again = store.join(&node("a")).await.unwrap();
    assert_eq!(again.id, a.id);
    assert_ne!(again.incarnation, a.incarnation);
    assert_eq!(store.heartbeat(&a, &beat(3)).await.unwrap(), Beat::Replaced, "the old process was replaced");
    assert_eq!(store.heartbeat(&again, &beat(7)).await.unwrap(), Beat::Renewed);
    assert_eq!(store.heartbeat(&b, &beat(0)).await.unwrap(), Beat::Renewed, "the other node was not");

    store.leave(&a).await.unwrap();
    let listed = store.nodes().await.unwrap();
    let seen: Vec<_> = listed.iter().map(|node| (node.name.as_str(), node.left_at, node.queue_depth)).collect();
    assert_eq!(seen, [("a", 0, 7), ("b", 0, 0)], "a replaced process leaves for no one else");
}

async fn a_node_that_left_is_listed_as_such_until_it_beats(world: World) {
    let store = &world.store;
    let a = store.join(&node("a")).await.unwrap();
    store.leave(&a).await.unwrap();
    assert!(store.nodes().await.unwrap()[0].left_at > 0);
    assert_eq!(store.heartbeat(&a, &beat(0)).await.unwrap(), Beat::Renewed);
    let listed = store.nodes().await.unwrap();
    assert_eq!((listed.len(), listed[0].left_at), (1, 0));
}

async fn a_node_says_how_its_clock_stands(world: World) {
    let store = &world.store;
    let a = store.join(&node("a")).await.unwrap();
    let clock = async || store.nodes().await.unwrap()[0].clock;
    assert_eq!(clock().await, None, "not measured yet");
    let behind = Some(ClockReading { offset_ms: -70, uncertainty_us: 900 });
    for said in [behind, None, behind] {
        assert_eq!(
            store.heartbeat(&a, &NodeHeartbeat { queue_depth: 1, clock: said, last: 0 }).await.unwrap(),
            Beat::Renewed
        );
        assert_eq!(clock().await, said);
    }
    store.join(&node("a")).await.unwrap();
    assert_eq!(clock().await, None, "that was another process");
}

/// What the comparison of clocks of several servers goes by.
async fn a_heartbeat_is_never_read_before_it_was_written(world: World) {
    let me = world.store.join(&node("a")).await.unwrap();
    let mut last = 0;
    for _ in 0..20 {
        world.store.heartbeat(&me, &beat(0)).await.unwrap();
        let seen = &world.rival.nodes().await.unwrap()[0];
        assert!(seen.read_at >= seen.heartbeat_at && seen.heartbeat_at >= last, "{seen:?}, after {last}");
        last = seen.read_at;
    }
}

/// The clock of the last heartbeat is ahead of now: a process before this one has made ids of coming milliseconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_makes_ids_of_its_own_after_the_clock_was_set_back() {
    let database = Database::fresh(Kind::Sqlite).await;
    let world = World::over_database(&database).await;
    assert_eq!(world.store.join(&node("a")).await.unwrap().ids_after, 0);
    assert_eq!(world.store.join(&node("a")).await.unwrap().ids_after, 0);
    database.execute("UPDATE node SET heartbeat_at = heartbeat_at + 3600000 WHERE name = 'a'").await;
    let seen = database.number("SELECT heartbeat_at FROM node WHERE name = 'a'").await;
    assert!(world.store.join(&node("a")).await.unwrap().ids_after > seen);
}

async fn nodes_that_join_at_once_get_numbers_of_their_own(world: World) {
    let joins = (0..8).map(|number| {
        let store = Arc::clone(if number % 2 == 0 { &world.store } else { &world.rival });
        tokio::spawn(async move { store.join(&node(&format!("node-{number}"))).await.unwrap().id })
    });
    let numbers: BTreeSet<NodeId> = join_all(joins).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers.len(), 8);
    assert!(numbers.iter().all(|number| (1..=1_023).contains(&number.0)));
}

async fn the_clock_is_the_time_and_moves_on(world: World) {
    let first = world.store.now_us().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let second = world.rival.now_us().await.unwrap();
    assert!(second > first);
    assert!((second - carillon_tests::now_us()).abs() < 2_000_000);
}
