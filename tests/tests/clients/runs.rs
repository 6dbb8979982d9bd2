//! Runs that go well, and those that fail.

use crate::{SOON, Stand};
use carillon_tests::events::Events;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Fires, Library, Status, now_ms};
use serde_json::json;
use std::collections::BTreeSet;

clients!(it_registers_and_runs_on_the_instant: java_2_2_0 java_2_5_0 java_3_3_2 python go node);
clients!(parameters_and_answers_are_carried: java_2_2_0 java_2_5_0 java_3_3_2 python go node);
clients!(shards_over_three: java_2_5_0 java_3_3_2 python go node);
clients!(a_failure_is_tried_again: java_2_2_0 java_2_5_0 java_3_3_2 python go node);
clients!(a_time_out_ends_it: java_2_5_0 java_3_3_2 python go node);
clients!(the_log_is_followed_while_it_is_written: java_2_5_0 java_3_3_2 python go node);

async fn it_registers_and_runs_on_the_instant(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("echo", json!({ "cron": "* * * * * ?", "params": "tick" })).await;
    let began = now_ms();
    client.await_starts("echo", 6).await;
    let until = now_ms() - 2_000;
    stand.api.stop(task).await;
    stand.world.settle().await;
    let rows = stand.world.database.logs(&format!("task_id = {task}")).await;
    let fires = Fires::every(1, &rows).assert_no_gap().between(began + 2_000, until);
    assert!(!fires.is_empty());
    for row in &fires {
        assert_eq!((row.status, row.attempt), (Status::Succeeded, 1), "{row:?}");
        assert!(row.started_at >= row.fire_time, "{row:?}");
    }
    // All of one clock: this machine's.
    for start in client.starts("echo") {
        assert!(start.at % 1_000 < 900, "early: {start:?}");
    }
    let runs: BTreeSet<i64> = client.starts("echo").iter().map(|start| start.log).collect();
    assert_eq!(runs.len(), client.starts("echo").len(), "each run comes once");
    stand.world.assert_quiet(&[]);
}

async fn parameters_and_answers_are_carried(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("echo", json!({ "params": "of the task" })).await;
    let odd = "a=1&b=\"two\" äöü€😀\n{\"c\":[3]}";
    for params in [None, Some(odd)] {
        let expected = params.unwrap_or("of the task");
        let row = stand.end(stand.api.run(task, params).await).await;
        assert_eq!((row.status, row.output), (Status::Succeeded, library.answer(expected)));
        assert_eq!(client.starts("echo").last().unwrap().param, expected);
    }
    let missing = stand.task("nobody has it", json!({ "max_retries": 0 })).await;
    let row = stand.end(stand.run(missing).await).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "not_accepted"), "{row:?}");
    stand.world.assert_quiet(&[]);
}

async fn shards_over_three(library: Library) {
    let stand = Stand::new(library, &SOON).await;
    let clients = [stand.client().await, stand.client().await, stand.client().await];
    let task = stand.task("shard", json!({ "routing": "sharding" })).await;
    let log = stand.run(task).await;
    assert_eq!(stand.end(log).await.status, Status::Succeeded);
    let shards = stand.world.database.logs(&format!("parent_id = {log}")).await;
    let answers: Vec<String> = shards.iter().map(|shard| shard.output.clone()).collect();
    assert_eq!(answers, ["0/3", "1/3", "2/3"].map(|answer| library.answer(answer)));
    assert!(clients.iter().all(|client| client.starts("shard").len() == 1), "one at each");
    stand.world.assert_quiet(&[]);
}

async fn a_failure_is_tried_again(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    for (handler, result) in [("fail", "failed"), ("throw", "thrown")] {
        let task = stand.task(handler, json!({ "params": "no luck today", "max_retries": 1 })).await;
        let row = stand.end(stand.run(task).await).await;
        assert_eq!((row.status, row.attempt, row.failures), (Status::Failed, 2, 2), "{row:?}");
        assert!(row.message.contains("no luck today"), "{row:?}");
        let ends = client.ends(handler);
        assert!(ends.len() == 2 && ends[0].log != ends[1].log, "each attempt has a number of its own: {ends:?}");
        assert!(ends.iter().all(|end| end.result == result), "{ends:?}");
    }
    stand.world.assert_quiet(&[]);
}

async fn a_time_out_ends_it(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("sleep", json!({ "params": "45000", "timeout_ms": 1_500, "max_retries": 0 })).await;
    let row = stand.end(stand.run(task).await).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "timed_out"), "{row:?}");
    let took = row.finished_at - row.started_at;
    assert!((1_500..20_000).contains(&took), "in whole seconds, rounded up: {row:?}");
    await_until("its handler is told", 20, || async { when(!client.ends("sleep").is_empty()) }).await;
    stand.world.assert_quiet(&[]);
}

async fn the_log_is_followed_while_it_is_written(library: Library) {
    const LINES: usize = 30;
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("lines", json!({ "params": format!("{LINES},100") })).await;
    let log = stand.run(task).await;
    client.await_starts("lines", 1).await;
    let reply = stand.api.open(&format!("/task-logs/{log}/output/stream"), None).await;
    let mut events = Events::of(reply);
    let mut said = String::new();
    let mut while_it_ran = 0;
    while let Some(event) = events.next().await {
        if event.kind == "message" {
            said.push_str(event.data["text"].as_str().unwrap());
            if client.ends("lines").is_empty() {
                while_it_ran = said.lines().count();
            }
        } else {
            assert_eq!((event.kind.as_str(), &event.data["why"]), ("end", &json!("complete")), "{event:?}");
        }
    }
    assert!(while_it_ran >= 3, "it was followed only after its end");
    assert_lines(&said, LINES);
    assert_eq!(stand.end(log).await.status, Status::Succeeded);
    let (mut again, mut offset) = (String::new(), 0);
    loop {
        let page = stand.api.get(&format!("/task-logs/{log}/output?offset={offset}&bytes=200")).await;
        again.push_str(page["text"].as_str().unwrap());
        offset = page["next"].as_u64().unwrap();
        if page["more"] == false {
            assert_eq!((&page["state"], &page["final"]), (&json!("ended"), &json!(true)), "{page}");
            break;
        }
    }
    assert_eq!(again, said, "page by page it is the same");
    stand.world.assert_quiet(&[]);
}

/// Each line of the handler, in order and once, among what the library logs of its own.
fn assert_lines(output: &str, lines: usize) {
    let of_handler: Vec<&str> = output.lines().filter(|line| line.contains(&format!(" of {lines}"))).collect();
    assert_eq!(of_handler.len(), lines, "{output}");
    for (line, number) in of_handler.iter().zip(1..) {
        assert!(line.contains(&format!("line {number} of {lines}")), "{number}: {line}");
    }
}
