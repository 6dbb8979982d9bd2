//! Statements that are given up midway, because the database does not answer in time or the caller has gone.

use crate::fixture::connect;
use carillon::store::{ClusterStore as _, DatabaseSettings, NodeHeartbeat, NodeInfo, SqlStore, StoreErrorKind};
use carillon_tests::proxy::Proxy;
use carillon_tests::{Database, Kind};
use std::time::{Duration, Instant};

/// A row is locked for no longer than this by a node that is gone; the limit itself is 5 s.
const LOCKED_MAX: Duration = Duration::from_secs(15);

/// Writes after the one that was given up; the pool has one connection, so that each goes over the same.
const WRITES: u64 = 5;

servers!(a_begin_leaves_no_open_transaction, a_transaction_that_is_left_alone_lets_others_pass);

fn node(name: &str) -> NodeInfo {
    NodeInfo { name: name.to_owned(), address: format!("http://{name}:1"), version: "1".to_owned() }
}

/// The server carries out a `BEGIN` whose answer comes too late. What is written afterwards is committed.
async fn a_begin_leaves_no_open_transaction(kind: Kind) {
    let database = Database::fresh(kind).await;
    let seen = connect(&database.url).await;
    seen.migrate().await.unwrap();
    let proxy = Proxy::to(&database.url).await;
    let settings = DatabaseSettings {
        url: proxy.url.clone(),
        max_connections: 1,
        connect_timeout: Duration::from_secs(30),
        statement_timeout: Duration::from_millis(500),
        migrate_at_start: false,
    };
    let store = SqlStore::connect(&settings).await.unwrap();
    let member = store.join(&node("a")).await.unwrap();

    proxy.hold_answers_to("BEGIN");
    let given_up = store.join(&node("b")).await.unwrap_err();
    assert_eq!(given_up.kind(), StoreErrorKind::Unavailable, "{given_up}");
    proxy.release();

    for queue_depth in 1..=WRITES {
        let beat = NodeHeartbeat { queue_depth, clock: None, last: 0 };
        // The connection is free when the late answer has come; until then this is unavailable, too.
        while let Err(error) = store.heartbeat(&member, &beat).await {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        }
        let nodes = seen.nodes().await.unwrap();
        assert_eq!(nodes[0].queue_depth, i64::try_from(queue_depth).unwrap(), "acknowledged, and not committed");
    }
}

/// A node that is frozen within a transaction holds its locks for a few seconds, not for as long as it is frozen.
async fn a_transaction_that_is_left_alone_lets_others_pass(kind: Kind) {
    let database = Database::fresh(kind).await;
    let store = connect(&database.url).await;
    store.migrate().await.unwrap();
    let member = store.join(&node("a")).await.unwrap();
    let proxy = Proxy::to(&database.url).await;
    let settings = DatabaseSettings {
        url: proxy.url.clone(),
        max_connections: 1,
        connect_timeout: Duration::from_secs(30),
        statement_timeout: Duration::from_secs(20),
        migrate_at_start: false,
    };
    let frozen = SqlStore::connect(&settings).await.unwrap();
    // Joining again under the name changes the node's row, and stops before its commit.
    proxy.freeze_before("COMMIT");
    let joining = tokio::spawn(async move { frozen.join(&node("a")).await });
    proxy.frozen().await;

    let beat = NodeHeartbeat { queue_depth: 1, clock: None, last: 0 };
    let until = Instant::now() + LOCKED_MAX;
    while let Err(error) = store.heartbeat(&member, &beat).await {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(Instant::now() < until, "still locked: {error}");
    }
    joining.abort();
}
