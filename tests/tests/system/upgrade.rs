//! A database that an older version wrote: its tasks and runs keep their meaning.

use carillon_migrations::{Migrator, MigratorTrait};
use carillon_protocol::sign::Key;
use carillon_tests::fires::assert_all;
use carillon_tests::{Api, App, Database, Fires, Kind, LogRow, Status, World, command, folder, now_ms};
use carillon_tests::{node::configure, process::Process};
use serde_json::json;

scenario!(an_old_database_keeps_its_meaning: sqlite mariadb postgres);
scenario!(a_step_that_was_cut_short_is_taken_again: sqlite mariadb postgres);
scenario!(a_step_can_be_taken_back: sqlite mariadb postgres);

/// Tasks of the old database.
const CRON: i64 = 11;
const BY_HAND: i64 = 12;
const STOPPED: i64 = 13;

/// 2025-01-01, where ids begin: 22 bits lie below the milliseconds.
const ID_EPOCH_MS: i64 = 1_735_689_600_000;

/// The runs of the old database, in their order.
#[derive(Debug, Clone, Copy)]
enum Old {
    EndedByHand,
    Skipped,
    GivenUp,
    FiredOnce,
    WaitsByHand,
    Next,
}

/// A whole second, in which all that is old was written.
fn whole_second() -> i64 {
    now_ms() / 1_000 * 1_000
}

fn id(at: i64, which: Old) -> i64 {
    ((at - ID_EPOCH_MS) << 22) + which as i64
}

/// What the first schema's version of the product left behind at `at` (ms).
async fn leave_behind(database: &Database, at: i64) {
    let connection = database.connect().await;
    Migrator::up(&connection, Some(1)).await.expect("make the first schema");
    connection.close().await.expect("close the connection");
    let insert = async |table: &str, columns: &str, rows: &[String]| {
        database.execute(&format!("INSERT INTO {table} ({columns}) VALUES {}", rows.join(", "))).await;
    };
    insert("tenant", "id, name, created_at", &["(1, 'retail', 1)".to_owned()]).await;
    insert("app", "id, tenant_id, name, created_at", &["(2, 1, 'orders', 1)".to_owned()]).await;
    let key = key();
    let row = format!("('{}', 1, 2, '{}', 1, 0)", key.id, key.secret);
    insert("app_key", "id, tenant_id, app_id, secret, created_at, revoked_at", &[row]).await;
    let task = |id: i64, name: &str, cron: &str, started: i32, next: i64| {
        format!(
            "({id}, 1, 2, '{name}', 'tick', 'as before', '{cron}', 'Asia/Shanghai', 'old', 'random', '[\"eu\"]', \
             'retry', 7, 100, 'execute', 60000, 'skip', 5000, 'at_most_once', {started}, 3, {next}, {at}, 1, 2)"
        )
    };
    let never = i64::MAX;
    let tasks = [
        task(CRON, "cron", "* * * * * ?", 1, at + 2_000),
        task(BY_HAND, "by hand", "", 1, never),
        task(STOPPED, "stopped", "0 0 3 * * ?", 0, never),
    ];
    let columns = "id, tenant_id, app_id, name, handler, description, cron, time_zone, params, routing, tags, \
         failure_strategy, max_retries, retry_interval_ms, expired_strategy, expire_after_ms, misfire_strategy, \
         timeout_ms, delivery, started, revision, next_fire_at, written_until, created_at, updated_at";
    insert("task", columns, &tasks).await;
    let log = |which: Old, task: i64, fire_time: i64, status: i32, reason: &str, message: &str| {
        let finished_at = if status >= 10 { at } else { 0 };
        let id = id(at, which);
        format!(
            "({id}, 1, 2, {task}, 3, 0, 0, 1, 0, {fire_time}, {fire_time}, {status}, 1, 0, 0, 0, 0, 0, 0, 0, \
             {finished_at}, '{reason}', '{message}', NULL)"
        )
    };
    let logs = [
        log(Old::EndedByHand, BY_HAND, at - 60_000, 14, "cancelled_by_hand", ""),
        log(Old::Skipped, CRON, at - 5_000, 13, "misfire_skipped", "missed 9 fires"),
        log(Old::GivenUp, CRON, at - 1_000, 14, "task_edited", ""),
        log(Old::FiredOnce, CRON, at, 0, "misfire_fired_once", "missed 2 fires"),
        log(Old::WaitsByHand, BY_HAND, at + 1, 0, "by_hand", ""),
        log(Old::Next, CRON, at + 1_000, 0, "", ""),
    ];
    let columns = "id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, fire_time, \
         due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, started_at, \
         finished_at, reason, message, output";
    insert("task_log", columns, &logs).await;
}

fn key() -> Key {
    Key { id: "0123456789abcdef".to_owned(), secret: "s".repeat(64) }
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

/// What each row says now.
async fn assert_rows_kept_their_meaning(database: &Database, at: i64) {
    let all = [
        (Old::EndedByHand, Status::Cancelled, "cancelled_by_hand", "schedule", ""),
        (Old::Skipped, Status::Expired, "misfire_skipped", "schedule", "missed 9 fires"),
        (Old::GivenUp, Status::Cancelled, "task_edited", "schedule", ""),
        (Old::FiredOnce, Status::Init, "", "misfire", "missed 2 fires"),
        (Old::WaitsByHand, Status::Init, "", "hand", ""),
        (Old::Next, Status::Init, "", "schedule", ""),
    ];
    for (which, status, reason, origin, message) in all {
        let row = database.log(id(at, which)).await;
        let said = (row.status, row.reason.as_str(), row.origin.as_str(), row.message.as_str());
        assert_eq!(said, (status, reason, origin, message), "{which:?}");
        assert_eq!((row.seq, row.priority, row.stopping.as_str(), row.version), (0, 5, "", 1), "{which:?}");
    }
}

async fn an_old_database_keeps_its_meaning(kind: Kind) {
    let world = World::new(kind).await;
    let at = whole_second();
    leave_behind(&world.database, at).await;
    migrate(&world.database).await;
    assert_rows_kept_their_meaning(&world.database, at).await;

    world.node("a", &[]).await;
    let api = world.api();
    assert_definitions_kept_their_meaning(&api).await;
    let app = App { tenant: "retail".to_owned(), name: "orders".to_owned(), key: key() };
    let options = carillon_tests::executor::Options { tags: "eu", ..Default::default() };
    world.executor_with("e1", &app, &options).await;
    world.await_successes(CRON, 6).await;
    world.await_successes(BY_HAND, 1).await;
    let (rows, starts) = world.settle_and_check().await;

    let row = |which| rows.iter().find(|row| row.id == id(at, which)).unwrap_or_else(|| panic!("{which:?} is gone"));
    let ran = [Old::FiredOnce, Old::WaitsByHand, Old::Next].map(row).map(LogRow::clone);
    assert_all("run", &ran, |row| row.status == Status::Succeeded && starts.iter().any(|start| start.log == row.id));
    assert_eq!(row(Old::FiredOnce).message, "missed 2 fires", "what it stood for is still told");
    let of_cron: Vec<LogRow> = rows.iter().filter(|row| row.task == CRON && row.fire_time >= at).cloned().collect();
    let _ = Fires::every(1, &of_cron).assert_no_gap();
    assert!(rows.iter().all(|row| row.task != STOPPED));
}

async fn assert_definitions_kept_their_meaning(api: &Api) {
    let said = async |task: i64, field: &str| api.task(task).await[field].clone();
    for (task, schedule, state) in
        [(CRON, "cron", "started"), (BY_HAND, "none", "started"), (STOPPED, "cron", "stopped")]
    {
        assert_eq!((said(task, "schedule").await, said(task, "state").await), (json!(schedule), json!(state)));
        let kept = [
            ("handler", json!("tick")),
            ("description", json!("as before")),
            ("time_zone", json!("Asia/Shanghai")),
            ("params", json!("old")),
            ("tags", json!(["eu"])),
            ("max_retries", json!(7)),
            ("retry_interval_ms", json!(100)),
            ("expire_after_ms", json!(60_000)),
            ("misfire_strategy", json!("skip")),
            ("timeout_ms", json!(5_000)),
            ("delivery", json!("at_most_once")),
            ("revision", json!(3)),
        ];
        for (field, value) in kept {
            assert_eq!(said(task, field).await, value, "{field}");
        }
        // What is new has the default of a task that does not name it.
        let fields = json!({ "tenant": "retail", "app": "orders", "name": format!("new {task}"), "handler": "tick" });
        let (_, new) = api.send(reqwest::Method::POST, "/tasks", Some(&fields)).await;
        let old = api.task(task).await;
        let known = kept_fields();
        for (field, value) in new.as_object().expect("a task") {
            if !known.contains(&field.as_str()) {
                assert_eq!(&old[field], value, "{field}");
            }
        }
    }
}

/// What every task has of its own.
fn kept_fields() -> Vec<&'static str> {
    let of_each = "id name schedule cron state started revision next_fire_at written_until created_at updated_at fires";
    let kept = "handler description time_zone params tags max_retries retry_interval_ms expire_after_ms \
         misfire_strategy timeout_ms delivery";
    of_each.split_whitespace().chain(kept.split_whitespace()).collect()
}

/// MariaDB commits each change of the schema by itself, so a crash can leave any part of a step.
async fn a_step_that_was_cut_short_is_taken_again(kind: Kind) {
    let database = Database::fresh(kind).await;
    let at = whole_second();
    leave_behind(&database, at).await;
    for statement in [
        "ALTER TABLE task_log ADD COLUMN origin VARCHAR(191) NOT NULL DEFAULT 'schedule'",
        "UPDATE task_log SET origin = 'hand', reason = '' WHERE reason = 'by_hand'",
        "CREATE TABLE rule_version (id BIGINT PRIMARY KEY, version BIGINT NOT NULL)",
        "CREATE INDEX task_log_due_tenant ON task_log (status, due_time, tenant_id)",
    ] {
        database.execute(statement).await;
    }
    migrate(&database).await;
    assert_rows_kept_their_meaning(&database, at).await;
    // Done, and not yet noted.
    database.execute("DELETE FROM seaql_migrations WHERE version = 'm0002_policies'").await;
    migrate(&database).await;
    assert_rows_kept_their_meaning(&database, at).await;
    assert_eq!(database.number("SELECT COUNT(*) FROM rule_version").await, 1);
}

async fn a_step_can_be_taken_back(kind: Kind) {
    let database = Database::fresh(kind).await;
    let at = whole_second();
    leave_behind(&database, at).await;
    migrate(&database).await;
    let connection = database.connect().await;
    Migrator::down(&connection, Some(1)).await.expect("take the second step back");
    connection.close().await.expect("close the connection");
    let kept = database.query("SELECT cron FROM task ORDER BY id", |row| row.try_get_by_index::<String>(0)).await;
    assert_eq!(kept, ["* * * * * ?", "", "0 0 3 * * ?"]);
    migrate(&database).await;
    assert_eq!(database.logs("1 = 1").await.len(), 6);
}
