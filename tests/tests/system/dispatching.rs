//! The dispatch goes wrong on the wire.

use crate::sharing::every_second;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::sample;
use carillon_tests::{FakeExecutor, Fires, Kind, LogRow, OnDispatch, Status, World, now_ms, pass};
use serde_json::json;

scenario!(lost_acknowledgement: sqlite mariadb postgres);
scenario!(forged_acknowledgement: sqlite mariadb postgres);
scenario!(dropped_connection: sqlite postgres);
scenario!(silent_executor: sqlite mariadb postgres);
scenario!(refusing_executor: sqlite mariadb);
scenario!(shards_beside_a_refusing_executor: sqlite postgres);
scenario!(shards_beside_a_forger: sqlite mariadb);

/// X6: the executor accepted, the reply was lost: the run happens once, there or elsewhere.
async fn lost_acknowledgement(kind: Kind) {
    beside_a_healthy_one(kind, OnDispatch::AcceptThenDrop).await;
}

/// A forged acknowledgement would lose the run.
async fn forged_acknowledgement(kind: Kind) {
    let rows = beside_a_healthy_one(kind, OnDispatch::ForgedAck).await;
    assert_all("run by the one that really accepted", &rows.fires, |row| row.executor != rows.fake);
}

async fn dropped_connection(kind: Kind) {
    let rows = beside_a_healthy_one(kind, OnDispatch::Drop).await;
    assert_all("run by the one that accepted", &rows.fires, |row| row.executor != rows.fake);
}

async fn silent_executor(kind: Kind) {
    let rows = beside_a_healthy_one(kind, OnDispatch::Hang).await;
    assert_all("run by the one that accepted", &rows.fires, |row| row.executor != rows.fake);
}

async fn refusing_executor(kind: Kind) {
    let rows = beside_a_healthy_one(kind, OnDispatch::Refuse).await;
    assert_all("run by the one that accepted", &rows.fires, |row| row.executor != rows.fake);
}

/// H13: a shard whose executor takes nothing is run by another, and the parent ends.
async fn shards_beside_a_refusing_executor(kind: Kind) {
    shards_beside(kind, OnDispatch::Refuse).await;
}

/// The same where the replies cannot be believed.
async fn shards_beside_a_forger(kind: Kind) {
    shards_beside(kind, OnDispatch::ForgedAck).await;
}

async fn shards_beside(kind: Kind, on_dispatch: OnDispatch) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fake = FakeExecutor::start(&app, &node.url, &["sharded"], true).await;
    fake.script(|script| script.on_dispatch = on_dispatch);
    let fields = json!({ "cron": "0/2 * * * * ?", "routing": "sharding" });
    let task = api.make_task(&app, "all of you", "sharded", fields).await;
    let made_at = now_ms();
    pass(10.0).await;
    let until = now_ms() - 6_000;
    let (rows, _) = world.settle_and_check_with(|| fake.starts()).await;
    let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
    let parents = Fires::every(2, &of_task).assert_no_gap().between(made_at + 2_000, until);
    assert_all("succeeded", &parents, |row| row.status == Status::Succeeded);
    for parent in parents {
        let shards: Vec<_> = of_task.iter().filter(|row| row.parent == parent.id).cloned().collect();
        assert!(!shards.is_empty(), "no shards: {parent:?}");
        assert_all("run by the one that takes runs", &shards, |row| row.executor != fake.executor_id());
    }
}

struct Outcome {
    fires: Vec<LogRow>,
    fake: i64,
}

/// Three tasks every second, a healthy executor, and one that answers dispatches as told.
async fn beside_a_healthy_one(kind: Kind, on_dispatch: OnDispatch) -> Outcome {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let healthy = world.executor("e1", &app).await;
    let fake = FakeExecutor::start(&app, &node.url, &["tick"], true).await;
    fake.script(|script| script.on_dispatch = on_dispatch);
    let tasks = every_second(&api, &app, 3).await;
    let made_at = now_ms();
    pass(10.0).await;
    let until = now_ms() - 4_000;
    let (rows, starts) = world.settle_and_check_with(|| fake.starts()).await;
    let mut fires = Vec::new();
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        fires.extend(Fires::every(1, &of_task).assert_no_gap().between(made_at + 2_000, until));
    }
    assert_all("succeeded without a failure", &fires, |row| row.status == Status::Succeeded && row.failures == 0);
    assert!(!fake.offered().is_empty(), "the scripted executor was never asked");
    // Beside it, life goes on: what the healthy one was given at first is on time.
    let direct: Vec<_> = starts
        .iter()
        .filter(|start| start.attempt == 1 && start.executor != "fake" && start.fire_time > made_at + 6_000)
        .collect();
    let late: Vec<_> = direct.iter().filter(|start| start.late_ms() > 1_500).collect();
    assert!(late.is_empty(), "of {} runs the healthy one got at once, late: {}", direct.len(), sample(&late));
    assert!(!healthy.starts().is_empty());
    Outcome { fires, fake: fake.executor_id() }
}
