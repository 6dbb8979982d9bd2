//! `max_fires`: exactly so many, whatever happens in between.

use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Kind, LogRow, Status, World, await_until, now_ms};
use serde_json::json;

scenario!(exactly_so_many: sqlite mariadb);

const FIRES: i64 = 12;

async fn exactly_so_many(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let bounded = json!({ "cron": "* * * * * ?", "max_fires": FIRES });
    let alone = api.make_task(&app, "alone", "tick", bounded.clone()).await;
    let edited = api.make_task(&app, "edited", "tick", bounded.clone()).await;
    let paused = api.make_task(&app, "paused", "tick", bounded.clone()).await;
    let manual = api.make_task(&app, "by hand too", "tick", bounded.clone()).await;
    let mut failing = bounded.clone();
    failing["max_retries"] = 1.into();
    failing["retry_interval_ms"] = 60_000.into();
    let failing = api.make_task(&app, "failing", "fail", failing).await;
    let tasks = [alone, edited, paused, manual, failing];
    // Far in the future: it waits when the task is paused, and is no fire of the schedule.
    for delay_ms in [600_000, 700_000, 800_000] {
        api.run_with(manual, json!({ "delay_ms": delay_ms })).await;
    }
    world.await_successes(edited, 2).await;
    api.edit(edited, json!({ "description": "one" })).await;
    api.pause(paused, "a look at the data").await;
    api.pause(manual, "a look at the data").await;
    // Its first fires have failed once, and wait for another attempt: those fires have been.
    api.edit(failing, json!({ "description": "one" })).await;
    world.await_successes(edited, 4).await;
    node.process.kill9().await;
    world.unready_node("a", node.port, &[]).ready().await;
    api.start(paused).await;
    api.start(manual).await;
    world.await_successes(edited, 7).await;
    api.edit(edited, json!({ "description": "two" })).await;
    for task in tasks {
        let open = format!(
            "SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status IN (0, 1, 2) AND fire_time < {}",
            now_ms() + 300_000
        );
        await_until(&format!("task {task} has no fire left"), 60, || async {
            when(api.task(task).await["written_until"].is_null() && world.database.number(&open).await == 0)
        })
        .await;
    }
    let preview = api.get(&format!("/tasks/{edited}/preview?count=5")).await;
    assert_eq!(preview["items"], json!([]), "nothing is left to preview");
    let mut fires = Vec::new();
    for task in tasks {
        fires.push(api.task(task).await["fires"].as_i64());
    }
    // The retries of the failing one are a minute away.
    api.stop(failing).await;
    let (rows, starts) = world.end_well().await;
    for (what, task) in ["alone", "edited", "paused", "by hand too", "failing"].into_iter().zip(tasks) {
        let of_task: Vec<LogRow> =
            rows.iter().filter(|row| row.task == task && row.trigger != "manual").cloned().collect();
        let ran: Vec<LogRow> =
            of_task.into_iter().filter(|row| starts.iter().any(|start| start.log == row.id)).collect();
        assert_eq!(ran.len() as i64, FIRES, "{what}: {}", sample(&ran));
        if task != failing {
            assert_all("run", &ran, |row| row.status == Status::Succeeded);
        }
    }
    assert_eq!(fires, [Some(FIRES); 5]);
}
