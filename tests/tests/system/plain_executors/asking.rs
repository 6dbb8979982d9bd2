//! Runs for which nobody calls back.

use super::{await_runs, by_hand, registered, stand_with};
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Kind, Status, pass};
use serde_json::json;

scenario!(lost_runs_are_found_by_asking: sqlite mariadb postgres);
scenario!(who_says_nothing_has_lost_nothing: sqlite mariadb);
scenario!(who_leaves_may_end_what_it_has: sqlite mariadb);

/// Clients repeat a callback for longer than this: here nobody does.
const SOON: [(&str, &str); 5] = [
    ("executors.heartbeat_interval", "1s"),
    ("executors.offline_after", "4s"),
    ("executors.plain_patience", "2s"),
    ("schedulers.accept_window", "1s"),
    ("schedulers.reap_interval", "1s"),
];

async fn lost_runs_are_found_by_asking(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let again = by_hand(&stand, "again", json!({ "delivery": "at_least_once", "max_retries": 0 })).await;
    let once = by_hand(&stand, "once", json!({ "delivery": "at_most_once" })).await;
    let long = by_hand(&stand, "long", json!({ "delivery": "at_most_once" })).await;
    let long = stand.api.run(long, None).await;
    await_runs(&executor, "long", 1).await;
    let job = executor.job("long");
    executor.script(|script| script.busy = vec![job]);
    let (again, once) = (stand.api.run(again, None).await, stand.api.run(once, None).await);
    // There is no log of it: it has not begun, and is sent once more under another number.
    let numbers = await_runs(&executor, "again", 2).await;
    assert_ne!(numbers[0], numbers[1]);
    assert_eq!(executor.call_back(&[(numbers[0], 200, "the first after all")]).await["code"], 200);
    assert_eq!(executor.call_back(&[(numbers[1], 200, "well")]).await["code"], 200);
    let row = stand.world.await_end(again).await;
    assert_eq!((row.status, row.attempt, row.output.as_str()), (Status::Succeeded, 2, "well"), "{row:?}");
    assert_eq!(row.failures, 0, "it never began");
    // Its request may still lie somewhere.
    let row = stand.world.await_end(once).await;
    assert_eq!((row.status, row.attempt), (Status::Failed, 1), "{row:?}");
    assert!(row.message.contains("its executor is idle and has not told how it ended"), "{row:?}");
    assert_eq!(executor.runs_of("once").len(), 1);
    // Who is busy with it has it.
    assert_eq!(stand.world.database.log(long).await.status, Status::Dispatched);
    executor.script(|script| script.busy.clear());
    assert_eq!(stand.world.await_end(long).await.status, Status::Failed);
    // With a log it has begun, and what became of it nobody knows.
    executor.script(|script| script.lines = Some(vec!["begun".to_owned()]));
    let logged = by_hand(&stand, "logged", json!({ "delivery": "at_least_once", "max_retries": 0 })).await;
    let row = stand.world.await_end(stand.api.run(logged, None).await).await;
    assert_eq!((row.status, row.attempt, row.failures), (Status::Failed, 1, 1), "{row:?}");
    stand.world.assert_quiet(&[]);
}

async fn who_says_nothing_has_lost_nothing(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let executor = registered(&stand).await;
    executor.script(|script| {
        script.calls_back = None;
        script.says_idle = false;
    });
    let task = by_hand(&stand, "silent", json!({ "delivery": "at_most_once" })).await;
    let log = stand.api.run(task, None).await;
    let number = await_runs(&executor, "silent", 1).await[0];
    // Longer than it takes to find lost what is.
    await_until("it is asked again and again", 60, || async { when(executor.got("/idleBeat").len() >= 6) }).await;
    assert_eq!(stand.world.database.log(log).await.status, Status::Dispatched);
    assert_eq!(executor.call_back(&[(number, 200, "well")]).await["code"], 200);
    assert_eq!(stand.world.await_end(log).await.status, Status::Succeeded);
    stand.world.assert_quiet(&[]);
}

/// Most take themselves off first, and then let what runs come to its end.
async fn who_leaves_may_end_what_it_has(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let leaves = registered(&stand).await;
    leaves.script(|script| script.calls_back = None);
    let task = by_hand(&stand, "ends", json!({ "delivery": "at_least_once", "max_retries": 3 })).await;
    let log = stand.api.run(task, None).await;
    let number = await_runs(&leaves, "ends", 1).await[0];
    let stays = registered(&stand).await;
    assert_eq!(leaves.remove().await["code"], 200);
    // The reaper looks at runs of those that are gone each second, and more than once after `executors.offline_after`.
    pass(8.0).await;
    let row = stand.world.database.log(log).await;
    assert_eq!((row.status, row.attempt), (Status::Dispatched, 1), "{row:?}");
    assert_eq!(leaves.call_back(&[(number, 200, "well")]).await["code"], 200);
    let row = stand.world.await_end(log).await;
    assert_eq!((row.status, row.attempt, row.output.as_str()), (Status::Succeeded, 1, "well"), "{row:?}");
    assert!(stays.got("/run").is_empty());
    stand.world.assert_quiet(&[]);
}
