//! Bad input to the management API: the right status, a clear message, nothing half-written.

use carillon_tests::{Api, App, Kind, World};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(bad_input_to_the_api: sqlite mariadb postgres);

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
    let bare = reqwest::get(format!("{url}/api/v1/tasks")).await.unwrap();
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
        refused(api, 400, Method::PUT, &format!("/tasks/{good}"), Some(json!({ "cron": cron })), words).await;
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
    refused(api, 404, Method::PUT, "/tasks/1", Some(json!({ "params": "x" })), &[]).await;
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
    let sent = reqwest::Client::new()
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
    assert_eq!(reqwest::get(format!("{url}/readyz")).await.unwrap().status(), 200, "the node goes on");
}
