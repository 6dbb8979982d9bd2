//! Registration, heartbeat, clock, fail-over and the lease.

use crate::client::item;
use crate::harness::{Running, Seen, builder, eventually};
use crate::node::{EXECUTOR_ID, Mode, TestNode};
use carillon_executor::{Executor, Output, TaskContext};
use carillon_protocol::{ExecutorSettings, RunStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_describes_itself_and_keeps_its_heartbeat() {
    let node = TestNode::start().await;
    node.state().settings.metadata_interval_ms = 300;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let described = builder(&[&node], &journal, &seen)
        .tag("ssd")
        .version("1.2.3")
        .capacity(7)
        .policies("quick", serde_json::json!({"block_strategy": "serial", "max_retries": 2}));
    let running = Running::registered(described, &node).await;
    eventually("metadata repeated", || node.state().registers.len() >= 2).await;
    {
        let state = node.state();
        let first = &state.registers[0];
        assert_eq!(first.address, format!("http://127.0.0.1:{}", running.port));
        assert_eq!((first.tags[0].as_str(), first.capacity), ("ssd", 7));
        assert_eq!(first.handlers.len(), 8);
        let quick = first.handlers.iter().find(|handler| handler.name == "quick").unwrap();
        assert_eq!(quick.policies["block_strategy"], "serial");
        assert_eq!(quick.policies["max_retries"], 2);
        assert_eq!(first.instance, state.registers[1].instance);
        assert_eq!(state.heartbeats[0].executor_id, EXECUTOR_ID);
    }
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_executor_registers_again_as_the_same_instance() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    node.state().known = false;
    eventually("registered again", || node.state().registers.len() == 2).await;
    let state = node.state().registers.clone();
    assert_eq!(state[0].instance, state[1].instance);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_hours_wrong_does_not_matter() {
    let node = TestNode::start().await;
    node.state().clock_ahead_us = 7 * 3_600 * 1_000_000;
    node.state().check_clock = true;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    assert_eq!(node.state().skew_refusals, 1);
    let due = node.now_ms() + 300;
    running.dispatch(vec![item(1, "quick", due)], &node).await;
    eventually("result", || node.result(1).is_some()).await;
    let (_, started_us, due_us) = seen.started.lock().unwrap()[0];
    assert!((0..200_000).contains(&(started_us - due_us)));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_node_takes_over() {
    let (first, second) = (TestNode::start().await, TestNode::start().await);
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&first, &second], &journal, &seen), &first).await;
    let due = first.now_ms() + 300;
    running.dispatch(vec![item(1, "quick", due)], &first).await;
    first.set(Mode::Down);
    eventually("heartbeat at the second", || !second.state().heartbeats.is_empty()).await;
    eventually("result at the second", || second.result(1).is_some()).await;
    first.set(Mode::Normal);
    let (before, beats) = (second.state().heartbeats.len(), first.state().heartbeats.len());
    eventually("sticky", || second.state().heartbeats.len() > before + 2).await;
    assert_eq!(first.state().heartbeats.len(), beats);
    running.stopped().await;
}

fn short_lease(node: &TestNode) {
    node.state().settings = ExecutorSettings {
        heartbeat_interval_ms: 50,
        metadata_interval_ms: 60_000,
        offline_after_ms: 400,
        abandon_after_ms: 1_000,
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_lease_nothing_starts_and_in_the_end_nothing_runs() {
    let node = TestNode::start().await;
    short_lease(&node);
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let now = node.now_ms();
    let items = vec![item(1, "endless", now), item(2, "quick", now + 800)];
    running.dispatch(items, &node).await;
    eventually("running", || seen.has_started(1)).await;
    node.set(Mode::Down);
    eventually("stopped", || seen.dropped.load(Ordering::SeqCst) == 1).await;
    node.set(Mode::Normal);
    eventually("results", || node.state().results.len() == 2).await;
    assert_eq!(node.result(1).unwrap().status, RunStatus::Abandoned);
    assert_eq!(node.result(2).unwrap().status, RunStatus::NotStarted);
    assert!(!seen.has_started(2));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_for_all_delays_nothing() {
    let (first, second) = (TestNode::start().await, TestNode::start().await);
    short_lease(&first);
    // Due after the lease that is in the database, and before nodes may extend it no more.
    first.state().settings.offline_after_ms = 1_000;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&first, &second], &journal, &seen), &first).await;
    let due = first.now_ms() + 1_500;
    running.dispatch(vec![item(1, "quick", due)], &first).await;
    first.set(Mode::StoreUnavailable);
    second.set(Mode::Down);
    eventually("started", || seen.has_started(1)).await;
    first.set(Mode::Normal);
    eventually("result", || first.result(1).is_some()).await;
    assert_eq!(first.result(1).unwrap().status, RunStatus::Succeeded);
    running.stopped().await;
}

/// A database that hangs, so that each of several nodes takes its time: all together longer than a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_hangs_for_all_delays_nothing() {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(TestNode::start().await);
    }
    let first = &nodes[0];
    short_lease(first);
    first.state().settings.offline_after_ms = 2_000;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&nodes.iter().collect::<Vec<_>>(), &journal, &seen), first).await;
    let due = first.now_ms() + 3_200;
    running.dispatch(vec![item(1, "quick", due)], first).await;
    for node in &nodes {
        node.set(Mode::StoreUnavailable);
        node.state().answers_after = Duration::from_millis(600);
    }
    eventually("started", || seen.has_started(1)).await;
    first.set(Mode::Normal);
    eventually("result", || first.result(1).is_some()).await;
    assert_eq!(first.result(1).unwrap().status, RunStatus::Succeeded);
    running.stopped().await;
}

/// A database that is so slow that no heartbeat is answered in time, for longer than nodes without one may extend a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_slow_for_long_delays_and_ends_nothing() {
    let node = TestNode::start().await;
    short_lease(&node);
    node.state().settings.offline_after_ms = 1_000;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let now = node.now_ms();
    running.dispatch(vec![item(1, "endless", now), item(2, "quick", now + 4_500)], &node).await;
    eventually("running", || seen.has_started(1)).await;
    node.set(Mode::Late);
    eventually("started and ended", || seen.has_started(2) && seen.dropped.load(Ordering::SeqCst) > 0).await;
    assert_eq!(seen.running.load(Ordering::SeqCst), 1, "the other handler was told to stop");
    node.set(Mode::Normal);
    eventually("result", || node.result(2).is_some()).await;
    assert_eq!(node.result(2).unwrap().status, RunStatus::Succeeded);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_clock_that_is_set_back_postpones_what_is_held() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    let due = node.now_ms() + 1_000;
    running.dispatch(vec![item(1, "quick", due)], &node).await;
    node.state().clock_ahead_us -= 600_000;
    eventually("started", || seen.has_started(1)).await;
    assert!(node.now_ms() >= due);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_worker_do_not_stop_the_heartbeat() {
    let node = TestNode::start_apart();
    short_lease(&node);
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let entered = Arc::new(AtomicUsize::new(0));
    let entering = Arc::clone(&entered);
    let blocking = builder(&[&node], &journal, &seen).handler("block", move |_: carillon_executor::TaskContext| {
        let (blocked, entered) = (Arc::clone(&blocked), Arc::clone(&entering));
        async move {
            entered.fetch_add(1, Ordering::SeqCst);
            // Until the sender is gone.
            let _ = blocked.lock().unwrap().recv();
            Ok(carillon_executor::Output::none())
        }
    });
    let running = Running::registered(blocking, &node).await;
    // From the first handler on the runtime of this test is blocked, and this function with
    // it: what watches and what releases must be outside, and there before.
    let (watching, started) = (node.clone(), Arc::clone(&entered));
    let watcher = std::thread::spawn(move || {
        let begin = std::time::Instant::now();
        let mut before = None;
        while before.is_none_or(|before| watching.state().heartbeats.len() < before + 30) {
            if before.is_none() && started.load(Ordering::SeqCst) >= 2 {
                before = Some(watching.state().heartbeats.len());
            }
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(release);
    });
    let due = node.now_ms() + 300;
    let items = (1..=4).map(|log| item(log, "block", due)).collect();
    running.dispatch(items, &node).await;
    eventually("all ended", || node.state().results.len() == 4).await;
    watcher.join().unwrap();
    let state = node.state().results.clone();
    assert!(state.iter().all(|r| r.status == RunStatus::Succeeded));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_key_keeps_trying_and_works_once_mended() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let wrong = builder(&[&node], &journal, &seen).key("key-1", "wrong");
    let running = Running::start(wrong);
    eventually("tried again", || node.state().bad_signatures >= 3).await;
    assert!(node.state().registers.is_empty());
    running.stopped().await;
}

#[tokio::test]
async fn a_taken_port_gives_way_to_the_next() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let executor = builder(&[&node], &journal, &seen).port(port).build().unwrap();
    assert!(executor.port() > port);
    let refused = builder(&[&node], &journal, &seen).port(port).ports_tried(1).build();
    assert!(refused.unwrap_err().to_string().contains("no free port"));
}

#[test]
fn missing_and_wrong_fields_are_named() {
    let error = Executor::builder().build().unwrap_err();
    assert!(error.to_string().contains("CARILLON_SCHEDULERS"));
    let complete = || Executor::builder().scheduler("http://127.0.0.1:1").tenant("t").app("a").key("k", "s");
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = complete().journal_dir(file.path()).build().unwrap_err();
    assert!(error.to_string().contains("journal directory"));
    let error = complete().scheduler("ftp://x").build().unwrap_err();
    assert!(error.to_string().contains("http://host:port"));
    let with_handler = || complete().handler("h", |_: TaskContext| async { Ok(Output::none()) });
    let error = with_handler().policies("h", "serial").build().unwrap_err();
    assert!(error.to_string().contains("handler `h`: \"serial\" is not an object"), "{error}");
    let error = with_handler().policies("g", serde_json::json!({})).build().unwrap_err();
    assert!(error.to_string().contains("handler `g`: there is no such handler"), "{error}");
}
