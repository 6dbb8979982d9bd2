//! Runs that no schedule names: at once, later, by key, over edits and stops.

use carillon_tests::api::id_of;
use carillon_tests::wait::sample;
use carillon_tests::{Api, Fires, Kind, LogRow, Status, World, await_until, now_ms};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;

scenario!(at_once_and_later: sqlite mariadb);
scenario!(over_edits_and_stops: sqlite mariadb);
scenario!(one_key_on_two_nodes: mariadb);

fn log_of(answer: &Value) -> i64 {
    id_of(&answer["log"]).unwrap_or_else(|| panic!("no log in {answer}"))
}

async fn at_once_and_later(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    // Stopped, as handlers register themselves: by hand it runs all the same.
    let task = api.make_task(&app, "by hand", "echo", json!({ "started": false, "params": "own" })).await;
    let every_second =
        api.make_task(&app, "every second", "echo", json!({ "cron": "* * * * * ?", "params": "own" })).await;
    wrong_runs_are_named(&world, &api, task).await;

    let before = now_ms();
    let delayed = api.run_with(task, json!({ "delay_ms": 3_000, "params": { "n": 1 }, "priority": 9 })).await;
    let after = now_ms();
    let at = now_ms() / 1_000 * 1_000 + 4_567;
    let dated = api.run_with(task, json!({ "at": at, "priority": 1 })).await;
    let at_once = api.run_with(task, json!({})).await;
    assert!(!delayed["repeated"].as_bool().unwrap());
    let fire_time = delayed["fire_time"].as_i64().unwrap();
    assert!((before + 2_900..=after + 3_100).contains(&fire_time), "{before} {delayed} {after}");
    assert_eq!(dated["fire_time"].as_i64(), Some(at));
    let row = world.await_end(log_of(&at_once)).await;
    assert_eq!(
        (row.status, row.output.as_str(), row.trigger.as_str()),
        (Status::Succeeded, "own", "manual"),
        "{row:?}"
    );
    let row = world.await_end(log_of(&delayed)).await;
    assert_eq!((row.output.as_str(), row.priority, row.fire_time), (r#"{"n":1}"#, 9, fire_time), "{row:?}");
    let row = world.await_end(log_of(&dated)).await;
    assert_eq!((row.output.as_str(), row.priority, row.fire_time), ("own", 1, at), "{row:?}");

    // At the very second that the schedule names, written ahead or not: both run.
    let soon = now_ms() / 1_000 * 1_000 + 6_000;
    let far = now_ms() / 1_000 * 1_000 + 200_000;
    let soon_log = log_of(&api.run_with(every_second, json!({ "at": soon, "params": "by hand" })).await);
    let far_log = api.run_with(every_second, json!({ "at": far, "params": "by hand" })).await;
    assert!((far..far + 10).contains(&far_log["fire_time"].as_i64().unwrap()), "{far_log}");
    let row = world.await_end(soon_log).await;
    assert_eq!((row.status, row.output.as_str()), (Status::Succeeded, "by hand"), "{row:?}");
    await_until("that far is written ahead", 40, || async {
        let written = format!("task_id = {every_second} AND fire_time > {far} AND trigger_kind = 'schedule'");
        (!world.database.logs(&written).await.is_empty()).then_some(())
    })
    .await;
    let (rows, _) = world.end_well().await;
    let scheduled: Vec<LogRow> =
        rows.into_iter().filter(|row| row.task == every_second && row.trigger == "schedule").collect();
    let fires = Fires::every(1, &scheduled).assert_no_gap().between(soon - 1_000, far);
    assert!(fires.iter().filter(|row| row.fire_time <= soon).all(|row| row.output == "own"), "{}", sample(&fires));
}

async fn wrong_runs_are_named(world: &World, api: &Api, task: i64) {
    let path = format!("/tasks/{task}/run");
    let now = now_ms();
    for (body, fields) in [
        (json!({ "delay_ms": -1 }), &["delay_ms"][..]),
        (json!({ "delay_ms": 31 * 86_400_000_i64 }), &["delay_ms"]),
        (json!({ "delay_ms": "soon" }), &["delay_ms"]),
        (json!({ "at": now - 60_000 }), &["at"]),
        (json!({ "at": now + 31 * 86_400_000_i64 }), &["at"]),
        (json!({ "at": now + 5_000, "delay_ms": 5_000 }), &["at"]),
        (json!({ "priority": 0 }), &["priority"]),
        (json!({ "priority": 10 }), &["priority"]),
        (json!({ "idempotency_key": "" }), &["idempotency_key"]),
        (json!({ "idempotency_key": "k".repeat(256) }), &["idempotency_key"]),
        (json!({ "when": 5 }), &["when"]),
        (json!({ "params": "x".repeat(70_000) }), &["params"]),
        (json!({ "priority": 0, "delay_ms": -1, "idempotency_key": "" }), &["delay_ms", "priority", "idempotency_key"]),
    ] {
        let errors = api.refused(400, Method::POST, &path, &body).await;
        let named: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(named, fields, "{errors:?}");
    }
    assert_eq!(api.send(Method::POST, "/tasks/1/run", Some(&json!({}))).await.0, 404);
    assert_eq!(world.database.logs_of(task).await, [], "a refused run was written");
}

async fn over_edits_and_stops(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fields = json!({ "params": "old", "cron": "0 0 0 1 1 ?" });
    let edited = api.make_task(&app, "edited", "echo", fields.clone()).await;
    let resharded = api.make_task(&app, "resharded", "echo", fields.clone()).await;
    let stopped = api.make_task(&app, "stopped", "echo", fields).await;
    let stopped_before = api.make_task(&app, "stopped before", "echo", json!({ "started": false })).await;
    let later = |task: i64| {
        let api = api.clone();
        async move { log_of(&api.run_with(task, json!({ "delay_ms": 6_000 })).await) }
    };
    // One that waits, and one that is with an executor already.
    let waits = later(edited).await;
    let held = log_of(&api.run_with(edited, json!({ "delay_ms": 2_500 })).await);
    let with_own = log_of(&api.run_with(edited, json!({ "delay_ms": 2_600, "params": "asked" })).await);
    let resharded_log = later(resharded).await;
    let stopped_log = later(stopped).await;
    let survives = later(stopped_before).await;
    let never = later(stopped_before).await;
    await_until("one is dispatched", 20, || async {
        (world.database.log(held).await.status == Status::Dispatched).then_some(())
    })
    .await;
    api.edit(edited, json!({ "params": "new" })).await;
    api.edit(stopped_before, json!({ "params": "new" })).await;
    api.edit(resharded, json!({ "routing": "sharding" })).await;
    api.stop(stopped).await;
    api.cancel(never).await;
    for (log, output) in [(waits, "new"), (held, "new"), (with_own, "asked"), (survives, "new")] {
        let row = world.await_end(log).await;
        assert_eq!((row.status, row.output.as_str(), row.failures), (Status::Succeeded, output, 0), "{row:?}");
    }
    for (log, reason) in [(stopped_log, "task_stopped"), (never, "cancelled_manually"), (resharded_log, "task_edited")]
    {
        let row = world.database.log(log).await;
        assert_eq!((row.status, row.reason.as_str()), (Status::Cancelled, reason), "{row:?}");
    }
    world.end_well().await;
}

/// A repeated request gets the same run, at any node.
async fn one_key_on_two_nodes(kind: Kind) {
    let world = World::new(kind).await;
    let first = world.node("a", &[]).await;
    let second = world.node("b", &[]).await;
    let apis = [Api::new(&first.url), Api::new(&second.url)];
    let app = apis[0].make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = apis[0].make_task(&app, "by key", "echo", json!({})).await;
    let other = apis[0].make_task(&app, "another", "echo", json!({})).await;
    for round in 0..5 {
        let key = format!("order {round} ☎ {}", "long ".repeat(40));
        let body = |n: usize| json!({ "idempotency_key": key, "params": format!("call {n}") });
        let calls = (0..12).map(|n| apis[n % 2].run_with(task, body(n)));
        let answers = join_all(calls).await;
        let logs: HashSet<i64> = answers.iter().map(log_of).collect();
        assert_eq!(logs.len(), 1, "one run for one key: {answers:?}");
        let new = answers.iter().filter(|answer| answer["repeated"] == false).count();
        assert_eq!(new, 1, "one call made it: {answers:?}");
        let times: HashSet<i64> = answers.iter().map(|answer| answer["fire_time"].as_i64().unwrap()).collect();
        assert_eq!(times.len(), 1, "{answers:?}");
        let of_other = apis[1].run_with(other, body(0)).await;
        assert_eq!(of_other["repeated"], false, "a key is the task's own");
    }
    let (rows, _) = world.end_well().await;
    assert_eq!(rows.iter().filter(|row| row.task == task).count(), 5, "{}", sample(&rows));
    assert!(rows.iter().all(|row| row.status == Status::Succeeded), "{}", sample(&rows));
}
