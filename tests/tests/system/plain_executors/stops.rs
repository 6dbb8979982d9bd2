//! Clients kill whichever run of a task goes on: nodes must not have them kill another than is meant.

use super::{await_runs, by_hand, registered, stand_with};
use carillon_tests::plain_executor::PlainExecutor;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Kind, Status, pass};
use serde_json::json;

scenario!(only_the_run_that_goes_on_is_killed: sqlite mariadb postgres);
scenario!(a_kill_is_not_repeated_at_the_next_run: sqlite mariadb);
scenario!(a_kill_without_an_answer_is_no_failure: sqlite mariadb);
scenario!(a_success_that_crosses_a_kill_counts: sqlite postgres);

const SOON: [(&str, &str); 1] = [("schedulers.reap_interval", "500ms")];

/// What Java says of a run that it has killed.
const KILLED: &str = "scheduling center kill job. [job running, killed]";

fn kills(executor: &PlainExecutor) -> usize {
    executor.got("/kill").len()
}

async fn await_kills(executor: &PlainExecutor, count: usize) {
    await_until(&format!("{count} kills have come"), 60, || async { when(kills(executor) >= count) }).await;
}

async fn only_the_run_that_goes_on_is_killed(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let (task, other) = (by_hand(&stand, "queue", json!({})).await, by_hand(&stand, "other", json!({})).await);
    let other = stand.api.run(other, None).await;
    await_runs(&executor, "other", 1).await;
    let first = stand.api.run(task, None).await;
    await_runs(&executor, "queue", 1).await;
    let second = stand.api.run(task, None).await;
    let numbers = await_runs(&executor, "queue", 2).await;
    assert_eq!(stand.api.kill(second).await.0, 202);
    // For several rounds of the reaper.
    pass(3.0).await;
    assert_eq!(kills(&executor), 0, "the first one goes on");
    assert_eq!(stand.api.kill(first).await.0, 202);
    await_kills(&executor, 1).await;
    assert_eq!(executor.call_back(&[(numbers[0], 500, KILLED)]).await["code"], 200);
    let row = stand.world.await_end(first).await;
    assert_eq!((row.status, row.attempt, row.failures), (Status::Cancelled, 1, 0), "{row:?}");
    let before = kills(&executor);
    await_kills(&executor, before + 1).await;
    assert_eq!(executor.call_back(&[(numbers[1], 500, KILLED)]).await["code"], 200);
    assert_eq!(stand.world.await_end(second).await.status, Status::Cancelled);
    assert!(executor.got("/kill").iter().all(|kill| kill.body["jobId"] == executor.job("queue")));
    assert_eq!(stand.world.database.log(other).await.status, Status::Dispatched);
    stand.world.assert_quiet(&[]);
}

/// Clients take a killed run off their list at once; its handler may go on, and the task's next run begins beside it.
async fn a_kill_is_not_repeated_at_the_next_run(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let task = by_hand(&stand, "stubborn", json!({})).await;
    let stubborn = stand.api.run(task, None).await;
    await_runs(&executor, "stubborn", 1).await;
    assert_eq!(stand.api.kill(stubborn).await.0, 202);
    await_kills(&executor, 1).await;
    let next = stand.api.run(task, None).await;
    let numbers = await_runs(&executor, "stubborn", 2).await;
    // One may have been on its way. Both nodes, where there are two, look again and again.
    pass(1.0).await;
    let before = kills(&executor);
    pass(6.0).await;
    assert_eq!(kills(&executor), before, "the next run would be killed");
    assert_eq!(stand.api.kill(stubborn).await.0, 202, "nor when somebody asks again");
    assert_eq!(kills(&executor), before);
    assert_eq!(executor.call_back(&[(numbers[1], 200, "well")]).await["code"], 200);
    assert_eq!(stand.world.await_end(next).await.status, Status::Succeeded);
    await_kills(&executor, before + 1).await;
    assert_eq!(executor.call_back(&[(numbers[0], 500, KILLED)]).await["code"], 200);
    assert_eq!(stand.world.await_end(stubborn).await.status, Status::Cancelled);
    stand.world.assert_quiet(&[]);
}

/// pyxxl answers when the run has ended.
async fn a_kill_without_an_answer_is_no_failure(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let executor = registered(&stand).await;
    executor.script(|script| {
        script.calls_back = None;
        script.answers_kill = false;
    });
    let task = by_hand(&stand, "late", json!({ "max_retries": 3 })).await;
    let log = stand.api.run(task, None).await;
    let number = await_runs(&executor, "late", 1).await[0];
    assert_eq!(stand.api.kill(log).await.0, 202);
    await_kills(&executor, 2).await;
    assert_eq!(stand.world.database.log(log).await.status, Status::Dispatched);
    assert_eq!(executor.call_back(&[(number, 500, "CancelledError")]).await["code"], 200);
    let row = stand.world.await_end(log).await;
    assert_eq!((row.status, row.attempt, row.failures), (Status::Cancelled, 1, 0), "{row:?}");
    assert_eq!(executor.runs_of("late").len(), 1, "it is not tried again");
    stand.world.assert_quiet(&[]);
}

/// Both orders, and one end.
async fn a_success_that_crosses_a_kill_counts(kind: Kind) {
    let stand = stand_with(kind, &SOON).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let task = by_hand(&stand, "crossing", json!({})).await;
    for round in 1..=10 {
        let log = stand.api.run(task, None).await;
        let number = await_runs(&executor, "crossing", round).await[round - 1];
        let (_, said) = tokio::join!(stand.api.kill(log), async {
            let said = executor.call_back(&[(number, 200, "well")]).await;
            executor.call_back(&[(number, 500, KILLED)]).await;
            said
        });
        assert_eq!(said["code"], 200);
        let row = stand.world.await_end(log).await;
        assert_eq!((row.status, row.output.as_str()), (Status::Succeeded, "well"), "{row:?}");
    }
    stand.world.assert_quiet(&[]);
}
