//! Several nodes, one database.

use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::{Api, App, Fires, Kind, Status, World, now_ms, pass};
use serde_json::json;

scenario!(two_nodes_share_the_work: mariadb postgres);
scenario!(graceful_stop_under_load: mariadb postgres);

/// Makes `count` tasks that fire every second; their ids.
pub async fn every_second(api: &Api, app: &App, count: usize) -> Vec<i64> {
    let mut tasks = Vec::new();
    for number in 0..count {
        let fields = json!({ "cron": "* * * * * ?", "retry_interval_ms": 500 });
        tasks.push(api.make_task(app, &format!("every second {number}"), "tick", fields).await);
    }
    tasks
}

async fn two_nodes_share_the_work(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    world.node("b", &[]).await;
    let api = world.api();
    assert_eq!(api.get("/nodes").await["items"].as_array().map(Vec::len), Some(2));
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let tasks = every_second(&api, &app, 20).await;
    let from = now_ms();
    pass(16.0).await;
    let until = now_ms() - 3_000;
    let (a, b) = (world.database.node_id("a").await, world.database.node_id("b").await);
    let (rows, starts) = world.settle_and_check().await;
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        let fires = Fires::every(1, &of_task).assert_no_gap().between(from + 2_000, until);
        assert_all("succeeded without a failure", &fires, |row| row.status == Status::Succeeded && row.failures == 0);
        // Both nodes know the app's key by then.
        let fires = Fires::every(1, &of_task).between(from + 8_000, until);
        assert_all("sent once and succeeded", &fires, |row| row.status == Status::Succeeded && row.attempt == 1);
    }
    let due = fired_within(&rows, from + 6_000, until);
    assert_on_time("two nodes", &due, &starts, 1_500);
    let by = |node: i64| due.iter().filter(|row| row.node == node).count();
    let (by_a, by_b) = (by(a), by(b));
    assert_eq!(by_a + by_b, due.len(), "another node dispatched");
    // H6, X2: neither takes all.
    assert!(by_a.min(by_b) * 10 >= due.len(), "a dispatched {by_a}, b {by_b}");
}

/// Promise 7: what the leaving node held goes back before it leaves.
async fn graceful_stop_under_load(kind: Kind) {
    let world = World::new(kind).await;
    let leaving = world.node("a", &[]).await;
    world.node("b", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let tasks = every_second(&api, &app, 200).await;
    let from = now_ms();
    pass(8.0).await;
    let asked_at = now_ms();
    assert_eq!(leaving.process.sigterm(30).await, Some(0), "{}", leaving.process.log_digest());
    let took_ms = now_ms() - asked_at;
    pass(6.0).await;
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    for task in &tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == *task).cloned().collect();
        let fires = Fires::every(1, &of_task).assert_no_gap().between(from + 3_000, until);
        assert_all("succeeded", &fires, |row| row.status == Status::Succeeded && row.failures == 0);
    }
    assert_on_time("around the stop", &fired_within(&rows, asked_at - 2_000, until), &starts, 2_000);
    assert!(took_ms < 20_000, "leaving took {took_ms} ms");
    let left = world.database.number("SELECT COUNT(*) FROM node WHERE name = 'a' AND left_at > 0").await;
    assert_eq!(left, 1, "the node said good-bye");
}
