//! Each command, as a table and as JSON.

use super::installation::Installation;
use serde_json::{Value, json};

/// The words of a table's line.
fn cells(table: &str, line: usize) -> Vec<&str> {
    table.lines().nth(line).unwrap().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tenants() {
    let here = Installation::new().await;
    let made = here.json(&["tenants", "create", "bank", "--description", "零售银行"]);
    assert_eq!(made, here.get("/tenants/bank").await);
    let table = here.carillon(&["tenants", "list"]);
    assert_eq!(cells(&table, 0), ["NAME", "DESCRIPTION", "CREATED", "ID"]);
    assert_eq!(cells(&table, 1)[..2], ["bank", "零售银行"]);
    // Times are in the caller's time zone.
    assert!(cells(&table, 1)[2].ends_with(" +08:00"), "{table}");
    assert_eq!(cells(&table, 2)[..2], ["retail", "-"]);
    assert_eq!(here.json(&["tenants", "list"]), here.get("/tenants").await["items"]);
    let sheet = here.carillon(&["tenants", "show", "bank"]);
    assert!(sheet.contains("\nname            bank\n") && sheet.contains("\nrevision        1\n"), "{sheet}");
    assert_eq!(here.json(&["tenants", "edit", "bank", "--description", "b", "--revision", "1"])["revision"], 2);
    let ran = here.fails(&["tenants", "edit", "bank", "--description", "c", "--revision", "1"]);
    assert!(ran.code == 1 && ran.err.contains("revision 1 is not current (2 is)"), "{}", ran.err);
    assert_eq!(here.carillon(&["tenants", "delete", "bank"]), "tenant `bank` deleted\n");
    let ran = here.fails(&["tenants", "show", "bank"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (1, "", "carillon: there is no tenant `bank`\n"));
    assert_eq!(here.fails(&["tenants", "show"]).code, 2);
}

#[tokio::test]
async fn a_list_goes_through_all_pages_up_to_its_limit() {
    let here = Installation::new().await;
    let file: Vec<_> = (0..1_003).map(|n| json!({ "name": format!("task {n:04}"), "handler": "h" })).collect();
    here.post("/tasks/apply", &json!({ "version": 1, "tenant": "retail", "app": "orders", "task": file })).await;
    assert_eq!(here.json(&["tasks", "list", "--limit", "1003"]).as_array().unwrap().len(), 1_003);
    let some = here.json(&["tasks", "list", "--limit", "501"]);
    assert_eq!((names(&some)[0], names(&some).len()), ("task 0000", 501));
    let mut command = here.stranger();
    command.args(["tasks", "list"]).env("CARILLON_TOKEN", super::installation::TOKEN);
    let ran = super::installation::run(&mut command, "");
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1_001));
    assert_eq!(ran.err, "carillon: there may be more than these 1000; use --limit to show more\n");
}

#[tokio::test]
async fn a_role_is_found_beyond_the_first_page() {
    let here = Installation::new().await;
    for number in 0..60 {
        let role = json!({ "name": format!("role {number}"), "permissions": ["tasks.read"] });
        here.post("/roles", &role).await;
    }
    assert_eq!(here.json(&["roles", "list"]).as_array().unwrap().len(), 4 + 60);
    assert_eq!(names(&here.json(&["roles", "list", "--limit", "5"]))[4], "role 0");
    assert_eq!(here.json(&["roles", "show", "role 59"])["name"], "role 59");
}

#[tokio::test]
async fn apps() {
    let here = Installation::new().await;
    let made = here.json(&["apps", "create", "retail/stock", "--description", "d"]);
    assert_eq!(made["key"]["secret"].as_str().unwrap().len(), 64);
    assert_eq!(names(&here.json(&["apps", "list", "--tenant", "retail"])), ["orders", "other", "stock"]);
    assert_eq!(cells(&here.carillon(&["apps", "list"]), 1)[..3], ["retail", "orders", "0"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(here.json(&["apps", "edit", "retail/stock", "--max-concurrent", "7"])["max_concurrent"], 7);
    let shown = here.json(&["apps", "show", id]);
    assert_eq!((&shown["description"], &shown["max_concurrent"]), (&json!("d"), &json!(7)));
    let ran = here.fails(&["apps", "edit", id, "--max-concurrent", "7000000"]);
    assert!(ran.code == 1 && ran.err.contains("max_concurrent: 0 (no bound) to 1000000 are allowed"), "{}", ran.err);
    assert_eq!(here.json_or_nothing(&["apps", "delete", id]), "");
    assert_eq!(here.fails(&["apps", "show", "retail/stock"]).err, "carillon: there is no app `retail/stock`\n");
    assert!(here.fails(&["apps", "show", "stock"]).err.contains("write its id or tenant/name"));
}

#[tokio::test]
async fn tasks_and_runs() {
    let here = Installation::new().await;
    let task =
        json!({ "tenant": "retail", "app": "orders", "name": "月报 two", "handler": "h", "cron": "0 0 2 * * ?" });
    let id = here.post("/tasks", &task).await["id"].as_str().unwrap().to_owned();
    here.post("/tasks", &json!({ "tenant": "retail", "app": "other", "name": "月报 two", "handler": "h" })).await;
    let name = "retail/orders/月报 two";
    assert_eq!(here.json(&["tasks", "show", name]), here.get(&format!("/tasks/{id}")).await);
    assert_eq!(here.json(&["tasks", "start", name])["task"]["state"], "started");
    assert_eq!(here.carillon(&["tasks", "stop", name]), "task `retail/orders/月报 two` is stopped\n");
    assert_eq!(here.json(&["tasks", "pause", &id, "--note", "why"])["task"]["pause_note"], "why");
    let table = here.carillon(&["tasks", "list", "--app", "orders"]);
    assert_eq!(cells(&table, 1)[..6], ["retail", "orders", "月报 two", "paused", "0 0 2 * * ? UTC", "-"]);
    let preview = here.json(&["tasks", "preview", name, "--count", "3", "--after", "2026-01-01T00:00:00Z"]);
    assert_eq!(preview[2]["fire_time"], 1_767_405_600_000_i64);
    let table = here.carillon(&["tasks", "preview", name, "--count", "1", "--after", "2026-01-01T08:00"]);
    assert_eq!(cells(&table, 1)[0], "2026-01-01 10:00:00 +08:00");

    let at = here.json(&["tasks", "preview", name, "--count", "1"])[0]["fire_time"].to_string();
    let skipped = here.json(&["tasks", "skip", name, "--at", &at, "--note", "holidays"]);
    assert_eq!((&skipped["status"], &skipped["message"]), (&json!("cancelled"), &json!("holidays")));
    assert_eq!(
        here.carillon(&["tasks", "restore", name, "--at", &at]),
        "task `retail/orders/月报 two` will fire then\n"
    );
    let run = ["run", name, "--params", "p", "--at", "+1h", "--idempotency-key", "k", "--priority", "9"];
    let started = here.json(&run);
    assert_eq!(started["repeated"], false);
    let log = started["log"].as_str().unwrap();
    assert!(here.carillon(&run).starts_with(&format!("run {log} was started before, for 20")));
    let shown = here.json(&["logs", "show", log]);
    assert_eq!((&shown["params"], &shown["priority"], &shown["trigger"]), (&json!("p"), &json!(9), &json!("manual")));
    assert_eq!(here.json(&["logs", "list", "--task", name])[0]["id"], log);
    let table = here.carillon(&["logs", "list", "--tenant", "retail", "--limit", "1"]);
    assert_eq!(cells(&table, 1)[1..5], [name, "init", "-", "-"], "{table}");
    assert_eq!(here.json(&["logs", "list", "--until", "now"]), json!([]));
    assert_eq!(here.json(&["logs", "list", "--order", "oldest"])[0]["id"], log);
    assert!(here.fails(&["logs", "list", "--order", "best"]).err.contains("expected `newest` or `oldest`"));
    assert_eq!(here.carillon(&["kill", log]), format!("run {log} is cancelled\n"));
    let ran = here.fails(&["logs", "cancel", log]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "carillon: the run has ended (cancelled)\n"));
    assert_eq!(here.json(&["logs", "list", "--status", "cancelled"]).as_array().unwrap().len(), 1);
    assert!(here.fails(&["logs", "list", "--status", "done"]).err.contains("`done` is not one of init, queued,"));
    // OutboxRound to its end, which is none that was hoped for.
    let ran = here.fails(&["logs", "show", log, "--follow"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "carillon: the run ended as cancelled (cancelled_manually)\n"));
    assert!(ran.out.starts_with("== ") && ran.out.contains(" cancelled (attempt 0)"), "{}", ran.out);

    assert_eq!(here.carillon(&["tasks", "delete", name]), "task `retail/orders/月报 two` deleted\n");
    assert_eq!(here.fails(&["tasks", "show", name]).err, "carillon: there is no task `retail/orders/月报 two`\n");
    assert!(here.fails(&["tasks", "show", "月报 two"]).err.contains("write its id or tenant/app/name"));
    assert!(here.fails(&["run", name, "--at", "tomorrow"]).err.contains("`tomorrow` is not a time"));
}

#[tokio::test]
async fn calendars_backfills_and_windows() {
    let here = Installation::new().await;
    here.write("cn.toml", "excluded_days = [\"2026-10-01\"]\ndescription = \"China\"\n");
    let put = here.json(&["calendars", "put", "retail/c n", "--file", "cn.toml"]);
    assert_eq!((&put["calendar"]["version"], &put["calendar"]["description"]), (&json!(1), &json!("China")));
    here.write("cn.json", r#"{"excluded_weekdays": ["sat"]}"#);
    here.carillon(&["calendars", "put", "retail/c n", "--file", "cn.json", "--revision", "1"]);
    assert_eq!(here.fails(&["calendars", "put", "retail/c n", "--file", "cn.json", "--revision", "1"]).code, 1);
    assert_eq!(
        here.json(&["calendars", "show", "retail/c n", "--version", "1"])["excluded_days"],
        json!(["2026-10-01"])
    );
    assert!(here.carillon(&["calendars", "show", "retail/c n"]).contains("excluded_weekdays  sat\n"));
    assert_eq!(cells(&here.carillon(&["calendars", "list", "retail"]), 1)[..2], ["c n", "2"]);
    here.write("bad.json", r#"{"excluded_weekdays": ["day"]}"#);
    assert!(here.fails(&["calendars", "put", "retail/c n", "--file", "bad.json"]).err.contains("excluded_weekdays"));
    assert_eq!(here.carillon(&["calendars", "delete", "retail/c n"]), "calendar `retail/c n` deleted\n");
    assert_eq!(here.json(&["calendars", "list", "retail"]), json!([]));

    let task = json!({ "tenant": "retail", "app": "orders", "name": "t", "handler": "h", "cron": "0 0 2 * * ?" });
    here.post("/tasks", &task).await;
    let create = ["backfills", "create", "retail/orders/t", "--from", "-3d", "--until", "-1h", "--max-concurrent", "2"];
    let made = here.json(&create);
    assert_eq!((&made["status"], &made["max_concurrent"]), (&json!("open"), &json!(2)));
    let id = made["id"].as_str().unwrap();
    assert_eq!(cells(&here.carillon(&["backfills", "list", "retail/orders/t"]), 1)[..2], [id, "open"]);
    here.carillon(&["backfills", "cancel", "retail/orders/t", id]);
    assert_eq!(here.json(&["backfills", "list", "retail/orders/t"])[0]["status"], "cancelled");

    let create = ["maintenance", "create", "retail", "--ends", "+2h", "--action", "postpone", "--note", "n"];
    let made = here.json(&create);
    let id = made["id"].as_str().unwrap();
    let table = here.carillon(&["maintenance", "list", "retail"]);
    assert_eq!((cells(&table, 1)[0], &cells(&table, 1)[3..]), (id, &["postpone", "n"][..]));
    assert_eq!(here.carillon(&["maintenance", "delete", "retail", id]), format!("window {id} deleted\n"));
    assert_eq!(here.json(&["maintenance", "list", "retail"]), json!([]));
}

#[tokio::test]
async fn nodes_executors_and_the_rest_of_the_api() {
    let here = Installation::new().await;
    let nodes = here.json(&["nodes", "list"]);
    assert_eq!((nodes.as_array().unwrap().len(), &nodes[0]["online"]), (1, &json!(true)));
    assert_eq!(cells(&here.carillon(&["nodes", "list"]), 1)[2..4], ["yes", env!("CARGO_PKG_VERSION")]);
    let settings = here.json(&["nodes", "settings"]);
    assert!(names(&settings).contains(&"schedulers.time_zone"), "{settings}");
    assert_eq!(here.json(&["executors", "list"]), json!([]));
    assert!(here.carillon(&["executors", "list"]).starts_with("TENANT  APP  ADDRESS  STATE"));
    let ran = here.fails(&["executors", "edit", "http://10.0.0.1:1", "--disable"]);
    assert_eq!(ran.err, "carillon: there is no executor `http://10.0.0.1:1`\n");
    assert_eq!(here.fails(&["executors", "edit", "7", "--disable", "--enable"]).code, 2);
    assert_eq!(here.json(&["api", "get", "/apps?name=orders&limit=1"])["items"][0]["name"], "orders");
    here.write("body.json", r#"{"name": "bank"}"#);
    assert_eq!(here.json(&["api", "POST", "tenants", "--file", "body.json"])["name"], "bank");
    assert_eq!(here.fails(&["api", "DELETE", "/tenants/nobody"]).code, 1);
    assert_eq!(here.fails(&["api", "PATCH", "/tenants"]).code, 2);
}

#[tokio::test]
async fn keys_quotas_and_statistics() {
    let here = Installation::new().await;
    let made = here.json(&["keys", "create", "retail/orders", "--note", "second"]);
    assert_eq!(made["secret"].as_str().unwrap().len(), 64);
    let id = made["id"].as_str().unwrap();
    let table = here.carillon(&["keys", "list", "retail/orders"]);
    let first = cells(&table, 1)[..4].to_vec();
    assert_eq!((first, table.lines().count()), (vec![id, "signing", "valid", "second"], 3), "{table}");
    assert_eq!(here.carillon(&["keys", "revoke", id]), format!("key {id} revoked\n"));
    here.json(&["keys", "rotate", "retail/orders", "--overlap-ms", "60000"]);
    let keys = here.json(&["keys", "list", "retail/orders"]);
    let states: Vec<_> = keys.as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["valid", "valid", "revoked"], "those that count first");
    assert!(keys[1]["expires_at"].is_i64() && keys[0]["expires_at"].is_null(), "{keys}");
    here.write("token.txt", "the-token-of-our-executors\n");
    let token = ["keys", "create", "retail/orders", "--kind", "token", "--secret-file"];
    assert_eq!(here.json(&[&token[..], &["token.txt"]].concat())["secret"], "the-token-of-our-executors");
    here.write("token.txt", "default_token");
    assert!(here.fails(&[&token[..], &["token.txt"]].concat()).err.contains("published"));
    assert_eq!(here.json(&["apps", "edit", "retail/orders", "--sign-method", "MD5"])["sign_method"], "MD5");

    assert_eq!(here.json(&["quotas", "set", "retail", "--max-tasks", "9"])["max_tasks"], 9);
    let set = here.json(&["quotas", "set", "retail", "--max-fires-per-minute", "70", "--retain-days", "3"]);
    assert_eq!(
        (&set["max_tasks"], &set["max_fires_per_minute"], &set["retain_days"]),
        (&json!(9), &json!(70), &json!(3))
    );
    assert!(here.carillon(&["quotas", "show", "retail"]).contains("\nused.tasks              0\n"));
    assert_eq!(here.fails(&["quotas", "set", "retail", "--max-tasks", "-5"]).code, 2);

    let figures = here.json(&["statistics", "--tenant", "retail", "--step", "1d", "--from", "-3d"]);
    assert_eq!((&figures["total"]["fires"], &figures["step_ms"]), (&json!(0), &json!(86_400_000)));
    let table = here.carillon(&["statistics"]);
    assert_eq!(
        (cells(&table, 0)[0], cells(&table, 1)[1..].to_vec()),
        ("FROM", vec!["0", "0", "0", "0", "0", "0", "0", "-", "-"])
    );
    assert_eq!(here.fails(&["statistics", "--step", "2h"]).code, 1);
}

#[tokio::test]
async fn an_edit_changes_the_named_fields_and_tells_of_unknown_handlers() {
    let here = Installation::new().await;
    let name = "retail/orders/close books";
    here.carillon(&[
        "tasks",
        "create",
        name,
        "--cron",
        "0 0 2 * * ?",
        "--time-zone",
        "Asia/Shanghai",
        "--handler",
        "books",
    ]);
    let unknown =
        "carillon: no online executor of retail/orders has the handler `books`; runs wait until one registers it\n";
    let edited = here.tasks(&["edit", name, "--cron", "0 0 3 * * ?", "--set", "max_retries=2"]);
    assert_eq!((edited.code, edited.out.as_str()), (0, "task `retail/orders/close books` changed\n"));
    assert_eq!(edited.err, unknown);
    let task = here.json(&["tasks", "show", name]);
    let shown = ["cron", "time_zone", "handler", "max_retries"].map(|field| task[field].clone());
    assert_eq!(shown, [json!("0 0 3 * * ?"), json!("Asia/Shanghai"), json!("books"), json!(2)]);
    here.write("tasks.json", &here.carillon(&["tasks", "export", "--format", "json"]));
    assert_eq!(here.tasks(&["apply", "-f", "tasks.json", "--dry-run"]).err, unknown);

    assert!(here.tasks(&["edit", name]).err.contains("nothing to change; name a field"));
    let stale = here.tasks(&["edit", name, "--params", "x", "--revision", "1"]);
    assert!(stale.code == 1 && stale.err.contains("close books"), "{}", stale.err);
    let wrong = here.tasks(&["edit", name, "--set", "max_retries=-1"]);
    assert!(wrong.code == 1 && wrong.err.contains("\n  max_retries: "), "{}", wrong.err);
    assert_eq!(here.json(&["tasks", "show", name])["params"], "");
}

#[tokio::test]
async fn previews_tell_of_fires_that_will_not_come() {
    let here = Installation::new().await;
    let task = json!({ "tenant": "retail", "app": "orders", "name": "t", "handler": "h", "cron": "0 0 2 * * ?" });
    here.post("/tasks", &task).await;
    let first = || here.json(&["tasks", "preview", "retail/orders/t", "--count", "1"])[0].clone();
    let reason = |line: Value| (line["kind"].as_str().unwrap().to_owned(), line["reason"].clone());
    assert_eq!(reason(first()), ("skipped".to_owned(), json!("stopped")));
    here.carillon(&["tasks", "pause", "retail/orders/t", "--note", "why"]);
    assert_eq!(reason(first()), ("skipped".to_owned(), json!("paused")));
    here.carillon(&["tasks", "start", "retail/orders/t"]);
    assert_eq!(reason(first()), ("fires".to_owned(), Value::Null));

    let at = first()["fire_time"].as_i64().unwrap();
    for action in ["postpone", "skip"] {
        let window = json!({ "starts_at": at - 1_000, "ends_at": at + 60_000, "action": action, "note": "n" });
        let made = here.post("/tenants/retail/maintenance", &window).await;
        let line = first();
        if action == "skip" {
            assert_eq!(reason(line), ("skipped".to_owned(), json!("maintenance")));
        } else {
            assert_eq!((&line["due_time"], &line["note"]["what"]), (&json!(at + 60_000), &json!("postponed")));
        }
        here.carillon(&["maintenance", "delete", "retail", made["id"].as_str().unwrap()]);
    }
    here.tasks(&["edit", "retail/orders/t", "--set", "maintenance=ignore"]);
    here.post("/tenants/retail/maintenance", &json!({ "starts_at": at - 1_000, "ends_at": at + 60_000, "note": "n" }))
        .await;
    assert_eq!(reason(first()), ("fires".to_owned(), Value::Null), "the task ignores windows");
}
