//! The first start: the schema, the first admin.

use carillon_tests::{Api, Database, Kind, Node, World, command, folder, http, now_ms, port, process::Process};
use carillon_tests::{await_until, node::configure, wait::when};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

scenario!(three_nodes_migrate_at_once on_each: mariadb postgres);

async fn three_nodes_migrate_at_once(kind: Kind) {
    let world = World::empty(kind).await;
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
    assert_eq!(database.number("SELECT COUNT(*) FROM lease").await, 3);
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
    let database = Database::empty(Kind::Sqlite).await;
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

/// The first start creates `admin`, and prints the password once, and not to the log.
#[tokio::test]
async fn the_first_start_makes_an_admin() {
    let folder = folder::fresh("admin");
    let port = port::free();
    let url = format!("http://127.0.0.1:{port}");
    let mut printed = Vec::new();
    for number in 0..2 {
        let mut serve = command::carillon();
        serve.arg("serve").current_dir(&folder);
        configure(&mut serve, &[("server.port", &port.to_string())]);
        let node = Process::start("node", serve, &folder.join(format!("{number}.log")));
        await_until("the node is ready", 60, || async {
            assert!(node.is_running(), "{}", node.log());
            let answer = http::shared().get(format!("{url}/readyz")).send().await;
            when(answer.is_ok_and(|answer| answer.status() == 200))
        })
        .await;
        let log = node.log();
        printed.extend(log.lines().filter(|line| line.starts_with("First start: ")).map(str::to_owned));
        let asked_at = now_ms();
        assert_eq!(node.sigterm(20).await, Some(0), "{}", node.log());
        assert!(now_ms() - asked_at < 10_000, "an idle node took {} ms to stop", now_ms() - asked_at);
    }
    let [line] = &printed[..] else { panic!("printed once: {printed:?}") };
    let password = line.split(" password ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(password.len() >= 20, "{line}");
}

/// One that is made with the rights of others, as by an operator, is not made private behind their back.
#[tokio::test]
async fn a_database_file_that_others_can_read_is_warned_of() {
    const WARNING: &str = "other users of this machine can open the database file";
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        let folder = folder::fresh("readable");
        let file = folder.join("carillon.db");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let node = Node::start("a", &format!("sqlite://{}?mode=rwc", file.display()), 0, &[]);
        node.ready().await;
        assert_eq!(node.process.sigterm(20).await, Some(0), "{}", node.process.log());
        assert_eq!(node.process.log().contains(WARNING), is_warned, "{mode:o}: {}", node.process.log());
        let now = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(now, mode, "{now:o}");
    }
}
