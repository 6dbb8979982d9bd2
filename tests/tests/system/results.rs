//! Results that come late, twice, or for nothing.

use carillon_protocol::{RunKey, RunResult, RunStatus, Verdict};
use carillon_tests::fake::result;
use carillon_tests::{FakeExecutor, Kind, Status, World};
use serde_json::json;

scenario!(late_and_repeated_results: sqlite mariadb postgres);
scenario!(result_of_a_run_that_was_cancelled: sqlite mariadb postgres);

/// H15, X7: a late result never overwrites a newer state; it is recorded.
async fn late_and_repeated_results(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let fields = json!({ "max_retries": 3, "retry_interval_ms": 100 });
    let task = api.make_task(&app, "by hand", "job", fields).await;
    let log = api.run(task, None).await;

    let first = fake.next_running(task, &[]).await;
    assert_eq!(first, RunKey(log, 1));
    let failed = result(first, RunStatus::Failed);
    // Twice in one request: the second is a repetition of the first.
    let verdicts = fake.send_results(&[failed.clone(), failed.clone()]).await;
    assert_eq!(verdicts[0], Verdict::Applied);
    let second = fake.next_running(task, &[first]).await;
    assert_eq!(second, RunKey(log, 2));
    let before = world.database.log(log).await;
    assert_eq!((before.status, before.attempt, before.failures), (Status::Dispatched, 2, 1), "{before:?}");

    // The first attempt changes its mind, when the second is current.
    let stale_before = stale(&world, log).await;
    assert_eq!(fake.send_results(&[result(first, RunStatus::Succeeded)]).await, [Verdict::Stale]);
    assert_eq!(world.database.log(log).await, before, "a stale result was applied");
    assert_eq!(stale(&world, log).await, stale_before + 1, "a stale result was not recorded");

    // One request: an unknown run, a future attempt, and the right one. What has just ended may be there soon.
    let long_ago = |result: RunResult| RunResult { finished_at: result.finished_at - 3_600_000, ..result };
    let (unknown, future) = (RunKey(log + 1, 1), RunKey(log, 3));
    let mixed = [
        result(unknown, RunStatus::Succeeded),
        result(future, RunStatus::Failed),
        result(second, RunStatus::Succeeded),
        long_ago(result(unknown, RunStatus::Failed)),
    ];
    let verdicts = fake.send_results(&mixed[..3]).await;
    assert_eq!(verdicts, [Verdict::Again, Verdict::Again, Verdict::Applied]);
    let verdicts = fake.send_results(&[mixed[3].clone(), long_ago(mixed[1].clone())]).await;
    assert_eq!(verdicts, [Verdict::Unknown, Verdict::Stale]);
    let ended = world.database.log(log).await;
    assert_eq!((ended.status, ended.attempt, ended.failures), (Status::Succeeded, 2, 1), "{ended:?}");

    // Its acknowledgement was lost, so it is sent again; then something else is claimed.
    assert_eq!(fake.send_results(&[mixed[2].clone()]).await, [Verdict::Applied]);
    assert_eq!(fake.send_results(&[result(second, RunStatus::Failed)]).await, [Verdict::Stale]);
    assert_eq!(world.database.log(log).await, ended, "a repeated result changed the row");
    world.settle_and_check_with(|| fake.starts()).await;
}

async fn stale(world: &World, log: i64) -> i64 {
    world.database.number(&format!("SELECT COUNT(*) FROM stale_result WHERE log_id = {log}")).await
}

/// H10: cancelled stays cancelled.
async fn result_of_a_run_that_was_cancelled(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let task = api.make_task(&app, "by hand", "job", json!({ "max_retries": 3, "retry_interval_ms": 100 })).await;
    let log = api.run(task, None).await;
    let key = fake.next_running(task, &[]).await;
    api.cancel(log).await;
    assert!(fake.cancels().contains(&key), "the executor was not asked to stop it");
    let verdicts = fake.send_results(&[result(key, RunStatus::Cancelled)]).await;
    assert_eq!(verdicts, [Verdict::Applied]);
    let row = world.database.log(log).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Cancelled, "cancelled_manually"), "{row:?}");
    assert_eq!(fake.send_results(&[result(key, RunStatus::Succeeded)]).await, [Verdict::Stale]);
    assert_eq!(world.database.log(log).await, row, "a cancelled run came back");
    world.settle_and_check_with(|| fake.starts()).await;
}
