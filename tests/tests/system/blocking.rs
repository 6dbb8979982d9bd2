//! Runs of one task that meet: by their own account never two at once where they must not.

use carillon_tests::executor::Options;
use carillon_tests::fires::assert_all;
use carillon_tests::visits::{assert_apart, most_at_once, order};
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, App, Kind, LogRow, Status, Visit, World, await_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;

scenario!(strategies_on_one_executor: sqlite mariadb);
scenario!(strategies_across_the_app: sqlite mariadb);
scenario!(however_a_run_ends: sqlite mariadb);
scenario!(however_an_executor_ends: sqlite mariadb);
scenario!(an_executor_cannot_leave_what_it_cannot_stop: sqlite mariadb);

const FIRES: usize = 6;

/// Fires every second, stays longer than that; a few times.
async fn meeting(api: &Api, app: &App, name: &str, more: Value) -> i64 {
    let mut fields = json!({
        "cron": "* * * * * ?", "max_fires": FIRES, "params": r#"{"ms": 1500, "blocking": true}"#,
        "max_retries": 0,
    });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.make_task(app, name, "overlap", fields).await
}

/// Its rows by fire time, all ended.
async fn all_ended(world: &World, task: i64, count: usize) -> Vec<LogRow> {
    await_until(&format!("{count} runs of task {task} have ended"), 90, || async {
        let rows = world.database.logs_of(task).await;
        (rows.len() == count && rows.iter().all(|row| row.status.is_terminal())).then_some(rows)
    })
    .await
}

fn ids(rows: &[LogRow]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

/// Where every run goes to one executor, that one sees to it.
async fn strategies_on_one_executor(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    strategies(&world, "executor", "first").await;
    world.assert_quiet(&[]);
}

/// Where they go to several, the nodes do.
async fn strategies_across_the_app(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    strategies(&world, "app", "round").await;
    world.assert_quiet(&[]);
}

async fn strategies(world: &World, owner: &str, routing: &str) {
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let mut tasks = Vec::new();
    for strategy in ["serial", "discard_later", "cover_early", "concurrent"] {
        let fields = json!({ "block_strategy": strategy, "block_scope": owner, "routing": routing });
        tasks.push(meeting(&api, &app, strategy, fields).await);
    }
    // On each executor by itself: the two may run it at once.
    let fields = json!({ "block_strategy": "serial", "block_scope": "executor", "routing": "round" });
    let on_each = meeting(&api, &app, "serial on each", fields).await;
    // Whichever node was asked, and however short they are.
    let fields = json!({ "block_strategy": "serial", "block_scope": owner, "routing": routing });
    let manual = api.make_task(&app, "by hand", "overlap", fields).await;
    let nodes: Vec<Api> = world.node_urls().iter().map(|url| Api::new(url)).collect();
    nodes[0].run(manual, Some(r#"{"ms": 2000}"#)).await;
    for number in 0..10 {
        nodes[number % nodes.len()].run(manual, Some(r#"{"ms": 10}"#)).await;
    }
    let [serial, discarding, covering, concurrent] = tasks.try_into().unwrap();

    let rows = all_ended(world, serial, FIRES).await;
    assert_all("run", &rows, |row| row.status == Status::Succeeded && row.attempt == 1);
    let visits = world.visits(serial);
    assert_apart("serial", &visits);
    assert_eq!(order(&visits), ids(&rows), "serial runs out of order: {}", sample(&visits));

    let rows = all_ended(world, manual, 11).await;
    let visits = world.visits(manual);
    assert_apart("serial by hand", &visits);
    assert_eq!(order(&visits), ids(&rows), "by hand out of order: {}", sample(&visits));

    let rows = all_ended(world, discarding, FIRES).await;
    let (ran, left): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(|row| row.status == Status::Succeeded);
    assert_all("discarded", &left, |row| row.status == Status::Discarded && row.reason == "blocked");
    assert_all("said by whom", &left, |row| row.message.contains("was still running"));
    let visits = world.visits(discarding);
    assert_apart("discard_later", &visits);
    assert!(ran.len() >= 2 && !left.is_empty(), "{} ran, {} left", ran.len(), left.len());
    assert_eq!(order(&visits), ids(&ran));

    let rows = all_ended(world, covering, FIRES).await;
    let (last, before) = rows.split_last().unwrap();
    assert_eq!(last.status, Status::Succeeded, "the latest run gives way to no other: {last:?}");
    assert_all("covered or done before", before, |row| {
        row.status == Status::Succeeded || (row.status == Status::Cancelled && row.reason == "covered")
    });
    let covered: Vec<_> = before.iter().filter(|row| row.status == Status::Cancelled).cloned().collect();
    assert!(!covered.is_empty(), "nothing was covered");
    assert_all("not failed", &covered, |row| row.failures == 0 && row.message.contains("replaced it"));
    let visits = world.visits(covering);
    assert_apart("cover_early", &visits);
    assert!(order(&visits).is_sorted_by_key(|log| fire_of(&rows, *log)), "out of order: {}", sample(&visits));

    all_ended(world, concurrent, FIRES).await;
    assert!(most_at_once(&world.visits(concurrent)) >= 2, "concurrent runs wait for each other");

    all_ended(world, on_each, FIRES).await;
    let visits = world.visits(on_each);
    for pid in pids(&visits) {
        let here: Vec<Visit> = visits.iter().filter(|visit| visit.pid == pid).cloned().collect();
        assert_apart("serial on each executor", &here);
    }
    assert_eq!(pids(&visits).len(), 2);
    world.settle_and_check().await;
}

fn fire_of(rows: &[LogRow], log: i64) -> i64 {
    rows.iter().find(|row| row.id == log).map_or(0, |row| row.fire_time)
}

fn pids(visits: &[Visit]) -> BTreeSet<u32> {
    visits.iter().map(|visit| visit.pid).collect()
}

/// Killed, timed out or covered, with a part that does not listen: the next one waits for it.
async fn however_a_run_ends(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let stubborn = |ms: i64| json!({ "ms": ms, "blocking": true, "stubborn": true }).to_string();
    let mut watched = Vec::new();
    for (owner, routing) in [("executor", "first"), ("app", "round")] {
        let make = |name: &'static str, strategy: &'static str, timeout_ms: i64| {
            let fields = json!({
                "block_strategy": strategy, "block_scope": owner, "routing": routing, "max_retries": 0,
                "params": stubborn(3_000), "timeout_ms": timeout_ms,
            });
            let (api, app, name) = (&api, &app, format!("{name} {owner}"));
            async move { api.make_task(app, &name, "overlap", fields).await }
        };
        let killed = make("killed", "serial", 0).await;
        let timed_out = make("timed out", "serial", 500).await;
        let covered = make("covered", "cover_early", 0).await;
        for task in [killed, timed_out, covered] {
            let first = api.run(task, None).await;
            watched.push((task, first, 0));
        }
    }
    for (task, _, second) in &mut watched {
        world.await_inside(*task, 1).await;
        *second = api.run_log_with(*task, json!({ "params": stubborn(300) })).await;
    }
    for (_, first, _) in watched.iter().step_by(3) {
        let (status, answer) = api.kill(*first).await;
        assert_eq!((status, answer["status"].as_str()), (202, Some("stopping")), "{answer}");
    }
    for (at, (task, first, second)) in watched.into_iter().enumerate() {
        let (first, second) = (world.await_end(first).await, world.await_end(second).await);
        let (status, reason) =
            [(Status::Cancelled, "cancelled_manually"), (Status::Failed, "timed_out"), (Status::Cancelled, "covered")]
                [at % 3];
        assert_eq!((first.status, first.reason.as_str()), (status, reason), "{first:?}");
        assert_eq!(second.status, Status::Succeeded, "{second:?}");
        let visits = world.visits(task);
        assert_eq!(order(&visits), [first.id, second.id]);
        assert_apart(&format!("after one that was {reason}"), &visits);
        assert!(visits[0].end_us - visits[0].start_us >= 3_000_000, "it did not stay: {:?}", visits[0]);
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// Stopped in good order, or killed: what it runs is repeated, or followed, when it is over.
async fn however_an_executor_ends(kind: Kind) {
    let world = World::new(kind).await;
    let settings =
        [("executors.heartbeat_interval", "1s"), ("executors.offline_after", "4s"), ("executors.abandon_after", "8s")];
    world.nodes(&settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let options = Options { env: &[("DEMO_DRAIN_MS", "20000")], ..Options::default() };
    let leaving = world.executor_with("e1", &app, &options).await;
    let dying = world.executor("e2", &app).await;
    world.executor("e3", &app).await;
    let serial = |routing: &str| {
        json!({
            "cron": "* * * * * ?", "max_fires": 8, "block_strategy": "serial", "block_scope": "app",
            "routing": routing, "retry_interval_ms": 100, "max_retries": 5,
            "params": r#"{"ms": 1200, "blocking": true, "stubborn": true}"#,
        })
    };
    let first = api.make_task(&app, "first", "overlap", serial("first")).await;
    let second = api.make_task(&app, "round", "overlap", serial("round")).await;
    inside_of(&world, first, leaving.process.pid()).await;
    // It finishes what it runs; the rest goes on at the next one.
    assert_eq!(leaving.process.sigterm(60).await, Some(0), "{}", leaving.process.log_digest());
    inside_of(&world, first, dying.process.pid()).await;
    world.kill9(&dying).await;
    for task in [first, second] {
        let rows = all_ended(&world, task, 8).await;
        assert_all("run in the end", &rows, |row| row.status == Status::Succeeded);
        assert_apart("serial while executors go", &world.visits(task));
    }
    assert_eq!(pids(&world.visits(first)).len(), 3, "they moved on");
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// Told to leave while a serial run in it listens to nothing: until that is over the executor
/// stays, and no executor runs the task beside it.
async fn an_executor_cannot_leave_what_it_cannot_stop(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let options = Options { env: &[("DEMO_DRAIN_MS", "500")], ..Options::default() };
    let leaving = world.executor_with("e1", &app, &options).await;
    world.executor("e2", &app).await;
    let fields = json!({
        "block_strategy": "serial", "block_scope": "app", "routing": "first", "retry_interval_ms": 100,
        "params": r#"{"ms": 8000, "blocking": true, "stubborn": true}"#,
    });
    let task = api.make_task(&app, "deaf", "overlap", fields).await;
    let first = api.run(task, None).await;
    inside_of(&world, task, leaving.process.pid()).await;
    let second = api.run(task, Some(r#"{"ms": 10}"#)).await;
    leaving.process.signal("TERM");
    let status = leaving.process.wait_exit(60).await;
    let gone_at = carillon_tests::now_us();
    assert_eq!(status.code(), Some(0), "{}", leaving.process.log_digest());
    let rows = world.await_ends(&[first, second]).await;
    assert_all("run in the end", &rows, |row| row.status == Status::Succeeded);
    let mut visits = world.visits(task);
    for visit in visits.iter_mut().filter(|visit| visit.pid == leaving.process.pid()) {
        visit.end_us = visit.end_us.min(gone_at);
    }
    assert_apart("serial while its executor leaves", &visits);
    world.settle_and_check().await;
    world.assert_quiet(&["executor.handlers_do_not_stop"]);
}

/// Waits until the task is inside that process.
async fn inside_of(world: &World, task: i64, pid: u32) {
    await_until(&format!("task {task} is inside process {pid}"), 60, || async {
        when(world.visits(task).iter().any(|visit| visit.pid == pid && visit.end_us == i64::MAX))
    })
    .await;
}
