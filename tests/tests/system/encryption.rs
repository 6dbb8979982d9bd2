//! Secrets at rest, as an operator has them: encrypted from the start, a node that lacks the key, a rotation.

use carillon_tests::command::carillon;
use carillon_tests::node::configure;
use carillon_tests::{Kind, Status, World};
use serde_json::json;

scenario!(secrets_are_encrypted_and_the_key_is_rotated: sqlite postgres);

const OLD: &str = "old:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const NEW: &str = "new:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

/// How many keys of apps are stored under the encryption key of that name.
async fn stored_under(world: &World, name: &str) -> i64 {
    world.database.number(&format!("SELECT COUNT(*) FROM app_key WHERE secret LIKE 'enc:{name}:%'")).await
}

async fn secrets_are_encrypted_and_the_key_is_rotated(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("encryption.keys", OLD)]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "by hand", "tick", json!({})).await;
    assert_eq!(world.await_end(api.run(task, None).await).await.status, Status::Succeeded);
    let count = world.database.number("SELECT COUNT(*) FROM app_key").await;
    assert_eq!(stored_under(&world, "old").await, count);
    let settings = api.get("/settings").await.to_string();
    assert!(settings.contains("encryption.keys") && !settings.contains("AQEB"), "{settings}");
    assert_eq!(node.process.sigterm(30).await, Some(0));

    let without = world.unready_node("a", node.port, &[]);
    let status = without.process.wait_exit(60).await;
    let said = without.process.log();
    assert!(!status.success() && said.contains("encryption.keys lacks the key `old`"), "{said}");

    let both = format!("{NEW},{OLD}");
    world.unready_node("a", node.port, &[("encryption.keys", &both)]).ready().await;
    assert_eq!(world.await_end(api.run(task, None).await).await.status, Status::Succeeded);
    assert_eq!(stored_under(&world, "old").await, count, "not by itself: another node may lack the key");
    let mut rotate = carillon();
    rotate.args(["encryption", "rotate"]);
    configure(&mut rotate, &[("database.url", &world.database.url), ("encryption.keys", &both)]);
    let done = rotate.output().expect("run carillon");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said, format!("{count} secret(s) encrypted; all of them are under the key `new` now\n"));
    assert_eq!(stored_under(&world, "new").await, count);
    assert_eq!(world.await_end(api.run(task, None).await).await.status, Status::Succeeded, "while the node runs");
    let noted = api.get("/audit?action=rotate_encryption").await["items"].clone();
    assert_eq!((&noted[0]["actor_kind"], &noted[0]["target_kind"]), (&json!("command"), &json!("key")), "{noted}");

    // The old one is of no more use.
    let node = world.running_nodes().remove(0);
    assert_eq!(node.process.sigterm(30).await, Some(0));
    world.unready_node("a", node.port, &[("encryption.keys", NEW)]).ready().await;
    assert_eq!(world.await_end(api.run(task, None).await).await.status, Status::Succeeded);
    world.settle_and_check().await;
}
