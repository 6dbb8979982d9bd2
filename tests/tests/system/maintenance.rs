//! Maintenance windows of a tenant: skip, postpone, ignore, and an early end.

use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, Fires, Kind, LogRow, Status, World, await_until, now_ms, pass};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(skipped_and_postponed: sqlite mariadb);
scenario!(ended_early: sqlite mariadb);

async fn add(api: &Api, tenant: &str, body: Value) -> Value {
    api.expect(201, Method::POST, &format!("/tenants/{tenant}/maintenance"), Some(&body)).await
}

async fn skipped_and_postponed(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let retail = api.make_app("retail", "orders").await;
    let finance = api.make_app("finance", "ledger").await;
    let quiet = api.make_app("quiet", "orders").await;
    for (name, app) in [("e1", &retail), ("e2", &finance), ("e3", &quiet)] {
        world.executor(name, app).await;
    }
    wrong_windows_are_named(&api).await;
    let every_second = json!({ "cron": "* * * * * ?" });
    let ignoring = json!({ "cron": "* * * * * ?", "maintenance": "ignore" });
    let skipping = api.make_task(&retail, "every second", "tick", every_second.clone()).await;
    let ignores = api.make_task(&retail, "ignores", "tick", ignoring).await;
    let manual = api.make_task(&retail, "by hand", "tick", json!({})).await;
    let postponed = api.make_task(&finance, "every second", "tick", every_second.clone()).await;
    let untouched = api.make_task(&quiet, "every second", "tick", every_second).await;
    // Beyond what is with executors already when the node hears of it.
    let (starts_at, ends_at) = (now_ms() + 7_000, now_ms() + 13_000);
    let note = "disk exchange";
    let window = json!({ "starts_at": starts_at, "ends_at": ends_at, "action": "skip", "note": note });
    let made = add(&api, "retail", window).await;
    let postpone = json!({ "starts_at": starts_at, "ends_at": ends_at, "action": "postpone", "note": note });
    add(&api, "finance", postpone).await;
    let listed = api.get("/tenants/retail/maintenance").await;
    assert_eq!(listed["items"], json!([made]), "{listed}");
    assert_eq!((&made["action"], &made["note"]), (&json!("skip"), &json!(note)));

    // A moment in the window.
    pass((starts_at + 2_500 - now_ms()) as f64 / 1_000.0).await;
    let log = api.run(manual, None).await;
    let row = world.await_end(log).await;
    assert_eq!(row.status, Status::Succeeded, "{row:?}");
    assert!(row.finished_at < ends_at, "a run by hand goes through: {row:?}");
    for task in [skipping, postponed] {
        let after =
            format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10 AND fire_time >= {ends_at}");
        await_until("it fires after the window", 40, || async { when(world.database.number(&after).await >= 3) }).await;
    }
    let until = now_ms() - 2_500;
    let (rows, starts) = world.end_well().await;
    let of = |task: i64| -> Vec<LogRow> { rows.iter().filter(|row| row.task == task).cloned().collect() };
    let inside = |task: i64| Fires::every(1, &of(task)).assert_no_gap().between(starts_at, ends_at - 1);
    let after = |task: i64| Fires::every(1, &of(task)).between(ends_at, until);

    assert_all("skipped", &inside(skipping), |row| {
        row.status == Status::Expired && row.reason == "maintenance" && row.message.contains(note)
    });
    assert_all("run after its end", &after(skipping), |row| row.status == Status::Succeeded);
    assert_all("ignoring the window", &inside(ignores), |row| {
        row.status == Status::Succeeded && row.due_time < ends_at
    });
    assert_all("postponed", &inside(postponed), |row| {
        row.status == Status::Succeeded && row.due_time == ends_at && row.started_at >= ends_at
    });
    assert_all("of another tenant", &inside(untouched), |row| {
        row.status == Status::Succeeded && row.due_time == row.fire_time
    });
    let odd: Vec<_> = starts
        .iter()
        .filter(|start| [skipping, postponed].contains(&start.task))
        .filter(|start| (starts_at..ends_at).contains(&(start.started_at_us / 1_000)))
        .collect();
    assert!(odd.is_empty(), "started in the window: {}", sample(&odd));
}

async fn wrong_windows_are_named(api: &Api) {
    let now = now_ms();
    for (body, field) in [
        (json!({ "ends_at": now - 1 }), "ends_at"),
        (json!({ "starts_at": now + 10_000, "ends_at": now + 5_000 }), "ends_at"),
        (json!({ "ends_at": now + 31 * 86_400_000_i64 }), "ends_at"),
        (json!({ "starts_at": now }), "ends_at"),
        (json!({ "ends_at": now + 60_000, "action": "pray" }), "action"),
        (json!({ "ends_at": now + 60_000, "note": "x".repeat(1_001) }), "note"),
        (json!({ "ends_at": now + 60_000, "tenant": "retail" }), "tenant"),
    ] {
        let errors = api.refused(400, Method::POST, "/tenants/retail/maintenance", &body).await;
        assert!(errors.len() == 1 && errors[0].0 == field, "{body}: {errors:?}");
    }
    let good = json!({ "ends_at": now + 60_000 });
    assert_eq!(api.send(Method::POST, "/tenants/nobody/maintenance", Some(&good)).await.0, 404);
    assert_eq!(api.get("/tenants/retail/maintenance").await["items"], json!([]));
    assert_eq!(api.send(Method::DELETE, "/tenants/retail/maintenance/1", None).await.0, 404);
}

/// Taken away early: fires come again, and what was postponed does not wait for the old end.
async fn ended_early(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let retail = api.make_app("retail", "orders").await;
    let finance = api.make_app("finance", "ledger").await;
    world.executor("e1", &retail).await;
    world.executor("e2", &finance).await;
    let every_second = json!({ "cron": "* * * * * ?" });
    let skipping = api.make_task(&retail, "every second", "tick", every_second.clone()).await;
    let postponed = api.make_task(&finance, "every second", "tick", every_second).await;
    let ends_at = now_ms() + 600_000;
    let skip = add(&api, "retail", json!({ "ends_at": ends_at })).await;
    let postpone = add(&api, "finance", json!({ "ends_at": ends_at, "action": "postpone" })).await;
    assert_eq!(skip["action"], "skip", "the default");
    for (task, state) in [(skipping, "status = 13"), (postponed, "status = 0 AND reason = 'maintenance'")] {
        let rest = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND {state}");
        await_until("runs rest", 30, || async { when(world.database.number(&rest).await >= 3) }).await;
    }
    let waiting = world.database.logs(&format!("task_id = {postponed} AND reason = 'maintenance'")).await;
    assert_all("postponed to the end", &waiting, |row| row.due_time == ends_at);
    let other = format!("/tenants/retail/maintenance/{}", postpone["id"].as_str().unwrap());
    assert_eq!(api.send(Method::DELETE, &other, None).await.0, 404, "a window of another tenant");
    for (tenant, window) in [("retail", &skip), ("finance", &postpone)] {
        let path = format!("/tenants/{tenant}/maintenance/{}", window["id"].as_str().unwrap());
        assert_eq!(api.send(Method::DELETE, &path, None).await.0, 204);
    }
    let ended_at = now_ms();
    for task in [skipping, postponed] {
        let after =
            format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10 AND fire_time > {ended_at}");
        await_until("it fires again", 30, || async { when(world.database.number(&after).await >= 3) }).await;
    }
    for row in &waiting {
        let row = world.await_end(row.id).await;
        assert_eq!((row.status, row.reason.as_str()), (Status::Succeeded, ""), "{row:?}");
    }
    world.end_well().await;
}
