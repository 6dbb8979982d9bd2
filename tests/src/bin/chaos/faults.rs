//! Breaks what the plan says, when it says it, and mends it.

use crate::history::Trouble;
use crate::plan::{Break, Fault, Target};
use crate::servers::Servers;
use crate::stand::{ExecutorSite, NodeSite, Stand};
use anyhow::{Context as _, Result};
use carillon_tests::now_us;
use carillon_tests::proxy::Action;
use rustix::process::Signal;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a node stays away whose machine vanished at a statement, besides the time that was left to the fault.
const VANISHED: Duration = Duration::from_secs(5);

/// Goes through the plan; returns when all of it is mended.
pub async fn go_through(stand: &Arc<Stand>, plan: Vec<Fault>, begin: Instant) -> Result<Vec<Trouble>> {
    let mut faults = JoinSet::new();
    for fault in plan {
        let stand = Arc::clone(stand);
        faults.spawn(async move {
            tokio::time::sleep_until(begin + Duration::from_millis(fault.at_ms)).await;
            let from_us = now_us();
            stand.story.tell("fault begins", fault.to_json());
            let done = apply(&stand, &fault).await;
            stand.story.tell("fault ends", fault.to_json());
            done.map(|()| Trouble { name: fault.name(), from_us, until_us: now_us() })
        });
    }
    let mut troubles = Vec::new();
    while let Some(ended) = faults.join_next().await {
        troubles.push(ended.context("a fault could not be brought about")??);
    }
    troubles.sort_by_key(|trouble| trouble.from_us);
    Ok(troubles)
}

async fn apply(stand: &Stand, fault: &Fault) -> Result<()> {
    let time = Duration::from_millis(fault.for_ms);
    match fault.target {
        Target::Node(number) => break_node(&stand.nodes[number], fault, time).await,
        Target::Executor(number) => break_executor(&stand.executors[number], fault, time).await?,
        Target::Database(number) => break_database(&stand.servers, number, fault, time).await,
    }
    Ok(())
}

async fn break_node(node: &NodeSite, fault: &Fault, time: Duration) {
    match fault.what {
        Break::Kill => {
            node.host.kill().await;
            tokio::time::sleep(time).await;
            node.host.start();
        }
        Break::Pause => {
            node.host.signal(Signal::STOP);
            tokio::time::sleep(time).await;
            node.host.signal(Signal::CONT);
        }
        Break::Restart => {
            node.host.stop().await;
            node.host.start();
        }
        Break::Vanish => vanish(node, time).await,
        Break::Partition => {
            node.database.freeze();
            node.api.freeze();
            tokio::time::sleep(time).await;
            node.database.thaw();
            node.api.thaw();
        }
        Break::Cut { by_error } => node.database.cut(by_error),
        Break::Slow { by_ms } => {
            node.database.slow(Duration::from_millis(by_ms));
            tokio::time::sleep(time).await;
            node.database.slow(Duration::ZERO);
        }
        Break::Trap { .. } => walk_into(node, fault, time).await,
    }
}

/// Without closing anything; the next one of its name comes after `time`.
async fn vanish(node: &NodeSite, time: Duration) {
    node.database.vanish();
    node.api.vanish();
    node.host.kill().await;
    tokio::time::sleep(time).await;
    node.database.thaw();
    node.api.thaw();
    node.host.start();
}

async fn walk_into(node: &NodeSite, fault: &Fault, time: Duration) {
    let Some(trap) = fault.trap() else { return };
    let before = node.database.times_vanished();
    let vanishes = trap.action == Action::Vanish;
    node.database.set(trap);
    let looking = tokio::time::timeout(time, async {
        if vanishes { node.database.vanished(before).await } else { std::future::pending().await }
    });
    let is_gone = looking.await.is_ok();
    node.database.release();
    if is_gone {
        vanish(node, VANISHED).await;
    }
}

async fn break_executor(executor: &ExecutorSite, fault: &Fault, time: Duration) -> Result<()> {
    match fault.what {
        Break::Kill => {
            executor.host.kill().await;
            // As of a port without a process.
            executor.inbound.refuse();
            tokio::time::sleep(time).await;
            executor.inbound.accept().await?;
            executor.host.start();
        }
        Break::Pause => {
            executor.host.signal(Signal::STOP);
            tokio::time::sleep(time).await;
            executor.host.signal(Signal::CONT);
        }
        Break::Restart => {
            executor.host.stop().await;
            executor.host.start();
        }
        Break::Vanish => {
            executor.inbound.vanish();
            executor.host.kill().await;
            tokio::time::sleep(time).await;
            executor.inbound.thaw();
            executor.host.start();
        }
        Break::Partition => {
            executor.inbound.freeze();
            tokio::time::sleep(time).await;
            executor.inbound.thaw();
        }
        Break::Cut { by_error } => executor.inbound.cut(by_error),
        Break::Slow { .. } | Break::Trap { .. } => {}
    }
    Ok(())
}

async fn break_database(servers: &Servers, number: usize, fault: &Fault, time: Duration) {
    let _turn = servers.turn(number).await;
    match fault.what {
        Break::Kill => {
            servers.kill(number).await;
            tokio::time::sleep(time).await;
            servers.start_again(number).await;
        }
        Break::Pause => {
            servers.pause(number);
            tokio::time::sleep(time).await;
            servers.go_on(number).await;
        }
        _ => {}
    }
}

/// Everything passes again and every process goes on, whatever came between.
pub fn mend(stand: &Stand) {
    for node in &stand.nodes {
        for way in [&node.api, &node.database] {
            way.thaw();
            way.slow(Duration::ZERO);
            way.release();
        }
    }
    for host in stand.hosts() {
        host.signal(Signal::CONT);
        if !host.is_running() {
            host.start();
        }
    }
    stand.story.tell("mended", json!({}));
}
