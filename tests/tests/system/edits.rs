//! Promise 6: a stopped or edited task fires nothing by its old definition after the call.

use carillon_tests::api::ids_of;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Fires, Kind, LogRow, Start, Status, World, await_until, now_ms, now_us, pass};
use reqwest::Method;
use serde_json::json;

scenario!(edit_with_rows_queued: sqlite mariadb postgres);
scenario!(stop_with_rows_queued: sqlite mariadb postgres);
scenario!(routing_changed_with_rows_queued: sqlite mariadb postgres);
scenario!(stop_names_what_an_unreachable_executor_holds: sqlite mariadb);

/// H5, H10, X9.
async fn edit_with_rows_queued(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "changing", "tick", json!({ "cron": "* * * * * ?" })).await;
    let made_at = now_ms();
    world.await_successes(task, 3).await;

    let asked_at = now_ms();
    let answer = api.edit(task, json!({ "handler": "echo", "params": "new" })).await;
    let (edited_at, edited_us) = (now_ms(), now_us());
    assert_eq!(ids_of(&answer["unreachable"]), Vec::<i64>::new(), "{answer}");
    assert_eq!(answer["task"]["handler"], "echo", "{answer}");
    pass(9.0).await;

    let asked_again_at = now_ms();
    api.edit(task, json!({ "cron": "0/2 * * * * ?" })).await;
    let (edited_again_at, edited_again_us) = (now_ms(), now_us());
    pass(9.0).await;
    a_stale_revision_is_refused(&world, task).await;

    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    let old: Vec<&Start> = starts.iter().filter(|s| s.handler == "tick" && s.started_at_us > edited_us).collect();
    assert!(old.is_empty(), "the old handler started after the edit: {}", sample(&old));
    let odd: Vec<&Start> =
        starts.iter().filter(|s| s.started_at_us > edited_again_us && (s.fire_time / 1_000) % 2 == 1).collect();
    assert!(odd.is_empty(), "the old schedule started after the edit: {}", sample(&odd));

    // Every instant has one row; those that the new definition names too are its own now.
    let before = Fires::every(1, &rows).between(made_at + 2_000, asked_at - 1_000);
    assert_all("succeeded before the edit", &before, |row| row.status == Status::Succeeded);
    let between = Fires::every(1, &rows).between(edited_at, asked_again_at - 1_000);
    assert_all("fired by the new handler", &between, |row| row.status == Status::Succeeded && row.output == "new");
    let after: Vec<LogRow> = rows
        .iter()
        .filter(|row| (row.fire_time / 1_000) % 2 == 0 && row.fire_time >= edited_again_at)
        .cloned()
        .collect();
    let after = Fires::every(2, &after).between(edited_again_at, until);
    assert_all("fired by the new schedule", &after, |row| row.status == Status::Succeeded);
    let dropped: Vec<LogRow> = rows
        .iter()
        .filter(|row| (row.fire_time / 1_000) % 2 == 1 && row.fire_time > edited_again_at)
        .cloned()
        .collect();
    assert!(!dropped.is_empty(), "rows were written ahead for the old schedule");
    assert_all("cancelled by the edit", &dropped, |row| {
        row.status == Status::Cancelled && matches!(row.reason.as_str(), "task_edited" | "task_stopped")
    });
}

async fn a_stale_revision_is_refused(world: &World, task: i64) {
    let api = world.api();
    let before = api.task(task).await;
    let body = json!({ "description": "too late", "revision": 1 });
    let (status, answer) = api.send(Method::PUT, &format!("/tasks/{task}"), Some(&body)).await;
    assert_eq!(status, 409, "{answer}");
    assert_eq!(api.task(task).await["description"], before["description"]);
}

async fn stop_with_rows_queued(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "stopping", "tick", json!({ "cron": "* * * * * ?" })).await;
    let made_at = now_ms();
    world.await_successes(task, 4).await;

    let asked_at = now_ms();
    let answer = api.stop(task).await;
    let stopped_us = now_us();
    assert_eq!(ids_of(&answer["unreachable"]), Vec::<i64>::new(), "{answer}");
    pass(5.0).await;
    let late: Vec<Start> = world.starts().into_iter().filter(|start| start.started_at_us > stopped_us).collect();
    assert!(late.is_empty(), "started after the stop: {}", sample(&late));
    let written = world.database.logs_of(task).await;
    let due: Vec<LogRow> = written.iter().filter(|row| row.fire_time > stopped_us / 1_000).cloned().collect();
    assert!(!due.is_empty(), "rows were written ahead");
    assert_all("cancelled by the stop", &due, |row| row.status == Status::Cancelled && row.reason == "task_stopped");
    let ran = Fires::every(1, &written).between(made_at + 2_000, asked_at - 500);
    assert_all("run before the stop", &ran, |row| row.status == Status::Succeeded);

    // The same instants, cancelled a moment ago, fire when it is started again.
    api.start(task).await;
    let started_at = now_ms();
    pass(9.0).await;
    let until = now_ms() - 1_000;
    let fired = Fires::every(1, &world.database.logs_of(task).await).between(started_at, until);
    assert_all("fired after the new start", &fired, |row| row.status == Status::Succeeded);

    api.delete(task).await;
    let deleted_us = now_us();
    pass(4.0).await;
    let late: Vec<Start> = world.starts().into_iter().filter(|start| start.started_at_us > deleted_us).collect();
    assert!(late.is_empty(), "started after the delete: {}", sample(&late));
    assert_eq!(api.send(Method::GET, &format!("/tasks/{task}"), None).await.0, 404);
    world.settle_and_check().await;
}

/// The exception of promise 6: what an executor holds and cannot be asked to drop is named.
async fn stop_names_what_an_unreachable_executor_holds(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let frozen = world.executor("e1", &app).await;
    let task = api.make_task(&app, "stopping", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 3).await;
    frozen.process.signal("STOP");
    await_until("the frozen executor holds something", 10, || async {
        when(!world.database.logs(&format!("status = 2 AND due_time > {}", now_ms() + 500)).await.is_empty())
    })
    .await;
    let answer = api.stop(task).await;
    let named = ids_of(&answer["unreachable"]);
    assert!(!named.is_empty(), "nothing is named: {answer}");
    let stopped_us = now_us();
    frozen.process.signal("CONT");
    let (_, starts) = world.settle_and_check().await;
    let others: Vec<_> =
        starts.iter().filter(|start| start.started_at_us > stopped_us && !named.contains(&start.log)).collect();
    assert!(others.is_empty(), "started after the stop and not named {named:?}: {}", sample(&others));
}

/// Shards and single runs of one instant must not stand in each other's way.
async fn routing_changed_with_rows_queued(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "changing", "sharded", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 2).await;

    api.edit(task, json!({ "routing": "sharding" })).await;
    let (sharded_from, sharding) = (now_ms(), "each fire has a parent, and it succeeded");
    pass(7.0).await;
    let sharded_until = now_ms() - 2_000;
    api.edit(task, json!({ "routing": "random" })).await;
    let random_from = now_ms();
    pass(7.0).await;
    let random_until = now_ms() - 2_000;

    let (rows, _) = world.settle_and_check().await;
    let shaped = |parent: bool| -> Vec<LogRow> {
        rows.iter().filter(|row| (row.shard_index == -1) == parent && row.parent == 0).cloned().collect()
    };
    let parents = Fires::every(1, &shaped(true)).between(sharded_from, sharded_until);
    assert_all(sharding, &parents, |row| row.status == Status::Succeeded);
    let single = Fires::every(1, &shaped(false)).between(random_from, random_until);
    assert_all("each fire is one run, and it succeeded", &single, |row| row.status == Status::Succeeded);
}
