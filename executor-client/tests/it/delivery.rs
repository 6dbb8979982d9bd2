//! Results reach a node, whatever happens in between.

use crate::client::item;
use crate::harness::{Running, Seen, builder, eventually};
use crate::node::{Mode, TestNode};
use carillon_protocol::{DispatchOutcome, Heartbeat, RunKey};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_survive_a_restart_while_no_node_answers() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let now = node.now_ms();
    let items = (0..50).map(|log| item(log, "quick", now)).collect();
    node.set(Mode::Down);
    running.dispatch(items, &node).await;
    eventually("all ran", || seen.started.lock().unwrap().len() == 50).await;
    running.stopped().await;
    assert!(node.state().results.is_empty());

    let heartbeats = node.state().heartbeats.len();
    let running = Running::start(builder(&[&node], &journal, &seen));
    node.set(Mode::Normal);
    eventually("all delivered", || node.state().results.len() >= 50).await;
    eventually("registered after that", || node.state().heartbeats.len() > heartbeats).await;
    let known = running.dispatch(vec![item(7, "quick", node.now_ms())], &node).await;
    assert_eq!(known, [DispatchOutcome::Duplicate]);
    assert_eq!(seen.started.lock().unwrap().len(), 50);
    running.stopped().await;

    let before = node.state().results.len();
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    running.stopped().await;
    assert_eq!(node.state().results.len(), before, "delivered once only");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unacknowledged_result_stands_in_the_heartbeat() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    node.set(Mode::Down);
    running.dispatch(vec![item(1, "quick", node.now_ms())], &node).await;
    eventually("ran", || seen.has_started(1)).await;
    eventually("sending fails", || node.state().refused_connections > 0).await;
    node.set(Mode::NoResults);
    eventually("named", || {
        let state = node.state();
        let named = |keys: &[RunKey]| keys.contains(&RunKey(1, 1));
        state.heartbeats.iter().any(|b| named(&b.unacknowledged))
    })
    .await;
    assert!(node.result(1).is_none());
    node.set(Mode::Normal);
    eventually("delivered", || node.result(1).is_some()).await;
    running.stopped().await;
}

/// Its node does not see the run yet: the database's other members lag behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_a_node_wants_again_is_kept_and_sent_again() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    node.state().again = true;
    running.dispatch(vec![item(1, "quick", node.now_ms())], &node).await;
    let sent = || node.state().results.len();
    eventually("sent again, and again", || sent() >= 3).await;
    let is_named = |beat: &Heartbeat| beat.unacknowledged.contains(&RunKey(1, 1));
    eventually("named meanwhile", || node.state().heartbeats.iter().any(is_named)).await;
    running.stopped().await;

    let before = sent();
    let running = Running::start(builder(&[&node], &journal, &seen));
    eventually("sent by the next process", || sent() > before).await;
    eventually("named by it, too", || node.state().heartbeats.last().is_some_and(is_named)).await;
    node.state().again = false;
    eventually("acknowledged", || node.state().heartbeats.last().is_some_and(|beat| !is_named(beat))).await;
    let before = sent();
    running.stopped().await;
    let results = node.state().results.clone();
    assert_eq!(results.len(), before, "sent although it was acknowledged");
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!(seen.started.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_journal_refuses_new_runs() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let small = builder(&[&node], &journal, &seen).journal_bytes_max(100);
    let running = Running::registered(small, &node).await;
    node.set(Mode::Down);
    let now = node.now_ms();
    let items = vec![item(1, "quick", now), item(2, "quick", now)];
    running.dispatch(items, &node).await;
    eventually("ran", || seen.started.lock().unwrap().len() == 2).await;
    let mut log = 10;
    loop {
        let outcome = running.dispatch(vec![item(log, "quick", now + 60_000)], &node).await;
        if outcome == [DispatchOutcome::Busy] {
            break;
        }
        log += 1;
        assert!(log < 1_000, "never busy");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    node.set(Mode::Normal);
    eventually("delivered", || node.state().results.len() == 2).await;
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_a_node_cannot_stomach_does_not_hold_up_the_others() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    node.set(Mode::Picky(13));
    let now = node.now_ms();
    let items = (0..40).map(|log| item(log, "quick", now)).collect();
    running.dispatch(items, &node).await;
    eventually("the others", || node.state().results.len() == 39).await;
    node.set(Mode::Normal);
    eventually("that one", || node.result(13).is_some()).await;
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_executors_share_a_journal_directory() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let one = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let two = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let now = node.now_ms();
    one.dispatch(vec![item(1, "quick", now)], &node).await;
    two.dispatch(vec![item(2, "quick", now)], &node).await;
    eventually("both", || node.result(1).is_some() && node.result(2).is_some()).await;
    one.stopped().await;
    two.stopped().await;
}
