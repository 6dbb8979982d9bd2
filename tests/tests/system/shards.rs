//! Sharded runs: progress, a shard that fails, and what becomes of the parent.

use carillon_protocol::{RunKey, RunStatus, Verdict};
use carillon_tests::fake::result;
use carillon_tests::fires::assert_all;
use carillon_tests::visits::{assert_apart, order};
use carillon_tests::wait::when;
use carillon_tests::{Api, App, FakeExecutor, Kind, LogRow, Node, Status, World, await_until};
use serde_json::{Value, json};

scenario!(progress_and_one_failed_shard: sqlite mariadb);
scenario!(a_shard_that_fails_for_good: sqlite mariadb);
scenario!(sharded_runs_that_meet: sqlite mariadb);

/// Two executors that do as told, and one whose shard is the scenario's to end.
async fn fleet(world: &World, node: &Node, app: &App) -> FakeExecutor {
    world.executor("e1", app).await;
    world.executor("e2", app).await;
    let fake = FakeExecutor::start(app, &node.url, &["sharded", "overlap"], true).await;
    fake.script(|script| script.auto_results = false);
    fake
}

async fn shards_of(world: &World, parent: i64) -> Vec<LogRow> {
    world.database.logs(&format!("parent_id = {parent}")).await
}

/// Waits until the parent shows this progress: started, ended, succeeded of three.
async fn await_progress(api: &Api, parent: i64, [started, ended, succeeded]: [i64; 3]) -> Value {
    let wanted = json!({ "total": 3, "started": started, "ended": ended, "succeeded": succeeded });
    await_until(&format!("the parent shows {wanted}"), 30, || async {
        let shown = api.log(parent).await;
        (shown["shards"] == wanted).then_some(shown)
    })
    .await
}

/// The shard that the scripted executor has next.
async fn next_shard(fake: &FakeExecutor, task: i64, known: &mut Vec<RunKey>) -> RunKey {
    let key = fake.next_running(task, known).await;
    known.push(key);
    key
}

/// H13: a shard that fails is retried alone, and the parent sums up.
async fn progress_and_one_failed_shard(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = fleet(&world, &node, &app).await;
    let fields = json!({ "routing": "sharding", "retry_interval_ms": 100, "max_retries": 20 });
    let task = api.make_task(&app, "all of them", "sharded", fields).await;
    let mut known = Vec::new();
    let parent = api.run(task, None).await;
    let first = next_shard(&fake, task, &mut known).await;
    let shown = await_progress(&api, parent, [3, 2, 2]).await;
    assert_eq!((shown["status"].as_str(), shown["shard_total"].as_i64()), (Some("dispatched"), Some(3)), "{shown}");

    assert_eq!(fake.send_results(&[result(first, RunStatus::Failed)]).await, [Verdict::Applied]);
    assert_eq!(api.log(parent).await["shards"]["ended"], 2, "a failed attempt is no end");
    // It may go to any of the three now.
    fake.script(|script| script.auto_results = true);
    let row = world.await_end(first.0).await;
    assert_eq!((row.status, row.attempt, row.failures), (Status::Succeeded, 2, 1), "{row:?}");
    let ended = world.await_end(parent).await;
    assert_eq!((ended.status, ended.reason.as_str(), ended.failures), (Status::Succeeded, "", 0), "{ended:?}");
    let shards = shards_of(&world, parent).await;
    assert_eq!(shards.iter().map(|row| row.shard_index).collect::<Vec<_>>(), [0, 1, 2]);
    let others: Vec<_> = shards.iter().filter(|row| row.id != first.0).cloned().collect();
    assert_all("run once", &others, |row| row.status == Status::Succeeded && row.attempt == 1);
    assert_eq!(ended.finished_at, shards.iter().map(|row| row.finished_at).max().unwrap(), "ends with its last shard");
    let shown = await_progress(&api, parent, [3, 3, 3]).await;
    assert_eq!(shown["status"], "succeeded");
    world.settle_and_check_with(|| fake.starts()).await;
    world.assert_quiet(&[]);
}

async fn a_shard_that_fails_for_good(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = fleet(&world, &node, &app).await;
    let fields = json!({
        "routing": "sharding", "retry_interval_ms": 100, "max_retries": 20, "pause_after_failures": 2,
    });
    let task = api.make_task(&app, "all of them", "sharded", fields).await;
    let mut known = Vec::new();
    for (ends, paused) in [(RunStatus::FailedForGood, false), (RunStatus::FailedForGood, true)] {
        let parent = api.run(task, None).await;
        let shard = next_shard(&fake, task, &mut known).await;
        await_progress(&api, parent, [3, 2, 2]).await;
        assert_eq!(fake.send_results(&[result(shard, ends)]).await, [Verdict::Applied]);
        let row = world.await_end(parent).await;
        assert_eq!((row.status, row.reason.as_str(), row.attempt), (Status::Failed, "shard_failed", 1), "{row:?}");
        await_progress(&api, parent, [3, 3, 2]).await;
        let failed: Vec<_> =
            shards_of(&world, parent).await.into_iter().filter(|row| row.status != Status::Succeeded).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!((failed[0].id, failed[0].reason.as_str()), (shard.0, "handler_failed_for_good"));
        // One run failed, not three: the task pauses after the second.
        await_until("the task is as it should be", 20, || async {
            when(api.task(task).await["started"].as_bool() == Some(!paused))
        })
        .await;
    }
    world.settle_and_check_with(|| fake.starts()).await;
    world.assert_quiet(&[]);
}

/// A block strategy across the app holds for the whole: shards of two runs never meet.
async fn sharded_runs_that_meet(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let stay = |ms: i64| json!({ "ms": ms, "blocking": true }).to_string();
    let mut runs = Vec::new();
    for strategy in ["serial", "discard_later", "cover_early"] {
        let fields = json!({
            "routing": "sharding", "block_strategy": strategy, "block_scope": "app", "params": stay(3_000),
            "max_retries": 0,
        });
        let task = api.make_task(&app, strategy, "overlap", fields).await;
        let first = api.run(task, None).await;
        runs.push((task, first, 0));
    }
    for (task, _, second) in &mut runs {
        world.await_inside(*task, 2).await;
        *second = api.run(*task, Some(&stay(50))).await;
    }
    let expected = [
        ((Status::Succeeded, ""), (Status::Succeeded, "")),
        ((Status::Succeeded, ""), (Status::Discarded, "blocked")),
        ((Status::Cancelled, "covered"), (Status::Succeeded, "")),
    ];
    for ((task, first, second), ends) in runs.into_iter().zip(expected) {
        let (first, second) = (world.await_end(first).await, world.await_end(second).await);
        let end = |row: &LogRow| (row.status, row.reason.clone());
        let wanted = |(status, reason): (Status, &str)| (status, reason.to_owned());
        assert_eq!((end(&first), end(&second)), (wanted(ends.0), wanted(ends.1)), "{first:?}\n{second:?}");
        let visits = world.visits(task);
        let of_second: Vec<i64> = shards_of(&world, second.id).await.iter().map(|row| row.id).collect();
        let (late, early): (Vec<_>, Vec<_>) = visits.into_iter().partition(|visit| of_second.contains(&visit.log));
        let last = early.iter().max_by_key(|visit| visit.end_us).cloned().unwrap();
        for visit in &late {
            assert_apart("shards of two runs", &[last.clone(), visit.clone()]);
        }
        assert_eq!(order(&early).len(), 2);
        assert_eq!(late.len(), if second.status == Status::Discarded { 0 } else { 2 });
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}
