//! The tasks of a simulation, and the management API's way of changing one.

use crate::node::{Leaves, SimNode, SimParts};
use crate::settings::Shape;
use carillon::definitions::{NotRevoked, TaskDefinitions, change_of};
use carillon::domain::task::{
    BlockScope, BlockStrategy, Delivery, ExpiredStrategy, FailureStrategy, MisfireStrategy, ParentLink, ParentOutcome,
    Routing, ScheduleKind, TaskSpec,
};
use carillon::domain::{LogId, TaskId};
use carillon::store::{Activity, DefinitionStore as _, NewRun, Result, StoreError, StoreErrorKind};
use carillon_simulation::SimStore;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every task of the first tenant.
pub fn specs(shape: &Shape) -> Vec<TaskSpec> {
    let mut specs = short_specs();
    if shape.long_runs {
        specs.extend(long_specs());
    }
    if shape.turns {
        specs.extend(turn_specs());
    }
    specs
}

fn task(name: &str, handler: &str, cron: &str) -> TaskSpec {
    let [name, handler, cron] = [name, handler, cron].map(str::to_owned);
    TaskSpec { name, handler, schedule: ScheduleKind::Cron, cron, ..TaskSpec::default() }
}

fn in_turn(block_scope: BlockScope, block_strategy: BlockStrategy, task: TaskSpec) -> TaskSpec {
    TaskSpec { block_strategy, block_scope, ..task }
}

/// Each stands for a policy.
fn short_specs() -> Vec<TaskSpec> {
    let once = |task: TaskSpec| TaskSpec {
        delivery: Delivery::AtMostOnce,
        failure_strategy: FailureStrategy::Discard,
        ..task
    };
    vec![
        task("every second", "quick", "* * * * * ?"),
        TaskSpec { misfire_strategy: MisfireStrategy::Skip, ..task("every ten seconds", "slow", "0/10 * * * * ?") },
        TaskSpec { routing: Routing::Sharding, ..task("sharded", "quick", "0/5 * * * * ?") },
        TaskSpec {
            max_retries: 3,
            retry_interval_ms: 2_000,
            misfire_strategy: MisfireStrategy::FireAll,
            misfire_max: 3,
            ..task("failing", "flaky", "0/3 * * * * ?")
        },
        TaskSpec {
            misfire_strategy: MisfireStrategy::FireAll,
            misfire_max_late_ms: 40_000,
            ..once(task("once", "quick", "0/2 * * * * ?"))
        },
        once(task("once and slow", "slow", "0/7 * * * * ?")),
        TaskSpec {
            expired_strategy: ExpiredStrategy::Discard,
            expire_after_ms: 4_000,
            ..task("fresh or never", "quick", "0/4 * * * * ?")
        },
        // Fires faster than it runs, and has caught up before it fires again.
        in_turn(BlockScope::App, BlockStrategy::Serial, task("serial", "steady", "0-5,20-25,40-45 * * * * ?")),
        in_turn(BlockScope::App, BlockStrategy::DiscardLater, task("discards later", "slow", "0/3 * * * * ?")),
        in_turn(BlockScope::App, BlockStrategy::CoverEarly, task("covers early", "slow", "0/5 * * * * ?")),
        TaskSpec { max_concurrent: 2, ..task("two at once", "steady", "0-9,30-39 * * * * ?") },
        TaskSpec {
            schedule: ScheduleKind::FixedDelay,
            cron: String::new(),
            interval_ms: 3_000,
            ..task("after a delay", "steady", "")
        },
        TaskSpec { max_retries: 1, retry_interval_ms: 2_000, ..task("parent", "flaky", "0/4 * * * * ?") },
        TaskSpec {
            schedule: ScheduleKind::None,
            parents: vec![ParentLink { task: "parent".to_owned(), on: ParentOutcome::Success }],
            parent_output: true,
            ..task("child", "quick", "")
        },
        TaskSpec { max_retries: 0, pause_after_failures: 3, ..task("pauses itself", "flaky", "0/2 * * * * ?") },
    ]
}

/// Tasks whose runs take longer than an executor may be silent.
fn long_specs() -> Vec<TaskSpec> {
    let long = |name: &str, cron: &str| task(name, "long", cron);
    vec![
        long("long", "0/15 * * * * ?"),
        in_turn(BlockScope::App, BlockStrategy::Serial, long("long and serial", "8,48 * * * * ?")),
    ]
}

/// Tasks whose runs wait for each other on each executor, and one whose runs are stopped when they take too long.
fn turn_specs() -> Vec<TaskSpec> {
    vec![
        in_turn(
            BlockScope::Executor,
            BlockStrategy::Serial,
            task("serial on each", "steady", "0-5,20-25,40-45 * * * * ?"),
        ),
        in_turn(
            BlockScope::Executor,
            BlockStrategy::DiscardLater,
            task("discards later on each", "slow", "0/3 * * * * ?"),
        ),
        in_turn(BlockScope::Executor, BlockStrategy::CoverEarly, task("covers early on each", "slow", "0/5 * * * * ?")),
        TaskSpec {
            timeout_ms: 3_000,
            max_retries: 1,
            retry_interval_ms: 2_000,
            ..task("times out", "slow", "0/6 * * * * ?")
        },
    ]
}

/// The task of a tenant that has but one; of many tenants, each fires less.
pub fn neighbour(tenants: usize) -> TaskSpec {
    TaskSpec {
        name: "neighbour".to_owned(),
        handler: "quick".to_owned(),
        schedule: ScheduleKind::Cron,
        cron: if tenants > 5 { "0/10 * * * * ?" } else { "0/3 * * * * ?" }.to_owned(),
        ..TaskSpec::default()
    }
}

/// Writes a run that a person asked for.
pub async fn start_by_hand(store: &SimStore, task: TaskId, id: LogId, now: i64) {
    if let Ok(Some(view)) = store.task(task).await {
        store.start_run(&view, &NewRun::manual(id, now)).await.expect("there is room for it");
    }
}

/// What an edit, a stop or a start answered.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Task.
    pub task: TaskId,
    /// Its revision from now on.
    pub revision: i64,
    /// True time of the answer, ms.
    pub at: i64,
    /// Logs that it named as running.
    pub running: BTreeSet<LogId>,
    /// Logs that it named as out of reach.
    pub unreachable: BTreeSet<LogId>,
}

impl Answered {
    /// Whether it named that run at all.
    pub fn names(&self, log: LogId) -> bool {
        self.running.contains(&log) || self.unreachable.contains(&log)
    }
}

/// Starts, stops or edits a task through a node's task definition service. `None` when the node is not there, or the caller has
/// gone away.
pub async fn change(
    node: &Arc<SimNode>,
    task: TaskId,
    started: bool,
    leaves: Option<Leaves>,
) -> Option<Result<Answered>> {
    let work = async move |parts: Arc<SimParts>| change_by(&parts.definitions, task, started).await;
    node.serve_for(leaves, work).await
}

/// The schedule of a revision: every other edit fires half as often as before, or twice as often.
fn cron_of(before: &str, revision: i64) -> String {
    let every = |seconds: &str| -> Option<(i64, String)> {
        let (step, rest) = seconds.split_once(' ')?;
        let step = if step == "*" { 1 } else { step.strip_prefix("0/")?.parse().ok()? };
        Some((step, rest.to_owned()))
    };
    match every(before) {
        Some((step, rest)) if revision % 4 == 2 => format!("0/{} {rest}", 2 * step),
        Some((step, rest)) if revision % 4 == 0 && step % 2 == 0 => format!("0/{} {rest}", step / 2),
        _ => before.to_owned(),
    }
}

async fn change_by(definitions: &TaskDefinitions<SimStore>, task: TaskId, started: bool) -> Result<Answered> {
    let gone = || StoreError::new(StoreErrorKind::NotFound, "change a task", "no such task");
    let before = definitions.find(task).await?.ok_or_else(gone)?;
    let revision = before.revision + 1;
    let cron = if started { cron_of(&before.spec.cron, revision) } else { before.spec.cron.clone() };
    let spec = TaskSpec { params: format!("revision {revision}"), cron, ..before.spec.clone() };
    let change = change_of(before, spec, Activity::of(started));
    let not_revoked = definitions.apply(&[], &[change]).await?;
    let named = |of: fn(&NotRevoked) -> &Vec<String>| {
        not_revoked.iter().flat_map(of).map(|id| LogId(id.parse().expect("an id is a number"))).collect()
    };
    let (running, unreachable) = (named(|one| &one.running), named(|one| &one.unreachable));
    Ok(Answered { task, revision, at: 0, running, unreachable })
}
