//! Leaving.

use crate::client::item;
use crate::harness::{Running, Seen, builder, eventually};
use crate::node::{Mode, TestNode};
use carillon_protocol::{DispatchOutcome, RunKey, RunStatus};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_runs_go_back_running_ones_finish_and_new_ones_are_refused() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let patient = builder(&[&node], &journal, &seen).drain_timeout(Duration::from_secs(10));
    let mut running = Running::registered(patient, &node).await;
    let now = node.now_ms();
    let items = vec![item(1, "polite", now), item(2, "quick", now + 60_000)];
    running.dispatch(items, &node).await;
    eventually("running", || {
        let state = node.state();
        state.heartbeats.iter().any(|b| b.running == [RunKey(1, 1)])
    })
    .await;
    running.begin_stop();
    eventually("given back", || !node.state().unregisters.is_empty()).await;
    {
        let state = node.state();
        assert_eq!(state.unregisters[0].held, [RunKey(2, 1)]);
        assert_eq!(state.unregisters[0].running, [RunKey(1, 1)]);
    }
    let refused = running.dispatch(vec![item(3, "quick", now)], &node).await;
    assert_eq!(refused, [DispatchOutcome::ShuttingDown]);
    eventually("draining heartbeat", || node.state().heartbeats.iter().any(|b| b.draining)).await;
    running.cancel(&[1], false, &node).await;
    running.stopped().await;
    let state = node.state();
    assert_eq!(state.results[0].log, 1);
    let last = state.unregisters.last().unwrap();
    assert!(last.held.is_empty() && last.running.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_call_gives_back_what_no_node_has_taken() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    running.dispatch(vec![item(1, "quick", node.now_ms() + 60_000)], &node).await;
    // One more than it tries before it gives up for the time being: its pauses double.
    node.state().refuse_unregisters = 7;
    running.stopped().await;
    assert_eq!(node.state().unregisters.len(), 1);
    assert_eq!(node.state().unregisters[0].held, [RunKey(1, 1)]);

    let next = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    next.stopped().await;
    assert!(node.state().results.is_empty(), "there is nothing left to tell");
}

/// They could not tell it from a run that has begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_tells_what_no_node_has_taken_back() {
    for away in [Mode::Down, Mode::StoreUnavailable] {
        let node = TestNode::start().await;
        let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
        let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
        running.dispatch(vec![item(1, "quick", node.now_ms() + 60_000)], &node).await;
        node.set(away);
        running.stopped().await;
        assert!(node.state().results.is_empty() && node.state().unregisters.is_empty());

        node.set(Mode::Normal);
        let next = Running::registered(builder(&[&node], &journal, &seen), &node).await;
        let told = node.result(1).expect("before it has registered");
        assert_eq!((told.attempt, told.status, told.started_at), (1, RunStatus::NotStarted, 0), "{away:?}");
        assert!(told.finished_at > 0);
        next.stopped().await;
        assert_eq!(node.state().results.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_finish_in_time_is_abandoned() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    running.dispatch(vec![item(1, "endless", node.now_ms())], &node).await;
    eventually("running", || seen.has_started(1)).await;
    running.stopped().await;
    assert_eq!(node.result(1).unwrap().status, RunStatus::Abandoned);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_never_hangs_although_no_node_answers() {
    let node = TestNode::start().await;
    node.set(Mode::Down);
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let never_registered = Running::start(builder(&[&node], &journal, &seen));
    let ended = tokio::time::timeout(Duration::from_secs(20), never_registered.stopped()).await;
    assert!(ended.is_ok(), "it hangs");

    node.set(Mode::Normal);
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let now = node.now_ms();
    let items = vec![item(1, "endless", now), item(2, "quick", now + 60_000)];
    running.dispatch(items, &node).await;
    eventually("running", || seen.has_started(1)).await;
    node.set(Mode::Down);
    running.stopped().await;
}
