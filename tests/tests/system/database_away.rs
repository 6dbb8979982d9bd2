//! Promise 9: the database may go away and come back.

use crate::sharing::every_second;
use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::node::QUICK;
use carillon_tests::wait::when;
use carillon_tests::{Fires, Kind, LogRow, Outage, Status, World, await_until, now_ms, pass};
use serde_json::json;

scenario!(database_away_longer_than_every_time_out: sqlite mariadb postgres);
scenario!(steps_that_could_not_be_written_are_made_up_for: sqlite mariadb postgres);
scenario!(late_heartbeats_stop_no_executor: mariadb postgres);
scenario!(sessions_of_a_silent_node_are_ended: mariadb);
scenario!(a_node_ends_when_asked_although_its_database_hangs: mariadb postgres);

/// For twice as long as nodes and executors may be silent.
async fn database_away_longer_than_every_time_out(kind: Kind) {
    let world = World::private(kind).await;
    let node = world.nodes(QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let mut tasks = every_second(&api, &app, 4).await;
    // An outage of the database is no failure of the handler: no retry may be used up.
    let fields = json!({ "cron": "* * * * * ?", "max_retries": 0 });
    tasks.push(api.make_task(&app, "no retries", "tick", fields).await);
    let made_at = now_ms();
    pass(5.0).await;

    let held = world.database.logs("status = 2").await;
    let outage = Outage::begin(&world.database).await;
    let gone_at = now_ms();
    pass(2.5).await;
    if kind != Kind::Sqlite {
        // SQLite's lock keeps writers out only; the file can be read.
        assert_eq!(node.probe("/readyz").await, Some(503), "ready without its database");
    }
    assert_eq!(node.probe("/healthz").await, Some(200), "the process lives");
    held_runs_started_on_time(&executor.starts(), &held, gone_at);
    pass(4.5).await;
    outage.end().await;
    let back_at = now_ms();

    await_until("the node is ready again", 40, || async { when(node.probe("/readyz").await == Some(200)) }).await;
    let fresh = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {}", back_at + 1_000);
    await_until("fires after the outage succeed", 40, || async { when(world.database.number(&fresh).await > 0) }).await;
    pass(7.0).await;
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    let mut all = Vec::new();
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        all.extend(Fires::every(1, &of_task).assert_no_gap().between(made_at + 3_000, until));
    }
    // Nothing was lost in the outage, and nothing had to run twice: the executor never died.
    assert_all("succeeded without a failure", &all, |row| row.status == Status::Succeeded && row.failures == 0);
    assert_on_time("after the backlog", &fired_within(&all, until - 3_000, until), &starts, 1_500);
}

/// A node that cannot write down what it decided about a run must not forget the run (H1, and
/// "no state is a trap"). Here it decides every second that no executor can take one.
async fn steps_that_could_not_be_written_are_made_up_for(kind: Kind) {
    let world = World::private(kind).await;
    let node = world.node("a", QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    for number in 0..3 {
        let fields = json!({ "cron": "* * * * * ?", "max_retries": 0, "no_executor_timeout_ms": 0 });
        api.make_task(&app, &format!("nobody's {number}"), "tick", fields).await;
    }
    await_until("runs end for want of an executor", 30, || async {
        when(world.database.logs("status = 11").await.len() > 2)
    })
    .await;
    let outage = Outage::begin(&world.database).await;
    pass(5.0).await;
    outage.end().await;
    await_until("the node is ready again", 40, || async { when(node.probe("/readyz").await == Some(200)) }).await;
    let (rows, _) = world.settle_and_check().await;
    let due: Vec<LogRow> = rows.into_iter().filter(|row| row.status != Status::Cancelled).collect();
    assert_all("ended for want of an executor", &due, |row| row.reason == "no_executor");
}

/// What lay with the executor when the database went started on the millisecond all the same: as long as its node, which
/// has renewed its own heartbeat up to a second before, counts as in touch.
fn held_runs_started_on_time(starts: &[carillon_tests::Start], held: &[LogRow], gone_at: i64) {
    let due: Vec<&LogRow> =
        held.iter().filter(|row| (gone_at + 200..gone_at + 2_000).contains(&row.due_time)).collect();
    assert!(!due.is_empty(), "the executor held nothing: {held:?}");
    for row in due {
        let started = starts.iter().find(|start| start.log == row.id);
        let started = started.unwrap_or_else(|| panic!("held when the database went, never started: {row:?}"));
        assert!(started.late_ms() < 1_500, "late by {} ms: {row:?}", started.late_ms());
    }
}

/// Each heartbeat takes longer to be written down than a node lets it wait, for longer than nodes without a database may keep an
/// executor going.
async fn late_heartbeats_stop_no_executor(kind: Kind) {
    const SETTINGS: &[(&str, &str)] = &[("executors.offline_after", "5s"), ("executors.metadata_interval", "10m")];
    /// Three times `executors.offline_after`, and a little.
    const LEASE_AND_EXTENSION_MS: i64 = 15_500;
    let late: &[&str] = match kind {
        Kind::Postgres => &[
            "CREATE FUNCTION late() RETURNS trigger AS $$ BEGIN PERFORM pg_sleep(1.7); RETURN NEW; END $$ LANGUAGE plpgsql",
            "CREATE TRIGGER late BEFORE UPDATE ON executor FOR EACH ROW EXECUTE FUNCTION late()",
        ],
        _ => &["CREATE TRIGGER late BEFORE UPDATE ON executor FOR EACH ROW DO SLEEP(1.7)"],
    };
    let world = World::new(kind).await;
    world.node("a", &[QUICK, SETTINGS].concat()).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let task = api.make_task(&app, "each second", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 2).await;
    for statement in late {
        world.database.execute(statement).await;
    }
    let late_since = now_ms();
    await_until("what is due after all leases starts", 40, || async {
        when(executor.starts().iter().any(|start| start.due_time > late_since + LEASE_AND_EXTENSION_MS))
    })
    .await;
    assert!(executor.process.log().contains("heartbeat.not_acknowledged"), "no heartbeat came too late");
    let on = if kind == Kind::Postgres { " ON executor" } else { "" };
    world.database.execute(&format!("DROP TRIGGER late{on}")).await;
    let (rows, _) = world.settle_and_check().await;
    let due: Vec<LogRow> = rows.into_iter().filter(|row| row.status != Status::Cancelled).collect();
    assert_all("succeeded without a failure", &due, |row| row.status == Status::Succeeded && row.failures == 0);
}

/// A node whose machine is gone closes nothing. Its sessions must not stay for the eight hours that are MariaDB's default:
/// nodes that come and go would use up the server's connections. (PostgreSQL's end with their TCP connections.)
async fn sessions_of_a_silent_node_are_ended(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "each second", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 2).await;
    let sessions =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
    assert!(world.database.number(sessions).await > 0);
    node.process.signal("STOP");
    await_until("its sessions are ended", 90, || async { when(world.database.number(sessions).await == 0) }).await;
    node.process.signal("CONT");
    let fresh = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {}", now_ms() + 1_000);
    await_until("it goes on over new ones", 60, || async { when(world.database.number(&fresh).await > 0) }).await;
    world.settle_and_check().await;
}

/// Whoever stops a node must not have to wait for a server that answers nothing and closes nothing.
async fn a_node_ends_when_asked_although_its_database_hangs(kind: Kind) {
    let world = World::private(kind).await;
    let node = world.node("a", QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "each second", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 2).await;
    world.database.server().signal_all("STOP");
    // Statements are under way that get no answer.
    pass(1.0).await;
    let code = node.process.sigterm(60).await;
    world.database.server().signal_all("CONT");
    assert_eq!(code, Some(0), "{}", node.process.log_digest());
    world.unready_node("a", node.port, QUICK).ready().await;
    world.await_successes(task, 6).await;
    world.settle_and_check().await;
}
