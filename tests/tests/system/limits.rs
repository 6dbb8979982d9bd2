//! How many run at once, and who comes first.

use carillon_tests::fires::assert_all;
use carillon_tests::visits::{most_at_once, order};
use carillon_tests::wait::{await_until, sample, when};
use carillon_tests::{Api, App, Kind, Status, Visit, World, now_ms};
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};

scenario!(bounds_hold_and_are_reached: sqlite mariadb);
scenario!(waiting_ends_and_the_urgent_come_first: sqlite mariadb);
scenario!(what_has_no_limit_does_not_wait_for_the_locks_of_limits: mariadb postgres);

/// A task that runs by hand and stays for `ms`.
async fn staying(api: &Api, app: &App, name: &str, ms: i64, more: Value) -> i64 {
    let mut fields = json!({ "params": json!({ "ms": ms }).to_string(), "max_retries": 0 });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.make_task(app, name, "overlap", fields).await
}

fn of_all(world: &World, tasks: &[i64]) -> Vec<Visit> {
    tasks.iter().flat_map(|task| world.visits(*task)).collect()
}

/// Of a task, an app and a tenant; on `MariaDB` the runs come in at two nodes.
async fn bounds_hold_and_are_reached(kind: Kind) {
    const RUNS: usize = 10;
    // The first ones stay until all bounds are reached, however long it takes to start them.
    const HELD: usize = 5;
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let shop = api.make_app("shop", "orders").await;
    let plant = api.make_app("plant", "robots").await;
    let (mail, post) = (api.make_app("office", "mail").await, api.make_app("office", "post").await);
    api.bound_app("plant", "robots", 3).await;
    api.patch("/tenants/office/quotas", json!({ "max_concurrent": 4 })).await;
    for (number, app) in [&shop, &shop, &plant, &mail, &post].into_iter().enumerate() {
        world.executor(&format!("e{number}"), app).await;
    }
    let bounded = staying(&api, &shop, "bounded", 700, json!({ "max_concurrent": 2 })).await;
    let free = staying(&api, &shop, "free", 1_500, json!({})).await;
    let robots = [staying(&api, &plant, "r1", 700, json!({})).await, staying(&api, &plant, "r2", 700, json!({})).await];
    let office = [staying(&api, &mail, "m", 700, json!({})).await, staying(&api, &post, "p", 700, json!({})).await];
    world.await_rules().await;
    let nodes: Vec<Api> = world.node_urls().iter().map(|url| Api::new(url)).collect();
    let full = carillon_tests::folder::fresh("limits").join("full");
    let hold = json!({ "ms": 60_000, "until": full }).to_string();
    let mut logs = Vec::new();
    for number in 0..RUNS {
        let node = &nodes[number % nodes.len()];
        for task in [bounded, free, robots[number % 2], office[number % 2]] {
            logs.push(node.run(task, (number < HELD).then_some(hold.as_str())).await);
        }
    }
    let bounds = [("the task", &[bounded][..], 2), ("the app", &robots[..], 3), ("the tenant", &office[..], 4)];
    for (what, tasks, count) in bounds.into_iter().chain([("what has no bound", &[free][..], HELD)]) {
        await_until(&format!("{count} runs of {what} are inside"), 60, || async {
            let inside = of_all(&world, tasks).iter().filter(|visit| visit.end_us == i64::MAX).count();
            (inside >= count).then_some(())
        })
        .await;
    }
    std::fs::write(&full, "").unwrap();
    // A fire of the schedule keeps to it, too.
    let cron = json!({ "cron": "* * * * * ?", "max_fires": 6, "max_concurrent": 2 });
    let firing = staying(&api, &shop, "firing", 2_500, cron).await;
    let rows = world.await_ends(&logs).await;
    assert_all("run in the end", &rows, |row| row.status == Status::Succeeded && row.attempt == 1);
    world.await_successes(firing, 6).await;
    for (what, tasks, bound) in bounds.into_iter().chain([("the firing task", &[firing][..], 2)]) {
        let visits = of_all(&world, tasks);
        assert_eq!(most_at_once(&visits), bound, "at once of {what}: {}", sample(&visits));
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// Another session holds the rows by which permits are given, as a node does that stands still.
async fn what_has_no_limit_does_not_wait_for_the_locks_of_limits(kind: Kind) {
    const FIRES: i64 = 4;
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let shop = api.make_app("shop", "orders").await;
    world.executor("e1", &shop).await;
    let serial = json!({ "cron": "* * * * * ?", "block_strategy": "serial", "block_scope": "app" });
    let serial = staying(&api, &shop, "serial", 10, serial).await;
    let free = staying(&api, &shop, "free", 10, json!({ "cron": "* * * * * ?" })).await;
    world.await_successes(serial, 1).await;
    world.await_successes(free, 1).await;
    let other = world.database.connect().await;
    other.execute_unprepared("BEGIN").await.unwrap();
    other.execute_unprepared("UPDATE permit_scope SET turn = turn + 1").await.unwrap();
    // Not on their way to an executor yet. Each comes in one batch with a fire of the serial task.
    let from = now_ms() + 5_000;
    let succeeded = |task: i64| {
        format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10 AND fire_time >= {from}")
    };
    await_until("what has no limit goes on", 45, || async {
        when(world.database.number(&succeeded(free)).await >= FIRES)
    })
    .await;
    assert_eq!(world.database.number(&succeeded(serial)).await, 0, "the rows were not held");
    other.execute_unprepared("ROLLBACK").await.unwrap();
    other.close().await.unwrap();
    await_until("the others follow", 60, || async { when(world.database.number(&succeeded(serial)).await >= FIRES) })
        .await;
    world.assert_quiet(&[]);
}

/// One after the other, so that what waits shows: by its policy it gives up, and the most urgent
/// goes first.
async fn waiting_ends_and_the_urgent_come_first(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let patient = |strategy: &str, retries: i32| {
        json!({
            "max_concurrent": 1, "wait_timeout_ms": 700, "failure_strategy": strategy, "max_retries": retries,
            "retry_interval_ms": 300,
        })
    };
    let failing = staying(&api, &app, "failing", 3_000, patient("retry", 0)).await;
    let discarding = staying(&api, &app, "discarding", 3_000, patient("discard", 0)).await;
    let again = staying(&api, &app, "again", 3_000, patient("retry", 20)).await;
    // Where the executor is the one that lets them wait.
    let mut serial = patient("retry", 0);
    serial["max_concurrent"] = json!(0);
    serial["block_strategy"] = json!("serial");
    let in_line = staying(&api, &app, "in line", 3_000, serial).await;
    let mut pairs = Vec::new();
    for task in [failing, discarding, again, in_line] {
        let first = api.run(task, None).await;
        world.await_inside(task, 1).await;
        pairs.push((first, api.run(task, Some(r#"{"ms": 10}"#)).await));
    }
    let expected = [
        (Status::Failed, "wait_timed_out"),
        (Status::Discarded, "wait_timed_out"),
        (Status::Succeeded, ""),
        (Status::Failed, "wait_timed_out"),
    ];
    for ((first, second), (status, reason)) in pairs.into_iter().zip(expected) {
        let (first, second) = (world.await_end(first).await, world.await_end(second).await);
        assert_eq!(first.status, Status::Succeeded, "{first:?}");
        assert_eq!((second.status, second.reason.as_str()), (status, reason), "{second:?}");
        assert!(second.failures > 0, "each wait that was too long counts: {second:?}");
        if status != Status::Succeeded {
            assert!(second.message.contains("700 ms"), "it says how long: {second:?}");
            assert_eq!(second.started_at, 0, "{second:?}");
        }
    }

    // The priority of a task within its app, and of a run within its task.
    api.bound_app("retail", "orders", 1).await;
    world.await_rules().await;
    let usual = staying(&api, &app, "usual", 50, json!({})).await;
    let urgent = staying(&api, &app, "urgent", 50, json!({ "priority": 9 })).await;
    let lazy = staying(&api, &app, "lazy", 50, json!({ "priority": 1, "max_concurrent": 1 })).await;
    let first = api.run(usual, Some(r#"{"ms": 2500}"#)).await;
    world.await_inside(usual, 1).await;
    let mut lows = Vec::new();
    let mut highs = Vec::new();
    for _ in 0..3 {
        lows.push(api.run(lazy, None).await);
        lows.push(api.run(usual, None).await);
        highs.push(api.run(urgent, None).await);
    }
    let hurried = api.run_log_with(lazy, json!({ "priority": 8 })).await;
    let all: Vec<i64> = [&[first][..], &lows, &highs, &[hurried]].concat();
    world.await_ends(&all).await;
    let mut visits = of_all(&world, &[usual, urgent, lazy]);
    visits.sort_by_key(|visit| visit.start_us);
    assert_eq!(most_at_once(&visits), 1);
    let turns = order(&visits);
    let expected: Vec<i64> =
        [&[first][..], &highs, &[hurried], &[lows[1], lows[3], lows[5]], &[lows[0], lows[2], lows[4]]].concat();
    assert_eq!(turns, expected, "not by priority: {}", sample(&visits));
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}
