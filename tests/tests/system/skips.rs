//! One coming fire is cancelled, and the others come; also one whose run is not written yet.

use carillon_tests::api::id_of;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, Kind, Status, World, now_ms};
use chrono::SecondsFormat;
use reqwest::Method;
use serde_json::{Value, json};

scenario!(single_fires_are_cancelled_and_restored: sqlite mariadb postgres);
scenario!(the_watermark_passes_a_cancelled_fire: sqlite mariadb postgres);

const HOUR_MS: i64 = 3_600_000;

async fn skip(api: &Api, task: i64, body: Value) -> Value {
    api.expect(200, Method::POST, &format!("/tasks/{task}/skip"), Some(&body)).await
}

async fn restore(api: &Api, task: i64, fire_time: i64) -> Value {
    api.expect(200, Method::POST, &format!("/tasks/{task}/restore"), Some(&json!({ "fire_time": fire_time }))).await
}

/// What is said about the field that is to blame.
async fn refused(api: &Api, task: i64, body: Value) -> String {
    let errors = api.refused(400, Method::POST, &format!("/tasks/{task}/skip"), &body).await;
    assert_eq!(errors.len(), 1, "{errors:?}");
    format!("{}: {}", errors[0].0, errors[0].1)
}

/// The lines of a task's preview: (instant, whether it fires, else why not).
async fn preview(api: &Api, task: i64, count: usize) -> Vec<(i64, String)> {
    let lines = api.get(&format!("/tasks/{task}/preview?count={count}")).await;
    let line = |line: &Value| {
        let word = line["reason"].as_str().or(line["kind"].as_str()).unwrap().to_owned();
        (line["fire_time"].as_i64().unwrap(), word)
    };
    lines["items"].as_array().unwrap().iter().map(line).collect()
}

async fn single_fires_are_cancelled_and_restored(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    // Far beyond what is written ahead.
    let hourly = api.make_task(&app, "hourly", "tick", json!({ "cron": "0 30 * * * ?", "max_fires": 100 })).await;
    let upcoming: Vec<i64> = preview(&api, hourly, 3).await.into_iter().map(|(at, _)| at).collect();
    // The first one may be written.
    let at = upcoming[1];
    let log = skip(&api, hourly, json!({ "fire_time": at, "note": "stocktaking" })).await;
    assert_eq!((&log["status"], &log["reason"]), (&json!("cancelled"), &json!("cancelled_manually")), "{log}");
    assert_eq!((&log["message"], &log["attempt"]), (&json!("stocktaking"), &json!(0)), "{log}");
    assert_eq!((log["fire_time"].as_i64(), log["trigger"].as_str()), (Some(at), Some("schedule")), "{log}");
    let seen: Vec<String> = preview(&api, hourly, 3).await.into_iter().map(|(_, word)| word).collect();
    assert_eq!(seen, ["fires", "cancelled_manually", "fires"]);
    let again = json!({ "fire_time": at });
    api.refused(409, Method::POST, &format!("/tasks/{hourly}/skip"), &again).await;

    // Both are in the audit, with what they were about.
    assert_eq!(restore(&api, hourly, at).await, json!({ "fire_time": at, "log": null }));
    assert!(preview(&api, hourly, 3).await.iter().all(|(_, word)| word == "fires"));
    api.refused(404, Method::POST, &format!("/tasks/{hourly}/restore"), &again).await;
    for action in ["skip_fire", "restore_fire"] {
        let found = api.get(&format!("/audit?action={action}")).await;
        let entry = &found["items"][0];
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
        let said = if action == "skip_fire" { &entry["after"] } else { &entry["before"] };
        assert!(said.to_string().contains(&at.to_string()), "{entry}");
    }

    // Instants at which the task does not fire.
    let text = refused(&api, hourly, json!({ "fire_time": at + 1 })).await;
    let next = chrono::DateTime::from_timestamp_millis(upcoming[2]).unwrap().to_rfc3339_opts(SecondsFormat::Secs, true);
    assert!(text.contains("no fire at this instant") && text.contains(&next), "{text}");
    let text = refused(&api, hourly, json!({ "fire_time": at + 367 * 24 * HOUR_MS })).await;
    assert!(text.contains("366 days"), "{text}");
    let text = refused(&api, hourly, json!({ "fire_time": at + 200 * HOUR_MS })).await;
    assert!(text.contains("max_fires"), "{text}");
    let text = refused(&api, hourly, json!({ "fire_time": at - 1_000 * HOUR_MS })).await;
    assert!(text.contains("must be in the future"), "{text}");
    let text = refused(&api, hourly, json!({ "fire_time": at, "note": "x".repeat(1_001) })).await;
    assert!(text.starts_with("note"), "{text}");
    let delay = json!({ "schedule": "fixed_delay", "interval_ms": HOUR_MS });
    let chain = api.make_task(&app, "chain", "tick", delay).await;
    let first = api.task(chain).await["next_fire_at"].as_i64().unwrap();
    let text = refused(&api, chain, json!({ "fire_time": first })).await;
    assert!(text.contains("fixed delay"), "{text}");
    let manual = api.make_task(&app, "by hand", "tick", json!({})).await;
    assert!(refused(&api, manual, again.clone()).await.contains("no schedule"));
    let rate = json!({ "schedule": "fixed_rate", "interval_ms": HOUR_MS, "started": false });
    let rate = api.make_task(&app, "rate", "tick", rate).await;
    assert!(refused(&api, rate, again.clone()).await.contains("not started"));
    api.start(rate).await;
    let second = preview(&api, rate, 2).await[1].0;
    skip(&api, rate, json!({ "fire_time": second })).await;
    assert_eq!(preview(&api, rate, 2).await[1], (second, "cancelled_manually".to_owned()));

    // A run that is written is cancelled like any other, and can be let come while it is ahead.
    let soon = api.make_task(&app, "soon", "tick", json!({ "cron": "0/30 * * * * ?" })).await;
    let next = preview(&api, soon, 3).await[2].0;
    let sql = format!("SELECT id FROM task_log WHERE task_id = {soon} AND fire_time = {next}");
    let written = world.database.number(&sql).await;
    let log = skip(&api, soon, json!({ "fire_time": next, "note": "not now" })).await;
    assert_eq!((id_of(&log["id"]), log["status"].as_str()), (Some(written), Some("cancelled")), "{log}");
    assert_eq!(log["message"], "not now");
    let answer = restore(&api, soon, next).await;
    let fresh = id_of(&answer["log"]).unwrap();
    assert_ne!(fresh, written);
    let log = api.log(fresh).await;
    assert_eq!((log["status"].as_str(), log["fire_time"].as_i64()), (Some("init"), Some(next)), "{log}");
    api.stop(soon).await;
    world.end_well().await;
}

/// Fires a second apart that start after what is written ahead; then the watermark passes them.
async fn the_watermark_passes_a_cancelled_fire(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [("schedulers.task_pre_generation_max_time", "8s"), ("schedulers.pre_generation_interval", "1s")];
    world.nodes(&settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let begin = (now_ms() / 1_000 + 12) * 1_000;
    let window = |more: Value| {
        let mut fields = json!({ "cron": "* * * * * ?", "valid_from": begin, "valid_until": begin + 6_000 });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let single = api.make_task(&app, "single", "tick", window(json!({}))).await;
    let sharded = api.make_task(&app, "by shards", "tick", window(json!({ "routing": "sharding" }))).await;
    let (first, last) = (begin + 1_000, begin + 5_000);
    for task in [single, sharded] {
        for at in [first, last] {
            skip(&api, task, json!({ "fire_time": at })).await;
        }
        // Runs after a stop and an edit take it into account.
        api.stop(task).await;
        api.start(task).await;
        api.edit(task, json!({ "description": "edited" })).await;
    }
    await_until("all is written", 60, || async {
        let next = [api.task(single).await, api.task(sharded).await];
        when(next.iter().all(|task| task["written_until"].is_null()))
    })
    .await;
    // One comes after all, though the watermark has passed it: at once.
    assert!(id_of(&restore(&api, single, last).await["log"]).is_some());
    await_until("all have ended", 60, || async {
        when(world.database.number("SELECT COUNT(*) FROM task_log WHERE status < 10").await == 0)
    })
    .await;
    let (rows, starts) = world.end_well().await;
    for (task, cancelled) in [(single, vec![first]), (sharded, vec![first, last])] {
        let fires: Vec<(i64, bool)> = rows
            .iter()
            .filter(|row| row.task == task && row.parent == 0)
            .map(|row| (row.fire_time, row.status == Status::Succeeded))
            .collect();
        assert_eq!(fires.len(), 6, "{fires:?}");
        for (at, succeeded) in fires {
            assert_eq!(succeeded, !cancelled.contains(&at), "{at} of {cancelled:?}");
            let started = starts.iter().any(|start| start.task == task && start.fire_time == at);
            assert_eq!(started, succeeded);
        }
    }
}
