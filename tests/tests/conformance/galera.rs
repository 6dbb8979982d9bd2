//! What a member of a cluster says to a transaction that another one has ended.

use carillon_tests::server::galera::Galera;
use carillon_tests::wait::when;
use carillon_tests::{Database, await_until};
use sea_orm::{ConnectionTrait as _, DatabaseBackend, Statement, TransactionTrait as _, Value};

/// How often it is tried: the other member's change comes at a moment of its own.
const ROUNDS: i64 = 40;

/// A transaction takes a row, and so does another member, while the transaction prepares statements. One of the two must fail.
/// `MariaDB` 10.11 loses the error of a transaction that is ended while it serves `COM_STMT_PREPARE`: what comes after is
/// executed outside of any transaction, and the COMMIT succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_another_member_ends_while_it_prepares_a_statement_fails() {
    let cluster = Galera::start().await;
    let here = Database::of_galera(&cluster).await;
    let there = here.on_member(&cluster.members[1]);
    here.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT NOT NULL)").await;
    let with =
        |sql: &str, value: i64| Statement::from_sql_and_values(DatabaseBackend::MySql, sql, [Value::from(value)]);
    // It takes the server some milliseconds to prepare this.
    let long: Vec<String> = (1_000..9_000).map(|id| id.to_string()).collect();
    let long = long.join(",");
    let mut taken_twice = Vec::new();
    for round in 0..ROUNDS {
        here.execute(&format!("INSERT INTO t VALUES ({round}, 0)")).await;
        let count = format!("SELECT COUNT(*) FROM t WHERE id = {round}");
        await_until("the other member has it", 10, || async { when(there.number(&count).await > 0) }).await;
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
        is_well = is_well && tx.execute_raw(with("INSERT INTO t VALUES (?, 1)", 10_000 + round)).await.is_ok();
        if is_well && tx.commit().await.is_ok() && took == 1 {
            taken_twice.push(round);
        }
    }
    assert!(taken_twice.is_empty(), "both took the row, and both committed: {taken_twice:?}");
}
