//! The first start: the schema, the token.

use carillon_tests::{Api, Database, Kind, World, command, folder, now_ms, port, process::Process};
use carillon_tests::{await_until, node::configure, wait::when};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

scenario!(three_nodes_migrate_at_once: mariadb postgres);

async fn three_nodes_migrate_at_once(kind: Kind) {
    let world = World::new(kind).await;
    let nodes = ["a", "b", "c"].map(|name| world.unready_node(name, 0, &[]));
    for node in &nodes {
        node.ready().await;
    }
    assert_schema_is_whole(&world.database).await;
    assert_eq!(world.database.number("SELECT COUNT(*) FROM node WHERE left_at = 0").await, 3);
    assert_eq!(world.database.number("SELECT COUNT(DISTINCT id) FROM node").await, 3);
    // All three answer for the same cluster.
    let app = Api::new(&nodes[0].url).make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = Api::new(&nodes[1].url).make_task(&app, "by hand", "tick", json!({})).await;
    Api::new(&nodes[2].url).run(task, None).await;
    world.await_successes(task, 1).await;
    world.settle_and_check().await;
}

async fn assert_schema_is_whole(database: &Database) {
    assert_eq!(database.number("SELECT COUNT(*) FROM seaql_migrations").await, steps());
    assert_eq!(database.number("SELECT COUNT(*) FROM lease").await, 2);
    assert_eq!(database.number("SELECT COUNT(*) FROM migration_lock").await, 0, "the lock was given back");
}

/// The number of migrations, from the files.
fn steps() -> i64 {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/src");
    let files = std::fs::read_dir(folder).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with("m0")).count() as i64
}

#[tokio::test]
async fn three_migrations_of_one_file_at_once() {
    let database = Database::fresh(Kind::Sqlite).await;
    let folder = folder::fresh("migrate");
    let processes: Vec<Process> = (0..3)
        .map(|number| {
            let mut migrate = command::carillon();
            migrate.arg("migrate").current_dir(&folder);
            configure(&mut migrate, &[("database.url", &database.url)]);
            Process::start("migrate", migrate, &folder.join(format!("{number}.log")))
        })
        .collect();
    for process in processes {
        assert!(process.wait_exit(60).await.success(), "{}", process.log());
    }
    assert_schema_is_whole(&database).await;
}

/// Without a token in the settings one is generated, readable by its owner only, and stays.
#[tokio::test]
async fn a_token_is_generated_once() {
    let folder = folder::fresh("token");
    let port = port::free();
    let start = |number: i32| {
        let mut serve = command::carillon();
        serve.arg("serve").current_dir(&folder);
        configure(&mut serve, &[("server.port", &port.to_string())]);
        Process::start("node", serve, &folder.join(format!("{number}.log")))
    };
    let url = format!("http://127.0.0.1:{port}");
    let file = folder.join("data/api-token");
    let mut tokens = Vec::new();
    for number in 0..2 {
        let node = start(number);
        await_until("the node is ready", 60, || async {
            assert!(node.is_running(), "{}", node.log());
            let answer = reqwest::get(format!("{url}/readyz")).await;
            when(answer.is_ok_and(|answer| answer.status() == 200))
        })
        .await;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "mode {mode:o}");
        let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        assert!(token.len() >= 32, "{token:?}");
        assert!(!node.log().contains(&token), "the token is in the log");
        Api::with_token(&url, &token).get("/tasks").await;
        tokens.push(token);
        let asked_at = now_ms();
        assert_eq!(node.sigterm(20).await, Some(0), "{}", node.log());
        assert!(now_ms() - asked_at < 10_000, "an idle node took {} ms to stop", now_ms() - asked_at);
    }
    assert_eq!(tokens[0], tokens[1]);
}
