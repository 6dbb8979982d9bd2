//! A node that has nothing to do but wait must wait, not spin.

use carillon_tests::{Kind, World, pass};
use serde_json::json;

scenario!(a_run_without_an_executor_waits_quietly: sqlite);

/// A run that nobody can take is looked at a few times a second, not in a loop: seen by the
/// statements that the node sends meanwhile.
async fn a_run_without_an_executor_waits_quietly(kind: Kind) {
    const STATEMENTS_A_SECOND_MAX: i64 = 60;
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let wanting = json!({ "cron": "* * * * * ?", "max_retries": 0 });
    api.make_task(&app, "wanting", "tick", wanting).await;
    let sent = async || api.get("/nodes").await["this"]["statements"].as_i64().unwrap();
    pass(4.0).await;
    let before = sent().await;
    pass(5.0).await;
    let rate = (sent().await - before) / 5;
    assert!(rate < STATEMENTS_A_SECOND_MAX, "{rate} statements a second while nothing can run");
    world.settle().await;
}
