//! Backfills: a range that has passed is run a few at a time, each fire once, beside live fires.

use carillon_tests::api::id_of;
use carillon_tests::fires::assert_all;
use carillon_tests::visits::most_at_once;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, Fires, Kind, LogRow, Status, World, await_until, now_ms};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;

scenario!(each_fire_once_over_a_death_of_the_node: sqlite mariadb);
scenario!(skipped_fires_are_made_up_for: sqlite mariadb);
scenario!(ended_manually_and_with_the_task: sqlite mariadb);

async fn ask(api: &Api, task: i64, body: Value) -> i64 {
    let made = api.expect(202, Method::POST, &format!("/tasks/{task}/backfills"), Some(&body)).await;
    assert_eq!(made["status"], "open", "{made}");
    id_of(&made["id"]).unwrap_or_else(|| panic!("no id in {made}"))
}

async fn shown(api: &Api, task: i64, id: i64) -> Value {
    let listed = api.get(&format!("/tasks/{task}/backfills")).await;
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let found = items.into_iter().find(|item| id_of(&item["id"]) == Some(id));
    found.unwrap_or_else(|| panic!("backfill {id} is not in {listed}"))
}

async fn await_done(api: &Api, task: i64, id: i64) -> Value {
    await_until(&format!("backfill {id} is done"), 90, || async {
        let now = shown(api, task, id).await;
        (now["status"] == "done").then_some(now)
    })
    .await
}

fn counts(backfill: &Value) -> (i64, i64) {
    let count = |at: &str| backfill[at].as_i64().unwrap_or(-1);
    (count("written"), count("existing"))
}

async fn filled(world: &World, task: i64) -> Vec<LogRow> {
    world.database.logs(&format!("task_id = {task} AND trigger_kind = 'backfill'")).await
}

async fn each_fire_once_over_a_death_of_the_node(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fields = json!({ "cron": "* * * * * ?", "params": { "ms": 1 } });
    let task = api.make_task(&app, "every second", "overlap", fields).await;
    let from = now_ms() / 1_000 * 1_000 - 120_000;

    let body = json!({ "from": from, "until": from + 60_000, "max_concurrent": 3, "params": { "ms": 400 } });
    let first = ask(&api, task, body).await;
    await_until("some of it is written", 40, || async { when(filled(&world, task).await.len() >= 9) }).await;
    node.process.kill9().await;
    world.unready_node("a", node.port, &[]).ready().await;
    let done = await_done(&world.api(), task, first).await;
    assert_eq!(counts(&done), (60, 0), "{done}");

    // Over both of its ends.
    let body = json!({ "from": from - 10_000, "until": from + 65_000, "max_concurrent": 50 });
    let second = ask(&world.api(), task, body).await;
    let done = await_done(&world.api(), task, second).await;
    assert_eq!(counts(&done), (15, 60), "{done}");

    let (rows, _) = world.settle_and_check().await;
    let (back, live): (Vec<LogRow>, Vec<LogRow>) = rows.into_iter().partition(|row| row.trigger == "backfill");
    assert_all("run", &back, |row| row.status == Status::Succeeded && row.priority == 0);
    let fires: HashSet<i64> = back.iter().map(|row| row.fire_time).collect();
    let expected: HashSet<i64> = (from - 10_000..from + 65_000).step_by(1_000).collect();
    assert_eq!((back.len(), fires), (75, expected), "{}", sample(&back));
    let live = Fires::every(1, &live).assert_no_gap().between(from + 121_000, now_ms() - 6_000);
    assert!(live.len() >= 5, "it fires beside the backfill: {}", sample(&live));

    let of_first: HashSet<i64> =
        back.iter().filter(|row| (from..from + 60_000).contains(&row.fire_time)).map(|row| row.id).collect();
    let mut visits = world.visits(task);
    visits.retain(|visit| of_first.contains(&visit.log));
    let most = most_at_once(&visits);
    assert!((2..=3).contains(&most), "{most} at once: {}", sample(&visits));
}

async fn skipped_fires_are_made_up_for(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "every second", "tick", json!({ "cron": "* * * * * ?" })).await;
    let starts_at = now_ms() / 1_000 * 1_000 + 8_000;
    let window =
        json!({ "starts_at": starts_at, "ends_at": starts_at + 4_000, "action": "skip", "note": "stocktaking" });
    api.expect(201, Method::POST, "/tenants/retail/maintenance", Some(&window)).await;
    let (from, until) = (starts_at - 2_000, starts_at + 6_000);
    let ended = format!(
        "SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status >= 10 AND fire_time >= {from} AND fire_time <= {until}"
    );
    await_until("all of the range has ended", 60, || async { when(world.database.number(&ended).await == 9) }).await;
    let skipped = world.database.logs(&format!("task_id = {task} AND reason = 'maintenance'")).await;
    assert_eq!(skipped.len(), 4, "{}", sample(&skipped));

    let id = ask(&api, task, json!({ "from": from, "until": until, "max_concurrent": 2 })).await;
    let done = await_done(&api, task, id).await;
    assert_eq!(counts(&done), (4, 4), "{done}");
    let again = ask(&api, task, json!({ "from": from, "until": until })).await;
    assert_eq!(counts(&await_done(&api, task, again).await), (0, 8), "nothing is made up for twice");
    let (rows, starts) = world.end_well().await;
    for row in skipped {
        let row = rows.iter().find(|now| now.id == row.id).expect("it keeps its row");
        assert_eq!((row.status, row.trigger.as_str()), (Status::Succeeded, "backfill"), "{row:?}");
        assert_eq!(starts.iter().filter(|start| start.log == row.id).count(), 1, "{row:?}");
    }
}

async fn ended_manually_and_with_the_task(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fields = json!({ "cron": "* * * * * ?", "params": { "ms": 300 } });
    let task = api.make_task(&app, "every second", "overlap", fields).await;
    wrong_ranges_are_named(&api, task, api.make_task(&app, "by hand", "tick", json!({})).await).await;

    let from = now_ms() / 1_000 * 1_000 - 3_600_000;
    let manual = ask(&api, task, json!({ "from": from, "until": from + 600_000 })).await;
    let with_the_task = ask(&api, task, json!({ "from": from + 600_000, "until": from + 1_200_000 })).await;
    let written = |least: usize| {
        let world = &world;
        async move {
            await_until("more of it is written", 40, || async { when(filled(world, task).await.len() >= least) }).await;
        }
    };
    written(4).await;
    api.expect(204, Method::DELETE, &format!("/tasks/{task}/backfills/{manual}"), None).await;
    let ended = shown(&api, task, manual).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended["finished_at"].is_i64(), "{ended}");
    written(filled(&world, task).await.len() + 3).await;

    api.pause(task, "stocktaking").await;
    let paused = shown(&api, task, with_the_task).await;
    assert_eq!(paused["status"], "cancelled", "{paused}");
    api.start(task).await;
    world.await_successes(task, filled(&world, task).await.len() + 3).await;
    for (id, before) in [(manual, ended), (with_the_task, paused)] {
        assert_eq!(shown(&api, task, id).await, before, "an ended backfill goes on");
    }
    let (rows, _) = world.end_well().await;
    let rows: Vec<LogRow> = rows.into_iter().filter(|row| row.trigger == "backfill").collect();
    let (of_first, of_second): (Vec<LogRow>, Vec<LogRow>) =
        rows.into_iter().partition(|row| row.fire_time < from + 600_000);
    assert_all("run, although its backfill was ended", &of_first, |row| row.status == Status::Succeeded);
    assert_all("run or cancelled", &of_second, |row| {
        row.status == Status::Succeeded || (row.status == Status::Cancelled && row.reason == "task_paused")
    });
}

async fn wrong_ranges_are_named(api: &Api, task: i64, without_fires: i64) {
    let path = format!("/tasks/{task}/backfills");
    let now = now_ms();
    let day = 86_400_000;
    for (body, field) in [
        (json!({ "until": now }), "from"),
        (json!({ "from": now - 1_000 }), "until"),
        (json!({ "from": now - 1_000, "until": now - 1_000 }), "from"),
        (json!({ "from": -1, "until": now - 1_000 }), "from"),
        (json!({ "from": now - 367 * day, "until": now - 1_000 }), "from"),
        (json!({ "from": now - 1_000, "until": now + 60_000 }), "until"),
        (json!({ "from": now - 1_000, "until": now - 10, "max_concurrent": 0 }), "max_concurrent"),
        (json!({ "from": now - 1_000, "until": now - 10, "max_concurrent": 1_001 }), "max_concurrent"),
        (json!({ "from": now - 1_000, "until": now - 10, "paramz": 1 }), "paramz"),
    ] {
        let errors = api.refused(400, Method::POST, &path, &body).await;
        let fields: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, [field], "{body}: {errors:?}");
    }
    let body = json!({ "from": now - 1_000, "until": now - 10 });
    let errors = api.refused(400, Method::POST, &format!("/tasks/{without_fires}/backfills"), &body).await;
    assert_eq!(errors[0].0, "schedule", "{errors:?}");
    api.expect(404, Method::DELETE, &format!("{path}/12345"), None).await;
    assert_eq!(api.get(&path).await["items"], json!([]), "something was written");
}
