//! Runs of a task that meet.

use crate::Stand;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Client, Library, LogRow, Status};
use serde_json::json;

clients!(a_serial_run_waits: java_2_5_0 java_3_3_2 python go node);
clients!(a_later_run_is_discarded: java_2_5_0 java_3_3_2 python go node);
clients!(an_earlier_run_is_covered: java_2_5_0 java_3_3_2 python go node);
clients!(runs_of_one_handler_are_kept_apart: java_2_5_0 python go node);

/// Two runs of a task, the second one while the first goes on.
async fn meet(stand: &Stand, client: &Client, task: i64) -> (i64, i64) {
    let before = client.starts("sleep").len();
    let first = stand.run(task).await;
    client.await_starts("sleep", before + 1).await;
    (first, stand.run(task).await)
}

/// One begins when the other has ended.
fn assert_apart(client: &Client) {
    let (starts, ends) = (client.starts("sleep"), client.ends("sleep"));
    for (end, next) in ends.iter().zip(starts.iter().skip(1)) {
        assert!(next.at >= end.at, "{starts:?} {ends:?}");
    }
}

/// The executor's own strategy, and that of the app's scope, which holds for every library.
async fn a_serial_run_waits(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    for scope in ["executor", "app"] {
        // Where it does not wait, it is refused, and tried again.
        let fields = json!({ "block_strategy": "serial", "block_scope": scope, "params": "1500", "max_retries": 10 });
        let task = stand.task("sleep", fields).await;
        let (first, second) = meet(&stand, &client, task).await;
        let (first, second) = (stand.end(first).await, stand.end(second).await);
        assert_eq!((first.status, second.status), (Status::Succeeded, Status::Succeeded), "{first:?} {second:?}");
        assert_eq!(second.failures > 0, scope == "executor" && !library.queues, "{second:?}");
        assert_apart(&client);
    }
    stand.world.assert_quiet(&[]);
}

async fn a_later_run_is_discarded(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    for scope in ["executor", "app"] {
        let fields = json!({ "block_strategy": "discard_later", "block_scope": scope, "params": "2000" });
        let before = client.starts("sleep").len();
        let task = stand.task("sleep", fields).await;
        let (first, second) = meet(&stand, &client, task).await;
        let second = stand.end(second).await;
        assert_eq!((second.status, second.reason.as_str()), (Status::Discarded, "blocked"), "{second:?}");
        assert_eq!(stand.end(first).await.status, Status::Succeeded);
        assert_eq!(client.starts("sleep").len(), before + 1);
    }
    stand.world.assert_quiet(&[]);
}

fn assert_covered(row: &LogRow) {
    assert_eq!((row.status, row.attempt, row.failures), (Status::Cancelled, 1, 0), "{row:?}");
}

async fn an_earlier_run_is_covered(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    for scope in ["executor", "app"] {
        let before = client.starts("sleep").len();
        let fields = json!({ "block_strategy": "cover_early", "block_scope": scope, "max_retries": 0 });
        let task = stand.task("sleep", fields).await;
        let first = stand.api.run(task, Some("30000")).await;
        client.await_starts("sleep", before + 1).await;
        let second = stand.api.run(task, Some("100")).await;
        let second = stand.end(second).await;
        if scope == "executor" && !library.covers {
            assert_eq!((second.status, client.starts("sleep").len()), (Status::Failed, before + 1), "{second:?}");
            assert_eq!(stand.api.kill(first).await.0, 202);
        } else {
            assert_eq!(second.status, Status::Succeeded, "{second:?}");
        }
        assert_covered(&stand.end(first).await);
        await_until("both have ended there", 20, || async {
            when(client.ends("sleep").len() == client.starts("sleep").len())
        })
        .await;
    }
    stand.world.assert_quiet(&[]);
}

/// Of tasks that have nothing to do with each other, as schedules go: all at one instant.
async fn runs_of_one_handler_are_kept_apart(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let mut logs = Vec::new();
    for name in ["a", "b", "c"] {
        let fields = json!({ "params": format!("700-{name}"), "max_retries": 20, "retry_jitter_percent": 50 });
        let task = stand.task("echo", fields).await;
        logs.push((name, stand.api.run_log_with(task, json!({ "delay_ms": 3_000 })).await));
    }
    for (name, log) in logs {
        let row = stand.end(log).await;
        assert_eq!((row.status, row.output), (Status::Succeeded, library.answer(&format!("700-{name}"))));
    }
    assert_eq!(client.starts("echo").len(), 3, "each began once");
    stand.world.assert_quiet(&[]);
}
