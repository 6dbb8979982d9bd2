//! Promise 6: a stopped or edited task fires nothing by its old definition after the call.

use carillon_protocol::{RunKey, RunResult, RunStatus, Verdict};
use carillon_tests::api::{id_of, ids_of};
use carillon_tests::fake::result;
use carillon_tests::fires::assert_all;
use carillon_tests::proxy::Proxy;
use carillon_tests::wait::{sample, when};
use carillon_tests::{FakeExecutor, Fires, Kind, LogRow, Start, Status, World, await_until, now_ms, now_us, pass};
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

scenario!(edit_with_rows_queued: sqlite mariadb postgres);
scenario!(stop_with_rows_queued: sqlite mariadb postgres);
scenario!(a_manual_run_outlives_an_edit: sqlite mariadb postgres);
scenario!(routing_changed_with_rows_queued: sqlite mariadb postgres);
scenario!(stop_names_what_an_unreachable_executor_holds: sqlite mariadb);
scenario!(what_an_edit_could_not_revoke_is_not_lost_to_the_next: sqlite mariadb postgres);
scenario!(an_edit_is_made_although_its_caller_goes_away: mariadb postgres);

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
    pass(6.0).await;

    let asked_again_at = now_ms();
    api.edit(task, json!({ "cron": "0/2 * * * * ?" })).await;
    let (edited_again_at, edited_again_us) = (now_ms(), now_us());
    pass(6.0).await;
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

/// It is not planned again: what executors hold of it goes on under the new definition, shards and
/// single runs alike, and so does what still waits.
async fn a_manual_run_outlives_an_edit(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    for routing in ["random", "sharding"] {
        let fields = json!({ "params": "old", "routing": routing });
        let task = api.make_task(&app, &format!("by hand, {routing}"), "echo", fields).await;
        let run = async |delay_ms: i64| {
            let body = json!({ "delay_ms": delay_ms });
            let (status, answer) = api.send(Method::POST, &format!("/tasks/{task}/run"), Some(&body)).await;
            assert_eq!(status, 202, "{answer}");
            id_of(&answer["log"]).expect("a log")
        };
        let (held, waits) = (run(5_000).await, run(10_000).await);
        await_until("an executor holds the run", 10, || async {
            when(world.database.log(held).await.status == Status::Dispatched)
        })
        .await;
        let answer = api.edit(task, json!({ "params": "new" })).await;
        let edited_at = now_ms();
        assert!(world.database.log(held).await.due_time > edited_at, "the edit took too long: {answer}");
        await_until("both have ended", 60, || async {
            let rows = world.database.logs_of(task).await;
            when(rows.iter().all(|row| row.status.is_terminal()))
        })
        .await;
        let rows = world.database.logs_of(task).await;
        assert_all("by hand", &rows, |row| row.trigger == "manual");
        for log in [held, waits] {
            let of_run: Vec<LogRow> = rows.iter().filter(|row| row.id == log || row.parent == log).cloned().collect();
            assert_eq!(of_run.len(), if routing == "sharding" { 3 } else { 1 }, "{}", sample(&of_run));
            assert_all("ended well", &of_run, |row| row.status == Status::Succeeded);
            assert_all("run by the new definition", &of_run, |row| row.is_parent() || row.output == "new");
        }
    }
    world.settle_and_check().await;
}

async fn a_stale_revision_is_refused(world: &World, task: i64) {
    let api = world.api();
    let before = api.task(task).await;
    let body = json!({ "description": "too late", "revision": 1 });
    let (status, answer) = api.send(Method::PATCH, &format!("/tasks/{task}"), Some(&body)).await;
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
    pass(6.0).await;
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

/// An executor that could not be told of an edit says that a run of before has not started: its fire belongs to the edit, and so
/// to the next one.
async fn what_an_edit_could_not_revoke_is_not_lost_to_the_next(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("schedulers.before_interval", "12s")]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    let task = api.make_task(&app, "edited", "job", json!({ "cron": "* * * * * ?" })).await;
    let held = async || world.database.logs(&format!("status = 2 AND due_time > {}", now_ms() + 6_000)).await;
    await_until("the executor holds something", 30, async || when(held().await.len() > 2)).await;
    let task_revision = format!("SELECT revision FROM task WHERE id = {task}");
    let before = world.database.number(&task_revision).await;
    fake.script(|script| script.obeys = false);
    let named = ids_of(&api.edit(task, json!({ "params": "2" })).await["unreachable"]);
    let rows = held().await;
    let row = rows.iter().find(|row| named.contains(&row.id)).expect("it holds one that is named");
    let key = RunKey(row.id, row.attempt);
    fake.forget(key);
    let not_started = RunResult { started_at: 0, ..result(key, RunStatus::NotStarted) };
    assert_eq!(fake.send_results(&[not_started]).await, [Verdict::Applied]);
    let revision = format!("SELECT revision FROM task_log WHERE id = {}", row.id);
    assert_eq!(world.database.number(&revision).await, before + 1, "its fire belongs to the edit");
    api.edit(task, json!({ "params": "3" })).await;
    assert_eq!(world.database.number(&revision).await, before + 2, "and to the next one");
    fake.script(|script| script.obeys = true);
    let succeeds = format!("id = {} AND status = 10", row.id);
    await_until("it runs", 60, async || when(!world.database.logs(&succeeds).await.is_empty())).await;
}

/// The caller's connection closes in the middle of the transaction: what has begun is carried through, with its audit entry.
async fn an_edit_is_made_although_its_caller_goes_away(kind: Kind) {
    let world = World::new(kind).await;
    let proxy = Proxy::to(&world.database.url).await;
    let mut database = world.database.clone();
    database.url = proxy.url.clone();
    let node = world.node_on("a", &database, &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "edited", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 2).await;

    proxy.hold_before("UPDATE task SET written_until");
    let body = json!({ "cron": "0/2 * * * * ?", "revision": 1 }).to_string();
    let mut caller = TcpStream::connect(node.url.trim_start_matches("http://")).await.unwrap();
    let request = format!(
        "PATCH /api/v1/tasks/{task} HTTP/1.1\r\nHost: carillon\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        api.token(),
        body.len()
    );
    caller.write_all(request.as_bytes()).await.unwrap();
    proxy.held().await;
    drop(caller);
    proxy.release();
    await_until("the edit is made", 20, || async { when(api.task(task).await["revision"] == 2) }).await;
    let entries = api.get(&format!("/audit?target={task}&action=edit_task")).await;
    assert_eq!(entries["items"].as_array().map(Vec::len), Some(1), "{entries}");
    let edited_at = now_ms();
    await_until("it fires by its new definition", 20, || async {
        let rows = world.database.logs_of(task).await;
        when(rows.iter().filter(|row| row.fire_time > edited_at && row.status == Status::Succeeded).count() > 1)
    })
    .await;
    let rows = world.database.logs_of(task).await;
    let odd = rows.iter().filter(|row| row.fire_time > edited_at + 1_000 && (row.fire_time / 1_000) % 2 == 1);
    assert_all("cancelled by the edit", &odd.cloned().collect::<Vec<_>>(), |row| row.status == Status::Cancelled);
    world.settle_and_check().await;
}

/// Shards and single runs of one instant must not block each other.
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
