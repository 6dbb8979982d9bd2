//! What is known of single client libraries, by what they call with.

use super::{NEVER, Stand, TOKEN, await_runs, by_hand, stand_with};
use carillon_tests::plain_executor::PlainExecutor;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Kind, LogRow, Status, pass};
use serde_json::json;

scenario!(go_calls_every_end_a_success: sqlite mariadb);
scenario!(runs_of_one_handler_never_meet_at_a_go_executor: sqlite mariadb postgres);
scenario!(an_address_may_have_a_path: sqlite postgres);

const GO: &str = "Go-http-client/1.1";

async fn go(stand: &Stand) -> PlainExecutor {
    let executor = PlainExecutor::start("orders", TOKEN, &stand.world.node_urls()).await;
    executor.script(|script| {
        GO.clone_into(&mut script.agent);
        script.calls_back = None;
    });
    assert_eq!(executor.register().await["code"], 200);
    executor
}

async fn go_calls_every_end_a_success(kind: Kind) {
    let stand = stand_with(kind, &[]).await;
    let executor = go(&stand).await;
    let timeout = json!({ "timeout_ms": 1_000, "max_retries": 0 });
    let task = by_hand(&stand, "ends", timeout).await;
    let run = async |round: usize| {
        let log = stand.api.run(task, None).await;
        (log, await_runs(&executor, "ends", round).await[round - 1])
    };
    let end = async |(log, number): (i64, i64)| -> LogRow {
        assert_eq!(executor.call_back(&[(number, 200, "said")]).await["code"], 200);
        stand.world.await_end(log).await
    };
    let row = end(run(1).await).await;
    assert_eq!((row.status, row.output.as_str()), (Status::Succeeded, "said"), "{row:?}");
    // Its context ends after a second, its handler returns as always.
    let late = run(2).await;
    pass(1.1).await;
    let row = end(late).await;
    assert_eq!((row.status, row.reason.as_str(), row.output.as_str()), (Status::Failed, "timed_out", ""), "{row:?}");
    let killed = run(3).await;
    assert_eq!(stand.api.kill(killed.0).await.0, 202);
    let row = end(killed).await;
    assert_eq!((row.status, row.output.as_str()), (Status::Cancelled, ""), "{row:?}");
    assert!(row.message.contains("said"), "{row:?}");
    stand.world.assert_quiet(&[]);
}

async fn runs_of_one_handler_never_meet_at_a_go_executor(kind: Kind) {
    let stand = stand_with(kind, &[]).await;
    let (one, other) = (go(&stand).await, go(&stand).await);
    let count = || one.got("/run").len() + other.got("/run").len();
    let fields = json!({ "cron": NEVER, "routing": "first", "max_retries": 0 });
    let mut tasks = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        tasks.push(stand.api.make_task(&stand.app, name, "shared", fields.clone()).await);
    }
    // One after the other: each goes where none is.
    for (place, task) in tasks.iter().take(2).enumerate() {
        stand.api.run(*task, None).await;
        await_until("it has come", 60, || async { when(count() == place + 1) }).await;
    }
    assert_eq!((one.got("/run").len(), other.got("/run").len()), (1, 1));
    let none_left = stand.api.run(tasks[2], None).await;
    let row = stand.world.await_end(none_left).await;
    assert_eq!((row.status, count()), (Status::Failed, 2), "{row:?}");
    for executor in [&one, &other] {
        let number = executor.runs_of("shared")[0];
        assert_eq!(executor.call_back(&[(number, 200, "")]).await["code"], 200);
    }
    // All at one instant, through both nodes where there are two.
    stand.world.await_ends(&[none_left]).await;
    await_until("both have ended", 60, || async { when(stand.world.database.logs("status = 2").await.is_empty()) })
        .await;
    let mut logs = Vec::new();
    for task in &tasks {
        logs.push(stand.api.run_log_with(*task, json!({ "delay_ms": 4_000 })).await);
    }
    await_until("all but two have failed", 60, || async {
        let mut open = 0;
        for log in &logs {
            open += usize::from(!stand.world.database.log(*log).await.status.is_terminal());
        }
        when(open <= 2)
    })
    .await;
    // The first one of each has ended.
    let both = [one.got("/run").len(), other.got("/run").len()];
    assert!(both.iter().all(|runs| *runs <= 2), "two runs of one handler are open at an executor: {both:?}");
    assert!(count() > 2, "none has come");
    // Another handler goes on beside them.
    let another = by_hand(&stand, "another", json!({ "routing": "first" })).await;
    let log = stand.api.run(another, None).await;
    await_until("it has come", 60, || async {
        when(one.runs_of("another").len() + other.runs_of("another").len() == 1)
    })
    .await;
    for executor in [&one, &other] {
        let open: Vec<i64> = executor.got("/run").iter().map(|run| run.body["logId"].as_i64().unwrap()).collect();
        let ends: Vec<(i64, i32, &str)> = open.iter().map(|number| (*number, 200, "")).collect();
        assert_eq!(executor.call_back(&ends).await["code"], 200);
    }
    assert_eq!(stand.world.await_end(log).await.status, Status::Succeeded);
    stand.world.await_ends(&logs).await;
    stand.world.assert_quiet(&[]);
}

/// npm's shares a server with other routes.
async fn an_address_may_have_a_path(kind: Kind) {
    let stand = stand_with(kind, &[]).await;
    let executor = PlainExecutor::start_below("/shop/job/", "orders", TOKEN, &stand.world.node_urls()).await;
    assert_eq!(executor.register().await["code"], 200);
    executor.script(|script| script.lines = Some(vec!["logged".to_owned()]));
    let task = by_hand(&stand, "below", json!({})).await;
    let log = stand.api.run(task, None).await;
    assert_eq!(stand.world.await_end(log).await.status, Status::Succeeded);
    let page = stand.api.get(&format!("/task-logs/{log}/output")).await;
    assert_eq!(page["text"], "logged\n", "{page}");
    await_until("it is asked whether it is there", 60, || async { when(!executor.got("/beat").is_empty()) }).await;
    assert_eq!(executor.remove().await["code"], 200);
    await_until("it is gone", 30, || async { when(stand.api.get("/executors").await["items"] == json!([])) }).await;
    stand.world.assert_quiet(&[]);
}
