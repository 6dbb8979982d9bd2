//! A person stops a run.

use carillon_protocol::{RunStatus, Unregister, Unregistered, Verdict};
use carillon_tests::fake::result;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::when;
use carillon_tests::wire::Request;
use carillon_tests::{Api, FakeExecutor, Kind, LogRow, Status, World, await_until};
use futures_util::future::join_all;
use serde_json::{Value, json};

scenario!(killed_wherever_it_stands: sqlite mariadb);
scenario!(killed_while_it_cannot_be_reached: sqlite mariadb);
scenario!(the_wish_outlives_the_node: sqlite mariadb);
scenario!(killed_with_all_its_shards: sqlite mariadb);
scenario!(killed_between_quick_attempts: sqlite mariadb);
scenario!(the_end_that_came_first_counts: sqlite mariadb);

fn overlap(ms: i64, blocking: bool, stubborn: bool) -> String {
    json!({ "ms": ms, "blocking": blocking, "stubborn": stubborn }).to_string()
}

/// Stopped on purpose: no failure, no other attempt, and it says who did it.
fn assert_killed(row: &LogRow, attempt: i32) {
    let end = (row.status, row.reason.as_str(), row.attempt, row.failures);
    assert_eq!(end, (Status::Cancelled, "cancelled_manually", attempt, 0), "{row:?}");
}

fn assert_stopping(answer: &(u16, Value)) {
    let (status, log) = answer;
    let shown = (log["status"].as_str(), log["reason"].as_str());
    assert_eq!((*status, shown), (202, (Some("stopping"), Some("cancelled_manually"))), "{log}");
}

/// X7, X17, H17: waiting, blocked, between two attempts, held, running, and running deafly.
async fn killed_wherever_it_stands(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[("schedulers.before_interval", "8s")]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    // One failure would pause them; a run that was stopped is none.
    let guarded = json!({ "pause_after_failures": 1, "retry_interval_ms": 100, "max_retries": 3 });
    let task = api.make_task(&app, "many", "overlap", guarded).await;
    let single = api.make_task(&app, "single", "overlap", json!({ "max_concurrent": 1 })).await;
    let failing = api.make_task(&app, "failing", "fail", json!({ "retry_interval_ms": 600_000 })).await;

    let polite = api.run(task, Some(&overlap(60_000, true, false))).await;
    let brother = api.run(task, Some(&overlap(4_000, true, false))).await;
    let deaf = api.run(task, Some(&overlap(4_000, true, true))).await;
    let later = api.run_log_with(task, json!({ "delay_ms": 600_000 })).await;
    let held = api.run_log_with(task, json!({ "delay_ms": 7_000 })).await;
    let leading = api.run(single, Some(&overlap(3_000, true, false))).await;
    world.await_inside(single, 1).await;
    let blocked = api.run(single, Some(&overlap(10, false, false))).await;
    let last = api.run(single, Some(&overlap(10, false, false))).await;
    let failed = api.run(failing, None).await;
    world.await_inside(task, 3).await;
    for (log, status) in [(held, Status::Dispatched), (blocked, Status::Queued), (failed, Status::Retry)] {
        await_until(&format!("log {log} is {status:?}"), 30, || async {
            when(world.database.log(log).await.status == status)
        })
        .await;
    }

    // At once when no executor runs it.
    for log in [later, held, blocked, failed] {
        let (status, answer) = api.kill(log).await;
        assert_eq!((status, answer["status"].as_str()), (200, Some("cancelled")), "{answer}");
        let row = world.database.log(log).await;
        assert_eq!((row.status, row.reason.as_str()), (Status::Cancelled, "cancelled_manually"), "{row:?}");
        assert!(row.finished_at > 0, "{row:?}");
        assert_eq!(api.kill(log).await.0, 409, "it has ended");
    }
    assert_stopping(&api.kill(deaf).await);
    assert_stopping(&api.kill(deaf).await);
    let (status, answer) = api.kill(polite).await;
    assert!(status == 202 || answer["status"] == "cancelled", "{status} {answer}");
    assert_killed(&world.await_end(polite).await, 1);
    // Still there as long as its executor says so.
    let inside = |log: i64| world.visits(task).into_iter().find(|visit| visit.log == log).unwrap();
    if inside(deaf).end_us == i64::MAX {
        assert_eq!(world.database.log(deaf).await.status, Status::Dispatched);
    }
    assert_killed(&world.await_end(deaf).await, 1);
    let deaf = inside(deaf);
    assert!(deaf.end_us - deaf.start_us >= 4_000_000, "confirmed before it was over: {deaf:?}");
    let rows = world.await_ends(&[brother, leading, last]).await;
    assert_all("left alone", &rows, |row| row.status == Status::Succeeded && row.attempt == 1);
    assert_eq!(api.task(task).await["started"], true, "a stopped run paused its task");
    let (_, starts) = world.settle_and_check().await;
    assert!(starts.iter().all(|start| ![later, held, blocked].contains(&start.log)), "started after all");
    world.assert_quiet(&[]);
}

const SHORT: [(&str, &str); 3] =
    [("executors.heartbeat_interval", "1s"), ("executors.offline_after", "4s"), ("executors.abandon_after", "20s")];

/// It stays stopping until its executor is back, or is known to be dead.
async fn killed_while_it_cannot_be_reached(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &SHORT).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let [back, dead] = [world.executor("e1", &app).await, world.executor("e2", &app).await];
    let mut runs = Vec::new();
    for (name, routing) in [("first", "first"), ("last", "last")] {
        let fields = json!({ "routing": routing, "retry_interval_ms": 100, "params": overlap(120_000, true, false) });
        let task = api.make_task(&app, name, "overlap", fields).await;
        runs.push((task, api.run(task, None).await));
        world.await_inside(task, 1).await;
    }
    for executor in [&back, &dead] {
        executor.process.signal("STOP");
    }
    for (_, log) in &runs {
        assert_stopping(&api.kill(*log).await);
    }
    await_until("both executors are offline", 30, || async {
        when(api.get("/executors").await["items"].as_array().is_some_and(Vec::is_empty))
    })
    .await;
    for (_, log) in &runs {
        assert_eq!(api.log(*log).await["status"], "stopping");
    }
    back.process.signal("CONT");
    assert_killed(&world.await_end(runs[0].1).await, 1);
    assert_eq!(api.log(runs[1].1).await["status"], "stopping", "the outcome is unknown");
    world.kill9(&dead).await;
    assert_killed(&world.await_end(runs[1].1).await, 1);
    for (task, _) in runs {
        assert_eq!(world.visits(task).len(), 1, "run again although it was to stop");
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// The node that took the kill is gone before the executor heard of it; on `SQLite` a new process
/// of its name does it.
async fn the_wish_outlives_the_node(kind: Kind) {
    let world = World::new(kind).await;
    let survivor = if kind == Kind::Sqlite { None } else { Some(world.node("b", &SHORT).await) };
    let node = world.node("a", &SHORT).await;
    let api = Api::new(&node.url);
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let fields = json!({ "retry_interval_ms": 100, "params": overlap(120_000, true, false) });
    let task = api.make_task(&app, "long", "overlap", fields).await;
    let log = api.run(task, None).await;
    let brother = api.run(task, Some(&overlap(12_000, true, false))).await;
    world.await_inside(task, 2).await;
    executor.process.signal("STOP");
    assert_stopping(&api.kill(log).await);
    node.process.kill9().await;
    let node = match survivor {
        Some(node) => node,
        None => world.unready_node("a", node.port, &SHORT),
    };
    executor.process.signal("CONT");
    node.ready().await;
    assert_killed(&world.await_end(log).await, 1);
    assert_eq!(world.await_end(brother).await.status, Status::Succeeded);
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// All shards stop, those between two attempts too, and the parent ends as cancelled.
async fn killed_with_all_its_shards(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["overlap"], true).await;
    fake.script(|script| script.auto_results = false);
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let fields = json!({
        "routing": "sharding", "retry_interval_ms": 600_000, "params": overlap(120_000, true, false),
    });
    let task = api.make_task(&app, "all of them", "overlap", fields).await;
    let early = api.run_log_with(task, json!({ "delay_ms": 600_000 })).await;
    assert_eq!(api.kill(early).await.0, 200);
    let parent = api.run(task, None).await;
    world.await_inside(task, 2).await;
    let scripted = fake.next_running(task, &[]).await;
    assert_eq!(fake.send_results(&[result(scripted, RunStatus::Failed)]).await, [Verdict::Applied]);
    assert_eq!(world.database.log(scripted.0).await.status, Status::Retry);
    let (status, answer) = api.kill(parent).await;
    assert!(status == 202 && answer["status"] == "stopping" || answer["status"] == "cancelled", "{status} {answer}");
    assert_killed(&world.await_end(parent).await, 1);
    let shards = world.database.logs(&format!("parent_id = {parent}")).await;
    assert_eq!(shards.len(), 3);
    assert_all("stopped", &shards, |row| row.status == Status::Cancelled && row.reason == "cancelled_manually");
    assert_all("of one attempt", &shards, |row| row.attempt == 1);
    let visits = world.visits(task);
    assert!(visits.iter().all(|visit| visit.end_us < i64::MAX) && visits.len() == 2, "{visits:?}");
    world.settle_and_check_with(|| fake.starts()).await;
    world.assert_quiet(&[]);
}

/// Runs that fail and come back all the time: one word is enough, wherever it meets them.
async fn killed_between_quick_attempts(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    for number in 0..3 {
        world.executor(&format!("e{number}"), &app).await;
    }
    let quick = |routing: &str| json!({ "routing": routing, "retry_interval_ms": 100, "max_retries": 1_000 });
    let single = api.make_task(&app, "single", "fail", quick("round")).await;
    let sharded = api.make_task(&app, "all of them", "fail", quick("sharding")).await;
    let mut logs = Vec::new();
    for _ in 0..100 {
        logs.push(api.run(single, None).await);
    }
    for _ in 0..20 {
        logs.push(api.run(sharded, None).await);
    }
    await_until("all have failed several times", 60, || async {
        let open = world.database.logs("status < 10 AND shard_index >= 0").await;
        when(open.len() == 160 && open.iter().all(|row| row.failures >= 3))
    })
    .await;
    await_until("many are on their way", 60, || async {
        when(
            world.database.number("SELECT COUNT(*) FROM task_log WHERE status IN (1, 2) AND shard_index >= 0").await
                > 40,
        )
    })
    .await;
    // All at once, so that some meet their run between a look and a step.
    for (status, answer) in join_all(logs.iter().map(|log| api.kill(*log))).await {
        assert!(status == 200 || status == 202, "{status} {answer}");
        assert!(["stopping", "cancelled"].contains(&answer["status"].as_str().unwrap()), "{answer}");
    }
    for row in world.await_ends(&logs).await {
        assert_eq!((row.status, row.reason.as_str()), (Status::Cancelled, "cancelled_manually"), "{row:?}");
    }
    let shards = world.database.logs("parent_id > 0").await;
    assert_all("stopped", &shards, |row| row.status == Status::Cancelled && row.reason == "cancelled_manually");
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// A run that ended well before the kill reached it has succeeded; one that failed is not run
/// again.
async fn the_end_that_came_first_counts(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let fields = json!({ "max_retries": 3, "retry_interval_ms": 100 });
    let task = api.make_task(&app, "by hand", "job", fields).await;
    let mut known = Vec::new();
    for ends in [RunStatus::Succeeded, RunStatus::Failed, RunStatus::TimedOut, RunStatus::NotStarted] {
        let log = api.run(task, None).await;
        let key = fake.next_running(task, &known).await;
        known.push(key);
        assert_stopping(&api.kill(log).await);
        assert!(fake.cancels().contains(&key), "the executor was not asked to stop it");
        assert_eq!(fake.send_results(&[result(key, ends)]).await, [Verdict::Applied]);
        let row = world.await_end(log).await;
        if ends == RunStatus::Succeeded {
            assert_eq!((row.status, row.reason.as_str()), (Status::Succeeded, ""), "{row:?}");
            assert_eq!(api.log(log).await["status"], "succeeded");
        } else {
            assert_killed(&row, 1);
        }
        assert_eq!(api.kill(log).await.0, 409);
    }
    // Given back by an executor that leaves: it goes to no other.
    let log = api.run(task, None).await;
    let key = fake.next_running(task, &known).await;
    assert_stopping(&api.kill(log).await);
    let leaving = Unregister {
        executor_id: fake.executor_id(),
        instance: fake.instance().to_owned(),
        held: vec![key],
        running: Vec::new(),
    };
    let gone: Unregistered =
        Request::new(&app, &node.url, "/openapi/executors/unregister", &leaving).send().await.data();
    assert_eq!(gone.returned, 1);
    fake.forget(key);
    assert_killed(&world.await_end(log).await, 1);
    world.settle_and_check_with(|| fake.starts()).await;
    world.assert_quiet(&[]);
}
