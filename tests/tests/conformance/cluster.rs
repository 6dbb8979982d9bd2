//! Nodes, heartbeats, the clock.

use crate::fixture::{World, node_info};
use carillon::domain::NodeId;
use carillon::store::{Beat, ClockReading, Member, NodeHeartbeat, NodeInfo, SqlStore, StoreErrorKind};
use carillon_tests::{Database, Kind, await_until};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;

cases!(
    each_name_has_one_number_and_a_new_process_replaces_the_old,
    a_node_that_left_is_listed_as_such_until_it_beats,
    a_node_says_how_its_clock_stands,
    who_joins_is_told_that_the_clock_was_set_back,
    a_process_that_joins_finds_that_the_clock_was_set_back_meanwhile,
    a_heartbeat_is_never_read_before_it_was_written,
    nodes_that_join_at_once_get_numbers_of_their_own,
    the_clock_is_the_time_and_moves_on,
);

databases!(a_number_that_has_rested_is_taken_once);

/// At once: more than a node tries for a number.
const JOINERS: usize = 64;

/// So many nodes, half of them over each of the two stores. One that gets no connection in time ends, and its supervisor
/// starts it again: over SQLite each waits for all others' transactions.
async fn joined_at_once(world: &World) -> Vec<Member> {
    let joins = (0..JOINERS).map(|number| {
        let store = Arc::clone(if number % 2 == 0 { &world.store } else { &world.rival });
        let node = node_info(&format!("new-{number}"));
        tokio::spawn(async move {
            await_until("a node has joined", 60, || async {
                match store.join(&node).await {
                    Err(error) if error.kind() == StoreErrorKind::Unavailable => None,
                    joined => Some(joined.unwrap()),
                }
            })
            .await
        })
    });
    join_all(joins).await.into_iter().map(Result::unwrap).collect()
}

fn beat(queue_depth: u64) -> NodeHeartbeat {
    NodeHeartbeat { queue_depth, ..NodeHeartbeat::default() }
}

async fn each_name_has_one_number_and_a_new_process_replaces_the_old(world: World) {
    let store = &world.store;
    let a = store.join(&node_info("a")).await.unwrap();
    let b = store.join(&node_info("b")).await.unwrap();
    assert_ne!(a.id, b.id);
    assert_eq!(store.heartbeat(&a, &beat(3)).await.unwrap(), Beat::Renewed);

    let again = store.join(&node_info("a")).await.unwrap();
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
    let a = store.join(&node_info("a")).await.unwrap();
    store.leave(&a).await.unwrap();
    assert!(store.nodes().await.unwrap()[0].left_at > 0);
    assert_eq!(store.heartbeat(&a, &beat(0)).await.unwrap(), Beat::Renewed);
    let listed = store.nodes().await.unwrap();
    assert_eq!((listed.len(), listed[0].left_at), (1, 0));
}

async fn a_node_says_how_its_clock_stands(world: World) {
    let store = &world.store;
    let a = store.join(&node_info("a")).await.unwrap();
    let clock = async || store.nodes().await.unwrap()[0].clock;
    assert_eq!(clock().await, None, "not measured yet");
    let behind = Some(ClockReading { offset_ms: -70, uncertainty_us: 900 });
    for said in [behind, None, behind] {
        assert_eq!(store.heartbeat(&a, &NodeHeartbeat { clock: said, ..beat(1) }).await.unwrap(), Beat::Renewed);
        assert_eq!(clock().await, said);
    }
    store.join(&node_info("a")).await.unwrap();
    assert_eq!(clock().await, None, "that was another process");
}

async fn who_joins_is_told_that_the_clock_was_set_back(world: World) {
    let store = &world.store;
    let a = store.join(&node_info("a")).await.unwrap();
    assert_eq!(a.lived_until, 0, "there was none before");
    let far = a_moment_ago(&world).await + 3_600_000;
    for said in [far, far - 5_000, 0] {
        store.heartbeat(&a, &NodeHeartbeat { set_back_from: said, ..beat(0) }).await.unwrap();
        assert_eq!(store.nodes().await.unwrap()[0].set_back_from, far, "nobody forgets it");
    }
    assert_eq!(store.join(&node_info("b")).await.unwrap().lived_until, far);
    assert_eq!(store.nodes().await.unwrap()[1].set_back_from, far);
    store.leave(&a).await.unwrap();
    assert_eq!(world.rival.join(&node_info("a")).await.unwrap().lived_until, far);
}

async fn a_process_that_joins_finds_that_the_clock_was_set_back_meanwhile(world: World) {
    let store = &world.store;
    let join = async |name: &str, offset_ms: i64| {
        let clock = Some(ClockReading { offset_ms, uncertainty_us: 900 });
        store.join(&NodeInfo { clock, ..node_info(name) }).await.unwrap().ids_after
    };
    assert_eq!(join("a", -70).await, 0);
    assert_eq!(join("a", -60).await, 0, "as before");
    assert_eq!(join("b", 1_940).await, 0, "another machine");
    let now = a_moment_ago(&world).await;
    let ids_after = join("a", 1_940).await;
    assert!((now..now + 90_000).contains(&ids_after), "{ids_after} at {now}: it may make ids once more");
    let told = store.join(&node_info("c")).await.unwrap().lived_until;
    assert!((now..now + 30_000).contains(&told), "{told} at {now}: nodes have lived until then");
    assert!(store.nodes().await.unwrap().iter().all(|node| node.set_back_from == 0), "nobody has seen it");
}

async fn a_moment_ago(world: &World) -> i64 {
    world.store.now_us().await.unwrap() / 1_000
}

/// What the comparison of clocks of several servers goes by.
async fn a_heartbeat_is_never_read_before_it_was_written(world: World) {
    let me = world.store.join(&node_info("a")).await.unwrap();
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
    assert_eq!(world.store.join(&node_info("a")).await.unwrap().ids_after, 0);
    assert_eq!(world.store.join(&node_info("a")).await.unwrap().ids_after, 0);
    database.execute("UPDATE node SET heartbeat_at = heartbeat_at + 3600000 WHERE name = 'a'").await;
    let seen = database.number("SELECT heartbeat_at FROM node WHERE name = 'a'").await;
    let again = world.store.join(&node_info("a")).await.unwrap();
    assert!(again.ids_after > seen);
    assert_eq!(again.lived_until, seen);
    assert_eq!(world.store.nodes().await.unwrap()[0].set_back_from, seen);
}

async fn nodes_that_join_at_once_get_numbers_of_their_own(world: World) {
    let members = joined_at_once(&world).await;
    let numbers: BTreeSet<NodeId> = members.iter().map(|member| member.id).collect();
    assert_eq!(numbers.len(), JOINERS);
    assert!(numbers.iter().all(|number| (1..=1_023).contains(&number.0)));
}

/// No number is unused, and all have rested.
async fn a_number_that_has_rested_is_taken_once(world: World, _: SqlStore) {
    let database = world.database.as_ref().unwrap();
    let long_ago = a_moment_ago(&world).await - 2 * 3_600_000;
    let row = |id| format!("({id}, 'old-{id}', '', 'i-{id}', '1', {long_ago}, {long_ago}, 0, 0)");
    let rows: Vec<String> = (1..=1_023).map(row).collect();
    let columns = "id, name, address, incarnation, version, started_at, heartbeat_at, left_at, queue_depth";
    database.execute(&format!("INSERT INTO node ({columns}) VALUES {}", rows.join(", "))).await;
    let members = joined_at_once(&world).await;
    let numbers: BTreeSet<NodeId> = members.iter().map(|member| member.id).collect();
    assert_eq!(numbers.len(), JOINERS, "{numbers:?}");
    for member in &members {
        assert_eq!(world.store.heartbeat(member, &beat(0)).await.unwrap(), Beat::Renewed);
    }
}

async fn the_clock_is_the_time_and_moves_on(world: World) {
    let first = world.store.now_us().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let second = world.rival.now_us().await.unwrap();
    assert!(second > first);
    assert!((second - carillon_tests::now_us()).abs() < 2_000_000);
}
