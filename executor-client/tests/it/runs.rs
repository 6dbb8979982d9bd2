//! The life of a run.

use crate::client::item;
use crate::harness::{Running, Seen, builder, eventually};
use crate::node::TestNode;
use carillon_protocol::{BlockStrategy, CancelOutcome, DispatchOutcome, RunStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

async fn setup() -> (TestNode, tempfile::TempDir, Arc<Seen>, Running) {
    let node = TestNode::start().await;
    let journal = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    (node, journal, seen, running)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_end_is_reported() {
    let (node, _journal, _seen, running) = setup().await;
    let now = node.now_ms();
    let mut echo = item(1, "quick", now);
    echo.params = "hello".into();
    let mut slow = item(6, "endless", now);
    slow.timeout_ms = 50;
    let mut typed = item(7, "typed", now);
    typed.params = r#"{"cents": 5}"#.into();
    let mut wrong = item(8, "typed", now);
    wrong.params = r#"{"cents": "five"}"#.into();
    let mut late = item(9, "quick", now);
    // The executor's estimate of the cluster's clock lags by as much as its last heartbeat took.
    late.accept_until = now - 60_000;
    // Of a node of a later release: another executor may know it.
    let mut strange = item(10, "quick", now);
    strange.block_strategy = BlockStrategy::Other;
    let outcomes = running
        .dispatch(
            vec![
                echo,
                item(2, "fail", now),
                item(3, "fatal", now),
                item(4, "panic", now),
                item(5, "nobody", now),
                slow,
                typed,
                wrong,
                late,
                strange,
            ],
            &node,
        )
        .await;
    assert_eq!(outcomes[4], DispatchOutcome::HandlerMissing);
    assert_eq!(outcomes[8], DispatchOutcome::TooLate);
    assert_eq!(outcomes[9], DispatchOutcome::HandlerMissing);
    for index in [0, 1, 2, 3, 5, 6, 7] {
        assert_eq!(outcomes[index], DispatchOutcome::Accepted);
    }
    eventually("seven results", || node.state().results.len() == 7).await;
    let status = |log| node.result(log).unwrap().status;
    assert_eq!(node.result(1).unwrap().output, "hello");
    assert_eq!(status(1), RunStatus::Succeeded);
    assert_eq!(status(2), RunStatus::Failed);
    assert_eq!(node.result(2).unwrap().message, "not today");
    assert_eq!(status(3), RunStatus::FailedForGood);
    assert_eq!(status(4), RunStatus::Panicked);
    assert_eq!(node.result(4).unwrap().message, "out of cheese");
    assert_eq!(status(6), RunStatus::TimedOut);
    assert_eq!(node.result(7).unwrap().output, "5 cents");
    assert_eq!(status(8), RunStatus::FailedForGood);
    assert!(node.result(8).unwrap().message.contains("typed"));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_run_never_starts_before_its_time() {
    let (node, _journal, seen, running) = setup().await;
    let due = node.now_ms() + 400;
    let items = (0..200).map(|log| item(log, "quick", due + log % 3)).collect();
    running.dispatch(items, &node).await;
    eventually("held in the heartbeat", || {
        let state = node.state();
        state.heartbeats.iter().any(|beat| beat.held.len() == 200)
    })
    .await;
    eventually("all started", || seen.started.lock().unwrap().len() == 200).await;
    for (log, started_us, due_us) in seen.started.lock().unwrap().iter() {
        assert!(started_us >= due_us, "{log} early by {}", due_us - started_us);
    }
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_is_taken_once() {
    let (node, _journal, seen, running) = setup().await;
    let now = node.now_ms();
    let items = vec![item(1, "quick", now), item(2, "quick", now + 60_000)];
    let first = running.dispatch(items.clone(), &node).await;
    assert_eq!(first, [DispatchOutcome::Accepted; 2]);
    let again = running.dispatch(items.clone(), &node).await;
    assert_eq!(again, [DispatchOutcome::Duplicate; 2]);
    eventually("result", || node.result(1).is_some()).await;
    let ended = running.dispatch(items, &node).await;
    assert_eq!(ended, [DispatchOutcome::Duplicate; 2]);
    assert_eq!(seen.started.lock().unwrap().len(), 1);
    let mut retry = item(1, "quick", now);
    retry.attempt = 2;
    let retried = running.dispatch(vec![retry], &node).await;
    assert_eq!(retried, [DispatchOutcome::Accepted]);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_drops_stops_or_is_remembered() {
    let (node, _journal, seen, running) = setup().await;
    let now = node.now_ms();
    let items = vec![item(1, "quick", now + 300), item(2, "endless", now), item(3, "polite", now)];
    running.dispatch(items, &node).await;
    eventually("running", || seen.has_started(2)).await;
    let left_alone = running.cancel(&[2], true, &node).await;
    assert_eq!(left_alone, [CancelOutcome::Running]);
    let outcomes = running.cancel(&[1, 2, 3, 9], false, &node).await;
    assert_eq!(outcomes[0], CancelOutcome::Dropped);
    // How far they come before the answer goes out is up to the machine.
    for outcome in &outcomes[1..3] {
        assert!(matches!(outcome, CancelOutcome::Stopping | CancelOutcome::Stopped), "{outcome:?}");
    }
    assert_eq!(outcomes[3], CancelOutcome::Unknown);
    let after = vec![item(1, "quick", now), item(9, "quick", now)];
    let refused = running.dispatch(after, &node).await;
    assert_eq!(refused, [DispatchOutcome::Cancelled; 2]);
    eventually("cancelled", || node.result(2).is_some() && node.result(3).is_some()).await;
    assert_eq!(node.result(2).unwrap().status, RunStatus::Cancelled);
    assert_eq!(node.result(3).unwrap().status, RunStatus::Cancelled);
    // The dropped one's time has passed, and a later run has been through the same timer.
    running.dispatch(vec![item(10, "quick", now + 350)], &node).await;
    eventually("later run", || node.result(10).is_some()).await;
    assert!(!seen.has_started(1));
    assert!(node.result(1).is_none());
    running.stopped().await;
}

/// As unknown, a run that is over and acknowledged would count as never started, and an edit would run it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_of_what_has_ended_says_so_also_when_that_is_acknowledged() {
    let (node, _journal, _seen, running) = setup().await;
    running.dispatch(vec![item(1, "quick", node.now_ms())], &node).await;
    eventually("ended", || node.result(1).is_some()).await;
    node.state().heartbeats.clear();
    eventually("acknowledged", || node.state().heartbeats.iter().any(|beat| beat.unacknowledged.is_empty())).await;
    assert_eq!(running.cancel(&[1], false, &node).await, [CancelOutcome::Ended]);
    assert_eq!(running.cancel(&[1], true, &node).await, [CancelOutcome::Ended]);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_can_cancel() {
    let (node, _journal, seen, running) = setup().await;
    let now = node.now_ms();
    running.dispatch(vec![item(1, "endless", now)], &node).await;
    eventually("running", || seen.has_started(1)).await;
    node.state().cancel = vec![carillon_protocol::RunKey(1, 1)];
    eventually("cancelled", || node.result(1).is_some()).await;
    assert_eq!(node.result(1).unwrap().status, RunStatus::Cancelled);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_run_at_once_than_the_capacity_and_the_rest_follow() {
    let node = TestNode::start().await;
    let journal = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let limited = builder(&[&node], &journal, &seen).capacity(3).held_max(12);
    let running = Running::registered(limited, &node).await;
    let now = node.now_ms();
    let begin = Instant::now();
    let items = (0..9).map(|log| item(log, "short", now)).collect();
    running.dispatch(items, &node).await;
    eventually("all ended", || node.state().results.len() == 9).await;
    assert_eq!(seen.running_max.load(Ordering::SeqCst), 3);
    assert!(begin.elapsed().as_millis() >= 300);
    let many = (100..115).map(|log| item(log, "quick", now + 60_000)).collect();
    let outcomes = running.dispatch(many, &node).await;
    assert_eq!(outcomes[11], DispatchOutcome::Accepted);
    assert_eq!(outcomes[12..], [DispatchOutcome::Busy; 3]);
    running.stopped().await;
}
