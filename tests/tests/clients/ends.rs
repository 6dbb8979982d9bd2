//! Runs that are stopped, and executors that end, with or without a word.

use crate::{SOON, Stand, TOKEN};
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Client, Library, Status};
use serde_json::json;

clients!(a_killed_run_is_cancelled_and_no_other: java_2_2_0 java_2_5_0 java_3_3_2 python go node);
clients!(runs_of_a_killed_executor_go_to_another: java_2_5_0 java_3_3_2 python go node);
clients!(runs_lost_with_a_restart_are_found: java_2_2_0 java_2_5_0 java_3_3_2 python go node);
clients!(a_slow_answer_does_not_double_a_run: java_2_5_0 java_3_3_2 python go node);
clients!(who_leaves_ends_what_it_has_and_gets_nothing_more: java_2_5_0 java_3_3_2 python go node);
clients!(a_wrong_token_is_refused: java_2_5_0 java_3_3_2 python go node);

async fn a_killed_run_is_cancelled_and_no_other(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("sleep", json!({ "max_retries": 1 })).await;
    let killed = stand.api.run(task, Some("60000")).await;
    client.await_starts("sleep", 1).await;
    // It waits behind it, and is taken off the queue with it.
    let queued = if library.queues { Some(stand.api.run(task, Some("100")).await) } else { None };
    if let Some(queued) = queued {
        await_until("it is there", 20, || async {
            when(stand.world.database.log(queued).await.status == Status::Dispatched)
        })
        .await;
    }
    // 200 where its client answers once the run has ended.
    let (status, answer) = stand.api.kill(killed).await;
    assert!(status == 202 || answer["status"] == "cancelled", "{status} {answer}");
    let row = stand.end(killed).await;
    assert_eq!((row.status, row.attempt, row.failures), (Status::Cancelled, 1, 0), "{row:?}");
    await_until("its handler was told", 20, || async {
        when(client.events().iter().any(|event| event.kind == "interrupt"))
    })
    .await;
    let next = match queued {
        Some(queued) => queued,
        None => stand.api.run(task, Some("100")).await,
    };
    let row = stand.end(next).await;
    assert_eq!((row.status, row.failures), (Status::Succeeded, 0), "{row:?}");
    stand.world.assert_quiet(&[]);
}

/// Nothing listens there any more.
async fn runs_of_a_killed_executor_go_to_another(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("sleep", json!({ "delivery": "at_least_once", "max_retries": 1, "params": "4000" })).await;
    let log = stand.run(task).await;
    client.await_starts("sleep", 1).await;
    client.process.kill9().await;
    let other = stand.client().await;
    let row = stand.end(log).await;
    assert_eq!((row.status, row.attempt), (Status::Succeeded, 2), "{row:?}");
    assert_eq!(other.starts("sleep").len(), 1);
    stand.await_online(&client, false).await;
    stand.world.assert_quiet(&[]);
}

/// The process at its address has never heard of them.
async fn runs_lost_with_a_restart_are_found(library: Library) {
    let (stand, mut client) = Stand::with_client(library).await;
    let fields = |delivery: &str| json!({ "delivery": delivery, "max_retries": 1, "params": "3000" });
    let once = stand.task("sleep", fields("at_most_once")).await;
    let again = stand.task("stubborn", fields("at_least_once")).await;
    let (once, again) = (stand.run(once).await, stand.run(again).await);
    client.await_starts("sleep", 1).await;
    client.await_starts("stubborn", 1).await;
    client.process.kill9().await;
    client.restart();
    let row = stand.end(once).await;
    assert_eq!((row.status, row.attempt), (Status::Failed, 1), "{row:?}");
    let row = stand.end(again).await;
    assert_eq!((row.status, row.attempt), (Status::Succeeded, 2), "{row:?}");
    assert_eq!((client.starts("sleep").len(), client.starts("stubborn").len()), (1, 2));
    stand.world.assert_quiet(&[]);
}

/// It gets the request, and answers when the node has stopped waiting.
async fn a_slow_answer_does_not_double_a_run(library: Library) {
    // It stays online meanwhile.
    let stand = Stand::new(library, &[("executors.offline_after", "15s")]).await;
    let (client, other) = (stand.client().await, stand.client().await);
    let task = stand.task("echo", json!({ "params": "slow", "routing": "first" })).await;
    let warm = stand.end(stand.run(task).await).await;
    assert_eq!(warm.status, Status::Succeeded);
    let first = if client.starts("echo").len() == 1 { &client } else { &other };
    first.process.signal("STOP");
    let log = stand.run(task).await;
    await_until("the node has stopped waiting", 30, || async {
        when(stand.world.node_logs().contains("dispatch unconfirmed"))
    })
    .await;
    first.process.signal("CONT");
    let row = stand.end(log).await;
    assert_eq!((row.status, row.attempt), (Status::Succeeded, 1), "{row:?}");
    assert_eq!(client.starts("echo").len() + other.starts("echo").len(), 2, "each began once");
    stand.world.assert_quiet(&[]);
}

async fn who_leaves_ends_what_it_has_and_gets_nothing_more(library: Library) {
    let stand = Stand::new(library, &SOON).await;
    let leaves = stand.client().await;
    let task = stand.task("sleep", json!({ "delivery": "at_least_once", "max_retries": 1, "params": "2500" })).await;
    let log = stand.run(task).await;
    leaves.await_starts("sleep", 1).await;
    leaves.process.signal("TERM");
    stand.await_online(&leaves, false).await;
    let stays = stand.client().await;
    let row = stand.end(log).await;
    assert_eq!(row.status, Status::Succeeded, "{row:?}");
    assert_eq!(
        (row.attempt, stays.starts("sleep").len()),
        if library.lets_runs_end { (1, 0) } else { (2, 1) },
        "{row:?}"
    );
    let next = stand.end(stand.run(task).await).await;
    assert_eq!((next.status, leaves.starts("sleep").len()), (Status::Succeeded, 1));
    leaves.process.wait_exit(30).await;
    stand.world.assert_quiet(&[]);
}

async fn a_wrong_token_is_refused(library: Library) {
    let stand = Stand::new(library, &SOON).await;
    let wrong = Client::start(library, &stand.node, "orders", "a-token-that-somebody-guessed");
    let refused = "The access token is wrong.";
    await_until("it is refused", 60, || async { when(stand.world.node_logs().contains(refused)) }).await;
    assert!(wrong.process.is_running(), "{}", wrong.process.log_digest());
    let foreign = Client::start(library, &stand.node, "stocks", TOKEN);
    let no_app = "the token is of no app `stocks`";
    await_until("it is refused", 60, || async { when(stand.world.node_logs().contains(no_app)) }).await;
    assert_eq!(stand.api.get("/executors").await["items"], json!([]));
    drop((wrong, foreign));
    let right = stand.client().await;
    assert!(stand.is_online(&right).await);
    stand.world.assert_quiet(&[]);
}
