//! How late runs start that are all due at one instant, and what a start costs.
//!
//! `cargo bench -p carillon-executor`; prints one line per burst. The node is in the process,
//! so its work (answering results) is on the same cores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_imports)] // shared with the tests

#[path = "../tests/it/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../tests/it/harness.rs"]
#[allow(dead_code)]
mod harness;
#[path = "../tests/it/node.rs"]
#[allow(dead_code)]
mod node;

use client::item;
use harness::{Running, Seen, builder, eventually};
use node::TestNode;
use std::sync::{Arc, Mutex};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let node = TestNode::start().await;
    node.state().settings.heartbeat_interval_ms = 3_000;
    for (runs, capacity) in [(1_000, 64), (1_000, 64), (1_000, 2_000), (10_000, 64), (10_000, 20_000), (40_000, 64)] {
        burst(&node, runs, capacity).await;
    }
}

async fn burst(node: &TestNode, runs: i64, capacity: usize) {
    let journal = tempfile::tempdir().expect("a directory");
    let seen = Arc::new(Seen::default());
    let late_us = Arc::new(Mutex::new(Vec::with_capacity(runs as usize)));
    let record = Arc::clone(&late_us);
    let executor = builder(&[node], &journal, &seen).capacity(capacity).handler(
        "measured",
        move |ctx: carillon_executor::TaskContext| {
            let late = ctx.started_at_us() - ctx.due_time() * 1_000;
            record.lock().expect("not poisoned").push(late);
            async { Ok(carillon_executor::Output::none()) }
        },
    );
    let running = Running::registered(executor, node).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    node.state().results.clear();
    let due = node.now_ms() + 2_000;
    for first in (0..runs).step_by(500) {
        let items = (first..first + 500).map(|log| item(log, "measured", due)).collect();
        running.dispatch(items, node).await;
    }
    let left_ms = due - node.now_ms();
    eventually("all ran", || late_us.lock().expect("not poisoned").len() == runs as usize).await;
    let mut late = late_us.lock().expect("not poisoned").clone();
    let span = late.last().unwrap_or(&0) - late.first().unwrap_or(&0);
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1_000.0;
    println!(
        "{runs:>6} runs, capacity {capacity:>6}: late p50 {:.2} p99 {:.2} max {:.2} min {:.3} ms; \
         {:.2} us per start; accepted {left_ms} ms early",
        at(0.5),
        at(0.99),
        at(1.0),
        at(0.0),
        span as f64 / runs as f64,
    );
    eventually("all delivered", || node.state().results.len() >= runs as usize).await;
    running.stopped().await;
}
