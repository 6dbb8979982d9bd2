//! One tenant's burst is its own: another tenant's fires neither fail nor queue up behind it.
//!
//! Lateness says little on a busy machine. What tells a fair queue from an unfair one is the order
//! of dispatches: behind whom a fire had to wait.

use carillon_tests::executor::Options;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::sample;
use carillon_tests::{Api, App, FakeExecutor, Fires, Kind, LogRow, OnDispatch, Status, World, now_ms, pass};
use serde_json::json;

scenario!(beside_an_executor_that_hangs: sqlite mariadb);
scenario!(beside_an_executor_that_is_slow: sqlite mariadb);

/// Overdue runs of the tenant that bursts: several times as many as one tenant may have under way.
const BURST: usize = 12_000;

/// Of these, so many may be dispatched after a fire of the other tenant could have been: all that
/// one tenant may have under way by then (half of 8,000, as long as no other tenant has any), and a
/// batch more. In the order of due times it would be the whole burst.
const BEFORE_MAX: usize = 4_500;

/// A run can be dispatched so long before its due time, ms: the lead, and what dispatches come
/// before it.
const READY_MS: i64 = 3_350;

/// How long the burst is watched, s.
const WATCHED_S: f64 = 15.0;

/// How much later than due the other tenant's runs may start, ms: far less than the burst lasts,
/// far more than a busy machine takes.
const LATE_MAX_MS: i64 = 5_000;

/// Every dispatch of the burst takes as long as it can: none is answered.
async fn beside_an_executor_that_hangs(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let busy = api.make_app("wholesale", "imports").await;
    let fake = FakeExecutor::start(&busy, &node.url, &["work"], true).await;
    fake.script(|script| script.on_dispatch = OnDispatch::Hang);
    let burst = api.make_task(&busy, "import", "work", json!({ "started": false })).await;
    let fires = beside_a_burst(&world, &api, burst).await;
    assert!(!fake.offered().is_empty(), "the burst was never dispatched");
    assert_fair(&world, burst, &fires).await;
    end_of_burst(&world, &api, burst, || fake.starts()).await;
}

/// Dispatches are taken at once, and the runs last.
async fn beside_an_executor_that_is_slow(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let busy = api.make_app("wholesale", "imports").await;
    let options = Options { env: &[("CARILLON_CAPACITY", "4")], ..Options::default() };
    world.executor_with("slow", &busy, &options).await;
    let fields = json!({ "started": false, "params": "100" });
    let burst = api.make_task(&busy, "import", "sleep", fields).await;
    let fires = beside_a_burst(&world, &api, burst).await;
    assert_fair(&world, burst, &fires).await;
    end_of_burst(&world, &api, burst, Vec::new).await;
}

/// Lets a tenant fire every second, and start runs by hand, while another's burst comes; its runs from
/// then on.
async fn beside_a_burst(world: &World, api: &Api, burst: i64) -> Vec<LogRow> {
    let app: App = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "every second", "tick", json!({ "cron": "* * * * * ?" })).await;
    let manual = api.make_task(&app, "by hand", "tick", json!({ "started": false })).await;
    world.await_successes(task, 3).await;
    overdue_runs(world, burst, BURST).await;
    let from = now_ms();
    // No node has claimed these before the burst came.
    for _ in 0..3 {
        api.run(manual, None).await;
    }
    pass(WATCHED_S).await;
    // Those of the last seconds may be under way.
    let until = now_ms() - LATE_MAX_MS;
    let mut fires = Fires::every(1, &world.database.logs_of(task).await).assert_no_gap().between(from, until);
    fires.extend(world.database.logs_of(manual).await);
    fires
}

async fn assert_fair(world: &World, burst: i64, fires: &[LogRow]) {
    let of_burst = world.database.logs_of(burst).await;
    let open = of_burst.iter().filter(|row| !row.status.is_terminal()).count();
    assert!(open > BURST / 2, "the burst was over too soon to be ahead of any tenant: {open} runs are open");
    assert_all("succeeded at the first attempt", fires, |row| row.status == Status::Succeeded && row.attempt == 1);
    assert_all("started while the burst lasted", fires, |row| row.started_at < row.due_time + LATE_MAX_MS);
    let before = |fire: &LogRow| {
        let ready = if fire.trigger == "manual" { fire.fire_time } else { fire.fire_time - READY_MS };
        let waited = ready..fire.dispatched_at;
        of_burst.iter().filter(|row| waited.contains(&row.dispatched_at)).count()
    };
    let behind: Vec<(usize, &LogRow)> =
        fires.iter().map(|fire| (before(fire), fire)).filter(|(count, _)| *count > BEFORE_MAX).collect();
    assert!(behind.is_empty(), "(runs of the burst before it, fire): {}", sample(&behind));
}

/// The burst's task goes, and everything ends.
async fn end_of_burst(world: &World, api: &Api, burst: i64, starts: impl Fn() -> Vec<carillon_tests::Start>) {
    api.delete(burst).await;
    world.settle_and_check_with(starts).await;
}

/// Writes `count` runs that were due some minutes ago, as if they had been started manually then.
async fn overdue_runs(world: &World, task: i64, count: usize) {
    let due = now_ms() - 600_000;
    let sql = format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason, trigger_kind, seq, priority, stopping) \
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99), \
         m(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i < {last}) \
         SELECT t.id + 1 + m.i * 100 + n.i, t.tenant_id, t.app_id, t.id, t.revision, 0, 0, 1, \
         (m.i * 100 + n.i) * 37 % 1024, {due} + m.i * 100 + n.i, {due} + m.i * 100 + n.i, 0, 1, 0, 0, 0, 0, 0, 0, 0, \
         0, '', 'manual', 0, t.priority, '' FROM n JOIN m ON 1 = 1 JOIN task t ON t.id = {task}",
        last = count / 100 - 1,
    );
    assert_eq!(world.database.execute(&sql).await, count as u64);
}
