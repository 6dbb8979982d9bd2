//! Bad input to the management API: the right status, a clear message, nothing half-written.

use carillon::domain::task::TaskSpec;
use carillon_tests::{Api, App, Kind, World, http};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(bad_input_to_the_api: sqlite mariadb postgres);
scenario!(every_field_of_a_task: sqlite mariadb);

async fn bad_input_to_the_api(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let task = api.make_task(&app, "good", "tick", json!({ "cron": "0 0 9 * * ?", "started": false })).await;
    let before = picture(&world).await;

    wrong_tokens(&node.url).await;
    wrong_crons(&api, &app, task).await;
    wrong_fields(&api, &app).await;
    absent_things(&api).await;
    taken_names(&api, &app).await;
    oversized_bodies(&node.url).await;
    assert_eq!(picture(&world).await, before, "a refused request wrote something");
    assert_eq!(api.task(task).await["cron"], "0 0 9 * * ?");
}

async fn picture(world: &World) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["tenant", "app", "app_key", "task", "task_log", "handler"] {
        counts.push(world.database.number(&format!("SELECT COUNT(*) FROM {table}")).await);
    }
    counts.push(world.database.number("SELECT COUNT(*) FROM task WHERE revision > 1").await);
    counts
}

/// The answer is a problem of that status whose text has every one of `words`.
async fn refused(api: &Api, status: u16, method: Method, path: &str, body: Option<Value>, words: &[&str]) {
    let (got, answer) = api.send(method.clone(), path, body.as_ref()).await;
    assert_eq!(got, status, "{method} {path} {body:?}: {answer}");
    assert_eq!(answer["status"], status, "{method} {path} {body:?}: no problem document: {answer}");
    assert!(answer["title"].is_string() && answer["detail"].is_string(), "{answer}");
    let text = answer.to_string().to_lowercase();
    for word in words {
        assert!(text.contains(&word.to_lowercase()), "{method} {path} {body:?}: nothing about {word}: {answer}");
    }
}

async fn wrong_tokens(url: &str) {
    for token in ["", "wrong", "the-token-of-the-system-tests-0123456788"] {
        refused(&Api::with_token(url, token), 401, Method::GET, "/tasks", None, &["token"]).await;
    }
    let bare = http::shared().get(format!("{url}/api/v1/tasks")).send().await.unwrap();
    assert_eq!(bare.status(), 401);
    let kind = bare.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("application/problem+json"), "{kind}");
}

#[allow(clippy::unnecessary_wraps)] // as `refused` takes it
fn task(app: &App, fields: Value) -> Option<Value> {
    let mut body = json!({ "tenant": app.tenant, "app": app.name, "name": "bad", "handler": "tick" });
    let Value::Object(fields) = fields else { unreachable!("fields are an object") };
    body.as_object_mut().unwrap().extend(fields);
    Some(body)
}

async fn wrong_crons(api: &Api, app: &App, good: i64) {
    for (cron, words) in [
        ("0 0 25 * * ?", &["hour", "25"][..]),
        ("0 0 9 * * ? 2026 7", &["field"]),
        ("0 61 9 * * ?", &["minute", "61"]),
        ("0 0 9 ? * FUN", &["day of week", "column 11"]),
        ("hourly", &["field"]),
    ] {
        refused(api, 400, Method::POST, "/tasks", task(app, json!({ "cron": cron })), words).await;
        refused(api, 400, Method::PATCH, &format!("/tasks/{good}"), Some(json!({ "cron": cron })), words).await;
    }
    let body = task(app, json!({ "cron": "0 0 9 * * ?", "time_zone": "Mars/Olympus" }));
    refused(api, 400, Method::POST, "/tasks", body, &["zone", "Mars/Olympus"]).await;
}

async fn wrong_fields(api: &Api, app: &App) {
    for (fields, words) in [
        (json!({ "routing": "sideways" }), &["sideways", "sharding"][..]),
        (json!({ "max_retries": -1 }), &["max_retries"]),
        (json!({ "timeout_ms": -5 }), &["timeout_ms"]),
        (json!({ "name": "" }), &["name"]),
        (json!({ "handler": "" }), &["handler"]),
        (json!({ "name": "x".repeat(500) }), &["name"]),
        (json!({ "crom": "* * * * * ?" }), &["crom"]),
        (json!({ "tags": "gpu" }), &["gpu"]),
    ] {
        refused(api, 400, Method::POST, "/tasks", task(app, fields), words).await;
    }
    refused(api, 400, Method::POST, "/tasks", Some(json!([])), &[]).await;
    refused(api, 400, Method::POST, "/tasks", Some(json!({ "name": "only" })), &[]).await;
    refused(api, 400, Method::GET, "/task-logs?status=sideways", None, &["status"]).await;
    refused(api, 400, Method::POST, "/tenants", Some(json!({ "name": "" })), &["name"]).await;
}

async fn absent_things(api: &Api) {
    for tenant in ["nobody", "RETAIL"] {
        let app = App {
            tenant: tenant.into(),
            name: "orders".into(),
            key: carillon_protocol::sign::Key { id: String::new(), secret: String::new() },
        };
        refused(api, 404, Method::POST, "/tasks", task(&app, json!({})), &[tenant]).await;
        let body = json!({ "tenant": tenant, "name": "billing" });
        refused(api, 404, Method::POST, "/apps", Some(body), &[tenant]).await;
    }
    refused(api, 404, Method::GET, "/tasks/1", None, &[]).await;
    refused(api, 404, Method::PATCH, "/tasks/1", Some(json!({ "params": "x" })), &[]).await;
    refused(api, 404, Method::DELETE, "/tasks/1", None, &[]).await;
    refused(api, 404, Method::POST, "/tasks/1/run", Some(json!({})), &[]).await;
    refused(api, 404, Method::GET, "/task-logs/1", None, &[]).await;
    refused(api, 404, Method::POST, "/task-logs/1/cancel", None, &[]).await;
    refused(api, 404, Method::GET, "/nothing", None, &[]).await;
}

async fn taken_names(api: &Api, app: &App) {
    refused(api, 409, Method::POST, "/tenants", Some(json!({ "name": app.tenant })), &["name"]).await;
    let body = json!({ "tenant": app.tenant, "name": app.name });
    refused(api, 409, Method::POST, "/apps", Some(body), &["name"]).await;
    refused(api, 409, Method::POST, "/tasks", task(app, json!({ "name": "good" })), &["name"]).await;
}

async fn oversized_bodies(url: &str) {
    let sent = http::shared()
        .post(format!("{url}/api/v1/tasks"))
        .bearer_auth(carillon_tests::node::TOKEN)
        .header("content-type", "application/json")
        .body(vec![b' '; 20 * 1024 * 1024])
        .send()
        .await;
    // A server may close before it has read everything; then there is no answer to look at.
    if let Ok(reply) = sent {
        assert_eq!(reply.status(), 413);
    }
    assert_eq!(http::shared().get(format!("{url}/readyz")).send().await.unwrap().status(), 200, "the node goes on");
}

/// (fields, the one that is wrong, words of its message). Each field of a task is in here.
#[allow(clippy::too_many_lines)] // a list, one or more entries per field
fn wrong_fields_of_a_task() -> Vec<(Value, &'static str, &'static [&'static str])> {
    let long = "x".repeat(129);
    let tags: Vec<String> = (0..33).map(|n| format!("t{n}")).collect();
    let parents: Vec<Value> = (0..33).map(|n| json!({ "task": format!("t{n}") })).collect();
    vec![
        (json!({ "name": "" }), "name", &["1 to 128"]),
        (json!({ "name": "a/b" }), "name", &["/"]),
        (json!({ "name": 7 }), "name", &["text"]),
        (json!({ "handler": long }), "handler", &["1 to 128"]),
        (json!({ "handler": "a\nb" }), "handler", &["printable"]),
        (json!({ "description": "x".repeat(1_001) }), "description", &["1000"]),
        (json!({ "params": "x".repeat(16_385) }), "params", &["16384"]),
        (json!({ "schedule": "hourly" }), "schedule", &["none", "cron", "fixed_rate", "fixed_delay", "once"]),
        (json!({ "schedule": "cron" }), "cron", &[]),
        (json!({ "cron": "0 0 25 * * ?" }), "cron", &["hour", "25", "0-23"]),
        (json!({ "cron": 5 }), "cron", &["text"]),
        (json!({ "time_zone": "Mars/Olympus" }), "time_zone", &["Mars/Olympus", "Asia/Shanghai"]),
        (json!({ "schedule": "fixed_rate", "interval_ms": 999 }), "interval_ms", &["1000"]),
        (json!({ "schedule": "fixed_delay" }), "interval_ms", &["required", "fixed_delay"]),
        (json!({ "interval_ms": -1 }), "interval_ms", &["31622400000"]),
        (json!({ "interval_ms": "soon" }), "interval_ms", &["number"]),
        (json!({ "schedule": "once" }), "fire_at", &["required"]),
        (json!({ "schedule": "once", "fire_at": 1_000, "started": true }), "fire_at", &["past"]),
        (json!({ "fire_at": "tomorrow" }), "fire_at", &["2026-12-24T18:00:00Z", "milliseconds"]),
        (json!({ "valid_from": -1 }), "valid_from", &["2199"]),
        (json!({ "valid_until": 9_999_999_999_999_i64 }), "valid_until", &["2199"]),
        (json!({ "valid_from": 2_000, "valid_until": 1_000 }), "valid_until", &["after `valid_from`"]),
        (json!({ "max_fires": -1 }), "max_fires", &["0 to"]),
        (json!({ "dst_gap": "jump" }), "dst_gap", &["auto", "skip", "after"]),
        (json!({ "dst_overlap": "thrice" }), "dst_overlap", &["auto", "first", "second", "both"]),
        (json!({ "calendar": "nowhere" }), "calendar", &["nowhere"]),
        (json!({ "calendar": long }), "calendar", &["allowed"]),
        (json!({ "calendar_rule": "back" }), "calendar_rule", &["skip", "next", "previous"]),
        (json!({ "calendar_rule": "next" }), "calendar_rule", &["`skip`", "cron"]),
        (json!({ "spread_ms": 5 }), "spread_ms", &["cron or fixed-rate"]),
        (json!({ "cron": "* * * * * ?", "spread_ms": 86_400_001 }), "spread_ms", &["86400000"]),
        (json!({ "jitter_ms": -1 }), "jitter_ms", &["86400000"]),
        (json!({ "misfire_strategy": "cry" }), "misfire_strategy", &["skip", "fire_once", "fire_all"]),
        (json!({ "misfire_max": 0 }), "misfire_max", &["1 to 1000"]),
        (json!({ "misfire_max_late_ms": -1 }), "misfire_max_late_ms", &["2592000000"]),
        (json!({ "expired_strategy": "sell" }), "expired_strategy", &["execute", "discard"]),
        (json!({ "expire_after_ms": 2_592_000_001_i64 }), "expire_after_ms", &["2592000000"]),
        (json!({ "maintenance": "resist" }), "maintenance", &["obey", "ignore"]),
        (json!({ "pause_after_failures": -1 }), "pause_after_failures", &["0 to 1000000"]),
        (json!({ "routing": "sideways" }), "routing", &["sharding", "random"]),
        (json!({ "tags": "gpu" }), "tags", &["list"]),
        (json!({ "tags": tags }), "tags", &["32"]),
        (json!({ "tags_any": [""] }), "tags_any", &["1 to 128"]),
        (json!({ "tags_none": [7] }), "tags_none[0]", &["text"]),
        (
            json!({ "block_strategy": "queue" }),
            "block_strategy",
            &["concurrent", "serial", "discard_later", "cover_early"],
        ),
        (json!({ "block_scope": "world" }), "block_scope", &["executor", "app"]),
        (json!({ "max_concurrent": 1_000_001 }), "max_concurrent", &["0 to 1000000"]),
        (json!({ "priority": 10 }), "priority", &["1 to 9"]),
        (json!({ "priority": 99_999_999_999_i64 }), "priority", &["1 to 9"]),
        (json!({ "priority": 5.5 }), "priority", &["number"]),
        (json!({ "failure_strategy": "panic" }), "failure_strategy", &["retry", "discard"]),
        (json!({ "max_retries": 1_001 }), "max_retries", &["0 to 1000"]),
        (json!({ "retry_interval_ms": -1 }), "retry_interval_ms", &["2592000000"]),
        (json!({ "retry_backoff": "random" }), "retry_backoff", &["fixed", "exponential"]),
        (json!({ "retry_max_interval_ms": -1 }), "retry_max_interval_ms", &["2592000000"]),
        (json!({ "retry_jitter_percent": 101 }), "retry_jitter_percent", &["0 to 100"]),
        (json!({ "retry_on": ["mondays"] }), "retry_on[0]", &["failed", "timed_out", "lost", "not_sent"]),
        (json!({ "retry_elsewhere": "yes" }), "retry_elsewhere", &["true or false"]),
        (json!({ "timeout_ms": -5 }), "timeout_ms", &["2592000000"]),
        (json!({ "wait_timeout_ms": 2_592_000_001_i64 }), "wait_timeout_ms", &["2592000000"]),
        (json!({ "delivery": "twice" }), "delivery", &["at_least_once", "at_most_once"]),
        (json!({ "parents": [{ "task": "nobody" }] }), "parents[0].task", &["nobody"]),
        (
            json!({ "parents": [{ "task": "good", "on": "sunday" }] }),
            "parents[0].on",
            &["success", "failure", "always"],
        ),
        (json!({ "parents": parents }), "parents", &["32"]),
        (json!({ "parents": "good" }), "parents", &["list"]),
        (json!({ "parent_rule": "most" }), "parent_rule", &["all", "any"]),
        (json!({ "parent_output": 1 }), "parent_output", &["true or false"]),
        // Beside the definition.
        (json!({ "started": "yes" }), "started", &["true or false"]),
        (json!({ "pause_note": "x".repeat(1_001) }), "pause_note", &["1000"]),
        (json!({ "pause_note": "why", "started": true }), "pause_note", &["started"]),
        (json!({ "crom": "* * * * * ?" }), "crom", &["cron"]),
    ]
}

async fn every_field_of_a_task(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let good = api.make_task(&app, "good", "tick", json!({ "started": false })).await;
    let other = api.make_task(&app, "other", "tick", json!({ "started": false })).await;
    let (before, shown) = (picture(&world).await, api.task(other).await);
    let mut wrong = wrong_fields_of_a_task();
    // Parameters may be any JSON; of every other field at least its kind can be wrong.
    for field in TaskSpec::field_names().filter(|field| *field != "params") {
        let is_tried = |name: &str| name.split('[').next() == Some(field);
        if !wrong.iter().any(|(_, name, _)| is_tried(name)) {
            wrong.push((json!({ field: { "wrong": true } }), field, &["allowed"]));
        }
    }
    let edit = format!("/tasks/{other}");
    for (fields, field, words) in &wrong {
        let body = task(&app, fields.clone()).unwrap();
        for (method, path, body) in [(Method::POST, "/tasks", &body), (Method::PATCH, edit.as_str(), fields)] {
            let errors = api.refused(400, method.clone(), path, body).await;
            let named: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
            assert_eq!(named, [*field], "{method} {fields}: {errors:?}");
            let message = &errors[0].1;
            assert!(words.iter().all(|word| message.contains(word)), "{method} {fields}: no {words:?} in {message:?}");
        }
    }
    for field in ["tenant", "app", "name", "handler"] {
        let mut body = task(&app, json!({})).unwrap();
        body.as_object_mut().unwrap().remove(field);
        let errors = api.refused(400, Method::POST, "/tasks", &body).await;
        assert!(errors.len() == 1 && errors[0].0 == field && errors[0].1.contains("required"), "{errors:?}");
    }
    several_at_once(&api, &app, other).await;
    assert_eq!(picture(&world).await, before, "a refused request wrote something");
    assert_eq!(api.task(other).await, shown);
    assert_eq!(api.task(good).await["revision"], 1);
    world.end_well().await;
}

async fn several_at_once(api: &Api, app: &App, other: i64) {
    // Of the wrong kind, out of their range, unknown, missing: all in one answer.
    let fields = json!({
        "handler": 7, "priority": 12, "routing": "sideways", "timeout_ms": -1, "retry_on": ["mondays"], "crom": "x",
        "time_zone": "Mars/Olympus", "cron": "0 0 25 * * ?", "started": "yes", "tags": "gpu",
    });
    let mut expected: Vec<&str> = vec![
        "handler",
        "priority",
        "routing",
        "timeout_ms",
        "retry_on[0]",
        "crom",
        "time_zone",
        "cron",
        "started",
        "tags",
    ];
    let named = |errors: &[(String, String)]| -> Vec<String> {
        let mut named: Vec<String> = errors.iter().map(|(field, _)| field.clone()).collect();
        named.sort_unstable();
        named
    };
    expected.sort_unstable();
    let body = task(app, fields.clone()).unwrap();
    let errors = api.refused(400, Method::POST, "/tasks", &body).await;
    assert_eq!(named(&errors), expected, "{errors:?}");
    let errors = api.refused(400, Method::PATCH, &format!("/tasks/{other}"), &fields).await;
    assert_eq!(named(&errors), expected, "{errors:?}");
    let errors = api.refused(400, Method::POST, "/tasks", &json!({ "priority": 0, "app": 5 })).await;
    assert_eq!(named(&errors), ["app", "handler", "name", "priority", "tenant"], "{errors:?}");
    let moved = json!({ "tenant": "finance", "app": "ledger", "priority": 0 });
    let errors = api.refused(400, Method::PATCH, &format!("/tasks/{other}"), &moved).await;
    assert_eq!(named(&errors), ["app", "priority", "tenant"], "{errors:?}");
}
