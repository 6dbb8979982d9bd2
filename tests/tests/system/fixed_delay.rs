//! Fixed delay: one run after the other, so long after the end of the last, whatever happens.

use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Kind, LogRow, Status, World, await_until, now_ms};
use reqwest::Method;
use serde_json::json;

scenario!(a_chain_goes_on_after_failures_and_a_death: sqlite mariadb);
scenario!(edited_and_started_again_while_it_runs: sqlite mariadb);

const DELAY_MS: i64 = 1_000;

#[allow(clippy::needless_pass_by_value)] // callers make it in place
fn delay(fields: serde_json::Value) -> serde_json::Value {
    let mut whole = json!({ "schedule": "fixed_delay", "interval_ms": DELAY_MS });
    whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    whole
}

/// The task's scheduled runs that were not given up, one after the other.
fn links(rows: &[LogRow], task: i64) -> Vec<LogRow> {
    let is_link = |row: &&LogRow| row.task == task && row.trigger != "manual" && row.status != Status::Cancelled;
    rows.iter().filter(is_link).cloned().collect()
}

/// Each run begins exactly its delay after the end of the one before.
fn assert_chain(what: &str, links: &[LogRow]) {
    for pair in links.windows(2) {
        assert_eq!(pair[1].fire_time, pair[0].finished_at + DELAY_MS, "{what}: {pair:?}");
    }
}

async fn a_chain_goes_on_after_failures_and_a_death(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let plain = api.make_task(&app, "plain", "sleep", delay(json!({ "params": "300" }))).await;
    let retried = delay(json!({ "max_retries": 1, "retry_interval_ms": 200 }));
    let failing = api.make_task(&app, "failing", "fail", retried).await;
    let bounded = api.make_task(&app, "bounded", "tick", delay(json!({ "max_fires": 4 }))).await;
    let sharded = api.make_task(&app, "on all", "sharded", delay(json!({ "routing": "sharding" }))).await;
    let anchor = api.task(plain).await["created_at"].as_i64().unwrap();
    world.await_successes(plain, 2).await;
    // Beside the chain, and no part of it.
    api.run(plain, Some("100")).await;
    world.await_successes(plain, 4).await;
    // A run of it goes on at this moment, or is about to.
    await_until("the next run is dispatched", 20, || async {
        when(!world.database.logs(&format!("task_id = {plain} AND status = 2")).await.is_empty())
    })
    .await;
    node.process.kill9().await;
    let killed_at = now_ms();
    world.unready_node("a", node.port, &[]).ready().await;
    let more = format!("SELECT COUNT(*) FROM task_log WHERE status >= 10 AND fire_time > {killed_at} AND task_id = ");
    for task in [plain, failing, sharded] {
        await_until("the chain goes on after the death", 60, || async {
            when(world.database.number(&format!("{more}{task} AND parent_id = 0")).await >= 3)
        })
        .await;
    }
    await_until("the bounded one has ended", 40, || async { when(api.task(bounded).await["fires"] == 4) }).await;
    world.await_successes(bounded, 4).await;
    let (rows, _) = world.end_well().await;

    let runs = links(&rows, plain);
    assert_eq!(runs[0].fire_time, anchor + DELAY_MS, "the first counts from the start");
    assert_chain("plain", &runs);
    assert_all("run", &runs, |row| row.status == Status::Succeeded);
    let runs = links(&rows, failing);
    assert_chain("failing", &runs);
    assert_all("failed twice", &runs, |row| row.status == Status::Failed && row.failures == 2);
    let runs = links(&rows, bounded);
    assert_eq!(runs.len(), 4, "{}", sample(&runs));
    assert_chain("bounded", &runs);
    let parents: Vec<LogRow> = links(&rows, sharded).into_iter().filter(LogRow::is_parent).collect();
    assert!(parents.len() >= 3, "{}", sample(&parents));
    assert_chain("sharded", &parents);
}

/// Never two at once, and never two chains.
async fn edited_and_started_again_while_it_runs(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fields = delay(json!({ "params": "2500" }));
    let edited = api.make_task(&app, "edited", "sleep", fields.clone()).await;
    let restarted = api.make_task(&app, "restarted", "sleep", fields.clone()).await;
    let made_one =
        api.make_task(&app, "made one", "sleep", json!({ "params": "2500", "cron": "0/10 * * * * ?" })).await;
    let waiting = api.make_task(&app, "waiting", "sleep", delay(json!({ "params": "50" }))).await;

    world.await_successes(waiting, 1).await;
    for round in 0..4 {
        // At any moment: between two runs, while one is held, while one runs.
        api.edit(waiting, json!({ "description": format!("edit {round}") })).await;
        carillon_tests::pass(0.35 * f64::from(round)).await;
    }
    for task in [edited, restarted, made_one] {
        await_running(&world, task).await;
        match task {
            _ if task == edited => drop(api.edit(task, json!({ "description": "new" })).await),
            _ if task == restarted => {
                let left = api.stop(task).await;
                assert_eq!(left["running"].as_array().map(Vec::len), Some(1), "{left}");
                api.start(task).await;
            }
            _ => {
                let mut fields = fields.clone();
                fields["cron"] = "".into();
                drop(api.edit(task, fields).await);
            }
        }
    }
    let changed_at = now_ms();
    node.process.kill9().await;
    world.unready_node("a", node.port, &[]).ready().await;
    let more = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {changed_at} AND task_id = ");
    for task in [edited, restarted, made_one, waiting] {
        await_until(&format!("the chain of {task} goes on"), 60, || async {
            when(world.database.number(&format!("{more}{task}")).await >= 2)
        })
        .await;
    }
    let (rows, _) = world.end_well().await;
    for (what, task) in [("edited", edited), ("restarted", restarted), ("made one", made_one), ("waiting", waiting)] {
        let runs = links(&rows, task);
        for pair in runs.windows(2) {
            assert!(pair[1].fire_time >= pair[0].finished_at + DELAY_MS, "{what}: two at once or too soon: {pair:?}");
        }
        let after: Vec<LogRow> = runs.into_iter().filter(|row| row.fire_time > changed_at).collect();
        assert_chain(what, &after);
    }
    let (status, _) = api.send(Method::GET, &format!("/tasks/{edited}"), None).await;
    assert_eq!(status, 200);
}

async fn await_running(world: &World, task: i64) {
    await_until("a run goes on", 30, || async {
        let at = now_ms() - 300;
        let running = format!("task_id = {task} AND status = 2 AND due_time BETWEEN {} AND {at}", at - 1_000);
        when(!world.database.logs(&running).await.is_empty())
    })
    .await;
}
