//! What the life of a run costs the database (`--life`), in units that do not depend on the machine or on its mood.
//!
//! Runs are written ahead, claimed, dispatched, ended and deleted through the store's own traits, in the batches in which
//! nodes do it, by one caller after the other, with instants that are handed in: each time the same statements with the same
//! values in the same order. What the database counts meanwhile is what they cost it.

use crate::database::Database;
use crate::life_counts::{Counter, Counts};
use crate::progress;
use crate::report::rounded;
use crate::stand::Bench;
use anyhow::{Context, Result, ensure};
use carillon::domain::plan::{Window, plan};
use carillon::domain::task::{ScheduleKind, TaskSpec};
use carillon::domain::{ExecutorId, IdSource, NodeId, Owner, Run, Task, TaskId};
use carillon::store::{
    Activity, ClaimStore as _, ClusterStore as _, DatabaseSettings, DispatchStore as _, DueRange, Fence,
    HousekeepingStore as _, LeaseName, NewTask, NodeInfo, OutcomeStore as _, PlanStore as _, RunDispatch, Share,
    SqlStore, Writer,
};
use carillon_protocol::{RunResult, RunStatus};
use carillon_tests::tenants::make_app;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Tasks of which each has a run in each batch.
const TASKS: usize = 1_000;

/// Batches that are counted; as many are there already, ended, and go meanwhile. As many before those have made room.
const BATCHES: i64 = 10;

/// The instant before the first fire, epoch ms: 1 January 2026. Then each task fires once an hour, as retention keeps apart by
/// hours what is old.
const BEGUN_AT: i64 = 1_767_225_600_000;
const HOUR_MS: i64 = 3_600_000;

/// How long before its fire time a run is written, claimed and dispatched, ms.
const WRITTEN_MS: i64 = 180_000;
const CLAIMED_MS: i64 = 13_000;
const DISPATCHED_MS: i64 = 3_000;

/// Later fires than that are missed, ms: none is.
const MISFIRE_AFTER_MS: i64 = 30_000;

/// Long enough for the whole measurement, ms.
const LEASE_MS: i64 = 3_600_000;

/// Tasks that are written ahead at once, runs that are dispatched at once, runs of all other steps.
const WRITTEN_AT_ONCE: usize = 500;
const DISPATCHED_AT_ONCE: usize = 500;
const AT_ONCE: usize = 1_000;

/// A step in the life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    WriteAhead,
    Claim,
    Dispatch,
    Succeed,
    Purge,
}

impl Step {
    const ALL: [Self; 5] = [Self::WriteAhead, Self::Claim, Self::Dispatch, Self::Succeed, Self::Purge];

    fn name(self) -> &'static str {
        match self {
            Self::WriteAhead => "write ahead",
            Self::Claim => "claim",
            Self::Dispatch => "dispatch",
            Self::Succeed => "succeed",
            Self::Purge => "purge",
        }
    }
}

/// The names of the steps, in their order.
pub fn steps() -> impl Iterator<Item = &'static str> {
    Step::ALL.into_iter().map(Step::name)
}

/// Lives through three rounds of batches and counts the last.
pub async fn measure(bench: &Bench) -> Result<Value> {
    let database = bench.server.create().await?;
    let counter = Counter { server: &bench.server, database: &database };
    progress(&format!("{TASKS} tasks"));
    let store = connect(&database).await?;
    store.migrate().await?;
    let mut cluster = Cluster::found(&store, &database).await?;
    for round in 0..2 {
        progress(&format!("{} runs that are not counted", BATCHES * TASKS as i64));
        for step in Step::ALL {
            if round > 0 || step != Step::Purge {
                cluster.take(&store, step, round).await?;
            }
        }
    }
    store.close().await;
    counter.know_the_tables().await?;
    progress(&format!("{} runs that are counted", BATCHES * TASKS as i64));
    let idle = cost(&counter, async |_| Ok(())).await?;
    let mut steps = Map::new();
    for step in Step::ALL {
        let counts = cost(&counter, async |store| cluster.take(store, step, 2).await).await?;
        let of_life = |count: &f64| rounded(count / (BATCHES * TASKS as i64) as f64, 4);
        let counts: BTreeMap<_, _> = counts.less(&idle).0.iter().map(|(name, count)| (*name, of_life(count))).collect();
        steps.insert(step.name().to_owned(), serde_json::to_value(counts)?);
    }
    bench.server.remove(database).await?;
    Ok(json!({ "lives": BATCHES * TASKS as i64, "life": steps }))
}

/// What is counted while `work` is done over a connection of its own. With its end the server has all counts of it.
async fn cost(counter: &Counter<'_>, mut work: impl AsyncFnMut(&SqlStore) -> Result<()>) -> Result<Counts> {
    counter.prepare().await?;
    let before = counter.read().await?;
    let store = connect(counter.database).await?;
    let (sent, steps) = (store.statements_sent(), store.count_steps().await?);
    work(&store).await?;
    let sent = store.statements_sent() - sent;
    store.close().await;
    counter.settle().await?;
    let mut counts = counter.read().await?.less(&before);
    counter.release().await?;
    counts.0.insert("statements", sent as f64);
    if let Some(steps) = steps {
        counts.0.insert("machine_steps", steps.load(Ordering::Relaxed) as f64);
    }
    Ok(counts)
}

async fn connect(database: &Database) -> Result<SqlStore> {
    let settings = DatabaseSettings {
        url: database.url.clone(),
        max_connections: 1,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_mins(1),
        migrate_at_start: false,
    };
    Ok(SqlStore::connect(&settings).await?)
}

/// A cluster of one node, which does one thing after the other.
struct Cluster {
    owner: Owner,
    node: NodeId,
    fence: Fence,
    ids: IdSource,
    /// Of each batch of the round.
    runs: Vec<Vec<Run>>,
}

impl Cluster {
    async fn found(store: &SqlStore, database: &Database) -> Result<Self> {
        let info = NodeInfo { name: "bench".to_owned(), ..NodeInfo::default() };
        let node = store.join(&info).await?.id;
        // It does not beat: the database has just heard of it whatever the time.
        database.execute(&format!("UPDATE node SET heartbeat_at = {}", i64::MAX / 2)).await?;
        let fence = store.take_lease(LeaseName::Pregenerate, node, None, LEASE_MS).await?;
        let ids = IdSource::new(node);
        let owner = make_app(store, [ids.next(BEGUN_AT), ids.next(BEGUN_AT)], "bench", "bench").await;
        let task = |number| {
            let (name, handler) = (format!("task-{number:04}"), "bench".to_owned());
            let cron = "0 0 * * * ?".to_owned();
            let spec = TaskSpec { name, handler, schedule: ScheduleKind::Cron, cron, ..TaskSpec::default() };
            NewTask { id: ids.next::<TaskId>(BEGUN_AT), owner, spec, activity: Activity::of(true) }
        };
        let tasks: Vec<NewTask> = (0..TASKS).map(task).collect();
        store.apply_tasks(&tasks, &[], BEGUN_AT).await?;
        Ok(Self { owner, node, fence: fence.context("the lease is free")?, ids, runs: Vec::new() })
    }

    /// Takes all batches of a round through one step.
    async fn take(&mut self, store: &SqlStore, step: Step, round: i64) -> Result<()> {
        for batch in 0..BATCHES {
            let due = BEGUN_AT + (round * BATCHES + batch + 1) * HOUR_MS;
            match step {
                Step::WriteAhead => self.write_ahead(store, due).await?,
                Step::Claim => self.claim(store, due).await?,
                Step::Dispatch => self.dispatch(store, batch).await?,
                Step::Succeed => self.succeed(store, batch).await?,
                Step::Purge => {
                    let before = BEGUN_AT + round * BATCHES * HOUR_MS + HOUR_MS / 2;
                    let deleted = store.purge(before, AT_ONCE as u64).await?.deleted;
                    ensure!(deleted == TASKS as u64, "retention deleted {deleted} of {TASKS} runs");
                }
            }
        }
        if step == Step::Succeed {
            self.runs.clear();
        }
        Ok(())
    }

    async fn write_ahead(&self, store: &SqlStore, due: i64) -> Result<()> {
        let now = due - WRITTEN_MS;
        let window =
            Window { now, until: due, misfire_after_ms: MISFIRE_AFTER_MS, fires_max: 1, doubted_until: i64::MIN };
        for _ in 0..TASKS / WRITTEN_AT_ONCE {
            let tasks: Vec<Task> = store.tasks_due(due, &[], WRITTEN_AT_ONCE as u64).await?;
            let plans: Vec<_> = tasks.iter().filter_map(|task| plan(task, window, || self.ids.next(now))).collect();
            let moved = store.write_ahead(Writer::Lease(self.fence), &plans, now).await?;
            let moved = moved.context("the lease is lost")?.len();
            ensure!(moved == WRITTEN_AT_ONCE, "{moved} of {WRITTEN_AT_ONCE} tasks were written ahead");
        }
        Ok(())
    }

    async fn claim(&mut self, store: &SqlStore, due: i64) -> Result<()> {
        let alone = Some(Share { index: 0, total: 1 });
        let found = store.claimable(alone, DueRange::until(due), AT_ONCE as u64).await?;
        let claimed = store.claim(self.node, found, due - CLAIMED_MS).await?;
        ensure!(claimed.len() == TASKS, "{} of {TASKS} runs were claimed", claimed.len());
        self.runs.push(claimed);
        Ok(())
    }

    async fn dispatch(&self, store: &SqlStore, batch: i64) -> Result<()> {
        for runs in self.runs[batch as usize].chunks(DISPATCHED_AT_ONCE) {
            let item = |run: &Run| RunDispatch {
                id: run.id,
                version: run.version,
                executor_id: ExecutorId(1),
                dispatched_at: run.due_time - DISPATCHED_MS,
                refused: None,
            };
            let items: Vec<RunDispatch> = runs.iter().map(item).collect();
            let moved = store.dispatch(self.node, &items).await?.len();
            ensure!(moved == runs.len(), "{moved} of {} runs were dispatched", runs.len());
        }
        Ok(())
    }

    async fn succeed(&self, store: &SqlStore, batch: i64) -> Result<()> {
        for runs in self.runs[batch as usize].chunks(AT_ONCE) {
            let result = |run: &Run| RunResult {
                log: run.id.0,
                attempt: run.attempt + 1,
                status: RunStatus::Succeeded,
                message: String::new(),
                output: String::new(),
                started_at: run.due_time + 1,
                finished_at: run.due_time + 2,
                due_time: run.due_time,
            };
            let results: Vec<RunResult> = runs.iter().map(result).collect();
            let moved = store.succeed_whole(self.owner, &results.iter().collect::<Vec<_>>()).await?;
            ensure!(moved == runs.len() as u64, "{moved} of {} runs succeeded", runs.len());
        }
        Ok(())
    }
}
