//! What a later release leaves in the database: a schema, and words, that a node of this one does not know.

use carillon_tests::wait::when;
use carillon_tests::{FakeExecutor, Kind, LogRow, Status, World, await_until, now_ms};
use reqwest::Method;
use serde_json::json;

scenario!(a_node_steps_aside_for_a_later_schema: sqlite mariadb postgres);
scenario!(a_task_that_cannot_be_read_stops_no_other: sqlite mariadb postgres);
scenario!(a_task_whose_schedule_cannot_be_read_waits: sqlite mariadb postgres);
scenario!(a_calendar_that_cannot_be_read_stops_no_other_task: sqlite mariadb postgres);
scenario!(a_link_that_cannot_be_read_stops_no_other_task: sqlite mariadb postgres);
scenario!(a_window_that_cannot_be_read_holds_its_runs_and_no_other_rule: sqlite mariadb postgres);

async fn a_node_steps_aside_for_a_later_schema(kind: Kind) {
    let world = World::new(kind).await;
    let database = &world.database;
    // A step of a later release, with which nodes of this one can work.
    database.execute("INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 0)").await;
    let node = world.node("a", &[]).await;
    // One with which they cannot.
    database.execute("UPDATE schema_support SET oldest = 9999").await;
    node.process.wait_failure(30, &["steps aside", "schema 9999", "upgrade it"]).await;
    let again = world.unready_node("b", 0, &[]);
    again.process.wait_failure(30, &["belongs to a later release", "upgrade this node"]).await;
}

/// It waits as it is; the others of its node go on.
async fn a_task_that_cannot_be_read_stops_no_other(kind: Kind) {
    let world = World::new(kind).await;
    let first = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fields = json!({ "cron": "* * * * * ?" });
    let strange = api.make_task(&app, "of the future", "job", fields.clone()).await;
    let plain = api.make_task(&app, "of today", "job", fields).await;
    first.process.sigterm(20).await;
    let database = &world.database;
    let set_strategy = async |word: &str| {
        database.execute(&format!("UPDATE task SET misfire_strategy = '{word}' WHERE id = {strange}")).await;
    };
    set_strategy("ask_the_future").await;
    // Its fires are written as soon as it is read.
    database.execute(&format!("DELETE FROM task_log WHERE task_id = {strange} AND fire_time > 60000")).await;
    let watermark = format!("SELECT next_fire_at FROM task WHERE id = {strange}");
    database.execute(&format!("UPDATE task SET next_fire_at = 1000 WHERE id = {strange}")).await;

    let node = world.node("b", &[]).await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    world.await_successes(plain, 5).await;
    assert_eq!(database.number(&watermark).await, 1_000, "it was planned");
    assert!(node.process.log().contains("a task cannot be read"), "{}", node.process.log_digest());
    let listed = async |query: &str| {
        let page = world.api().get(&format!("/tasks?search=of{query}")).await;
        let names: Vec<String> =
            page["items"].as_array().unwrap().iter().map(|task| task["name"].to_string()).collect();
        (names, page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(listed("").await, (vec![r#""of today""#.to_owned()], None));
    let (names, next) = listed("&limit=1").await;
    assert_eq!(names, [r#""of today""#], "the page is filled up");
    assert_eq!(listed(&format!("&limit=1&after={}", next.unwrap())).await, (Vec::new(), None));

    set_strategy("fire_once").await;
    world.await_successes(strange, 2).await;
    drop(fake);
}

/// Its schedule cannot be read: that is not one which never fires again.
async fn a_task_whose_schedule_cannot_be_read_waits(kind: Kind) {
    let world = World::new(kind).await;
    let first = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fields = json!({ "cron": "* * * * * ?", "time_zone": "UTC" });
    let mut strange = Vec::new();
    for (column, word, own) in [
        ("schedule", "when_it_pleases", "cron"),
        ("cron", "? ? ?", "* * * * * ?"),
        ("time_zone", "Mars/Olympus", "UTC"),
        ("dst_gap", "jump", "auto"),
    ] {
        strange.push((api.make_task(&app, column, "job", fields.clone()).await, column, word, own));
    }
    let plain = api.make_task(&app, "of today", "job", fields).await;
    first.process.sigterm(20).await;
    let database = &world.database;
    for (task, column, word, _) in &strange {
        // Its fires are written as soon as it is read.
        let set = format!("UPDATE task SET {column} = '{word}', next_fire_at = 1000 WHERE id = {task}");
        assert_eq!(database.execute(&set).await, 1);
        database.execute(&format!("DELETE FROM task_log WHERE task_id = {task}")).await;
    }

    let node = world.node("b", &[]).await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    world.await_successes(plain, 5).await;
    for (task, column, _, own) in &strange {
        let is_as_it_was =
            format!("SELECT COUNT(*) FROM task WHERE id = {task} AND next_fire_at = 1000 AND started = 1");
        assert_eq!(database.number(&is_as_it_was).await, 1, "it was planned without its {column}");
        assert_eq!(database.logs_of(*task).await, [], "without its {column}");
        database.execute(&format!("UPDATE task SET {column} = '{own}' WHERE id = {task}")).await;
    }
    for (task, ..) in strange {
        world.await_successes(task, 2).await;
    }
    drop(fake);
}

/// Only the tasks that name it wait.
async fn a_calendar_that_cannot_be_read_stops_no_other_task(kind: Kind) {
    let world = World::new(kind).await;
    let first = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    api.put_calendar("/calendars/retail/holidays", json!({})).await;
    let fields = json!({ "cron": "* * * * * ?" });
    let plain = api.make_task(&app, "of today", "job", fields).await;
    let fields = json!({ "cron": "* * * * * ?", "calendar": "holidays" });
    let strange = api.make_task(&app, "of the future", "job", fields).await;
    first.process.sigterm(20).await;
    let database = &world.database;
    let own: String = database.query("SELECT body FROM calendar", |row| row.try_get_by_index(0)).await.remove(0);
    let later = own.replacen('{', r#"{"moons": [], "#, 1);
    database.execute(&format!("UPDATE calendar SET body = '{later}'")).await;
    database.execute(&format!("DELETE FROM task_log WHERE task_id = {strange}")).await;
    database.execute(&format!("UPDATE task SET next_fire_at = 1000 WHERE id = {strange}")).await;

    let node = world.node("b", &[]).await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    world.await_successes(plain, 5).await;
    assert_eq!(database.logs_of(strange).await, [], "without its calendar");
    assert!(node.process.log().contains("a calendar cannot be read"), "{}", node.process.log_digest());
    database.execute(&format!("UPDATE calendar SET body = '{own}'")).await;
    world.await_successes(strange, 2).await;
    drop(fake);
}

/// What follows its parent waits, its child is not listed, and all others go on.
async fn a_link_that_cannot_be_read_stops_no_other_task(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let (fires, follows) = (
        json!({ "cron": "* * * * * ?" }),
        |parent: &str| json!({ "schedule": "none", "parents": [{ "task": parent, "on": "success" }] }),
    );
    let mut tasks = Vec::new();
    for (parent, child) in [("sales of today", "report of today"), ("sales of the future", "report of the future")] {
        let parent_id = api.make_task(&app, parent, "job", fires.clone()).await;
        tasks.push((parent_id, api.make_task(&app, child, "job", follows(parent)).await));
    }
    let [(_, plain), (parent, strange)] = tasks[..] else { unreachable!() };
    let database = &world.database;
    let set_outcome = async |word: &str| {
        let set = format!("UPDATE task_parent SET on_outcome = '{word}' WHERE child_id = {strange}");
        assert_eq!(database.execute(&set).await, 1);
    };
    set_outcome("ask_the_future").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    world.await_successes(parent, 3).await;
    world.await_successes(plain, 3).await;
    assert_eq!(database.logs_of(strange).await, [], "by a link that nobody knows");
    assert!(node.process.log().contains("what follows a run waits"), "{}", node.process.log_digest());
    let page = api.get("/tasks?search=report").await;
    let names: Vec<&str> = page["items"].as_array().unwrap().iter().filter_map(|task| task["name"].as_str()).collect();
    assert_eq!(names, ["report of today"]);
    let graph = api.get(&format!("/tasks/{parent}/graph")).await;
    assert!(!graph.to_string().contains("report of the future"), "{graph}");
    api.expect(500, Method::GET, &format!("/tasks/{strange}"), None).await;

    set_outcome("success").await;
    world.await_successes(strange, 3).await;
    drop(fake);
}

/// Its runs start at its end; what else people set reaches the node.
async fn a_window_that_cannot_be_read_holds_its_runs_and_no_other_rule(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let (held, free) = (api.make_app("retail", "orders").await, api.make_app("finance", "ledger").await);
    for (name, app) in [("e1", &held), ("e2", &free)] {
        world.executor(name, app).await;
    }
    let (starts_at, ends_at) = (now_ms() + 8_000, now_ms() + 14_000);
    let window = json!({ "starts_at": starts_at, "ends_at": ends_at, "action": "skip" });
    api.expect(201, Method::POST, "/tenants/retail/maintenance", Some(&window)).await;
    world.database.execute("UPDATE maintenance_window SET action = 'ask_the_future'").await;
    world.database.execute("UPDATE rule_version SET version = version + 1").await;
    let is_told = || async { when(node.process.log().contains("action of a later release")) };
    await_until("the node reads it", 20, is_told).await;
    let fields = json!({ "cron": "* * * * * ?" });
    let held = api.make_task(&held, "every second", "tick", fields.clone()).await;
    let free = api.make_task(&free, "every second", "tick", fields).await;
    let after = |task| {
        format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10 AND fire_time > {ends_at}")
    };
    for task in [held, free] {
        await_until("it fires after the window", 40, || async { when(world.database.number(&after(task)).await >= 2) })
            .await;
    }
    let within = |row: &&LogRow| (starts_at + 1_000..ends_at).contains(&row.fire_time);
    for (task, is_held) in [(held, true), (free, false)] {
        let rows = world.database.logs_of(task).await;
        let rows: Vec<&LogRow> = rows.iter().filter(within).collect();
        assert!(!rows.is_empty());
        assert!(
            rows.iter().all(|row| row.status == Status::Succeeded && (row.started_at >= ends_at) == is_held),
            "{rows:?}"
        );
    }
}
