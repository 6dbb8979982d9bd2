//! What people see of nodes, of the rights that they hold, and of executors.

use carillon_tests::api::id_of;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Kind, World, now_ms};
use serde_json::{Value, json};

scenario!(a_living_node_keeps_its_name: mariadb);
scenario!(nodes_leases_clocks_and_executors_are_shown: sqlite mariadb postgres);

async fn nodes_leases_clocks_and_executors_are_shown(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;

    let is_held = |lease: &Value| lease["node"].is_string();
    let seen = await_until("each node has measured its clock, and all work has a holder", 60, || async {
        let seen = api.get("/nodes").await;
        let nodes = seen["items"].as_array().unwrap();
        let executors: u64 = nodes.iter().filter_map(|node| node["executors"].as_u64()).sum();
        let is_known = nodes.iter().all(|node| node["clock_offset_ms"].is_i64()) && executors == 1;
        let leases = seen["leases"].as_array().unwrap();
        (is_known && leases.iter().all(is_held)).then_some(seen.clone())
    })
    .await;
    let nodes = seen["items"].as_array().unwrap();
    assert_eq!(nodes.len(), world.running_nodes().len());
    for node in nodes {
        let offset = node["clock_offset_ms"].as_i64().unwrap();
        assert!(offset.abs() < 1_000, "the database is on this machine: {node}");
        let uncertainty = node["clock_uncertainty_us"].as_i64().unwrap();
        assert!((0..1_000_000).contains(&uncertainty), "{node}");
    }
    let leases = seen["leases"].as_array().unwrap();
    let names: Vec<&str> = leases.iter().map(|lease| lease["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["housekeeping", "pregenerate", "statistics"]);
    for lease in leases {
        let holder = nodes.iter().find(|node| node["id"] == lease["node"]).unwrap();
        assert_eq!(holder["name"], lease["node_name"]);
        assert!(lease["fence"].as_i64().unwrap() > 0, "{lease}");
        assert!(lease["expires_at"].as_i64().unwrap() > now_ms() - 20_000, "{lease}");
    }

    let executor = api.get("/executors").await["items"][0].clone();
    assert!(!executor["version"].as_str().unwrap().is_empty(), "{executor}");
    assert!(nodes.iter().any(|node| node["id"] == executor["node"]), "{executor}");

    // A run says when, and which node, it was written by.
    let task = api.make_task(&app, "by hand", "tick", json!({})).await;
    let before = now_ms();
    let log = api.run(task, None).await;
    let shown = api.log(log).await;
    let written = shown["written_at"].as_i64().unwrap();
    assert!((before - 1_000..=now_ms() + 1_000).contains(&written), "{shown}");
    assert!(nodes.iter().any(|node| node["id"] == shown["written_by"]), "{shown}");
    assert_eq!(id_of(&shown["id"]), Some(log));
    world.await_end(log).await;

    // A node that stops gracefully releases its leases; the other nodes need not hurry.
    if nodes.len() > 1 {
        let node = world.running_nodes().remove(0);
        assert_eq!(node.process.sigterm(30).await, Some(0));
        let left = world.api();
        await_until("the other node writes ahead", 60, || async {
            let seen = left.get("/nodes").await;
            let leases = seen["leases"].as_array().unwrap();
            let lease = leases.iter().find(|lease| lease["name"] == "pregenerate").unwrap();
            when(is_held(lease) && lease["node_name"] != json!(node.name))
        })
        .await;
    }
    world.end_well().await;
}

/// Two processes under one name: the second refuses to start, and the first goes on. When the first
/// has died, its name is free at once.
async fn a_living_node_keeps_its_name(kind: Kind) {
    const WATCHES: &str = "watching its heartbeat";
    let world = World::new(kind).await;
    let first = world.node("a", &[]).await;
    let second = world.unready_node("a", 0, &[]);
    let status = second.process.wait_exit(60).await;
    let said = second.process.log();
    assert!(!status.success(), "{said}");
    for word in ["server.name", "`a`", &first.url, WATCHES] {
        assert!(said.contains(word), "nothing about {word:?} in:\n{said}");
    }
    let beat = async || world.database.number("SELECT heartbeat_at FROM node WHERE name = 'a'").await;
    let refused_at = beat().await;
    await_until("the first goes on", 30, || async { when(beat().await > refused_at) }).await;
    assert!(first.process.is_running());

    first.process.kill9().await;
    let again = world.node("a", &[]).await;
    assert!(!again.process.log().contains(WATCHES), "{}", again.process.log());
    assert_eq!(again.process.sigterm(30).await, Some(0));
    // One that left has left its name.
    let later = world.node("a", &[]).await;
    assert!(!later.process.log().contains(WATCHES), "{}", later.process.log());
}
