//! Breaks what the plan says, when it says it, and mends it.

use crate::history::{Set, Trouble};
use crate::host::Host;
use crate::plan::{Break, Fault, Target};
use crate::servers::Servers;
use crate::stand::Stand;
use anyhow::{Context as _, Result};
use carillon_tests::now_us;
use carillon_tests::proxy::{Action, Point};
use rustix::process::Signal;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a node stays away whose machine vanished at a statement, besides the time that was left to the fault.
const VANISHED: Duration = Duration::from_secs(5);

/// What was broken.
#[derive(Default)]
pub struct Broken {
    /// Everything but traps that nothing walked into.
    pub troubles: Vec<Trouble>,
    /// All traps.
    pub traps: Vec<Set>,
}

/// Goes through the plan; returns when all of it is mended.
pub async fn go_through(stand: &Arc<Stand>, plan: Vec<Fault>, begin: Instant) -> Result<Broken> {
    let mut faults = JoinSet::new();
    for fault in plan {
        let stand = Arc::clone(stand);
        faults.spawn(async move {
            tokio::time::sleep_until(begin + Duration::from_millis(fault.at_ms)).await;
            let _turn = stand.turn(fault.target).await;
            let from_us = now_us();
            stand.story.tell("fault begins", fault.to_json());
            let trap = apply(&stand, &fault).await?;
            stand.story.tell("fault ends", fault.to_json());
            if let Some(trap) = &trap {
                stand.story.tell("trap", json!(trap));
            }
            let trouble = Trouble { name: fault.name(), target: fault.target.name(), from_us, until_us: now_us() };
            anyhow::Ok((trouble, trap))
        });
    }
    let mut broken = Broken::default();
    while let Some(ended) = faults.join_next().await {
        let (trouble, trap) = ended.context("a fault could not be brought about")??;
        if trap.as_ref().is_none_or(|trap| trap.sprung > 0 || trap.is_cut) {
            broken.troubles.push(trouble);
        }
        broken.traps.extend(trap);
    }
    broken.troubles.sort_by_key(|trouble| trouble.from_us);
    Ok(broken)
}

/// The trap that it was, if it was one.
async fn apply(stand: &Stand, fault: &Fault) -> Result<Option<Set>> {
    let time = Duration::from_millis(fault.for_ms);
    match fault.target {
        Target::Node(number) => return Ok(break_node(stand, number, fault, time).await),
        Target::Executor(number) => break_executor(stand, number, fault, time).await?,
        Target::Database(number) => break_database(&stand.servers, number, fault, time).await,
    }
    Ok(None)
}

async fn break_node(stand: &Stand, number: usize, fault: &Fault, time: Duration) -> Option<Set> {
    let node = &stand.nodes[number];
    match fault.what {
        Break::Kill => {
            node.host.kill().await;
            tokio::time::sleep(time).await;
            node.host.start();
        }
        Break::Pause => pause(&node.host, time).await,
        Break::Restart => {
            node.host.stop().await;
            node.host.start();
        }
        Break::Vanish => vanish_node(stand, number, time).await,
        Break::Partition => {
            node.database.freeze();
            stand.hops_of(fault.target).for_each(|hop| hop.freeze(fault.target));
            tokio::time::sleep(time).await;
            node.database.thaw();
            stand.hops_of(fault.target).for_each(|hop| hop.thaw(fault.target));
        }
        Break::Cut { by_error } => node.database.cut(by_error),
        Break::Slow { by_ms } => {
            node.database.slow(Duration::from_millis(by_ms));
            tokio::time::sleep(time).await;
            node.database.slow(Duration::ZERO);
        }
        Break::Trap { .. } => return walk_into(stand, number, fault, time).await,
        // Only executors are drawn for it.
        Break::OneWay { .. } => {}
    }
    None
}

async fn pause(host: &Host, time: Duration) {
    host.signal(Signal::STOP);
    tokio::time::sleep(time).await;
    host.signal(Signal::CONT);
}

/// Without closing anything; the next one of its name comes after `time`.
async fn vanish_node(stand: &Stand, number: usize, time: Duration) {
    let (node, target) = (&stand.nodes[number], Target::Node(number));
    node.database.vanish();
    stand.hops_of(target).for_each(|hop| hop.vanish(target));
    node.host.kill().await;
    tokio::time::sleep(time).await;
    node.database.thaw();
    stand.hops_of(target).for_each(|hop| hop.thaw(target));
    node.host.start();
}

async fn walk_into(stand: &Stand, number: usize, fault: &Fault, time: Duration) -> Option<Set> {
    let (trap, way) = (fault.trap()?, &stand.nodes[number].database);
    let (point, vanishes) = (trap.point, trap.action == Action::Vanish);
    let (times_gone, times_sprung) = (way.times_vanished(), way.times_sprung());
    way.set(trap);
    // A connection prepares each statement once: only new ones have any left to prepare.
    let is_cut = point == Point::Prepare;
    if is_cut {
        way.cut(false);
    }
    let looking = tokio::time::timeout(time, async {
        if vanishes { way.vanished(times_gone).await } else { std::future::pending().await }
    });
    let is_gone = looking.await.is_ok();
    way.release();
    let sprung = way.times_sprung() - times_sprung;
    if is_gone {
        vanish_node(stand, number, VANISHED).await;
    }
    Some(Set { point: format!("{point:?}").to_lowercase(), sprung, is_cut })
}

async fn break_executor(stand: &Stand, number: usize, fault: &Fault, time: Duration) -> Result<()> {
    let (executor, target) = (&stand.executors[number], fault.target);
    match fault.what {
        Break::Kill => {
            executor.host.kill().await;
            // As of a port without a process.
            executor.address.refuse();
            tokio::time::sleep(time).await;
            executor.address.accept().await?;
            executor.host.start();
        }
        Break::Pause => pause(&executor.host, time).await,
        Break::Restart => {
            executor.host.stop().await;
            executor.host.start();
        }
        Break::Vanish => {
            stand.hops_of(target).for_each(|hop| hop.vanish(target));
            executor.host.kill().await;
            tokio::time::sleep(time).await;
            stand.hops_of(target).for_each(|hop| hop.thaw(target));
            executor.host.start();
        }
        Break::Partition => {
            stand.hops_of(target).for_each(|hop| hop.freeze(target));
            tokio::time::sleep(time).await;
            stand.hops_of(target).for_each(|hop| hop.thaw(target));
        }
        Break::OneWay { inbound } => {
            let hops = || executor.links.iter().map(|link| if inbound { &link.to_executor } else { &link.to_node });
            hops().for_each(|hop| hop.freeze(target));
            tokio::time::sleep(time).await;
            hops().for_each(|hop| hop.thaw(target));
        }
        Break::Cut { by_error } => stand.hops_of(target).for_each(|hop| hop.way.cut(by_error)),
        Break::Slow { by_ms } => {
            stand.hops_of(target).for_each(|hop| hop.way.slow(Duration::from_millis(by_ms)));
            tokio::time::sleep(time).await;
            stand.hops_of(target).for_each(|hop| hop.way.slow(Duration::ZERO));
        }
        // Only nodes are drawn for it.
        Break::Trap { .. } => {}
    }
    Ok(())
}

async fn break_database(servers: &Servers, number: usize, fault: &Fault, time: Duration) {
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
        node.database.thaw();
        node.database.slow(Duration::ZERO);
        node.database.release();
    }
    for host in stand.hosts() {
        host.signal(Signal::CONT);
        if !host.is_running() {
            host.start();
        }
    }
    stand.story.tell("mended", json!({}));
}
