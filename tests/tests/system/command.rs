//! The command against a node with an executor: running, following, killing.

use carillon_tests::node::TOKEN;
use carillon_tests::process::Process;
use carillon_tests::wait::when;
use carillon_tests::{Kind, World, await_until, command, folder};
use reqwest::Method;
use serde_json::{Value, json};
use std::process::{Command, Output};

scenario!(a_run_is_followed_to_its_end: sqlite mariadb);
scenario!(a_run_is_waited_for: sqlite mariadb);
scenario!(a_run_is_killed: sqlite);
scenario!(refusals_are_documents: sqlite);
scenario!(executors_are_weighed: sqlite);

fn carillon(world: &World, args: &[&str]) -> Command {
    let mut command = command::carillon();
    command.args(args).env("CARILLON_URL", &world.node_urls()[0]).env("CARILLON_TOKEN", TOKEN).env("TZ", "UTC");
    command
}

async fn done(world: &World, args: &[&str]) -> Output {
    let mut command = carillon(world, args);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn a_run_is_followed_to_its_end(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    api.make_task(&app, "good", "echo", json!({})).await;
    api.make_task(&app, "bad", "fail", json!({ "max_retries": 0 })).await;

    let log = folder::fresh("follow").join("follow.log");
    let all = Process::start("follow", carillon(&world, &["logs", "list", "--follow", "--tenant", "retail"]), &log);
    let ran = done(&world, &["run", "retail/orders/good", "--params", "hi", "--follow"]).await;
    let out = text(&ran.stdout);
    assert!(ran.status.success(), "{out}{}", text(&ran.stderr));
    let states: Vec<_> = out.lines().filter(|line| line.starts_with("== ")).collect();
    assert!(states.last().unwrap().ends_with(" succeeded (attempt 1)"), "{out}");
    let ran = done(&world, &["run", "retail/orders/bad", "--follow", "--output", "json"]).await;
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran.stdout));
    assert!(text(&ran.stderr).starts_with("carillon: the run ended as failed ("), "{}", text(&ran.stderr));
    // Lines of JSON, the last state last; pages of output have no status.
    let lines: Vec<Value> = text(&ran.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.iter().rfind(|line| line["status"].is_string());
    assert_eq!(last.unwrap()["status"], "failed");

    await_until("both ends are told", 30, || async {
        let told = all.log();
        let has = |status: &str, task: &str| {
            told.lines().any(|line| line.contains(&format!("  {status}")) && line.contains(task))
        };
        when(has("succeeded ", "  retail/orders/good  late ") && has("failed ", "  retail/orders/bad  late "))
    })
    .await;
    world.settle_and_check().await;
}

async fn a_run_is_waited_for(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let good = api.make_task(&app, "good", "echo", json!({})).await;
    api.make_task(&app, "bad", "fail", json!({ "max_retries": 0 })).await;
    let long = json!({ "params": r#"{"ms":60000}"#, "max_retries": 0 });
    let long = api.make_task(&app, "long", "overlap", long).await;

    let ran = done(&world, &["run", "retail/orders/good", "--params", "hi", "--wait"]).await;
    let out = text(&ran.stdout);
    assert!(ran.status.success() && out.contains(" has ended: succeeded, attempts: 1\n"), "{ran:?}");
    assert!(out.ends_with("hi\n"), "{out}");
    let ran = done(&world, &["tasks", "run", "retail/orders/bad", "--wait", "--output", "json"]).await;
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let ended: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(ended["status"], "failed");
    let ran = done(&world, &["run", "retail/orders/long", "--wait", "--timeout", "1"]).await;
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    assert!(text(&ran.stderr).contains(" goes on: it has not ended in time"), "{ran:?}");

    // What lies under it.
    let path = format!("/tasks/{good}/run?wait_ms=30000");
    let answer = api.expect(202, Method::POST, &path, Some(&json!({}))).await;
    assert_eq!((&answer["run"]["id"], &answer["run"]["status"]), (&answer["log"], &json!("succeeded")), "{answer}");
    let answer = api.expect(202, Method::POST, &format!("/tasks/{long}/run?wait_ms=0"), Some(&json!({}))).await;
    assert_ne!(answer["run"]["status"], "succeeded", "{answer}");
    let wait = async {
        let ended = api.get(&format!("/task-logs/{}?wait_ms=60000", answer["log"].as_str().unwrap())).await;
        assert_eq!(ended["status"], "cancelled", "{ended}");
    };
    let stop = async {
        for visits in 1..=2 {
            await_until("they run", 30, || async { when(world.visits(long).len() >= visits) }).await;
        }
        api.stop(long).await;
        for log in world.database.logs(&format!("task_id = {long} AND status < 10")).await {
            api.cancel(log.id).await;
        }
    };
    tokio::join!(wait, stop);
    api.expect(400, Method::POST, &format!("/tasks/{good}/run?wait_ms=60001"), Some(&json!({}))).await;

    // Who may not see the log may not wait for it, and starts nothing.
    let ann = api.make_person("ann", Some("retail")).await;
    api.make_role("runs", Some("retail"), &["tasks.run"]).await;
    api.grant(&ann, "runs", Some("retail")).await;
    let count = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {good}");
    let before = world.database.number(&count).await;
    ann.api.refused(403, Method::POST, &path, &json!({})).await;
    assert_eq!(world.database.number(&count).await, before);
    ann.api.expect(202, Method::POST, &format!("/tasks/{good}/run"), Some(&json!({}))).await;
    world.settle_and_check().await;
}

async fn refusals_are_documents(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    world.api().make_app("retail", "orders").await;
    let args = ["tasks", "create", "retail/orders/x", "--set", "priority=10", "--output", "json"];
    let refused = done(&world, &args).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let document: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!((&document["code"], &document["status"]), (&json!("invalid_fields"), &json!(400)), "{document}");
    let error = &document["errors"][0];
    assert_eq!((&error["code"], &error["params"]), (&json!("out_of_range"), &json!({ "least": 1, "most": 9 })));
    let refused = done(&world, &["tasks", "show", "249536630967242752", "--output", "json"]).await;
    let document: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!((&document["code"], document["params"].is_object()), (&json!("not_found"), true), "{document}");
}

async fn a_run_is_killed(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "long", "overlap", json!({ "params": r#"{"ms":60000}"#, "max_retries": 0 })).await;
    let ran = done(&world, &["run", "retail/orders/long", "--output", "json"]).await;
    let started: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let log = started["log"].as_str().unwrap();
    await_until("it runs", 30, || async { when(world.visits(task).len() == 1) }).await;
    let killed = done(&world, &["kill", log]).await;
    assert!(text(&killed.stdout).starts_with(&format!("run {log} is ")), "{killed:?}");
    let ran = done(&world, &["logs", "show", log, "--follow"]).await;
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(text(&ran.stderr), "carillon: the run ended as cancelled (cancelled_manually)\n");
}

async fn executors_are_weighed(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let app = world.api().make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let address = format!("http://127.0.0.1:{}", executor.port);
    await_until("the node has heard of it", 30, || async {
        when(done(&world, &["executors", "show", &address]).await.status.success())
    })
    .await;
    let edited = done(&world, &["executors", "edit", &address, "--disable", "--weight", "3", "--output", "json"]).await;
    let edited: Value = serde_json::from_slice(&edited.stdout).unwrap();
    assert_eq!((&edited["disabled"], &edited["weight"]), (&json!(true), &json!(3)));
    let table = text(&done(&world, &["executors", "list", "--app", "orders"]).await.stdout);
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with(&format!("retail  orders  {address}  disabled  3 ")), "{table}");
}
