//! Times without any node: noted by the first that joins, held against what lived through them.

use crate::fixture::{World, node_info};
use carillon::domain::silence::Silence;
use carillon::store::{Beat, Member, NodeHeartbeat, NodeInfo};

cases!(a_witness_is_noted_once_and_later_ones_extend_what_they_tell, a_node_notices_that_its_heartbeats_are_lost,);

fn told(from: i64, lived_until: i64, by: &str) -> Silence {
    Silence { from, until: from + 500_000, lived_until, found_by: by.to_owned(), decision: None }
}

async fn a_witness_is_noted_once_and_later_ones_extend_what_they_tell(world: World) {
    let silences = async || world.store.rules(world.now).await.unwrap().silences;
    let version = async || world.store.rule_version().await.unwrap();
    assert!(silences().await.is_empty());
    let before = version().await;
    assert!(world.store.witness(&told(1_000, 200_000, "executor 1")).await.unwrap());
    assert!(version().await > before, "other nodes learn of it");
    let known = version().await;
    for earlier in [200_000, 150_000] {
        assert!(!world.store.witness(&told(1_000, earlier, "executor 2")).await.unwrap(), "no news: {earlier}");
    }
    assert_eq!((version().await, silences().await), (known, vec![told(1_000, 200_000, "executor 1")]));
    assert!(world.rival.witness(&told(1_000, 300_000, "executor 3")).await.unwrap());
    assert!(world.store.witness(&told(900_000, 950_000, "node 1")).await.unwrap());
    let newest_first = [told(900_000, 950_000, "node 1"), told(1_000, 300_000, "executor 3")];
    assert_eq!(silences().await, newest_first);
}

async fn a_node_notices_that_its_heartbeats_are_lost(world: World) {
    let store = &world.store;
    let info = node_info("a");
    let me = store.join(&info).await.unwrap();
    let beat = async |me: &Member, last| {
        let said = NodeHeartbeat { last, ..NodeHeartbeat::default() };
        store.heartbeat(me, &said).await.unwrap()
    };
    let now = store.now_us().await.unwrap() / 1_000;
    // A clock that was set back makes the row no older than it was.
    assert_eq!(beat(&me, now + 3_600_000).await, Beat::Renewed);
    assert_eq!(beat(&me, now).await, Beat::Renewed);
    let Some(database) = &world.database else { return };
    // The row as an older backup has it: of this process, of one before it, or not there at all.
    let old = now - 600_000;
    database.execute(&format!("UPDATE node SET heartbeat_at = {old}")).await;
    assert_eq!(beat(&me, now).await, Beat::Restored { from: old });
    database.execute("UPDATE node SET incarnation = 'of an earlier process'").await;
    assert_eq!(beat(&me, now).await, Beat::Restored { from: old });
    database.execute("DELETE FROM node").await;
    assert_eq!(beat(&me, now).await, Beat::Restored { from: 0 });
    // Another one was heard of all along: only this row was lost, with the last commits.
    store.join(&info).await.unwrap();
    let other = store.join(&NodeInfo { name: "b".to_owned(), ..info.clone() }).await.unwrap();
    database.execute(&format!("DELETE FROM node WHERE id = {}", me.id)).await;
    assert_eq!(beat(&me, now).await, Beat::Restored { from: 0 }, "that one has joined since");
    database.execute(&format!("UPDATE node SET started_at = {old}")).await;
    assert_eq!(beat(&me, now).await, Beat::Replaced);
    assert_eq!(beat(&other, now).await, Beat::Renewed);
    database.execute("DELETE FROM node").await;

    // The first that joins after a silence notes it.
    store.join(&info).await.unwrap();
    assert!(store.rules(now).await.unwrap().silences.is_empty(), "there is nothing to be silent about");
    database.execute(&format!("UPDATE node SET heartbeat_at = {old}")).await;
    let again = store.join(&info).await.unwrap();
    assert_eq!(beat(&me, now).await, Beat::Replaced, "it was heard of just now");
    assert_eq!(beat(&again, now).await, Beat::Renewed);
    let silences = store.rules(now).await.unwrap().silences;
    assert_eq!(silences.iter().map(|silence| (silence.from, silence.lived_until)).collect::<Vec<_>>(), [(old, 0)]);
    assert!((now..now + 60_000).contains(&silences[0].until), "{silences:?}");
}
