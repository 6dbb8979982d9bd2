//! More is offered than is carried, and what was missed in a long outage: other tenants are on time, memory stays within
//! its bounds, and every fire has a row that says what became of it.

use carillon_tests::executor::Options;
use carillon_tests::fires::assert_all;
use carillon_tests::node::TOKEN;
use carillon_tests::slow::SlowDatabase;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Fires, Kind, Node, Status, World, await_until, http, now_ms, pass};
use serde_json::json;
use std::collections::HashMap;

scenario!(a_slow_executor_is_offered_many_times_what_it_carries: sqlite mariadb);
scenario!(more_is_due_than_a_node_carries: sqlite mariadb postgres);
scenario!(after_ten_minutes_without_a_node: sqlite mariadb postgres);

/// Fires per second of the tenant whose executor carries five.
const OFFERED: usize = 40;

/// The smallest queue that can be set.
const QUEUE: f64 = 1_000.0;

/// How long it is watched, s.
const WATCHED_S: f64 = 15.0;

/// Fires of the other tenant may start so late, ms: far less than the others wait, far more than a busy machine takes.
const LATE_MAX_MS: i64 = 5_000;

/// Runs per second that a node carries at least in an overload, on the slow database: one that commits nothing carries none.
const CARRIED_MIN: i64 = 20;

/// What a debug build with a thousand runs in memory is well under, MB.
const RESIDENT_MAX_MB: u64 = 300;

/// Tasks that are added at a time, until there are too many.
const MORE: i64 = 1_000;

const OUTAGE_MS: i64 = 600_000;

async fn a_slow_executor_is_offered_many_times_what_it_carries(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("schedulers.task_queue_count", "1000")]).await;
    let api = world.api();
    let (busy, app) = (api.make_app("wholesale", "imports").await, api.make_app("retail", "orders").await);
    let options = Options { env: &[("CARILLON_CAPACITY", "1")], ..Options::default() };
    world.executor_with("slow", &busy, &options).await;
    world.executor("e1", &app).await;
    let other = api.make_task(&app, "every second", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(other, 3).await;
    let mut offered = Vec::new();
    for number in 0..OFFERED {
        let fields = json!({ "cron": "* * * * * ?", "params": "200" });
        offered.push(api.make_task(&busy, &format!("import {number}"), "sleep", fields).await);
    }
    let from = now_ms();
    assert_bounded_memory(&node.url, WATCHED_S).await;
    assert_on_time(&world, other, from).await;
    for task in &offered {
        api.stop(*task).await;
    }
    world.settle_and_check().await;
    for task in offered {
        assert_accounted_for(&world, task).await;
    }
}

async fn assert_bounded_memory(url: &str, seconds: f64) {
    for _ in 0..5 {
        pass(seconds / 5.0).await;
        let held = metric(url, "carillon_queue_depth").await;
        assert!(held <= QUEUE, "{held} runs in memory");
    }
}

/// All fires of a task that the overload is none of, from that instant on; those of the last seconds may be under way.
async fn assert_on_time(world: &World, task: i64, from: i64) {
    let until = now_ms() - LATE_MAX_MS;
    let fires = Fires::every(1, &world.database.logs_of(task).await).assert_no_gap().between(from, until);
    assert_all("succeeded at the first attempt", &fires, |row| row.status == Status::Succeeded && row.attempt == 1);
    assert_all("on time beside the overload", &fires, |row| row.started_at < row.due_time + LATE_MAX_MS);
}

async fn assert_accounted_for(world: &World, task: i64) {
    let rows = world.database.logs_of(task).await;
    let _ = Fires::every(1, &rows).assert_no_gap();
    assert_all("ended, and says why it did not run", &rows, |row| {
        row.status == Status::Succeeded || (row.status.is_terminal() && !row.reason.is_empty())
    });
}

/// More and more tasks fire each second, until the node says that it does not carry them: few are needed, as its database takes
/// its time.
async fn more_is_due_than_a_node_carries(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [("schedulers.task_queue_count", "1000"), ("schedulers.task_pre_generation_max_time", "40s")];
    let mut database = SlowDatabase::of(&world.database).await;
    let node = world.node_on("a", &database.database, &settings).await;
    let api = world.api();
    let (busy, app) = (api.make_app("wholesale", "imports").await, api.make_app("retail", "orders").await);
    world.executor("fast", &busy).await;
    world.executor("e1", &app).await;
    let other = api.make_task(&app, "every second", "tick", json!({ "cron": "* * * * * ?" })).await;
    let template = api.make_task(&busy, "import", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(other, 3).await;
    let is_overloaded = async || metric(&node.url, "carillon_overloaded").await > 0.0;
    assert!(!is_overloaded().await);
    database.slow();
    let from = now_ms();
    let mut offered = 1;
    while !is_overloaded().await {
        assert!(offered < 50_000, "{offered} fires per second are no overload: {}", node.process.log_digest());
        copy_task(&world, template, offered, MORE).await;
        offered += MORE;
        pass(3.0).await;
    }
    let told = api.get("/nodes").await["this"]["overload"].clone();
    assert!(told["since"].as_i64().is_some_and(|since| since > from), "{told}");
    assert!(node.process.log().contains("overloaded: more is due than"), "{}", node.process.log_digest());
    let began = now_ms();
    assert_bounded_memory(&node.url, 5.0).await;
    assert_carries(&world, template, began).await;
    assert!(resident_mb(&node) < RESIDENT_MAX_MB, "{} MB", resident_mb(&node));
    assert_on_time(&world, other, from).await;
    assert!(is_overloaded().await, "it is over too early");

    database.quick();
    let stop = format!("UPDATE task SET started = 0, next_fire_at = {} WHERE id > {template}", i64::MAX);
    world.database.execute(&format!("{stop} AND id <= {template} + {offered}")).await;
    await_until("the overload is over", 120, || async { when(!is_overloaded().await) }).await;
    assert!(node.process.log().contains("no longer overloaded"), "{}", node.process.log_digest());
    assert!(api.get("/nodes").await["this"]["overload"].is_null());
    world.settle_and_check().await;
    assert_all_accounted_for(&world, template).await;
}

/// The overload goes on, and so does the work: of what is offered, at least so many per second succeed.
async fn assert_carries(world: &World, template: i64, since: i64) {
    let carried =
        format!("SELECT COUNT(*) FROM task_log WHERE task_id >= {template} AND status = 10 AND started_at >= {since}");
    let seconds = (now_ms() - since) / 1_000;
    let carried = world.database.number(&carried).await;
    assert!(carried >= CARRIED_MIN * seconds, "{carried} in {seconds} s");
}

fn resident_mb(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.process.pid())).expect("the node runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_024
}

/// Every fire of each of the tasks has a row, and each row has ended for a reason.
async fn assert_all_accounted_for(world: &World, template: i64) {
    let gaps = format!(
        "SELECT COUNT(*) FROM (SELECT task_id FROM task_log WHERE task_id >= {template} GROUP BY task_id \
         HAVING COUNT(*) * 1000 <> MAX(fire_time) - MIN(fire_time) + 1000) t"
    );
    assert_eq!(world.database.number(&gaps).await, 0, "tasks lack rows of fires");
    let open = format!(
        "SELECT COUNT(*) FROM task_log WHERE task_id >= {template} AND status <> 10 AND (status < 10 OR reason = '')"
    );
    assert_eq!(world.database.number(&open).await, 0, "runs end without a reason");
}

/// `count` copies of a task, named by the numbers from `first` on, which fire from now on.
async fn copy_task(world: &World, template: i64, first: i64, count: i64) {
    let next = now_ms() / 1_000 * 1_000 + 1_000;
    let last = first + count - 1;
    let copied = "tenant_id, app_id, handler, description, cron, time_zone, params, routing, tags, failure_strategy, max_retries, \
                  retry_interval_ms, expired_strategy, expire_after_ms, misfire_strategy, timeout_ms, delivery, started, \
                  revision, created_at, updated_at";
    let insert = format!(
        "INSERT INTO task (id, name, next_fire_at, written_until, {copied}) \
         WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
         SELECT task.id + n.i, 'import ' || n.i, {next}, 0, {copied} FROM n JOIN task ON task.id = {template}"
    );
    world.database.execute(&insert).await;
}

/// The outage is not waited for: all instants in the database go back by as much, while neither node nor executor runs.
async fn after_ten_minutes_without_a_node(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [("schedulers.task_pre_generation_max_time", "60s")];
    let node = world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let mut tasks = HashMap::new();
    for policy in ["skip", "fire_once", "fire_all"] {
        let fields = json!({ "cron": "* * * * * ?", "misfire_strategy": policy, "misfire_max": 10 });
        tasks.insert(policy, api.make_task(&app, policy, "tick", fields).await);
    }
    for task in tasks.values() {
        world.await_successes(*task, 2).await;
    }
    assert_eq!(executor.process.sigterm(30).await, Some(0), "{}", executor.process.log_digest());
    node.process.kill9().await;
    for (table, columns) in [
        ("task", &["next_fire_at", "written_until"][..]),
        ("task_log", &["fire_time", "due_time", "queued_at", "dispatched_at", "started_at", "finished_at"]),
        ("node", &["heartbeat_at", "started_at"]),
        ("executor", &["heartbeat_at"]),
        ("lease", &["expires_at"]),
    ] {
        let back = |column: &&str| {
            format!(
                "{column} = CASE WHEN {column} BETWEEN 1 AND 4000000000000 THEN {column} - {OUTAGE_MS} ELSE {column} END"
            )
        };
        let set = columns.iter().map(back).collect::<Vec<_>>().join(", ");
        world.database.execute(&format!("UPDATE {table} SET {set}")).await;
    }
    let up_at = now_ms();
    let node = world.unready_node("a", node.port, &settings);
    node.ready().await;
    world.executor("e2", &app).await;
    for task in tasks.values() {
        let fresh = format!("task_id = {task} AND status = 10 AND trigger_kind = 'schedule' AND fire_time > {up_at}");
        await_until("it fires after the outage", 60, || async { when(!world.database.logs(&fresh).await.is_empty()) })
            .await;
    }
    let claimed = metric(&node.url, "carillon_claims_won_total").await;
    let (rows, starts) = world.end_well().await;
    for (policy, made_up_for) in [("skip", 0), ("fire_once", 1), ("fire_all", 10)] {
        let all = || rows.iter().filter(|row| row.task == tasks[policy]);
        let last =
            all().filter(|row| row.trigger == "misfire").map(|row| row.fire_time).max().expect("some were missed");
        let of_task: Vec<_> = all().filter(|row| row.fire_time <= last).collect();
        let left_out: Vec<_> = of_task.iter().filter(|row| row.reason == "misfire_skipped").collect();
        assert!(left_out.iter().all(|row| row.status == Status::Expired && !row.message.is_empty()));
        let made_up: Vec<_> =
            of_task.iter().filter(|row| row.trigger == "misfire" && row.status != Status::Expired).collect();
        assert_eq!(made_up.len(), made_up_for, "{policy}: {}", sample(&made_up));
        assert!(made_up.iter().all(|row| starts.iter().any(|start| start.log == row.id)), "{policy}: they ran");
        // What was written before, and a hundred of what was not; one of these counts those between.
        let counted: i64 = left_out.iter().filter_map(|row| more_before(&row.message)).sum();
        let first = of_task.iter().map(|row| row.fire_time).min().expect("there are rows");
        let fires = (last - first) / 1_000 + 1;
        assert!(counted > 100, "{policy}: {counted} are counted in a row");
        assert_eq!(of_task.len() as i64 + counted, fires, "{policy}: every fire has a row, or is counted in one");
    }
    // What was written and missed ended without passing through a queue.
    let unclaimed = rows.iter().filter(|row| row.trigger == "schedule" && row.reason == "misfire_skipped").count();
    let ran = rows.iter().filter(|row| row.started_at > up_at).count();
    assert!(unclaimed > 100, "{unclaimed} of those that were written expired");
    assert!(claimed < (ran + unclaimed / 2) as f64, "{claimed} claims, {ran} runs, {unclaimed} expired");
}

/// How many missed fires without a row of their own the message names.
fn more_before(message: &str) -> Option<i64> {
    let (before, _) = message.split_once(" more before it were missed")?;
    before.rsplit(' ').next()?.parse().ok()
}

async fn metric(url: &str, name: &str) -> f64 {
    let asked = http::shared().get(format!("{url}/metrics")).bearer_auth(TOKEN).send().await;
    let page = asked.expect("the node answers").text().await.expect("the page");
    let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {page}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}
