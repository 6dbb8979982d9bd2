//! An executor is stopped in good order.

use crate::sharing::every_second;
use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::wait::{sample, when};
use carillon_tests::{Fires, Kind, Status, World, await_until, now_ms, now_us, pass};
use serde_json::json;
use std::collections::HashMap;

scenario!(executor_stopped_gracefully_returns_what_it_holds: sqlite mariadb postgres);
scenario!(executor_leaves_while_its_node_stands_still: mariadb postgres);

async fn executor_stopped_gracefully_returns_what_it_holds(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let leaving = world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let mut tasks = every_second(&api, &app, 4).await;
    for number in 0..2 {
        // Some of these run when the signal comes, and must be let finish.
        let fields = json!({ "cron": "* * * * * ?", "params": "2500" });
        tasks.push(api.make_task(&app, &format!("long {number}"), "sleep", fields).await);
    }
    let made_at = now_ms();
    pass(8.0).await;
    let id = world.database.executor_at(leaving.port).await;
    let running = await_until("something runs on the leaving executor", 20, || async {
        let running = format!("status = 2 AND executor_id = {id} AND due_time < {}", now_ms() - 100);
        Some(world.database.logs(&running).await).filter(|rows| !rows.is_empty())
    })
    .await;
    let asked_at = now_ms();
    assert_eq!(leaving.process.sigterm(40).await, Some(0), "{}", leaving.process.log_digest());
    assert!(now_ms() - asked_at < 30_000, "leaving took {} ms", now_ms() - asked_at);
    pass(6.0).await;
    let until = now_ms() - 6_000;
    let (rows, starts) = world.settle_and_check().await;
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        let fires = Fires::every(1, &of_task).assert_no_gap().between(made_at + 4_000, until);
        assert_all("succeeded, none run twice", &fires, |row| row.status == Status::Succeeded && row.failures == 0);
    }
    assert_on_time("around the stop", &fired_within(&rows, made_at + 6_000, until), &starts, 1_500);
    for before in running {
        let row = rows.iter().find(|row| row.id == before.id).unwrap();
        assert_eq!((row.executor, row.attempt), (before.executor, before.attempt), "was let finish: {row:?}");
    }
}

/// Results that are on their way to a node that stands still go to another one before the executor ends: a success that no
/// node knows of would be repeated.
async fn executor_leaves_while_its_node_stands_still(kind: Kind) {
    let world = World::new(kind).await;
    let still = world.node("a", &[]).await;
    world.node("b", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let leaving = world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    every_second(&api, &app, 4).await;
    pass(6.0).await;
    still.process.signal("STOP");
    let stopped_at_us = now_us();
    await_until("the executor runs something whose result meets the paused node", 20, || async {
        when(leaving.starts().iter().any(|start| start.started_at_us > stopped_at_us))
    })
    .await;
    let exit = leaving.process.sigterm(40).await;
    still.process.signal("CONT");
    let log = leaving.process.log();
    assert_eq!(exit, Some(0), "{}", leaving.process.log_digest());
    assert!(!log.contains("executor.results_left_in_journal"), "{}", leaving.process.log_digest());
    pass(4.0).await;
    let (_, starts) = world.settle_and_check().await;
    let mut times: HashMap<i64, usize> = HashMap::new();
    for start in &starts {
        *times.entry(start.log).or_default() += 1;
    }
    let repeated: Vec<_> = starts.iter().filter(|start| times[&start.log] > 1).collect();
    assert!(repeated.is_empty(), "started more than once: {}", sample(&repeated));
}
