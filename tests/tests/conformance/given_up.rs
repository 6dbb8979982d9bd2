//! Statements that are given up midway, because the database does not answer in time or the caller has gone.

use crate::fixture::{World, connect, node_info, over};
use carillon::domain::audit::{Actor, AuditNote, Target};
use carillon::domain::{Action, NodeId, UserId};
use carillon::store::{
    ClusterStore as _, DatabaseSettings, Member, NewTask, NodeHeartbeat, PlanStore as _, SqlStore, StoreError,
    StoreErrorKind, Writer,
};
use carillon_tests::proxy::Proxy;
use carillon_tests::{Database, Kind, await_until};
use sea_orm::ConnectionTrait as _;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A row is locked for no longer than this by a node that is gone; the limit itself is 5 s.
const LOCKED_MAX: Duration = Duration::from_secs(15);

/// A statement is waited for no longer, where it is given up for that.
const GIVEN_UP: Duration = Duration::from_millis(500);

/// Within this time a connection on which something was given up is free, or replaced.
const FREE_MAX: Duration = Duration::from_secs(30);

/// Sessions that can only read at most one after another, once new ones can write.
const REFUSED_MAX: usize = 20;

/// Writes after the one that was given up; the pool has one connection, so that each goes over the same.
const WRITES: u64 = 5;

servers!(
    a_begin_leaves_no_open_transaction,
    an_end_that_is_given_up_leaves_nothing_behind,
    a_statement_that_is_given_up_while_it_is_prepared_leaves_nothing_behind,
    a_session_that_can_only_read_is_replaced,
    a_transaction_that_is_left_alone_lets_others_pass,
    a_change_whose_commit_got_no_answer_is_found_to_be_made,
    a_change_whose_commit_never_came_is_made_again,
    the_server_itself_ends_statements_and_waits_for_locks,
);

/// A task to be, and what the audit is to say of it.
fn change(world: &World) -> (NewTask, AuditNote) {
    let task = world.new_task(&World::every_second("nightly"), true);
    let note = AuditNote {
        id: world.number(),
        tenant_id: world.owner.tenant_id,
        at: world.now,
        actor: Actor { kind: "user", id: UserId(7), name: "ann".to_owned(), address: String::new() },
        action: Action::CreateTask,
        target: Target::task(task.id, "nightly"),
        before: None,
        after: Some("{}".to_owned()),
    };
    (task, note)
}

/// The task is there once, and so is the entry of the audit.
async fn is_made_once(world: &World, seen: &SqlStore, note: &AuditNote) {
    let database = world.database.as_ref().unwrap();
    assert_eq!(database.number("SELECT COUNT(*) FROM task WHERE name = 'nightly'").await, 1);
    let entries = seen.audit_chain(world.owner.tenant_id, 0, 10).await.unwrap();
    let of_change = entries.iter().filter(|entry| entry.id == note.id).count();
    assert_eq!(of_change, 1, "{entries:?}");
}

/// The server has committed; what it says of it is lost. The caller hears that it is done, not that nobody knows.
async fn a_change_whose_commit_got_no_answer_is_found_to_be_made(kind: Kind) {
    let (world, seen) = World::sql_with_store(kind).await;
    let proxy = Proxy::to(&world.database.as_ref().unwrap().url).await;
    let store = over(&proxy, Duration::from_millis(500)).await;
    let (task, note) = change(&world);
    proxy.hold_answers_to("COMMIT");
    store.noting(vec![note.clone()]).apply_tasks(&[task], &[], world.now).await.unwrap();
    proxy.release();
    is_made_once(&world, &seen, &note).await;
}

/// The `COMMIT` never reaches the server, which gives the transaction up after a while. Then it is known that nothing has
/// happened, and the change is made.
async fn a_change_whose_commit_never_came_is_made_again(kind: Kind) {
    let (world, seen) = World::sql_with_store(kind).await;
    let proxy = Proxy::to(&world.database.as_ref().unwrap().url).await;
    let store = over(&proxy, Duration::from_secs(2)).await;
    let (task, note) = change(&world);
    proxy.freeze_before("COMMIT");
    let (noting, now) = (store.noting(vec![note.clone()]), world.now);
    let changing = tokio::spawn(async move { noting.apply_tasks(&[task], &[], now).await });
    proxy.frozen().await;
    proxy.freeze_no_more();
    changing.await.unwrap().unwrap();
    is_made_once(&world, &seen, &note).await;
}

/// What a node gives up waiting for is not carried out later: the server has given it up before.
async fn the_server_itself_ends_statements_and_waits_for_locks(kind: Kind) {
    let database = Database::fresh(kind).await;
    let proxy = Proxy::to(&database.url).await;
    let beat = NodeHeartbeat { queue_depth: 7, ..NodeHeartbeat::default() };
    let member = connect(&database.url).await.join(&node_info("a")).await.unwrap();
    let blocked = async |statement_timeout: Duration| -> StoreError {
        let store = over(&proxy, statement_timeout).await;
        let other = database.connect().await;
        other.execute_unprepared("BEGIN").await.unwrap();
        other.execute_unprepared("UPDATE node SET queue_depth = 1").await.unwrap();
        let error = store.heartbeat(&member, &beat).await.unwrap_err();
        other.execute_unprepared("ROLLBACK").await.unwrap();
        other.close().await.unwrap();
        error
    };
    let (statement, lock) = match kind {
        Kind::Postgres => ("statement timeout", "lock timeout"),
        _ => ("max_statement_time exceeded", "Lock wait timeout exceeded"),
    };
    let error = blocked(Duration::from_secs(1)).await;
    assert!(error.is_temporary() && error.detail().contains(statement), "{error}");
    let error = blocked(Duration::from_secs(20)).await;
    assert!(error.is_temporary() && error.detail().contains(lock), "{error}");
    assert_eq!(database.number("SELECT queue_depth FROM node").await, 0, "carried out after all");
}

/// A store that has one connection.
async fn over_one(url: &str, statement_timeout: Duration) -> SqlStore {
    let settings = DatabaseSettings {
        url: url.to_owned(),
        max_connections: 1,
        connect_timeout: Duration::from_secs(30),
        statement_timeout,
        migrate_at_start: false,
    };
    SqlStore::connect(&settings).await.unwrap()
}

/// The server carries out a `BEGIN` whose answer comes too late. What is written afterwards is committed.
async fn a_begin_leaves_no_open_transaction(kind: Kind) {
    let database = Database::fresh(kind).await;
    let seen = connect(&database.url).await;
    seen.migrate().await.unwrap();
    let proxy = Proxy::to(&database.url).await;
    let store = over_one(&proxy.url, GIVEN_UP).await;
    let member = store.join(&node_info("a")).await.unwrap();

    proxy.hold_answers_to("BEGIN");
    let given_up = store.join(&node_info("b")).await.unwrap_err();
    assert_eq!(given_up.kind(), StoreErrorKind::Unavailable, "{given_up}");
    proxy.release();
    assert_commits(&store, &member, &seen).await;
}

/// The server ends a transaction, well or not, and its answer comes too late, or its caller is gone. What is written afterwards over
/// that connection is committed.
async fn an_end_that_is_given_up_leaves_nothing_behind(kind: Kind) {
    let database = Database::fresh(kind).await;
    let seen = over_one(&database.url, FREE_MAX).await;
    let member = seen.join(&node_info("a")).await.unwrap();
    for how in [GivenUp::InTime, GivenUp::ByItsCaller] {
        for end in ["COMMIT", "ROLLBACK"] {
            let patience = if matches!(how, GivenUp::InTime) { GIVEN_UP } else { FREE_MAX };
            let proxy = Proxy::to(&database.url).await;
            let store = over_one(&proxy.url, patience).await;
            proxy.hold_answers_to(end);
            let asking = tokio::spawn({
                let store = store.clone();
                async move {
                    if end == "COMMIT" {
                        store.join(&node_info("b")).await.map(drop)
                    } else {
                        // Of a node that nobody has heard of nothing is written.
                        store.write_ahead(Writer::Node(NodeId(99)), &[], 0).await.map(drop)
                    }
                }
            });
            give_up(&proxy, asking, how).await;
            assert_commits(&store, &member, &seen).await;
            assert_eq!(database.number(open_transactions(kind)).await, 0, "{how:?} at {end}");
            store.close().await;
        }
    }
}

/// Heartbeats over the one connection are committed when they are acknowledged.
async fn assert_commits(store: &SqlStore, member: &Member, seen: &SqlStore) {
    for queue_depth in 1..=WRITES {
        let beat = NodeHeartbeat { queue_depth, ..NodeHeartbeat::default() };
        let until = Instant::now() + FREE_MAX;
        // The connection is free when the late answer has come; until then this is unavailable, too.
        while let Err(error) = store.heartbeat(member, &beat).await {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
            assert!(Instant::now() < until, "the connection is lost: {error}");
        }
        let nodes = seen.nodes().await.unwrap();
        assert_eq!(nodes[0].queue_depth, i64::try_from(queue_depth).unwrap(), "acknowledged, and not committed");
    }
}

/// How the caller of a statement gives it up.
#[derive(Debug, Clone, Copy)]
enum GivenUp {
    /// It has waited long enough.
    InTime,
    /// It is gone.
    ByItsCaller,
}

/// The first use of a statement on a connection is its `PREPARE`. Given up there, alone or within a transaction, it leaves
/// nothing behind.
async fn a_statement_that_is_given_up_while_it_is_prepared_leaves_nothing_behind(kind: Kind) {
    let database = Database::fresh(kind).await;
    let seen = over_one(&database.url, FREE_MAX).await;
    let member = seen.join(&node_info("a")).await.unwrap();
    for how in [GivenUp::InTime, GivenUp::ByItsCaller] {
        for is_alone in [true, false] {
            let patience = if matches!(how, GivenUp::InTime) { GIVEN_UP } else { FREE_MAX };
            let proxy = Proxy::to(&database.url).await;
            let store = over_one(&proxy.url, patience).await;
            let before = sessions(&database).await;
            give_up_at_prepare(&proxy, &store, &member, how, is_alone).await;
            assert_commits(&store, &member, &seen).await;
            assert_eq!(seen.nodes().await.unwrap().len(), 1, "{how:?}: no other has joined");
            let after = sessions(&database).await;
            // Who has waited in vain takes another one.
            assert!(matches!(how, GivenUp::InTime) || after == before, "alone: {is_alone}: {before:?}, {after:?}");
            assert_eq!(database.number(open_transactions(kind)).await, 0, "{how:?}, alone: {is_alone}");
            store.close().await;
        }
    }
}

/// A heartbeat is one statement; a node that joins is written down within a transaction.
async fn give_up_at_prepare(proxy: &Proxy, store: &SqlStore, member: &Member, how: GivenUp, is_alone: bool) {
    proxy.hold_answers_to(if is_alone { "UPDATE node" } else { "INSERT INTO node" });
    let (store, member) = (store.clone(), member.clone());
    let asking = tokio::spawn(async move {
        if is_alone {
            store.heartbeat(&member, &NodeHeartbeat::default()).await.map(drop)
        } else {
            store.join(&node_info("b")).await.map(drop)
        }
    });
    give_up(proxy, asking, how).await;
}

/// Waits until that is given up, and lets the answer come.
async fn give_up(proxy: &Proxy, asking: JoinHandle<Result<(), StoreError>>, how: GivenUp) {
    match how {
        GivenUp::InTime => {
            let error = asking.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        }
        GivenUp::ByItsCaller => {
            proxy.held().await;
            asking.abort();
            assert!(asking.await.unwrap_err().is_cancelled());
        }
    }
    proxy.release();
}

/// Of the store over the proxy, the one that looks, and the test's own.
const SESSIONS: usize = 3;

/// Those of the database, once they are as many.
async fn sessions(database: &Database) -> Vec<i64> {
    let sql = match database.kind {
        Kind::Postgres => {
            "SELECT CAST(pid AS BIGINT) FROM pg_stat_activity WHERE datname = current_database() ORDER BY 1"
        }
        _ => "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = DATABASE() ORDER BY 1",
    };
    await_until("one session each", 10, || async {
        let sessions = database.query(sql, |row| row.try_get_by_index(0)).await;
        (sessions.len() == SESSIONS).then_some(sessions)
    })
    .await
}

/// Counts those that wait for nothing but their client.
fn open_transactions(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in %'"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
             ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE()"
        }
    }
}

/// A node that is frozen within a transaction holds its locks for a few seconds, not for as long as it is frozen.
async fn a_transaction_that_is_left_alone_lets_others_pass(kind: Kind) {
    let database = Database::fresh(kind).await;
    let store = connect(&database.url).await;
    store.migrate().await.unwrap();
    let member = store.join(&node_info("a")).await.unwrap();
    let proxy = Proxy::to(&database.url).await;
    let frozen = over_one(&proxy.url, Duration::from_secs(20)).await;
    // Joining again under the name changes the node's row, and stops before its commit.
    proxy.freeze_before("COMMIT");
    let joining = tokio::spawn(async move { frozen.join(&node_info("a")).await });
    proxy.frozen().await;

    let beat = NodeHeartbeat { queue_depth: 1, ..NodeHeartbeat::default() };
    let until = Instant::now() + LOCKED_MAX;
    while let Err(error) = store.heartbeat(&member, &beat).await {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(Instant::now() < until, "still locked: {error}");
    }
    joining.abort();
}

/// A session that was opened while the database could only be read stays so on servers that tell each session for itself, as
/// those to a primary that has become a standby do. The next one is another.
async fn a_session_that_can_only_read_is_replaced(kind: Kind) {
    // MariaDB knows this for all of its databases only.
    let database = if kind == Kind::Postgres { Database::empty(kind).await } else { Database::private(kind).await };
    let name = database.url.rsplit('/').next().unwrap();
    let new_sessions_only_read = |on: u8| match kind {
        Kind::Postgres => format!("ALTER DATABASE {name} SET default_transaction_read_only = {on}"),
        _ => format!("SET GLOBAL tx_read_only = {on}"),
    };
    let seen = connect(&database.url).await;
    seen.migrate().await.unwrap();
    let member = seen.join(&node_info("a")).await.unwrap();
    let beat = NodeHeartbeat { queue_depth: 7, ..NodeHeartbeat::default() };

    database.server().execute(&new_sessions_only_read(1)).await;
    let store = over_one(&database.url, FREE_MAX).await;
    let error = store.heartbeat(&member, &beat).await.unwrap_err();
    assert!(error.kind() == StoreErrorKind::ReadOnly && error.is_temporary(), "{error}");
    database.server().execute(&new_sessions_only_read(0)).await;
    // The pool may have opened one in between.
    let mut refused = 0;
    while let Err(error) = store.heartbeat(&member, &beat).await {
        refused += 1;
        assert!(error.kind() == StoreErrorKind::ReadOnly && refused < REFUSED_MAX, "{error}");
    }
    assert_eq!(seen.nodes().await.unwrap()[0].queue_depth, 7);
}
