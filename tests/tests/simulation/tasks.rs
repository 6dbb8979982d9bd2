//! The tasks of a simulation, and the management API's way of changing one.

use crate::node::{SimEngine, SimNode};
use carillon::domain::task::{
    BlockScope, BlockStrategy, Delivery, ExpiredStrategy, FailureStrategy, MisfireStrategy, ParentLink, ParentOutcome,
    Routing, ScheduleKind, TaskSpec,
};
use carillon::domain::{LogId, Reason, TaskId};
use carillon::store::{Activity, NewRun, Result, StoreError, StoreErrorKind, TaskChange};
use carillon_tests::model::ModelStore;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every task: each stands for a policy.
pub fn specs() -> Vec<TaskSpec> {
    let task = |name: &str, handler: &str, cron: &str| {
        let [name, handler, cron] = [name, handler, cron].map(str::to_owned);
        TaskSpec { name, handler, schedule: ScheduleKind::Cron, cron, ..TaskSpec::default() }
    };
    let once = |task: TaskSpec| TaskSpec {
        delivery: Delivery::AtMostOnce,
        failure_strategy: FailureStrategy::Discard,
        ..task
    };
    let in_turn = |block_strategy, task: TaskSpec| TaskSpec { block_strategy, block_scope: BlockScope::App, ..task };
    vec![
        task("every second", "quick", "* * * * * ?"),
        task("every ten seconds", "slow", "0/10 * * * * ?"),
        TaskSpec { routing: Routing::Sharding, ..task("sharded", "quick", "0/5 * * * * ?") },
        TaskSpec { max_retries: 3, retry_interval_ms: 2_000, ..task("failing", "flaky", "0/3 * * * * ?") },
        once(TaskSpec { misfire_strategy: MisfireStrategy::Skip, ..task("once", "quick", "0/2 * * * * ?") }),
        once(task("once and slow", "slow", "0/7 * * * * ?")),
        TaskSpec {
            expired_strategy: ExpiredStrategy::Discard,
            expire_after_ms: 4_000,
            ..task("fresh or never", "quick", "0/4 * * * * ?")
        },
        // Fires faster than it runs, and has caught up before it fires again.
        in_turn(BlockStrategy::Serial, task("serial", "steady", "0-5,20-25,40-45 * * * * ?")),
        in_turn(BlockStrategy::DiscardLater, task("discards later", "slow", "0/3 * * * * ?")),
        in_turn(BlockStrategy::CoverEarly, task("covers early", "slow", "0/5 * * * * ?")),
        TaskSpec { max_concurrent: 2, ..task("two at once", "steady", "0-9,30-39 * * * * ?") },
        TaskSpec {
            schedule: ScheduleKind::FixedDelay,
            cron: String::new(),
            interval_ms: 3_000,
            ..task("after a delay", "steady", "")
        },
        TaskSpec { max_retries: 1, retry_interval_ms: 1_000, ..task("parent", "flaky", "0/4 * * * * ?") },
        TaskSpec {
            schedule: ScheduleKind::None,
            parents: vec![ParentLink { task: "parent".to_owned(), on: ParentOutcome::Success }],
            parent_output: true,
            ..task("child", "quick", "")
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
pub async fn start_by_hand(store: &ModelStore, task: TaskId, id: LogId, now: i64) {
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
    /// Logs that it named as running or out of reach.
    pub named: BTreeSet<LogId>,
}

/// Starts, stops or edits a task through a node, as `api/definitions.rs` does. `None` when the node is
/// not there.
pub async fn change(node: &Arc<SimNode>, task: TaskId, started: bool) -> Option<Result<Answered>> {
    let store = node.store().clone();
    let answer = node.serve(async move |engine: Arc<SimEngine>| change_by(&engine, &store, task, started).await);
    let answer = answer.await;
    node.wake();
    answer
}

async fn change_by(engine: &SimEngine, store: &ModelStore, task: TaskId, started: bool) -> Result<Answered> {
    let gone = || StoreError::new(StoreErrorKind::NotFound, "change a task", "no such task");
    let before = store.task(task).await?.ok_or_else(gone)?;
    let spec = TaskSpec { params: format!("revision {}", before.revision + 1), ..before.spec.clone() };
    let stops = before.activity.started && !started;
    let reason = if stops { Reason::TaskStopped } else { Reason::TaskEdited };
    let now = engine.clock.now_ms();
    let change = TaskChange { before: before.clone(), spec, activity: Activity::of(started), reason };
    let held = store.change_task(&change, now).await?;
    let took = engine.canceller.revoke(held).await?;
    if started {
        engine.pregenerator.write_task(task).await?;
    }
    let named = took.running.iter().chain(&took.unreachable).copied().collect();
    Ok(Answered { task, revision: before.revision + 1, at: 0, named })
}
