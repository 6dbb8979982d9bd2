//! Databases that released versions left behind: a node of today brings them up to date, and says of them what
//! the release said.
//!
//! What a release leaves behind is written once, when it is cut, by
//! `CARILLON_RELEASE=0.1 cargo test -p carillon-tests --test system upgrade::write -- --ignored`,
//! and never again: `tests/fixtures/README.md`.

use crate::sharing::every_second;
use carillon_protocol::sign::Key;
use carillon_tests::fires::assert_all;
use carillon_tests::node::QUICK;
use carillon_tests::wait::when;
use carillon_tests::{Api, App, Database, Fires, Kind, Node, Status, World, await_until, command, folder};
use carillon_tests::{node::configure, process::Process};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;

scenario!(what_a_release_left_behind_keeps_its_meaning on_each: sqlite mariadb postgres);
scenario!(a_node_that_asks_for_no_schema_ends_with_the_upgrade on_each: sqlite mariadb postgres);
scenario!(a_step_that_was_cut_short_is_taken_again on_each: sqlite mariadb postgres);

scenario!(a_release_is_upgraded_under_load: mariadb postgres);

/// Every release whose databases must be readable.
const RELEASES: &[&str] = &["0.1"];

/// What a node is asked before and after.
const QUESTIONS: &[&str] = &[
    "/tenants?limit=500",
    "/tenants/retail/quotas",
    "/apps?limit=500",
    "/tasks?limit=500",
    "/task-logs?limit=500&status=succeeded",
    "/task-logs?limit=500&status=failed",
    "/calendars/retail",
    "/calendars/retail/china",
    "/tenants/retail/maintenance",
    "/users?limit=500",
    "/audit?limit=20&until=",
];

/// What goes on while a node runs.
const MOVING: &[&str] = &["next_fire_at", "written_until", "fires", "used", "last_used_at", "last_login_at", "used_at"];

/// Nothing that a release left behind is too old to be kept.
const SETTINGS: &[(&str, &str)] = &[("data.max_retain_days", "3650")];

fn fixture(release: &str, file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(release).join(file)
}

fn file_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => "sqlite.sql",
        Kind::MariaDb => "mariadb.sql",
        Kind::Postgres => "postgres.sql",
    }
}

/// What a node says of its database, and what an executor needs to work for it.
async fn said(api: &Api, until: i64) -> Value {
    let mut answers = json!({});
    for question in QUESTIONS {
        let path = if question.ends_with('=') { format!("{question}{until}") } else { (*question).to_owned() };
        answers[*question] = api.get(&path).await;
    }
    answers
}

/// A tenant with something of every kind; its quota leaves no room for tasks of most of the executor's handlers.
async fn live(world: &World) -> App {
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let send = async |method: Method, status: u16, path: &str, body: Value| {
        api.expect(status, method, path, Some(&body)).await;
    };
    send(Method::PATCH, 200, "/tenants/retail/quotas", json!({ "max_tasks": 7, "retain_days": 3650 })).await;
    let days = json!({ "excluded_weekdays": ["sat", "sun"], "excluded_days": ["2030-10-01"], "description": "国庆节" });
    api.put_calendar("/calendars/retail/china", days).await;
    let window = json!({ "starts_at": 1_900_000_000_000i64, "ends_at": 1_900_003_600_000i64, "action": "postpone",
        "note": "the yearly move" });
    send(Method::POST, 201, "/tenants/retail/maintenance", window).await;
    let person = api.make_person("ada", Some("retail")).await;
    api.make_role("on call", Some("retail"), &["tasks.read", "task_logs.read"]).await;
    api.grant(&person, "on call", Some("retail")).await;

    let close = json!({ "cron": "0 0 3 L * ?", "time_zone": "Asia/Shanghai", "calendar": "china", "misfire_strategy": "skip", "priority": 9,
        "failure_strategy": "retry", "max_retries": 7, "retry_interval_ms": 100, "description": "Quarter's end – 'books'" });
    api.make_task(&app, "close-books", "tick", close).await;
    let flaky = json!({ "schedule": "none", "params": r#"{"succeed_at": 2}"#, "failure_strategy": "retry",
        "max_retries": 3, "retry_interval_ms": 50, "delivery": "at_least_once" });
    let flaky = api.make_task(&app, "flaky", "flaky", flaky).await;
    let child = json!({ "schedule": "none", "parents": [{ "task": "flaky" }] });
    let child = api.make_task(&app, "after-flaky", "tick", child).await;
    let failing = api.make_task(&app, "failing", "fatal", json!({ "schedule": "none" })).await;
    let paused = json!({ "schedule": "fixed_rate", "interval_ms": 86_400_000 });
    let paused = api.make_task(&app, "paused", "tick", paused).await;
    api.pause(paused, "until the audit is over").await;
    api.make_task(&app, "stopped", "echo", json!({ "cron": "0 30 4 * * ?", "started": false })).await;
    let executor = world.executor("e1", &app).await;
    api.run(flaky, None).await;
    let failed = api.run(failing, None).await;
    world.await_successes(child, 1).await;
    world.await_end(failed).await;
    executor.process.sigterm(20).await;
    app
}

async fn leave_behind(release: &str, kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", SETTINGS).await;
    let app = live(&world).await;
    let until = carillon_tests::now_ms();
    let mut told = said(&world.api(), until).await;
    told["until"] = json!(until);
    told["key"] = json!({ "id": app.key.id, "secret": app.key.secret });
    node.process.sigterm(20).await;
    let folder = fixture(release, "");
    std::fs::create_dir_all(&folder).expect("make the release's folder");
    std::fs::write(fixture(release, file_of(kind)), world.database.dump().await + "\n").expect("write the dump");
    let told = serde_json::to_string(&told).expect("JSON");
    std::fs::write(fixture(release, file_of(kind)).with_extension("json"), told + "\n").expect("write what it says");
}

#[tokio::test]
#[ignore = "writes the fixture of a release, once"]
async fn write() {
    let release = std::env::var("CARILLON_RELEASE").expect("CARILLON_RELEASE, such as 0.1");
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::Postgres] {
        leave_behind(&release, kind).await;
    }
}

/// A database as that release left it, and what its node said of it.
async fn left_behind(release: &str, kind: Kind) -> (Database, Value) {
    let read =
        |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let database = Database::empty(kind).await;
    database.load(&read(fixture(release, file_of(kind)))).await;
    let told = read(fixture(release, file_of(kind)).with_extension("json"));
    (database, serde_json::from_str(&told).expect("JSON"))
}

/// `carillon migrate`, as an operator calls it.
async fn migrate(database: &Database) {
    let folder = folder::fresh("migrate");
    let mut migrate = command::carillon();
    migrate.arg("migrate").current_dir(&folder);
    configure(&mut migrate, &[("database.url", &database.url)]);
    let process = Process::start("migrate", migrate, &folder.join("migrate.log"));
    assert!(process.wait_exit(60).await.success(), "{}", process.log());
}

/// Everything that was said is said still; a later version may say more.
fn assert_still_said(before: &Value, now: &Value, of: &str) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (field, value) in before.iter().filter(|(field, _)| !MOVING.contains(&field.as_str())) {
                assert_still_said(value, &now[field], &format!("{of}.{field}"));
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            assert_eq!(before.len(), now.len(), "{of}: {before:?} {now:?}");
            for (at, (before, now)) in before.iter().zip(now).enumerate() {
                assert_still_said(before, now, &format!("{of}[{at}]"));
            }
        }
        _ => assert_eq!(before, now, "{of}"),
    }
}

async fn what_a_release_left_behind_keeps_its_meaning(kind: Kind) {
    for release in RELEASES {
        let (database, told) = left_behind(release, kind).await;
        migrate(&database).await;
        let world = World::on(database);
        let node: Node = world.node("b", SETTINGS).await;
        let now = said(&world.api(), told["until"].as_i64().expect("an instant")).await;
        for question in QUESTIONS {
            assert_still_said(&told[*question], &now[*question], &format!("{release}: {question}"));
        }
        let text = |at: &str| told["key"][at].as_str().expect("a key").to_owned();
        let key = Key { id: text("id"), secret: text("secret") };
        let app = App { tenant: "retail".to_owned(), name: "orders".to_owned(), key };
        world.executor("e1", &app).await;
        let tasks = world.api().get("/tasks?tenant=retail&limit=500").await;
        let of = |name: &str| {
            let task = tasks["items"].as_array().into_iter().flatten().find(|task| task["name"] == name);
            carillon_tests::api::id_of(&task.expect("the task")["id"]).expect("an id")
        };
        world.api().run(of("flaky"), None).await;
        world.await_successes(of("after-flaky"), 2).await;
        node.process.sigterm(20).await;
    }
}

/// Nodes of 0.1 do not: they end when they find another incarnation under their name.
async fn a_node_that_asks_for_no_schema_ends_with_the_upgrade(kind: Kind) {
    let (database, _) = left_behind("0.1", kind).await;
    let join = "INSERT INTO node (id, name, incarnation, address, version, started_at, heartbeat_at, left_at, queue_depth) \
                VALUES (7, 'old', 'theirs', 'http://127.0.0.1:1', '0.1.0', 1, 1, 0, 0)";
    database.execute(join).await;
    // As 0.1 renews it.
    let beat = "UPDATE node SET heartbeat_at = 2, queue_depth = 0, left_at = 0 WHERE id = 7 AND incarnation = 'theirs'";
    assert_eq!(database.execute(beat).await, 1);
    migrate(&database).await;
    assert_eq!(database.execute(beat).await, 0, "it goes on");
}

/// MariaDB commits each change of the schema by itself, so a crash can leave any part of a step.
async fn a_step_that_was_cut_short_is_taken_again(kind: Kind) {
    let database = Database::empty(kind).await;
    migrate(&database).await;
    for statement in [
        // Done, and not noted.
        "DELETE FROM seaql_migrations",
        // Not all of it done.
        "DROP TABLE task_log_attempt",
        "DELETE FROM rule_version",
        match kind {
            Kind::MariaDb => "DROP INDEX task_name ON task",
            Kind::Sqlite | Kind::Postgres => "DROP INDEX task_name",
        },
    ] {
        database.execute(statement).await;
    }
    migrate(&database).await;
    assert_eq!(database.number("SELECT COUNT(*) FROM rule_version").await, 1);
    assert_eq!(database.number("SELECT COUNT(*) FROM lease").await, 3);
    assert_eq!(database.number("SELECT COUNT(*) FROM task_log_attempt").await, 0);
    let world = World::on(database);
    world.node("a", &[]).await;
    let app = world.api().make_app("retail", "orders").await;
    world.api().make_task(&app, "one", "tick", json!({ "schedule": "none" })).await;
    let twice = json!({ "tenant": "retail", "app": "orders", "name": "one", "handler": "tick", "schedule": "none" });
    world.api().expect(409, Method::POST, "/tasks", Some(&twice)).await;
}

/// Nodes of the next release join: it adds a column, and both work side by side. The release after that needs the column: its
/// node ends those of this one, and none comes back. No fire is lost, and none starts twice.
async fn a_release_is_upgraded_under_load(kind: Kind) {
    let world = World::new(kind).await;
    let old = [world.node("a", QUICK).await, world.node("b", QUICK).await];
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let tasks = every_second(&api, &app, 10).await;
    let made_at = carillon_tests::now_ms();
    let go_on = async |nodes: i64, what: &str| {
        let after = carillon_tests::now_ms() + 1_000;
        let fresh =
            |what: &str| format!("SELECT COUNT({what}) FROM task_log WHERE status = 10 AND fire_time > {after}");
        let (runs, claimed_by) = (fresh("*"), fresh("DISTINCT node_id"));
        await_until(what, 60, || async {
            let database = &world.database;
            when(database.number(&runs).await > 40 && database.number(&claimed_by).await >= nodes)
        })
        .await;
    };
    go_on(2, "fires before the upgrade").await;
    let next = world.later_node("c", 0, 1, QUICK).await;
    go_on(3, "fires of two releases side by side").await;
    old[0].process.sigterm(20).await;
    // The executor knows it by its address.
    let replaced = world.later_node("a", old[0].port, 1, QUICK).await;
    go_on(3, "fires after one node was replaced").await;
    assert!(old[1].process.is_running(), "{}", old[1].process.log_digest());

    world.later_node("d", 0, 2, QUICK).await;
    old[1].process.wait_failure(30, &["steps aside"]).await;
    let again = world.unready_node("b", 0, QUICK);
    again.process.wait_failure(30, &["belongs to a later release"]).await;
    go_on(3, "fires after the upgrade").await;
    assert!(next.process.is_running() && replaced.process.is_running(), "{}", next.process.log_digest());

    let until = carillon_tests::now_ms() - 3_000;
    let (rows, _) = world.settle_and_check().await;
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        let fires = Fires::every(1, &of_task).assert_no_gap().between(made_at + 6_000, until);
        assert_all("succeeded", &fires, |row| row.status == Status::Succeeded);
    }
}
