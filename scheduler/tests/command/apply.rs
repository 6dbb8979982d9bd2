//! Creating, changing and leaving alone.

use super::installation::{Installation, TOKEN};
use serde_json::{Value, json};

const FILE: &str = r#"
version = 1
tenant = "retail"
app = "orders"

[[task]]
name = "hourly"
handler = "count"
cron = "0 0 * * * ?"
started = true

[[task]]
name = "after it"
handler = "report"
parents = [{ task = "hourly", on = "failure" }]
started = true

[[task]]
name = "by hand"
handler = "clean"
"#;

async fn task(at: &Installation, name: &str) -> Value {
    let found = at.get(&format!("/tasks?name={name}")).await;
    found["items"][0].clone()
}

#[tokio::test]
async fn a_file_is_applied_and_then_says_what_is() {
    let here = Installation::new().await;
    here.write("tasks.toml", FILE);

    let expected = "\
+ retail/orders/hourly    created, started
+ retail/orders/after it  created, started
+ retail/orders/by hand   created, stopped
";
    let out = here.done(&["apply", "-f", "tasks.toml", "--dry-run"]);
    assert_eq!(out, format!("{expected}dry run: nothing was changed\n"));
    assert_eq!(here.names().await, [""; 0]);
    let different = here.tasks(&["apply", "-f", "tasks.toml", "--dry-run", "--exit-code"]);
    assert_eq!(different.code, 3, "{}", different.err);

    let out = here.done(&["apply", "-f", "tasks.toml"]);
    assert_eq!(out, format!("{expected}3 created, 0 changed, 0 unchanged\n"));
    assert_eq!(here.names().await, ["after it", "by hand", "hourly"]);
    let before = task(&here, "hourly").await;
    assert_eq!(before["started"], true);
    assert!(before["next_fire_at"].is_i64());
    assert_eq!(here.done(&["apply", "-f", "tasks.toml"]), "= 3 unchanged\n0 created, 0 changed, 3 unchanged\n");
    assert_eq!(task(&here, "hourly").await["revision"], before["revision"]);
}

#[tokio::test]
async fn a_changed_file_changes_what_it_says_and_no_more() {
    let here = Installation::new().await;
    here.write("tasks.toml", FILE);
    here.done(&["apply", "-f", "tasks.toml"]);
    let untouched = task(&here, "by%20hand").await;
    let file = FILE
        .replace(
            "cron = \"0 0 * * * ?\"\nstarted = true",
            "cron = \"0 5 * * * ?\"\nmax_retries = 2\npause_note = \"move\"",
        )
        .replace("\"failure\"", "\"always\"");
    let expected = "\
~ retail/orders/hourly    4 changes
    started: true → false
    pause_note: none → \"move\"
    cron: \"0 0 * * * ?\" → \"0 5 * * * ?\"
    max_retries: 5 → 2
~ retail/orders/after it  1 change
    parents: [{\"on\":\"failure\",\"task\":\"hourly\"}] → [{\"on\":\"always\",\"task\":\"hourly\"}]
= 1 unchanged
";
    let dry = here.tasks_with(&["apply", "-f", "-", "--dry-run"], &file, &[("CARILLON_TOKEN", TOKEN)]);
    assert_eq!((dry.code, dry.out), (0, format!("{expected}dry run: nothing was changed\n")), "{}", dry.err);
    assert_eq!(task(&here, "hourly").await["cron"], "0 0 * * * ?");
    let done = here.tasks_with(&["apply", "-f", "-"], &file, &[("CARILLON_TOKEN", TOKEN)]);
    assert_eq!((done.code, done.out), (0, format!("{expected}0 created, 2 changed, 1 unchanged\n")), "{}", done.err);
    let after = task(&here, "hourly").await;
    assert_eq!((&after["cron"], &after["state"]), (&json!("0 5 * * * ?"), &json!("paused")));
    assert_eq!(task(&here, "by%20hand").await, untouched);

    // What a file no longer says is as it is by default.
    let out = here.done(&["apply", "-f", "tasks.toml", "--output", "json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&answer["changed"], &answer["unchanged"], &answer["dry_run"]), (&json!(2), &json!(1), &json!(false)));
    let changed: Vec<_> =
        answer["tasks"][0]["changes"].as_array().unwrap().iter().map(|c| c["field"].clone()).collect();
    assert_eq!(changed, ["started", "pause_note", "cron", "max_retries"]);
    assert_eq!(answer["tasks"][0]["changes"][3], json!({ "field": "max_retries", "before": 2, "after": 5 }));
    assert_eq!(task(&here, "hourly").await["max_retries"], 5);
}

#[tokio::test]
async fn a_task_of_a_registered_handler_is_one_like_any_other() {
    let here = Installation::new().await;
    let task = json!({ "tenant": "retail", "app": "orders", "name": "hourly", "handler": "count" });
    here.post("/tasks", &task).await;
    here.write("tasks.toml", FILE);
    let out = here.done(&["apply", "-f", "tasks.toml"]);
    assert!(out.ends_with("2 created, 1 changed, 0 unchanged\n"), "{out}");
}

#[tokio::test]
async fn the_file_is_the_body_of_the_api() {
    let here = Installation::new().await;
    let file = json!({ "version": 1, "tenant": "retail", "app": "orders", "task": [
        { "name": "a", "handler": "h", "started": true, "cron": "0 0 0 * * ?" },
    ]});
    let dry = here.post("/tasks/apply?dry_run=true", &file).await;
    assert_eq!((&dry["created"], &dry["tasks"][0]["id"]), (&json!(1), &Value::Null));
    let done = here.post("/tasks/apply", &file).await;
    assert_eq!(done["tasks"][0]["id"], task(&here, "a").await["id"]);
    let export = here.get("/tasks/export?tenant=retail").await;
    assert_eq!(here.post("/tasks/apply", &json!({ "version": 1, "task": export["task"] })).await["unchanged"], 1);
}

#[tokio::test]
async fn tasks_missing_from_the_file_are_shown_and_pruned_only_on_request() {
    let here = Installation::new().await;
    here.write("tasks.toml", FILE);
    here.done(&["apply", "-f", "tasks.toml"]);
    here.done(&["create", "retail/orders/old", "--cron", "0 0 3 * * ?", "--set", "max_retries=2", "--start"]);
    let old = task(&here, "old").await;
    assert_eq!((&old["max_retries"], &old["state"], &old["handler"]), (&json!(2), &json!("started"), &json!("old")));
    let refused = here.refused(&["create", "retail/orders/older", "--set", "max_retrys=2"]);
    assert!(refused.contains("max_retrys"), "{refused}");

    let dry = here.done(&["apply", "-f", "tasks.toml", "--dry-run"]);
    assert!(dry.starts_with("- retail/orders/old  is not in the file; --prune deletes it\n"), "{dry}");
    here.done(&["apply", "-f", "tasks.toml"]);
    assert!(here.names().await.contains(&"old".to_owned()), "deleted without --prune");
    let dry = here.tasks(&["apply", "-f", "tasks.toml", "--prune", "--dry-run", "--exit-code"]);
    assert_eq!((dry.code, dry.out.contains("would be deleted")), (3, true), "{}", dry.out);
    assert!(here.names().await.contains(&"old".to_owned()), "deleted by a dry run");
    let out = here.done(&["apply", "-f", "tasks.toml", "--prune"]);
    assert!(out.starts_with("- retail/orders/old  deleted"), "{out}");
    assert_eq!(here.names().await, ["after it", "by hand", "hourly"]);

    // A file of an app that has no task left.
    here.write("none.toml", "version = 1\ntenant = \"retail\"\napp = \"orders\"\ntask = []\n");
    let out = here.done(&["apply", "-f", "none.toml", "--prune"]);
    assert!(out.contains("- retail/orders/hourly  deleted"), "{out}");
    assert_eq!(here.names().await, [""; 0]);
}
