//! Transactions that another member of a cluster ends. `MariaDB` 10.11 loses the error if that happens while it serves
//! `COM_STMT_PREPARE`: what comes after would be executed outside of any transaction, and the `COMMIT` would succeed.

use crate::fixture::{World, connect, node, success};
use carillon::domain::plan::Plan;
use carillon::domain::task::{ParentLink, ParentOutcome, ScheduleKind, TaskSpec};
use carillon::domain::{LogId, NodeId};
use carillon::store::{ClusterStore as _, EndedRun, NodeHeartbeat, NodeInfo, OutboxStore as _, Writer};
use carillon_tests::proxy::Proxy;
use carillon_tests::server::galera::Galera;
use carillon_tests::wait::when;
use carillon_tests::{Database, await_until};
use sea_orm::{ConnectionTrait as _, DatabaseBackend, Statement, TransactionTrait as _, Value};
use std::sync::{Arc, Mutex};

/// How often it is tried: the other member's change comes at a moment of its own.
const ROUNDS: i64 = 40;

/// Tasks that run after another one.
const CHILDREN: i64 = 3;

/// A transaction takes a row, and so does another member, while the transaction prepares statements. One of the two must
/// fail, if each of its statements is sent as the store sends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_another_member_ends_while_it_prepares_a_statement_fails() {
    let cluster = Galera::start().await;
    let here = Database::of_galera(&cluster).await;
    let there = here.on_member(&cluster.members[1]);
    // It waits until it has what this one has.
    there.execute("SET SESSION wsrep_sync_wait = 7").await;
    let guard = guard(&here).await;
    here.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT NOT NULL)").await;
    let with = |sql: &str, value: i64| {
        Statement::from_sql_and_values(DatabaseBackend::MySql, format!("{guard}{sql}"), [Value::from(value)])
    };
    // It takes the server some milliseconds to prepare this.
    let long: Vec<String> = (1_000..9_000).map(|id| id.to_string()).collect();
    let long = long.join(",");
    let mut taken_twice = Vec::new();
    let (mut ended, mut to_be_written) = (0, 0);
    for round in 0..ROUNDS {
        here.execute(&format!("INSERT INTO t VALUES ({round}, 0)")).await;
        let connection = here.connect().await;
        let tx = connection.begin().await.unwrap();
        tx.execute_raw(with("DELETE FROM t WHERE id = ?", round)).await.unwrap();
        let other = there.clone();
        let taking = tokio::spawn(async move { other.execute(&format!("DELETE FROM t WHERE id = {round}")).await });
        let mut is_well = true;
        for number in 0..12 {
            let sql = format!("SELECT /* {number} */ x FROM t WHERE id = ? AND id IN ({long})");
            is_well = is_well && tx.query_all_raw(with(&sql, 99)).await.is_ok();
        }
        let took = taking.await.unwrap();
        // Every other time the last statement only reads: what it comes to must be known before the COMMIT, too.
        if round % 2 == 0 {
            is_well = is_well && tx.execute_raw(with("INSERT INTO t VALUES (?, 1)", 10_000 + round)).await.is_ok();
        }
        let is_committed = is_well && tx.commit().await.is_ok();
        ended += i64::from(!is_committed);
        to_be_written += i64::from(is_committed && round % 2 == 0);
        if is_committed && took == 1 {
            taken_twice.push(round);
        }
    }
    assert!(taken_twice.is_empty(), "both took the row, and both committed: {taken_twice:?}");
    assert!(ended > 0, "the other member never came first: nothing is shown");
    let written = here.number("SELECT COUNT(*) FROM t WHERE id >= 10000").await;
    assert_eq!(written, to_be_written, "what a transaction that failed has written is there");
}

/// A member applies a little later what others have committed. What a node reads over it is not older than what another has
/// been told to be committed: it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_reads_nothing_older_than_what_is_committed_elsewhere() {
    let cluster = Galera::start().await;
    let here = Database::of_galera(&cluster).await;
    let there = here.on_member(&cluster.members[1]);
    let writer = connect(&here.url).await;
    writer.migrate().await.unwrap();
    let member = writer.join(&NodeInfo { name: "a".to_owned(), ..NodeInfo::default() }).await.unwrap();
    let reader = connect(&there.url).await;
    assert_eq!(reader.nodes().await.unwrap()[0].queue_depth, 0);

    // From now on, the reader's member applies nothing.
    let holding = there.connect().await;
    holding.execute_unprepared("FLUSH TABLES WITH READ LOCK").await.unwrap();
    writer.heartbeat(&member, &NodeHeartbeat { queue_depth: 7, ..NodeHeartbeat::default() }).await.unwrap();
    let reading = tokio::spawn(async move { reader.nodes().await });
    let waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT id, name, address%'";
    await_until("the node reads", 10, || async { when(reading.is_finished() || there.number(waiting).await == 1) })
        .await;
    holding.execute_unprepared("UNLOCK TABLES").await.unwrap();
    assert_eq!(reading.await.unwrap().unwrap()[0].queue_depth, 7);
}

/// What the store puts before each statement of a transaction.
async fn guard(database: &Database) -> String {
    let (world, store) = World::on(database).await;
    let hot = store.statements();
    let (_, take) = hot.iter().find(|(name, _)| *name == "FOLLOW_TAKE").unwrap();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let store = store.watched(move |statement, _| seen.lock().unwrap().push(statement.sql.clone()));
    store.process_outbox(&[], &node(), &|| world.id(), world.now).await.unwrap();
    let sent = sent.lock().unwrap();
    sent.iter().find_map(|sql| sql.strip_suffix(take.as_str())).unwrap().to_owned()
}

/// What stands before the statements of a transaction may stand before each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hot_statement_is_prepared_as_one_of_a_transaction() {
    let cluster = Galera::start().await;
    let database = Database::of_galera(&cluster).await;
    let guard = guard(&database).await;
    let store = connect(&database.url).await;
    let connection = database.connect().await;
    let tx = connection.begin().await.unwrap();
    for (name, text) in store.statements() {
        let text = format!("{guard}{text}").replace('\\', r"\\").replace('\'', r"\'");
        tx.execute_unprepared(&format!("PREPARE s FROM '{text}'"))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    tx.rollback().await.unwrap();
}

/// Nodes start at once, each on a member of its own: one of them migrates, the others wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_migrate_at_once() {
    let cluster = Galera::start().await;
    let database = Database::of_galera(&cluster).await;
    let mut migrating = Vec::new();
    for member in &cluster.members {
        let store = connect(&database.on_member(member).url).await;
        migrating.push(tokio::spawn(async move { store.migrate().await }));
    }
    let mut migrated = 0;
    for steps in migrating {
        migrated += usize::from(steps.await.unwrap().unwrap() > 0);
    }
    assert!(migrated > 0, "nobody has");
    assert_eq!(connect(&database.url).await.pending().await.unwrap(), 0);
}

/// Wherever a transaction is lost, what follows an end comes once: nothing of it is carried out outside of a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_store_that_is_lost_at_any_statement_is_made_again_whole() {
    let cluster = Galera::start().await;
    let database = Database::of_galera(&cluster).await;
    let (world, _) = World::on(&database).await;
    let proxy = Proxy::to(&database.url).await;
    // Each statement is prepared whenever it is sent.
    let store = connect(&format!("{}?statement-cache-capacity=0", proxy.url)).await;
    let parent = world.started(&World::every_second("parent")).await;
    for number in 0..CHILDREN {
        let link = ParentLink { task: "parent".to_owned(), on: ParentOutcome::Success };
        let (schedule, cron) = (ScheduleKind::None, String::new());
        let spec = TaskSpec { schedule, cron, parents: vec![link], ..parent.spec.clone() };
        world.started(&TaskSpec { name: format!("child-{number}"), ..spec }).await;
    }
    let mut lost = 0;
    loop {
        let task = world.task(parent.id).await;
        let plan = Plan { outbox: true, ..world.plan(&task, [world.now + lost as i64 * 1_000]) };
        world
            .store
            .write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&plan), world.now)
            .await
            .unwrap()
            .unwrap();
        let rows = world.rows(task.id).await.into_iter().map(|log| log.dispatched.run);
        let runs = rows.filter(|run| run.id == plan.fires[0].id).collect();
        let run = world.dispatched(1, runs, 100).await.remove(0);
        assert_eq!(world.store.succeed(world.owner, &[&success(&run, 1)]).await.unwrap(), 1);
        let ended: Vec<EndedRun> = store.ended(LogId::NONE, 1_000).await.unwrap().ended;
        assert_eq!(ended.len(), 1, "{lost}");
        proxy.lose_transaction_after(lost);
        let done = store.process_outbox(&ended, &node(), &|| world.id(), world.now).await.unwrap();
        let followed = done.map(|round| round.started as i64);
        assert_eq!(followed, Some(CHILDREN), "lost at statement {lost}");
        assert!(!store.has_outbox_entries().await.unwrap(), "lost at statement {lost}");
        let children = database.number("SELECT COUNT(*) FROM task_log WHERE trigger_kind = 'parent'").await;
        assert_eq!(children, (lost as i64 + 1) * CHILDREN, "lost at statement {lost}");
        if proxy.lose_no_more() {
            break;
        }
        lost += 1;
    }
    assert!(lost > 6, "there are more statements than that: {lost}");
}
