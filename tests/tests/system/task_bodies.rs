//! What an edit of a task keeps: `PATCH` changes the fields that it names, `PUT` wants all of them, and what `GET`
//! answered can be sent back.

use carillon_tests::{Kind, World};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(an_edit_loses_nothing: sqlite mariadb postgres);
scenario!(null_puts_a_field_back: sqlite);

/// What one edit moves in the answer beside the field itself.
const MOVES: [&str; 3] = ["revision", "updated_at", "written_until"];

/// A task without what an edit moves, and without these.
fn kept(task: &Value, without: &[&str]) -> Value {
    let mut kept = task.clone();
    for name in MOVES.iter().chain(without) {
        kept.as_object_mut().unwrap().remove(*name);
    }
    kept
}

/// A task that has decided much.
fn decided() -> Value {
    json!({
        "cron": "0 0 3 * * ?", "time_zone": "Asia/Shanghai", "description": "closes the books", "params": "{\"depth\":3}",
        "priority": 9, "timeout_ms": 60_000, "max_retries": 8, "retry_on": ["not_sent"], "tags": ["gpu"],
        "block_strategy": "serial", "block_scope": "app", "delivery": "at_most_once", "started": true,
    })
}

async fn an_edit_loses_nothing(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "ledger").await;
    let task = api.make_task(&app, "close-books", "invoice", decided()).await;
    let path = format!("/tasks/{task}");

    // One field by PATCH.
    let first = api.task(task).await;
    let answer = api.patch(&path, json!({ "max_retries": 3 })).await;
    assert_eq!(answer["task"]["max_retries"], 3);
    assert_eq!(kept(&answer["task"], &["max_retries"]), kept(&first, &["max_retries"]));

    // What GET answered, with one field changed, by PUT.
    let mut whole = api.task(task).await;
    whole["timeout_ms"] = json!(90_000);
    let answer = api.put(&path, whole.clone()).await;
    assert_eq!(kept(&answer["task"], &[]), kept(&whole, &[]));

    // The same again is stale: its revision is no longer current.
    let stale = api.expect(409, Method::PUT, &path, Some(&whole)).await;
    assert!(stale["detail"].as_str().unwrap().contains("revision"), "{stale}");

    // A body that lacks fields names them all, and changes nothing.
    let before = api.task(task).await;
    let few = json!({ "name": "close-books", "handler": "invoice", "max_retries": 1 });
    let errors = api.refused(400, Method::PUT, &path, &few).await;
    let named: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
    assert!(named.contains(&"cron") && named.contains(&"priority") && !named.contains(&"name"), "{named:?}");
    assert!(errors.iter().all(|(_, message)| message.contains("required")), "{errors:?}");

    // A slip in a name is refused, whichever way.
    let mut slip = before.clone();
    slip["max_retrys"] = json!(1);
    for (method, body) in [(Method::PUT, slip), (Method::PATCH, json!({ "max_retrys": 1 }))] {
        let errors = api.refused(400, method, &path, &body).await;
        assert!(errors.len() == 1 && errors[0].1.contains("`max_retries`"), "{errors:?}");
    }
    // So is what another task answered.
    let other = api.make_task(&app, "other", "invoice", json!({ "started": false })).await;
    let errors = api.refused(400, Method::PUT, &path, &api.task(other).await).await;
    assert_eq!(errors[0].0, "id", "{errors:?}");
    assert_eq!(api.task(task).await, before);
    world.end_well().await;
}

async fn null_puts_a_field_back(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[("schedulers.time_zone", "Europe/Berlin")]).await;
    let api = world.api();
    let app = api.make_app("retail", "ledger").await;
    let task = api.make_task(&app, "close-books", "invoice", decided()).await;
    let path = format!("/tasks/{task}");
    let back = json!({ "priority": null, "retry_on": null, "time_zone": null, "params": null, "tags": null });
    let shown = api.patch(&path, back).await["task"].clone();
    assert_eq!((&shown["priority"], &shown["params"], &shown["tags"]), (&json!(5), &json!(""), &json!([])));
    assert_eq!(shown["retry_on"], json!(["failed", "timed_out", "lost", "not_sent"]));
    assert_eq!(shown["time_zone"], "Europe/Berlin", "the node's own default");
    let errors = api.refused(400, Method::PATCH, &path, &json!({ "name": null, "handler": null })).await;
    assert_eq!(errors.len(), 2, "{errors:?}");

    api.pause(task, "moving house").await;
    let shown = api.patch(&path, json!({ "description": "still paused" })).await["task"].clone();
    assert_eq!(shown["state"], "paused");
    let shown = api.patch(&path, json!({ "pause_note": null })).await["task"].clone();
    assert_eq!((&shown["state"], &shown["pause_note"]), (&json!("stopped"), &Value::Null));
    let shown = api.patch(&path, json!({ "started": true })).await["task"].clone();
    assert_eq!(shown["state"], "started");
    assert_eq!(api.patch(&path, json!({ "started": null })).await["task"]["state"], "stopped");
    world.end_well().await;
}
