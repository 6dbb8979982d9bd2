//! A node dies, or seems to.

use crate::sharing::every_second;
use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::node::QUICK;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Fires, Kind, LogRow, Start, Status, World, await_until, now_ms, pass};
use serde_json::json;
use std::collections::HashMap;

scenario!(node_killed_with_queued_rows: mariadb postgres);
scenario!(node_killed_with_a_long_lead_makes_nothing_late: mariadb postgres);
scenario!(only_node_killed_and_started_again: sqlite postgres);
scenario!(paused_node_is_a_zombie_that_writes_nothing: mariadb postgres);

/// H1: rows that a dead node had queued are taken by the others.
async fn node_killed_with_queued_rows(kind: Kind) {
    let (rows, starts, killed_at) = kill_a_node(kind, "1s").await;
    assert_on_time("before the death", &fired_within(&rows, 0, killed_at), &starts, 1_500);
}

/// Promise 10: with a lead two seconds longer than a node may be silent, nothing is late.
async fn node_killed_with_a_long_lead_makes_nothing_late(kind: Kind) {
    let (rows, starts, killed_at) = kill_a_node(kind, "5300ms").await;
    assert_on_time("around the death", &fired_within(&rows, killed_at - 4_000, i64::MAX), &starts, 1_500);
}

/// Two nodes, one of which (with the leases) is killed; all fires happen. Rows from 6 s after
/// the tasks were made on, when every lead is filled.
async fn kill_a_node(kind: Kind, before_interval: &str) -> (Vec<LogRow>, Vec<Start>, i64) {
    let world = World::new(kind).await;
    let settings = [QUICK, &[("schedulers.before_interval", before_interval)]].concat();
    let victim = world.node("a", &settings).await;
    world.node("b", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let tasks = every_second(&api, &app, 10).await;
    let made_at = now_ms();
    pass(10.0).await;
    let a = world.database.node_id("a").await;
    let queued = format!("SELECT COUNT(*) FROM task_log WHERE status = 1 AND node_id = {a}");
    await_until("the node holds queued rows", 20, || async { when(world.database.number(&queued).await > 0) }).await;
    victim.process.kill9().await;
    let killed_at = now_ms();
    pass(9.0).await;
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    let mut fires = Vec::new();
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        fires.extend(Fires::every(1, &of_task).assert_no_gap().between(made_at + 6_000, until));
    }
    assert_all("succeeded", &fires, |row| row.status == Status::Succeeded);
    (fires, starts, killed_at)
}

/// The only node is away for longer than executors may be silent: that is its own fault, not
/// theirs, so no run may fail for want of an executor.
async fn only_node_killed_and_started_again(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fields = json!({ "cron": "* * * * * ?", "max_retries": 0 });
    let task = api.make_task(&app, "no retries", "tick", fields).await;
    let made_at = now_ms();
    world.await_successes(task, 4).await;
    node.process.kill9().await;
    pass(6.0).await;
    world.unready_node("a", node.port, QUICK).ready().await;
    let fresh = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {}", now_ms());
    await_until("fires after the restart succeed", 60, || async { when(world.database.number(&fresh).await > 2) })
        .await;
    let until = now_ms() - 3_000;
    let (rows, _) = world.settle_and_check().await;
    let fires = Fires::every(1, &rows).assert_no_gap().between(made_at + 1_000, until);
    assert_all("succeeded", &fires, |row| row.status == Status::Succeeded);
}

async fn paused_node_is_a_zombie_that_writes_nothing(kind: Kind) {
    let world = World::new(kind).await;
    let zombie = world.node("a", QUICK).await;
    let healthy = world.node("b", QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let tasks = every_second(&api, &app, 10).await;
    let made_at = now_ms();
    let (a, b) = (world.database.node_id("a").await, world.database.node_id("b").await);
    pass(4.0).await;
    zombie.process.signal("STOP");
    let taken_before: Vec<LogRow> = world.database.logs(&format!("status = 1 AND node_id = {a}")).await;
    pass(12.0).await;
    // Every row that the zombie still believes to hold belongs to another node by now.
    let mut still_queued = Vec::new();
    for row in &taken_before {
        let now = world.database.log(row.id).await;
        if now.status == Status::Queued && now.node == a {
            still_queued.push(now);
        }
    }
    assert!(still_queued.is_empty(), "no node took the paused node's rows: {}", sample(&still_queued));
    let ended: HashMap<i64, LogRow> =
        world.database.logs("status >= 10").await.into_iter().map(|row| (row.id, row)).collect();
    zombie.process.signal("CONT");
    pass(4.0).await;
    await_until("the woken node is ready again", 40, || async { when(zombie.probe("/readyz").await == Some(200)) })
        .await;
    assert!(healthy.process.is_running());
    let until = now_ms() - 5_000;
    let (rows, _) = world.settle_and_check().await;
    for row in &rows {
        if let Some(before) = ended.get(&row.id) {
            assert_eq!(row, before, "a run that had ended was changed after the zombie woke");
        }
    }
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        let fires = Fires::every(1, &of_task).assert_no_gap().between(made_at + 4_000, until);
        assert_all("succeeded", &fires, |row| row.status == Status::Succeeded);
    }
    let by_b = rows.iter().filter(|row| row.node == b && row.status == Status::Succeeded).count();
    assert!(by_b > 80, "the healthy node dispatched only {by_b}");
}
