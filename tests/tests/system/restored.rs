//! A database that was restored from a backup: what had run does not run again before an operator has decided.

use carillon_tests::executor::Options;
use carillon_tests::node::{Node, QUICK, Settings, TOKEN};
use carillon_tests::wait::when;
use carillon_tests::{App, Database, Executor, Kind, World, await_until, command, now_ms, pass};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Output;

scenario!(what_may_have_run_is_skipped: sqlite mariadb postgres);
scenario!(what_was_not_even_written_may_have_run_too: sqlite postgres);
scenario!(a_node_that_goes_on_over_a_restore_runs_nothing_of_the_past: mariadb postgres);
scenario!(a_node_that_goes_on_over_a_restore_fills_nothing_again: mariadb postgres);
scenario!(what_may_have_run_runs_if_an_operator_says_so: sqlite);
scenario!(restarted_executors_tell_what_their_predecessors_lived_through: sqlite);
scenario!(without_a_witness_an_operator_says_so: sqlite);
scenario!(a_long_time_without_nodes_waits_for_an_operator: sqlite);

/// How much older than it is the backup pretends to be, ms.
const OLDER_MS: i64 = 300_000;

struct Restored {
    world: World,
    /// Where the executor looks for a node.
    port: u16,
    settings: Vec<(&'static str, &'static str)>,
    app: App,
    executor: Executor,
    task: i64,
    /// Runs after each end of the task.
    child: i64,
    /// What was due between these ran before the database was restored, ms.
    lost: (i64, i64),
}

impl Restored {
    /// Starts of the task's lost fires.
    fn starts(&self) -> HashMap<i64, usize> {
        let mut starts = HashMap::new();
        for start in self.executor.starts() {
            if start.task == self.task && (self.lost.0..self.lost.1).contains(&start.fire_time) {
                *starts.entry(start.fire_time).or_default() += 1;
            }
        }
        starts
    }

    async fn start(&self) {
        self.world.unready_node("a", self.port, &self.settings).ready().await;
    }

    async fn held(&self) -> Vec<Value> {
        let shown = self.world.api().get("/cluster/silences").await;
        let items = shown["items"].as_array().unwrap();
        items.iter().filter(|silence| silence["held"] == true).cloned().collect()
    }

    async fn resume(&self, how: &str) -> Output {
        let mut command = command::carillon();
        command.args(["cluster", "resume", how]).env("CARILLON_URL", &self.world.node_urls()[0]);
        command.env("CARILLON_TOKEN", TOKEN);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// New fires run on, whatever is held.
    async fn await_new_fires(&self) {
        let from = now_ms() + 1_000;
        let fresh = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {from}");
        await_until("new fires succeed", 30, || async { when(self.world.database.number(&fresh).await > 1) }).await;
    }

    /// What was skipped has nothing after it: its child may have run as well.
    async fn assert_no_child_of_skipped(&self) {
        let database = &self.world.database;
        let waits = "SELECT COUNT(*) FROM outbox f JOIN task_log l ON l.id = f.id WHERE l.reason = 'restored'";
        await_until("ends of what was skipped are seen", 30, || async { when(database.number(waits).await == 0) })
            .await;
        let child = self.child;
        let after = format!(
            "SELECT COUNT(*) FROM task_log c JOIN task_log p ON p.reason = 'restored' AND c.message LIKE \
             CONCAT('%run ', p.id, ')') WHERE c.task_id = {child} AND c.trigger_kind = 'parent'"
        );
        assert_eq!(database.number(&after).await, 0, "children of what was skipped ran");
        let others = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {child} AND trigger_kind = 'parent'");
        assert!(database.number(&others).await > 0, "others have children");
    }

    async fn of_lost(&self, condition: &str) -> i64 {
        let (from, until) = self.lost;
        let sql = format!(
            "SELECT COUNT(*) FROM task_log WHERE task_id = {} AND fire_time >= {from} AND fire_time < {until} AND {condition}",
            self.task
        );
        self.world.database.number(&sql).await
    }
}

/// What becomes of the executor when the database is restored.
enum Fate {
    Lives,
    Stops,
    Dies,
}

/// Whether what ran in the lost time was written ahead when the backup was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

/// Runs a task every second, takes a backup of the database, goes on for a while, and restores it.
async fn restored(kind: Kind, fate: Fate) -> Restored {
    restored_to(kind, fate, Written::Yes, QUICK).await
}

/// A node, an executor, a task that fires every second, and one that follows it.
async fn furnished(kind: Kind, settings: Settings<'_>) -> (World, Node, App, Executor, [i64; 2]) {
    let world = World::new(kind).await;
    let node = world.node("a", settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    // Everything that was missed is to run.
    let fields = json!({ "cron": "* * * * * ?", "misfire_strategy": "fire_all", "misfire_max": 1_000 });
    let task = api.make_task(&app, "salaries", "tick", fields).await;
    let after = json!({ "schedule": "none", "parents": [{ "task": "salaries", "on": "always" }] });
    let child = api.make_task(&app, "slips", "tick", after).await;
    world.await_successes(task, 3).await;
    (world, node, app, executor, [task, child])
}

async fn restored_to(kind: Kind, fate: Fate, written: Written, settings: &[(&'static str, &'static str)]) -> Restored {
    let (world, node, app, executor, [task, child]) = furnished(kind, settings).await;
    assert_eq!(node.process.sigterm(30).await, Some(0));
    back_up(&world.database).await;
    let from = now_ms() + 5_000;

    let node = world.unready_node("a", node.port, settings);
    node.ready().await;
    let lost = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10 AND fire_time >= {from}");
    await_until("runs succeed that the backup does not know", 60, || async {
        when(world.database.number(&lost).await >= 4)
    })
    .await;
    assert_eq!(node.process.sigterm(30).await, Some(0));
    let until = format!("SELECT MAX(fire_time) FROM task_log WHERE task_id = {task} AND status = 10");
    let until = world.database.number(&until).await;
    match fate {
        Fate::Lives => {}
        // It waits for a node until its drain time-out, if it has a result left.
        Fate::Stops => assert_eq!(executor.process.sigterm(60).await, Some(0)),
        Fate::Dies => world.kill9(&executor).await,
    }
    restore(&world.database).await;
    if written == Written::No {
        forget_from(&world.database, task, from).await;
    }
    let (port, settings) = (node.port, settings.to_vec());
    Restored { world, port, settings, app, executor, task, child, lost: (from, until + 1) }
}

/// The tables, and of each the columns that are not computed.
async fn tables(database: &Database) -> Vec<(String, String)> {
    let names = match database.kind {
        Kind::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        Kind::MariaDb => "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
        Kind::Postgres => "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'",
    };
    let mut tables = Vec::new();
    for table in database.query(names, |row| row.try_get_by_index::<String>(0)).await {
        if table.starts_with(BACKUP) {
            continue;
        }
        let computed = match database.kind {
            Kind::Sqlite => None,
            Kind::MariaDb => Some("table_schema = DATABASE() AND COALESCE(generation_expression, '') = ''"),
            Kind::Postgres => Some("table_schema = current_schema() AND is_generated = 'NEVER'"),
        };
        let columns = match computed {
            None => "*".to_owned(),
            Some(is_plain) => {
                let plain = format!(
                    "SELECT CAST(column_name AS CHAR(64)) FROM information_schema.columns WHERE table_name = '{table}' AND {is_plain}"
                );
                database.query(&plain, |row| row.try_get_by_index::<String>(0)).await.join(", ")
            }
        };
        tables.push((table, columns));
    }
    tables
}

/// How the tables of the backup are called.
const BACKUP: &str = "backup_of_";

async fn back_up(database: &Database) {
    for (table, columns) in tables(database).await {
        database.execute(&format!("CREATE TABLE {BACKUP}{table} AS SELECT {columns} FROM {table}")).await;
    }
}

/// Brings every table to what the backup has, as of some minutes before.
async fn restore(database: &Database) {
    for (table, columns) in tables(database).await {
        let named = if columns == "*" { String::new() } else { format!("({columns})") };
        database.execute(&format!("DELETE FROM {table}")).await;
        database.execute(&format!("INSERT INTO {table} {named} SELECT {columns} FROM {BACKUP}{table}")).await;
    }
    make_older(database).await;
}

/// Nobody has been heard of for some minutes.
async fn make_older(database: &Database) {
    let older = format!("UPDATE node SET heartbeat_at = heartbeat_at - {OLDER_MS}, left_at = left_at - {OLDER_MS}");
    database.execute(&older).await;
    database.execute(&format!("UPDATE executor SET heartbeat_at = heartbeat_at - {OLDER_MS}")).await;
}

/// What fires from then on is not written yet.
async fn forget_from(database: &Database, task: i64, from: i64) {
    database.execute(&format!("DELETE FROM task_log WHERE task_id = {task} AND fire_time >= {from}")).await;
    database.execute(&format!("UPDATE task SET next_fire_at = {from} WHERE id = {task}")).await;
}

async fn held_after_start(restored: &Restored) {
    restored.start().await;
    is_held(restored).await;
}

async fn is_held(restored: &Restored) {
    await_until("what may have run is held", 30, || async { when(!restored.held().await.is_empty()) }).await;
    restored.await_new_fires().await;
    let held = restored.held().await;
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0]["lived_until"].as_i64().unwrap() >= restored.lost.1 - 1, "{held:?}, {:?}", restored.lost);
    assert!(restored.starts().values().all(|count| *count == 1), "{:?}", restored.starts());
    assert!(restored.of_lost("status = 0").await > 0, "nothing waits for a decision");
    let metrics = reqwest::Client::new().get(format!("{}/metrics", restored.world.node_urls()[0]));
    let metrics = metrics.bearer_auth(TOKEN).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("\ncarillon_past_held 1\n"), "{metrics}");
}

async fn what_may_have_run_is_skipped(kind: Kind) {
    let restored = restored(kind, Fate::Lives).await;
    let before = restored.starts();
    assert!(before.len() >= 4, "{before:?}");
    held_after_start(&restored).await;
    let done = restored.resume("--skip-past").await;
    assert!(done.status.success(), "{done:?}");
    await_until("nothing of the past waits", 30, || async { when(restored.of_lost("status < 10").await == 0) }).await;
    assert!(restored.of_lost("reason = 'restored' AND status = 14").await > 0);
    restored.assert_no_child_of_skipped().await;
    assert!(restored.held().await.is_empty());
    restored.await_new_fires().await;
    assert_eq!(restored.starts(), before, "some ran again");
    // Nothing is left to decide; and it is known who decided.
    let again = restored.resume("--skip-past").await;
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("nothing is held"), "{again:?}");
    let audit = restored.world.api().get("/audit?action=resume_cluster").await;
    assert_eq!(audit["items"].as_array().unwrap().len(), 1, "{audit}");
}

/// Fires that nobody had written are planned as missed, after the restore.
async fn what_was_not_even_written_may_have_run_too(kind: Kind) {
    let settings = [QUICK, &[("schedulers.misfire_after", "1s")]].concat();
    let restored = restored_to(kind, Fate::Lives, Written::No, &settings).await;
    let before = restored.starts();
    assert!(before.len() >= 4, "{before:?}");
    // The nodes that were lost can have dispatched nothing that is due by then.
    pass(15.0).await;
    held_after_start(&restored).await;
    assert!(restored.of_lost("trigger_kind = 'misfire' AND status = 0").await > 0, "nothing was missed");
    let done = restored.resume("--skip-past").await;
    assert!(done.status.success(), "{done:?}");
    await_until("nothing of the past waits", 30, || async { when(restored.of_lost("status < 10").await == 0) }).await;
    restored.await_new_fires().await;
    assert_eq!(restored.starts(), before, "some ran again");
}

/// It finds out with its next heartbeat, and by then has claimed nothing.
async fn a_node_that_goes_on_over_a_restore_runs_nothing_of_the_past(kind: Kind) {
    let (world, node, app, executor, [task, child]) = furnished(kind, QUICK).await;
    back_up(&world.database).await;
    let from = now_ms() + 5_000;
    let lost = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10 AND fire_time >= {from}");
    await_until("runs succeed that the backup does not know", 60, || async {
        when(world.database.number(&lost).await >= 4)
    })
    .await;
    let until = format!("SELECT MAX(fire_time) FROM task_log WHERE task_id = {task} AND status = 10");
    let until = world.database.number(&until).await;
    node.process.signal("STOP");
    restore(&world.database).await;
    node.process.signal("CONT");
    node.process.wait_exit(30).await;
    let (port, settings) = (node.port, QUICK.to_vec());
    let restored = Restored { world, port, settings, app, executor, task, child, lost: (from, until + 1) };
    let before = restored.starts();
    assert!(before.len() >= 4 && before.values().all(|count| *count == 1), "{before:?}");
    held_after_start(&restored).await;
    let done = restored.resume("--skip-past").await;
    assert!(done.status.success(), "{done:?}");
    await_until("nothing of the past waits", 30, || async { when(restored.of_lost("status < 10").await == 0) }).await;
    assert_eq!(restored.starts(), before, "some ran again");
}

/// How far a backfill had come is lost: it goes no further until an operator has decided.
async fn a_node_that_goes_on_over_a_restore_fills_nothing_again(kind: Kind) {
    let (world, node, app, executor, _) = furnished(kind, QUICK).await;
    let api = world.api();
    let task = api.make_task(&app, "settlements", "tick", json!({ "cron": "* * * * * ?" })).await;
    let until = now_ms() / 1_000 * 1_000 - 60_000;
    let body = json!({ "from": until - 600_000, "until": until, "max_concurrent": 1 });
    let path = format!("/tasks/{task}/backfills");
    api.expect(202, Method::POST, &path, Some(&body)).await;
    let filled = || {
        let mut starts: HashMap<i64, usize> = HashMap::new();
        for start in executor.starts().iter().filter(|start| start.task == task && start.fire_time < until) {
            *starts.entry(start.fire_time).or_default() += 1;
        }
        starts
    };
    await_until("it goes on", 40, || async { when(filled().len() >= 3) }).await;
    back_up(&world.database).await;
    let by_then = filled().len();
    await_until("it comes further than the backup knows", 60, || async { when(filled().len() >= by_then + 8) }).await;
    node.process.signal("STOP");
    restore(&world.database).await;
    node.process.signal("CONT");
    node.process.wait_exit(30).await;
    world.unready_node("a", node.port, QUICK).ready().await;
    // Longer than witnesses have.
    pass(15.0).await;
    assert!(filled().values().all(|count| *count == 1), "some ran again: {:?}", filled());
    api.expect(204, Method::POST, "/cluster/resume", Some(&json!({ "past": "skip" }))).await;
    let is_cancelled = async || api.get(&path).await["items"][0]["status"] == "cancelled";
    await_until("it is cancelled", 30, || async { when(is_cancelled().await) }).await;
    assert!(filled().values().all(|count| *count == 1), "some ran again: {:?}", filled());
}

async fn what_may_have_run_runs_if_an_operator_says_so(kind: Kind) {
    let restored = restored(kind, Fate::Lives).await;
    held_after_start(&restored).await;
    let done = restored.resume("--run-past").await;
    assert!(done.status.success(), "{done:?}");
    await_until("the past has run again", 30, || async {
        when(restored.of_lost("status < 10").await == 0 && restored.starts().values().any(|count| *count == 2))
    })
    .await;
    assert_eq!(restored.of_lost("reason = 'restored'").await, 0, "some were skipped");
}

/// Nobody tells that it was no outage, and it was one: the operator decides all the same.
async fn a_long_time_without_nodes_waits_for_an_operator(kind: Kind) {
    let settings = [QUICK, &[("schedulers.hold_past_after", "2m")]].concat();
    let world = World::new(kind).await;
    let node = world.node("a", &settings).await;
    let app = world.api().make_app("retail", "orders").await;
    let fields = json!({ "cron": "* * * * * ?", "misfire_strategy": "fire_all", "misfire_max": 1_000 });
    let task = world.api().make_task(&app, "salaries", "tick", fields).await;
    assert_eq!(node.process.sigterm(30).await, Some(0));
    make_older(&world.database).await;
    pass(4.0).await;
    let until = now_ms();
    world.unready_node("a", node.port, &settings).ready().await;
    let executor = world.executor("e1", &app).await;
    let fresh = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {until} + 15000");
    await_until("new fires succeed", 60, || async { when(world.database.number(&fresh).await > 1) }).await;
    let past = || executor.starts().into_iter().filter(|start| start.fire_time < until).count();
    assert_eq!(past(), 0, "the past ran unasked");
    let held = world.api().get("/cluster/silences").await["items"][0].clone();
    assert_eq!((&held["held"], &held["found_by"]), (&json!(true), &json!("schedulers.hold_past_after")), "{held}");
    world.api().expect(204, Method::POST, "/cluster/resume", Some(&json!({ "past": "run" }))).await;
    let missed = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status < 10 AND due_time < {until}");
    await_until("the past has run", 60, || async { when(world.database.number(&missed).await == 0 && past() > 0) })
        .await;
}

/// It comes when the nodes have long taken the silence for an outage.
async fn restarted_executors_tell_what_their_predecessors_lived_through(kind: Kind) {
    let restored = restored(kind, Fate::Dies).await;
    restored.start().await;
    await_until("the past is about to run", 30, || async { when(restored.of_lost("status = 1").await >= 4) }).await;
    assert!(restored.world.node_logs().contains("run `carillon restored` now"), "nobody tells an operator");
    let journal = restored.executor.journal.to_str().unwrap().to_owned();
    let options = Options { env: &[("CARILLON_JOURNAL_DIR", &journal)], ..Options::default() };
    let executor = restored.world.executor_with("e2", &restored.app, &options).await;
    is_held(&restored).await;
    let done = restored.resume("--skip-past").await;
    assert!(done.status.success(), "{done:?}");
    await_until("nothing of the past waits", 30, || async { when(restored.of_lost("status < 10").await == 0) }).await;
    restored.await_new_fires().await;
    let (from, until) = restored.lost;
    let again = executor.starts().into_iter().filter(|start| (from..until).contains(&start.fire_time)).count();
    assert_eq!(again, 0, "some ran again");
}

async fn without_a_witness_an_operator_says_so(kind: Kind) {
    let restored = restored(kind, Fate::Stops).await;
    let mut command = command::carillon();
    command.args(["restored"]).env("CARILLON__DATABASE__URL", &restored.world.database.url);
    let said = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(said.status.success(), "{said:?}");
    held_after_start_without_fires(&restored).await;
    let done = restored.resume("--skip-past").await;
    assert!(done.status.success(), "{done:?}");
    await_until("nothing of the past waits", 30, || async { when(restored.of_lost("status < 10").await == 0) }).await;
}

async fn held_after_start_without_fires(restored: &Restored) {
    restored.start().await;
    await_until("what was due waits", 30, || async { when(restored.of_lost("status = 0").await > 0) }).await;
    let held = restored.held().await;
    assert_eq!((held.len(), held[0]["found_by"].as_str()), (1, Some("operator")), "{held:?}");
}
