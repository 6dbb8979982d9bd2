//! What happened to a task around an instant, and who caused it.

use carillon_tests::node::TOKEN;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, Kind, Status, World, command, now_ms};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(what_happened_is_explained: sqlite mariadb);
scenario!(what_keeps_a_task_from_firing: sqlite);
scenario!(names_are_for_those_who_read_the_audit: sqlite);

async fn why(api: &Api, task: i64, at: &str) -> Vec<Value> {
    let answer = api.get(&format!("/tasks/{task}/why?at={at}")).await;
    answer["findings"].as_array().unwrap_or_else(|| panic!("no findings in {answer}")).clone()
}

fn codes(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// What the finding of that code says.
fn params<'a>(findings: &'a [Value], code: &str) -> &'a Value {
    let found = findings.iter().find(|finding| finding["code"] == code);
    &found.unwrap_or_else(|| panic!("no {code} in {findings:?}"))["params"]
}

async fn what_happened_is_explained(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;

    // A manually started run.
    let manual = api.make_task(&app, "by hand", "tick", json!({})).await;
    let log = api.run(manual, None).await;
    let row = world.await_end(log).await;
    let found = why(&api, manual, &row.fire_time.to_string()).await;
    assert_eq!(codes(&found), ["run", "started_by"], "{found:?}");
    let run = params(&found, "run");
    assert_eq!((&run["log"], &run["status"]), (&json!(log.to_string()), &json!("succeeded")), "{run}");
    assert_eq!((&run["attempts"], &run["trigger"]), (&json!(1), &json!("manual")), "{run}");
    assert!(run["executor"].is_string() && run["late_ms"].is_i64(), "{run}");
    assert!(params(&found, "started_by")["who"].is_string(), "{found:?}");

    // One that failed and is due again: its next attempt is not late before it starts.
    let again = json!({ "max_retries": 3, "retry_interval_ms": 600_000 });
    let failing = api.make_task(&app, "failing", "fail", again).await;
    let failed = api.run(failing, None).await;
    await_until("the run is due again", 60, || async {
        when(world.database.log(failed).await.status == Status::Retry)
    })
    .await;
    let found = why(&api, failing, &world.database.log(failed).await.fire_time.to_string()).await;
    let run = params(&found, "run");
    assert!(run["status"] == "retry" && run["late_ms"].is_null(), "{run}");
    api.stop(failing).await;

    // One that a person skipped, and one that a stop took away.
    let frequent = api.make_task(&app, "frequent", "tick", json!({ "cron": "0 * * * * ?" })).await;
    let lines = api.get(&format!("/tasks/{frequent}/preview?count=2")).await;
    let skipped = lines["items"][1]["fire_time"].as_i64().unwrap();
    let body = json!({ "fire_time": skipped, "note": "stocktaking" });
    api.expect(200, Method::POST, &format!("/tasks/{frequent}/skip"), Some(&body)).await;
    let found = why(&api, frequent, &skipped.to_string()).await;
    assert_eq!(codes(&found), ["run", "cancelled_by"], "{found:?}");
    assert_eq!(params(&found, "run")["message"], "stocktaking", "{found:?}");
    assert!(params(&found, "cancelled_by")["who"].is_string(), "{found:?}");
    api.stop(frequent).await;
    let sql = format!("SELECT MAX(fire_time) FROM task_log WHERE task_id = {frequent} AND reason = 'task_stopped'");
    let stopped = world.database.number(&sql).await;
    let found = why(&api, frequent, &stopped.to_string()).await;
    assert_eq!(codes(&found), ["run", "ended_by_change"], "{found:?}");
    assert_eq!(params(&found, "ended_by_change")["action"], "stop_task", "{found:?}");

    // One that fell into a maintenance window.
    let resting = api.make_task(&app, "resting", "tick", json!({ "cron": "* * * * * ?" })).await;
    let window = json!({ "ends_at": now_ms() + 600_000, "action": "skip", "note": "disk exchange" });
    api.expect(201, Method::POST, "/tenants/retail/maintenance", Some(&window)).await;
    let expired = format!("task_id = {resting} AND reason = 'maintenance' AND status = 13");
    await_until("a run falls into the window", 60, || async { when(!world.database.logs(&expired).await.is_empty()) })
        .await;
    let row = world.database.logs(&expired).await.remove(0);
    assert_eq!(row.status, Status::Expired);
    let found = why(&api, resting, &row.fire_time.to_string()).await;
    assert_eq!(codes(&found)[..2], ["run", "maintenance"], "{found:?}");
    assert_eq!(params(&found, "maintenance")["message"], "disk exchange", "{found:?}");
    api.stop(resting).await;

    // The command tells the sentences.
    let mut told = command::carillon();
    told.args(["why", "retail/orders/by hand", "--at"]).arg(api.log(log).await["fire_time"].to_string());
    told.env("CARILLON_URL", &world.node_urls()[0]).env("CARILLON_TOKEN", TOKEN);
    let told = tokio::task::spawn_blocking(move || told.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.status.success() && text.starts_with(&format!("Run {log} for ")), "{told:?}");
    assert!(text.contains("It was started manually by "), "{text}");
    world.end_well().await;
}

async fn what_keeps_a_task_from_firing(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    api.put_calendar("/calendars/retail/weekdays", json!({ "excluded_weekdays": ["sat", "sun"] })).await;
    let daily = |more: Value| {
        let mut fields = json!({ "cron": "0 30 2 * * ?", "time_zone": "Europe/Berlin" });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let task = api.make_task(&app, "daily", "tick", daily(json!({ "dst_gap": "skip" }))).await;
    // 02:30 of the last days, on the clock of Berlin.
    let found = why(&api, task, "2026-01-15%2002:30").await;
    assert_eq!(codes(&found), ["created_later"], "{found:?}");
    assert!(params(&found, "created_later")["who"].is_string(), "{found:?}");
    assert_eq!(codes(&why(&api, task, "02:30").await), ["created_later"]);
    // The clock is put forward at two.
    let found = why(&api, task, "2027-03-28%2002:30").await;
    assert_eq!(codes(&found), ["still_to_come", "dst_gap"], "{found:?}");
    let found = why(&api, task, "2027-06-01%2005:00").await;
    assert_eq!(codes(&found), ["still_to_come", "not_named"], "{found:?}");
    let at = |text: &str| json!(chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis());
    let not_named = params(&found, "not_named");
    assert_eq!(not_named["previous"], at("2027-06-01T02:30:00+02:00"), "{found:?}");
    assert_eq!(not_named["next"], at("2027-06-02T02:30:00+02:00"), "{found:?}");
    let sentence = found[1]["message"].as_str().unwrap();
    assert!(sentence.contains("2027-06-02 02:30:00 Europe/Berlin (+02:00)"), "{sentence}");

    // 5 June 2027 is a Saturday.
    let sometimes = daily(json!({ "calendar": "weekdays" }));
    let weekdays = api.make_task(&app, "weekdays", "tick", sometimes).await;
    let found = why(&api, weekdays, "2027-06-05%2002:30").await;
    assert_eq!(codes(&found), ["still_to_come", "calendar_day"], "{found:?}");
    api.edit(weekdays, json!({ "calendar_rule": "next" })).await;
    let found = why(&api, weekdays, "2027-06-05%2002:30").await;
    assert_eq!(codes(&found), ["still_to_come", "moved_by_calendar"], "{found:?}");
    assert_eq!(params(&found, "moved_by_calendar")["day"], "2027-06-07", "{found:?}");

    let ended = daily(json!({ "valid_until": "2027-01-01T00:00:00Z" }));
    let ended = api.make_task(&app, "ended", "tick", ended).await;
    let found = why(&api, ended, "2027-06-05%2002:30").await;
    assert_eq!(codes(&found), ["still_to_come", "after_validity"], "{found:?}");

    // Paused, with the note; then stopped: by whom.
    api.pause(task, "ledger is being moved").await;
    let found = why(&api, task, "2027-06-01%2002:30").await;
    assert_eq!(codes(&found), ["still_to_come", "paused"], "{found:?}");
    assert_eq!(params(&found, "paused")["message"], "ledger is being moved", "{found:?}");
    api.edit(task, json!({ "description": "edited while it rests" })).await;
    let paused = params(&why(&api, task, "2027-06-01%2002:30").await, "paused").clone();
    assert_eq!((&paused["action"], paused["who"].is_string()), (&json!("pause_task"), true), "{paused}");
    api.stop(task).await;
    let found = why(&api, task, "2027-06-01%2002:30").await;
    assert_eq!(params(&found, "stopped")["action"], "stop_task", "{found:?}");

    let manual = api.make_task(&app, "by hand", "tick", json!({})).await;
    let found = why(&api, manual, &now_ms().to_string()).await;
    assert_eq!(codes(&found), ["no_schedule"], "{found:?}");
    let wrong = api.expect(400, Method::GET, &format!("/tasks/{task}/why?at=soon"), None).await;
    assert_eq!(wrong["errors"][0]["field"], "at", "{wrong}");
    api.expect(400, Method::GET, &format!("/tasks/{task}/why"), None).await;
}

async fn names_are_for_those_who_read_the_audit(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let task = api.make_task(&app, "daily", "tick", json!({ "cron": "0 0 3 * * ?" })).await;
    api.pause(task, "moving house").await;
    let at = "2027-06-01%2003:00";
    assert!(params(&why(&api, task, at).await, "paused")["who"].is_string());
    let ann = api.make_person("ann", Some("retail")).await;
    api.make_role("reads logs", Some("retail"), &["task_logs.read"]).await;
    api.grant(&ann, "reads logs", Some("retail")).await;
    let found = why(&ann.api, task, at).await;
    let paused = params(&found, "paused");
    assert_eq!((&paused["who"], &paused["message"]), (&Value::Null, &json!("moving house")), "{paused}");
    assert!(found.iter().any(|finding| finding["message"].as_str().unwrap().contains("by someone")), "{found:?}");
}
