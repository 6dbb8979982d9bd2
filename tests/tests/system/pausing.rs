//! Pausing: by hand with a note, and by itself after failures in a row.

use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, Fires, Kind, Status, World, await_until, now_ms, now_us, pass};
use reqwest::Method;
use serde_json::json;

scenario!(paused_manually: sqlite mariadb);
scenario!(paused_after_failures: sqlite mariadb);
scenario!(paused_after_failures_on_two_nodes: mariadb);

async fn paused_manually(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "pausing", "tick", json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(task, 2).await;
    let path = format!("/tasks/{task}/pause");
    for wrong in [json!({}), json!({ "note": "" }), json!({ "note": "  " }), json!({ "note": "x".repeat(1_001) })] {
        let errors = api.refused(400, Method::POST, &path, &wrong).await;
        assert!(
            matches!(&errors[..], [(field, message)] if field == "note" && message.contains("allowed")),
            "{errors:?}"
        );
    }
    assert_eq!(api.task(task).await["state"], "started", "a refused pause changes nothing");

    let asked_at = now_ms();
    let answer = api.pause(task, "the ledger is being repaired").await;
    let paused_us = now_us();
    assert_eq!(answer["unreachable"], json!([]), "{answer}");
    let shown = api.task(task).await;
    assert_eq!((&shown["state"], &shown["started"]), (&json!("paused"), &json!(false)), "{shown}");
    assert_eq!(shown["pause_note"], "the ledger is being repaired", "{shown}");
    let paused_at = shown["paused_at"].as_i64().unwrap();
    assert!((asked_at - 1_000..=paused_us / 1_000 + 1_000).contains(&paused_at), "{shown}");
    assert!(shown["next_fire_at"].is_null(), "{shown}");
    // An edit leaves it paused, and so does a death of the node.
    let edited = api.edit(task, json!({ "description": "still paused" })).await;
    assert_eq!((&edited["task"]["state"], &edited["task"]["paused_at"]), (&json!("paused"), &json!(paused_at)));
    pass(4.0).await;
    let late: Vec<_> = world.starts().into_iter().filter(|start| start.started_at_us > paused_us).collect();
    assert!(late.is_empty(), "started while paused: {}", sample(&late));
    let ahead = world.database.logs(&format!("task_id = {task} AND fire_time > {}", paused_us / 1_000)).await;
    assert!(!ahead.is_empty() && ahead.iter().all(|row| row.reason == "task_paused"), "{}", sample(&ahead));
    let manual = api.run(task, None).await;
    assert_eq!(world.await_end(manual).await.status, Status::Succeeded, "by hand it runs all the same");

    let answer = api.start(task).await;
    let resumed_at = now_ms();
    let shown = &answer["task"];
    assert_eq!(
        (&shown["state"], &shown["pause_note"], &shown["paused_at"]),
        (&json!("started"), &json!(null), &json!(null))
    );
    let fired =
        format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {resumed_at} AND task_id = {task}");
    await_until("it fires again", 30, || async { when(world.database.number(&fired).await >= 3) }).await;
    let until = now_ms() - 1_500;
    // Stopped is not paused.
    api.pause(task, "again").await;
    assert_eq!(api.stop(task).await["task"]["state"], "stopped");
    let (rows, _) = world.end_well().await;
    let due = Fires::every(1, &rows).between(resumed_at, until);
    assert!(due.iter().all(|row| row.status == Status::Succeeded), "{}", sample(&due));
}

/// Ends runs of a task of one handler, one by one, until its state is as expected.
async fn run(world: &World, api: &Api, task: i64, expected: Status) {
    let row = world.await_end(api.run(task, None).await).await;
    assert_eq!(row.status, expected, "{row:?}");
}

async fn in_row(api: &Api, task: i64) -> i64 {
    api.task(task).await["failures_in_row"].as_i64().unwrap()
}

async fn await_in_row(api: &Api, task: i64, count: i64) {
    await_until(&format!("{count} failures in a row are counted"), 20, || async {
        when(in_row(api, task).await == count)
    })
    .await;
}

async fn paused_after_failures(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    // By its schedule, with retries: each run counts once.
    let failing = json!({
        "cron": "0/2 * * * * ?", "pause_after_failures": 3, "max_retries": 1, "retry_interval_ms": 100,
    });
    let failing = api.make_task(&app, "failing", "fail", failing).await;
    // By hand, so that each step can be looked at.
    let fields =
        json!({ "schedule": "fixed_rate", "interval_ms": 3_600_000, "pause_after_failures": 3, "max_retries": 0 });
    let mixed = api.make_task(&app, "mixed", "fail", fields).await;
    for _ in 0..2 {
        run(&world, &api, mixed, Status::Failed).await;
    }
    await_in_row(&api, mixed, 2).await;
    api.edit(mixed, json!({ "handler": "tick" })).await;
    run(&world, &api, mixed, Status::Succeeded).await;
    await_in_row(&api, mixed, 0).await;
    api.edit(mixed, json!({ "handler": "fail" })).await;
    for _ in 0..2 {
        run(&world, &api, mixed, Status::Failed).await;
    }
    await_in_row(&api, mixed, 2).await;
    assert_eq!(api.task(mixed).await["state"], "started", "a success in between resets the count");
    run(&world, &api, mixed, Status::Failed).await;
    await_paused(&api, mixed, "3 failed runs").await;

    await_paused(&api, failing, "3 failed runs").await;
    let rows = world.database.logs(&format!("task_id = {failing} AND status = 11")).await;
    assert_eq!(rows.len(), 3, "paused after exactly three: {}", sample(&rows));
    assert!(rows.iter().all(|row| row.failures == 2), "{}", sample(&rows));
    // It shows as paused a moment before executors have dropped what they hold.
    let others = format!(
        "SELECT COUNT(*) FROM task_log WHERE task_id = {failing} AND reason NOT IN ('task_paused', 'handler_failed')"
    );
    await_until("all others are given up", 20, || async { when(world.database.number(&others).await == 0) }).await;
    assert_eq!(world.database.logs(&format!("task_id = {failing} AND status = 11")).await.len(), 3);

    // Resumed, it has three more.
    api.start(failing).await;
    assert_eq!(in_row(&api, failing).await, 0);
    await_paused(&api, failing, "3 failed runs").await;
    assert_eq!(world.database.logs(&format!("task_id = {failing} AND status = 11")).await.len(), 6);
    world.end_well().await;
}

async fn await_paused(api: &Api, task: i64, note: &str) {
    let shown = await_until("it is paused", 40, || async {
        let shown = api.task(task).await;
        (shown["state"] == "paused").then_some(shown)
    })
    .await;
    assert!(shown["pause_note"].as_str().is_some_and(|text| text.contains(note)), "{shown}");
    assert!(shown["paused_at"].as_i64().is_some_and(|at| at > 0), "{shown}");
}

/// Both nodes follow up the ends; many tasks, so that both have to do with each.
async fn paused_after_failures_on_two_nodes(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let second = world.node("b", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let mut tasks = Vec::new();
    for number in 0..10 {
        let fields = json!({ "cron": "0/2 * * * * ?", "pause_after_failures": 2, "max_retries": 0 });
        tasks.push(api.make_task(&app, &format!("failing {number}"), "fatal", fields).await);
    }
    let fine = json!({ "cron": "* * * * * ?", "pause_after_failures": 1 });
    let fine = api.make_task(&app, "fine", "tick", fine).await;
    for task in &tasks {
        await_paused(&Api::new(&second.url), *task, "2 failed runs").await;
        let failed = world.database.logs(&format!("task_id = {task} AND status = 11")).await;
        assert_eq!(failed.len(), 2, "{}", sample(&failed));
    }
    assert_eq!(api.task(fine).await["state"], "started");
    world.end_well().await;
}
