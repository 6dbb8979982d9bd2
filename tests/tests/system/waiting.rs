//! A node that has nothing to do but wait must wait, not spin.

use carillon_tests::wait::when;
use carillon_tests::{Kind, Status, World, await_until, pass};
use serde_json::json;

scenario!(a_run_without_an_executor_waits_quietly: sqlite);
scenario!(runs_wait_for_an_executor_and_lose_nothing: mariadb);
scenario!(a_run_waits_for_an_executor_no_longer_than_its_task_says: postgres);
scenario!(what_waits_for_an_executor_can_be_stopped: sqlite);
scenario!(the_restart_of_an_apps_only_executor_fails_nothing: postgres);

/// A run that no executor can take is polled a few times a second, not in a loop: seen by the
/// statements that the node sends meanwhile.
async fn a_run_without_an_executor_waits_quietly(kind: Kind) {
    const STATEMENTS_A_SECOND_MAX: i64 = 60;
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let wanting = json!({ "cron": "* * * * * ?", "max_retries": 0, "no_executor_timeout_ms": 20_000 });
    api.make_task(&app, "wanting", "tick", wanting).await;
    let sent = async || api.get("/nodes").await["this"]["statements"].as_i64().unwrap();
    pass(4.0).await;
    let before = sent().await;
    pass(5.0).await;
    let rate = (sent().await - before) / 5;
    assert!(rate < STATEMENTS_A_SECOND_MAX, "{rate} statements a second while nothing can run");
    world.settle().await;
}

/// What a rolling deploy does to an app: no executor is there for a while, and one node dies in the meantime.
async fn runs_wait_for_an_executor_and_lose_nothing(kind: Kind) {
    const BURST: usize = 300;
    let world = World::new(kind).await;
    let victim = world.node("a", &[]).await;
    world.node("b", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fields = json!({ "max_retries": 0, "misfire_strategy": "skip" });
    let manual = api.make_task(&app, "by hand", "tick", fields).await;
    let fields = json!({ "cron": "0/2 * * * * ?", "max_retries": 0, "misfire_strategy": "skip" });
    let scheduled = api.make_task(&app, "scheduled", "tick", fields).await;
    let mut logs = Vec::new();
    for _ in 0..BURST {
        logs.push(api.run(manual, None).await);
    }
    let waiting = format!("task_id IN ({manual}, {scheduled}) AND status = 1 AND reason = 'no_executor'");
    await_until("all wait, and say for what", 60, || async { when(world.database.logs(&waiting).await.len() > BURST) })
        .await;
    victim.process.kill9().await;
    let a = world.database.node_id("a").await;
    let with_the_dead = format!("SELECT COUNT(*) FROM task_log WHERE status = 1 AND node_id = {a}");
    await_until("the other node has them", 60, || async { when(world.database.number(&with_the_dead).await == 0) })
        .await;
    await_until("they wait there", 60, || async { when(world.database.logs(&waiting).await.len() > BURST) }).await;
    world.executor("e1", &app).await;
    for log in logs {
        let row = world.await_end(log).await;
        assert_eq!((row.status, row.failures, row.attempt), (Status::Succeeded, 0, 1), "{row:?}");
    }
    let (rows, _) = world.settle_and_check().await;
    let lost: Vec<_> = rows
        .iter()
        .filter(|row| row.task == scheduled && !matches!(row.status, Status::Succeeded | Status::Cancelled))
        .collect();
    assert!(lost.is_empty(), "waiting was taken for a misfire or a failure: {lost:?}");
}

/// The deadline is the task's; at it the failure strategy speaks, and does not wait again.
async fn a_run_waits_for_an_executor_no_longer_than_its_task_says(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fields = json!({ "no_executor_timeout_ms": 3_000, "max_retries": 2, "retry_interval_ms": 100 });
    let task = api.make_task(&app, "in vain", "tick", fields).await;
    let row = world.await_end(api.run(task, None).await).await;
    assert_eq!((row.status, row.reason.as_str(), row.failures), (Status::Failed, "no_executor", 3), "{row:?}");
    let waited = row.finished_at - row.fire_time;
    assert!(waited >= 3_000, "gave up after {waited} ms: {row:?}");
    world.settle_and_check().await;
}

async fn what_waits_for_an_executor_can_be_stopped(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let task = api.make_task(&app, "stopped", "tick", json!({ "cron": "* * * * * ?" })).await;
    let waiting = format!("task_id = {task} AND status = 1 AND reason = 'no_executor'");
    await_until("some wait", 30, || async { when(world.database.logs(&waiting).await.len() > 2) }).await;
    api.stop(task).await;
    assert_eq!(world.database.logs(&format!("task_id = {task} AND status < 10")).await.len(), 0);
    world.executor("e1", &app).await;
    let (rows, starts) = world.settle_and_check().await;
    assert!(starts.is_empty(), "{starts:?}");
    assert!(rows.iter().all(|row| row.status == Status::Cancelled), "{rows:?}");
}

/// The node still believes in an executor that has just died: until it knows better, that is no failure either.
async fn the_restart_of_an_apps_only_executor_fails_nothing(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let task = api.make_task(&app, "once", "tick", json!({ "max_retries": 0 })).await;
    assert_eq!(world.await_end(api.run(task, None).await).await.status, Status::Succeeded);
    world.kill9(&executor).await;
    let log = api.run(task, None).await;
    await_until("its executor does not answer", 20, || async {
        let row = world.database.log(log).await;
        when(row.attempt > 0 && row.status == Status::Retry)
    })
    .await;
    world.executor("e2", &app).await;
    let row = world.await_end(log).await;
    assert_eq!((row.status, row.failures), (Status::Succeeded, 0), "{row:?}");
    world.settle_and_check().await;
}
