//! A process tells when a node last acknowledged it, or the one before it: nodes know by it that their database was restored.

use crate::harness::{APP, Running, Seen, TENANT, builder, eventually};
use crate::node::{Mode, TestNode};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

const FILE: &str = "acknowledged";

fn file(journal: &TempDir, slot: u32) -> PathBuf {
    journal.path().join(TENANT).join(APP).join(slot.to_string()).join(FILE)
}

/// Starts a process, and waits until it knows that a node has acknowledged it.
async fn start(node: &TestNode, journal: &TempDir) -> Running {
    let running = Running::registered(builder(&[node], journal, &Arc::new(Seen::default())), node).await;
    let instance = node.state().registers.last().unwrap().instance.clone();
    eventually("acknowledged", || node.state().heartbeats.iter().filter(|beat| beat.instance == instance).count() >= 2)
        .await;
    running
}

/// What the last process told before a node had acknowledged it: when it registered, and with its first heartbeat.
fn told(node: &TestNode) -> (i64, i64) {
    let state = node.state();
    let register = state.registers.last().unwrap();
    let first = state.heartbeats.iter().find(|beat| beat.instance == register.instance);
    (register.acknowledged_at, first.unwrap().acknowledged_at)
}

async fn restarted(node: &TestNode, journal: &TempDir) -> (i64, i64) {
    let running = start(node, journal).await;
    let told = told(node);
    running.stopped().await;
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_process_tells_when_its_predecessor_was_acknowledged() {
    let (node, journal) = (TestNode::start().await, tempfile::tempdir().unwrap());
    assert_eq!(restarted(&node, &journal).await, (0, 0));
    let last = node.now_ms();
    let (at_register, at_beat) = restarted(&node, &journal).await;
    assert_eq!(at_register, at_beat);
    assert!(at_beat > 0 && at_beat <= last, "{at_beat}, {last}");
    // Until one is acknowledged, also the processes after it.
    let before = node.state().heartbeats.iter().map(|beat| beat.acknowledged_at).max().unwrap();
    node.set(Mode::Down);
    let silent = Running::start(builder(&[&node], &journal, &Arc::new(Seen::default())));
    eventually("called", || node.state().refused_connections > 0).await;
    silent.stopped().await;
    node.set(Mode::Normal);
    assert!(restarted(&node, &journal).await.0 >= before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_runs_it_is_kept_every_few_seconds() {
    let (node, journal) = (TestNode::start().await, tempfile::tempdir().unwrap());
    let running = start(&node, &journal).await;
    eventually("kept", || file(&journal, 0).exists()).await;
    let first = std::fs::read(file(&journal, 0)).unwrap();
    eventually("kept again", || std::fs::read(file(&journal, 0)).is_ok_and(|now| now != first)).await;
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_tells_nothing_and_is_replaced() {
    let (node, journal) = (TestNode::start().await, tempfile::tempdir().unwrap());
    restarted(&node, &journal).await;
    let whole = std::fs::read(file(&journal, 0)).unwrap();
    let torn = whole[..whole.len() - 3].to_vec();
    let flipped: Vec<u8> = whole.iter().map(|byte| byte ^ u8::from(*byte == b'1')).collect();
    let doubled = [whole.as_slice(), &whole].concat();
    for damaged in [Vec::new(), torn, flipped, doubled, b"\xff\0".to_vec()] {
        std::fs::write(file(&journal, 0), &damaged).unwrap();
        assert_eq!(restarted(&node, &journal).await, (0, 0), "{damaged:?}");
        assert!(restarted(&node, &journal).await.0 > 0, "{damaged:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_written_stops_nothing() {
    let (node, journal) = (TestNode::start().await, tempfile::tempdir().unwrap());
    std::fs::create_dir_all(file(&journal, 0)).unwrap();
    for _ in 0..2 {
        assert_eq!(restarted(&node, &journal).await, (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_first_tells_for_all_that_are_gone() {
    let (node, journal) = (TestNode::start().await, tempfile::tempdir().unwrap());
    let one = start(&node, &journal).await;
    let two = start(&node, &journal).await;
    one.stopped().await;
    let last_of_one = node.now_ms();
    let beats = node.state().heartbeats.len();
    eventually("the other one goes on", || node.state().heartbeats.len() > beats + 2).await;
    two.stopped().await;
    let (told, _) = restarted(&node, &journal).await;
    assert!(told >= last_of_one, "{told}, {last_of_one}");
    assert!(!file(&journal, 1).exists());
    // Of another app, nothing.
    let other = builder(&[&node], &journal, &Arc::new(Seen::default())).app("invoices");
    let other = Running::start(other);
    eventually("called", || node.state().bad_signatures > 0).await;
    other.stopped().await;
    assert!(!journal.path().join(TENANT).join("invoices").join("0").join(FILE).exists());
}
