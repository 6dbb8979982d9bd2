//! Old logs go, in bounded batches (H24).

use carillon_tests::fires::assert_all;
use carillon_tests::wait::when;
use carillon_tests::{Kind, Status, World, await_until, now_ms};
use serde_json::json;

scenario!(retention_in_bounded_batches: sqlite mariadb postgres);
scenario!(each_tenant_keeps_its_logs_as_long_as_it_says: sqlite mariadb);

const DAY_MS: i64 = 86_400_000;

/// 2025-01-01, where ids begin: 22 bits lie below the milliseconds.
const ID_EPOCH_MS: i64 = 1_735_689_600_000;

const OLD_ROWS: i64 = 20_000;

async fn retention_in_bounded_batches(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [("data.max_retain_days", "1"), ("data.purge_interval", "1s")];
    // The first start makes the tables; the old rows come while no node runs.
    let first = world.node("a", &[("data.purge_interval", "1h")]).await;
    assert_eq!(first.process.sigterm(30).await, Some(0), "{}", first.process.log_digest());
    insert_old(&world, now_ms() - 3 * DAY_MS).await;
    let young = now_ms() - DAY_MS / 2;
    world.database.execute(&insert(&[values(1, id_at(young), young)])).await;

    world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "beside it", "tick", json!({ "cron": "* * * * * ?" })).await;
    let mut counts = vec![OLD_ROWS];
    let started = std::time::Instant::now();
    while *counts.last().unwrap() > 0 {
        assert!(started.elapsed().as_secs() < 60, "old rows are still there: {counts:?}");
        let count = old_rows(&world).await;
        if counts.last() != Some(&count) {
            counts.push(count);
        }
    }
    // That each statement is bounded is the conformance suite's to show; here the rows go while
    // runs go on.
    world.await_successes(task, 5).await;
    world.database.execute("DELETE FROM task_log WHERE task_id = 7 AND fire_time < 0").await;
    assert_eq!(world.database.logs_of(7).await.len(), 1, "the younger log is kept");
    let (rows, _) = world.settle_and_check_with(Vec::new).await;
    assert_all("untouched", &rows, |row| row.status != Status::Failed);
}

/// Longer and shorter than the node's default of five days.
async fn each_tenant_keeps_its_logs_as_long_as_it_says(kind: Kind) {
    const LOGS: i64 = 1_500;
    let world = World::new(kind).await;
    // The old logs come while no node looks: a round under way would go by what tenants said before.
    let first = world.node("a", &[("data.purge_interval", "1h")]).await;
    let api = world.api();
    let now = now_ms();
    let mut tenants = Vec::new();
    for (place, (name, days)) in [("brief", 1), ("usual", 0), ("long", 30)].into_iter().enumerate() {
        api.make_app(name, "orders").await;
        api.patch(&format!("/tenants/{name}/quotas"), json!({ "retain_days": days })).await;
        let id = world.database.number(&format!("SELECT id FROM tenant WHERE name = '{name}'")).await;
        for (age, offset) in [(10 * DAY_MS, 0), (3 * DAY_MS, 1)] {
            let at = |n: i64| now - age + n * 10 + place as i64 * 2 + offset;
            let logs: Vec<String> = (0..LOGS).map(at).map(|at| values(id, id_at(at), at)).collect();
            world.database.execute(&insert(&logs)).await;
        }
        tenants.push(id);
    }
    assert_eq!(first.process.sigterm(30).await, Some(0), "{}", first.process.log_digest());
    world.node("a", &[("data.max_retain_days", "5"), ("data.purge_interval", "1s")]).await;
    let api = world.api();
    for (tenant, kept) in tenants.into_iter().zip([0, LOGS, 2 * LOGS]) {
        let count = format!("SELECT COUNT(*) FROM task_log WHERE tenant_id = {tenant}");
        let what = format!("{kept} logs of tenant {tenant} are kept");
        await_until(&what, 60, || async { when(world.database.number(&count).await <= kept) }).await;
        carillon_tests::pass(2.5).await;
        assert_eq!(world.database.number(&count).await, kept, "{what}");
    }
    // Those of 3 days, which retention has passed already.
    api.patch("/tenants/long/quotas", json!({ "retain_days": 2 })).await;
    let left = "SELECT COUNT(*) FROM task_log WHERE tenant_id <> (SELECT id FROM tenant WHERE name = 'usual')";
    await_until("the rest is gone", 60, || async { when(world.database.number(left).await == 0) }).await;
    world.assert_quiet(&[]);
}

fn id_at(time: i64) -> i64 {
    (time - ID_EPOCH_MS) << 22
}

async fn old_rows(world: &World) -> i64 {
    let border = id_at(now_ms() - 2 * DAY_MS);
    world.database.number(&format!("SELECT COUNT(*) FROM task_log WHERE id < {border}")).await
}

async fn insert_old(world: &World, from: i64) {
    let all: Vec<String> = (0..OLD_ROWS).map(|n| values(1, id_at(from + n * 1_000), from + n * 1_000)).collect();
    for chunk in all.chunks(2_000) {
        world.database.execute(&insert(chunk)).await;
    }
    assert_eq!(old_rows(world).await, OLD_ROWS);
}

/// An ended log (cancelled, so that no executor must have run it) of a task long deleted.
fn values(tenant: i64, id: i64, fire_time: i64) -> String {
    format!(
        "({id}, {tenant}, 1, 7, 1, 0, 0, 1, 0, {fire_time}, {fire_time}, 14, 3, 1, 0, 1, 1, {fire_time}, {fire_time}, 0, \
         {fire_time}, 'task_deleted')"
    )
}

fn insert(rows: &[String]) -> String {
    format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason) VALUES {}",
        rows.join(", ")
    )
}
