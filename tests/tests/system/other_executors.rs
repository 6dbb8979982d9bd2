//! Executors of an earlier and of a later release: messages lack what is new, and have what is not known yet.

use carillon_protocol::{HeartbeatAck, Registered, RunKey, Verdict};
use carillon_tests::{FakeExecutor, Kind, Status, World, await_until, now_ms, wait::when};
use serde_json::{Value, json};

scenario!(an_executor_of_0_1_works: sqlite);
scenario!(an_executor_of_a_later_release_works: sqlite);

/// As 0.1 wrote them, to the letter.
async fn an_executor_of_0_1_works(kind: Kind) {
    let (world, fake, task) = setup(kind).await;
    let register = json!({
        "instance": fake.instance(), "address": fake.description().address, "host_name": "old", "pid": 1,
        "version": "0.1.0", "tags": [], "description": "", "capacity": 10, "handlers": [{ "name": "job" }],
    });
    let registered: Registered = fake.send("/openapi/executors/register", &register).await.data();
    assert_eq!(registered.executor_id, fake.executor_id(), "the same process");
    let log = world.api().run(task, None).await;
    let key = fake.next_running(task, &[]).await;
    let beat = json!({
        "executor_id": fake.executor_id(), "instance": fake.instance(), "snapshot_at": now_ms(), "held": [],
        "running": [[key.0, key.1]], "unacknowledged": [], "capacity": 10,
    });
    let ack: HeartbeatAck = fake.send("/openapi/executors/heartbeat", &beat).await.data();
    assert!(ack.cancel.is_empty(), "{ack:?}");
    assert_eq!(send(&fake, json!([ended(key, "succeeded")])).await, [Verdict::Applied]);
    assert_eq!(world.database.log(log).await.status, Status::Succeeded);
    world.settle_and_check_with(|| fake.starts()).await;
}

/// A word that the node does not know concerns its own run alone.
async fn an_executor_of_a_later_release_works(kind: Kind) {
    let (world, fake, task) = setup(kind).await;
    let mut register = serde_json::to_value(fake.description()).unwrap();
    register["cpu_architecture"] = json!("of the future");
    register["handlers"][0]["colour"] = json!("green");
    let registered: Registered = fake.send("/openapi/executors/register", &register).await.data();
    assert_eq!(registered.executor_id, fake.executor_id(), "the same process");
    let (one, two) = (world.api().run(task, None).await, world.api().run(task, None).await);
    let first = fake.next_running(task, &[]).await;
    let second = fake.next_running(task, &[first]).await;
    let [mut plain, strange] = [ended(first, "succeeded"), ended(second, "suspended")];
    plain["energy_joules"] = json!(3);
    assert_eq!(send(&fake, json!([plain, strange])).await, [Verdict::Applied, Verdict::Applied]);
    let (plain, strange) = if first.0 == one { (one, two) } else { (two, one) };
    assert_eq!(world.database.log(plain).await.status, Status::Succeeded);
    // How it ended is not known, so it runs again.
    let again = fake.next_running(task, &[first, second]).await;
    assert_eq!(again, RunKey(strange, 2));
    let attempts = world.api().get(&format!("/task-logs/{strange}")).await["attempts"].clone();
    let told = attempts[0]["message"].as_str().unwrap_or_default();
    assert!(told.contains("later release"), "{attempts}");
    assert_eq!(send(&fake, json!([ended(again, "succeeded")])).await, [Verdict::Applied]);
    await_until("all has ended", 20, || async {
        when(world.database.number("SELECT COUNT(*) FROM task_log WHERE status < 10").await == 0)
    })
    .await;
    world.settle_and_check_with(|| fake.starts()).await;
}

async fn setup(kind: Kind) -> (World, FakeExecutor, i64) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let task = api.make_task(&app, "by hand", "job", json!({})).await;
    (world, fake, task)
}

fn ended(key: RunKey, status: &str) -> Value {
    let now = now_ms();
    json!({ "log": key.0, "attempt": key.1, "status": status, "started_at": now, "finished_at": now })
}

async fn send(fake: &FakeExecutor, results: Value) -> Vec<Verdict> {
    let message = json!({ "executor_id": fake.executor_id(), "results": results });
    let ack: carillon_protocol::ResultsAck = fake.send("/openapi/results", &message).await.data();
    for result in message["results"].as_array().unwrap() {
        let number = |at: &str| result[at].as_i64().unwrap();
        fake.forget(RunKey(number("log"), number("attempt") as i32));
    }
    ack.verdicts
}
