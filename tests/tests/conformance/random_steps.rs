//! Random steps, taken on the model and on `SQLite`: the same answers and the same rows.

use crate::fixture::{HOME, World, dispatch_of, pause, start, stop, success};
use carillon::domain::plan::{Plan, Window, plan};
use carillon::domain::task::{Routing, TaskSpec};
use carillon::domain::task_log::STATUSES;
use carillon::domain::trigger::TRIGGERS;
use carillon::domain::{AppId, ExecutorId, LogId, NodeId, Owner, Reason, Run, Status, TaskId, Transition, Trigger};
use carillon::store::{Activity, DueRange, NewRun, NewTask, RunDispatch, Skip};
use carillon_simulation::store::admin::new_task;
use carillon_tests::Kind;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;

/// Sequences tried.
const CASES: u32 = 24;

/// The instant that all sequences count from, ms.
const NOW: i64 = 1_800_000_000_000;

/// A step; numbers choose among what there is when it is taken.
#[derive(Debug, Clone)]
enum Step {
    WriteAhead { seconds: i64 },
    Claim { node: NodeId, pick: u64, stale: bool },
    RunDispatch { node: NodeId, pick: u64, executor: i64, stale: bool },
    DispatchShards { node: NodeId, pick: usize, total: i32 },
    Succeed { pick: u64, older: i32, stranger: bool },
    Transition { pick: u64, to: usize, reason: usize, stale: bool },
    Settle,
    StartRun { task: usize, second: i64, trigger: usize, key: Option<u8> },
    Revoke { pick: u64, stale: bool },
    Skip { second: i64 },
    Restore { second: i64 },
    Redefine { to: Activity },
}

/// The reasons that a guarded step may carry here.
const REASONS: [Reason; 4] = [Reason::HandlerFailed, Reason::GivenBack, Reason::TaskEdited, Reason::CancelledManually];

/// Mostly an edit of a started task.
fn activity() -> impl Strategy<Value = Activity> {
    let paused = Activity { started: false, pause_note: Some("why".to_owned()) };
    prop_oneof![3 => Just(Activity::of(true)), 1 => Just(Activity::of(false)), 1 => Just(paused)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pick = any::<u64>;
    let stale = || prop::bool::weighted(0.2);
    let step = prop_oneof![
        3 => (2i64..8).prop_map(|seconds| Step::WriteAhead { seconds }),
        4 => (1i64..3, pick(), stale()).prop_map(|(node, pick, stale)| Step::Claim { node: NodeId(node), pick, stale }),
        4 => (1i64..3, pick(), 7i64..9, stale())
            .prop_map(|(node, pick, executor, stale)| Step::RunDispatch { node: NodeId(node), pick, executor, stale }),
        2 => (1i64..3, any::<usize>(), 1i32..4).prop_map(|(node, pick, total)| Step::DispatchShards { node: NodeId(node), pick, total }),
        4 => (pick(), 0i32..2, stale()).prop_map(|(pick, older, stranger)| Step::Succeed { pick, older, stranger }),
        4 => (pick(), any::<usize>(), 0..REASONS.len(), stale())
            .prop_map(|(pick, to, reason, stale)| Step::Transition { pick, to, reason, stale }),
        1 => Just(Step::Settle),
        2 => (0..2usize, 0i64..8, 0..TRIGGERS.len(), prop::option::of(0u8..3))
            .prop_map(|(task, second, trigger, key)| Step::StartRun { task, second, trigger, key }),
        3 => (pick(), stale()).prop_map(|(pick, stale)| Step::Revoke { pick, stale }),
        2 => (0i64..8).prop_map(|second| Step::Skip { second }),
        1 => (0i64..8).prop_map(|second| Step::Restore { second }),
        2 => activity().prop_map(|to| Step::Redefine { to }),
    ];
    prop::collection::vec(step, 5..40)
}

/// Both stores, and the two tasks (one sharded) that they were given.
struct Pair {
    model: World,
    sqlite: World,
    tasks: [TaskId; 2],
    /// Counts the steps, so that no two write the same times.
    clock: i64,
}

impl Pair {
    async fn new() -> Self {
        let mut pair = Self {
            model: World::model().await,
            sqlite: World::sql(Kind::Sqlite).await,
            tasks: [TaskId::NONE; 2],
            clock: NOW,
        };
        // The same ids on both sides: the model's.
        pair.sqlite.owner = pair.sqlite.admin.make_app([3, 4], "twin", "twin").await;
        pair.model.owner = pair.model.admin.make_app([3, 4], "twin", "twin").await;
        for (at, routing) in [Routing::Random, Routing::Sharding].into_iter().enumerate() {
            let spec = TaskSpec { routing, max_fires: 6, ..World::every_second(&format!("task-{at}")) };
            pair.tasks[at] = pair.model.id();
            let task = new_task(pair.tasks[at], pair.model.owner, spec);
            let task = [NewTask { activity: Activity::of(true), ..task }];
            for world in [&pair.model, &pair.sqlite] {
                world.admin.apply(&task, &[], NOW).await.unwrap();
            }
        }
        pair
    }

    /// Every row, as the model has it.
    async fn rows(&self) -> Vec<Run> {
        let mut rows = Vec::new();
        for task in self.tasks {
            rows.extend(self.model.rows(task).await.into_iter().map(|log| log.dispatched.run));
        }
        rows
    }

    /// Some of the rows: one bit of `pick` decides about each.
    async fn some(&self, pick: u64) -> Vec<Run> {
        let rows = self.rows().await;
        rows.into_iter().enumerate().filter(|(at, _)| pick >> (at % 64) & 1 == 1).map(|(_, run)| run).collect()
    }

    async fn take(&mut self, step: &Step) {
        self.clock += 10;
        match step {
            Step::WriteAhead { seconds } => self.write_ahead(*seconds).await,
            Step::Claim { node, pick, stale } => {
                let runs = aged(self.some(*pick).await, *stale);
                let one = self.model.store.claim(*node, runs.clone(), self.clock).await.unwrap();
                let two = self.sqlite.store.claim(*node, runs, self.clock).await.unwrap();
                assert_eq!(one, two, "claimed");
            }
            Step::RunDispatch { node, pick, executor, stale } => {
                let runs = aged(self.some(*pick).await, *stale);
                let items: Vec<RunDispatch> = runs
                    .iter()
                    .filter(|run| !run.is_parent())
                    .map(|run| dispatch_of(run, ExecutorId(*executor), self.clock))
                    .collect();
                let one = self.model.store.dispatch(*node, &items).await.unwrap();
                let two = self.sqlite.store.dispatch(*node, &items).await.unwrap();
                assert_eq!(one, two, "dispatched");
            }
            Step::DispatchShards { node, pick, total } => self.dispatch_shards(*node, *pick, *total).await,
            Step::Succeed { pick, older, stranger } => self.succeed(*pick, *older, *stranger).await,
            Step::Transition { pick, to, reason, stale } => self.change(*pick, *to, REASONS[*reason], *stale).await,
            Step::Settle => self.settle().await,
            Step::StartRun { task, second, trigger, key } => {
                self.start_run(self.tasks[*task], *second, TRIGGERS[*trigger].0, *key).await;
            }
            Step::Revoke { pick, stale } => self.revoke(*pick, *stale).await,
            Step::Skip { second } => self.skip(*second).await,
            Step::Restore { second } => self.restore(*second).await,
            Step::Redefine { to } => self.redefine(to).await,
        }
    }

    async fn write_ahead(&self, seconds: i64) {
        let window = Window { now: NOW, until: NOW + seconds * 1_000, misfire_after_ms: 30_000, fires_max: 100 };
        let tasks = self.model.store.tasks(&self.tasks).await.unwrap();
        let plans: Vec<Plan> = tasks.iter().filter_map(|task| plan(task, window, || self.model.id())).collect();
        let one = self.model.store.write_ahead(None, &plans, NOW).await.unwrap();
        let two = self.sqlite.store.write_ahead(None, &plans, NOW).await.unwrap();
        assert_eq!(one, two, "watermarks moved");
    }

    async fn dispatch_shards(&self, node: NodeId, pick: usize, total: i32) {
        let parents: Vec<Run> = self.rows().await.into_iter().filter(Run::is_parent).collect();
        let Some(parent) = parents.get(pick % parents.len().max(1)) else { return };
        let shards = self.model.shards_of(parent, total);
        let one = self.model.store.dispatch_shards(node, parent, &shards, self.clock).await;
        let two = self.sqlite.store.dispatch_shards(node, parent, &shards, self.clock).await;
        assert_eq!(one.map_err(|error| error.kind()), two.map_err(|error| error.kind()), "shards dispatched");
    }

    async fn succeed(&self, pick: u64, older: i32, stranger: bool) {
        let runs: Vec<Run> = self.some(pick).await.into_iter().filter(|run| !run.is_parent()).collect();
        let results: Vec<_> = runs.iter().map(|run| success(run, run.attempt - older)).collect();
        let results: Vec<_> = results.iter().collect();
        let owner = Owner { app_id: AppId(self.model.owner.app_id.0 + i64::from(stranger)), ..self.model.owner };
        let one = self.model.store.succeed(owner, &results).await.unwrap();
        let two = self.sqlite.store.succeed(owner, &results).await.unwrap();
        assert_eq!(one, two, "succeeded");
    }

    /// A step that the state machine allows for each row, if there is one.
    async fn change(&self, pick: u64, to: usize, reason: Reason, stale: bool) {
        let mut changes = Vec::new();
        for run in self.some(pick).await {
            let allowed: Vec<Status> = STATUSES
                .iter()
                .map(|(status, _)| *status)
                .filter(|status| run.status.may_become(*status, run.reason))
                .filter(|status| !matches!(status, Status::Queued | Status::Dispatched | Status::Succeeded))
                .collect();
            let Some(to) = allowed.get(to % allowed.len().max(1)) else { continue };
            // What a waiting parent's reason becomes has a case of its own (`shards`).
            let reason = if run.is_parent() && *to != Status::Cancelled { Reason::None } else { reason };
            let version = run.version - i64::from(stale);
            let (due_time, failures) = (run.due_time + 5, run.failures + 1);
            changes.push(Transition { version, due_time, failures, ..Transition::of(&run, *to, reason) });
        }
        let one = self.model.store.change(&changes).await.unwrap();
        let two = self.sqlite.store.change(&changes).await.unwrap();
        assert_eq!(one, two, "changed");
    }

    async fn settle(&self) {
        let parents: Vec<LogId> = self.rows().await.iter().filter(|run| run.is_parent()).map(|run| run.id).collect();
        let one = self.model.store.settle_parents(&parents, self.clock).await.unwrap();
        let two = self.sqlite.store.settle_parents(&parents, self.clock).await.unwrap();
        assert_eq!(one, two, "parents settled");
    }

    async fn start_run(&self, task: TaskId, second: i64, trigger: Trigger, key: Option<u8>) {
        let task = self.model.task(task).await;
        let run = NewRun {
            at: NOW + second * 1_000,
            key: key.map(|key| key.to_string()),
            trigger,
            ..NewRun::manual(self.model.id(), NOW)
        };
        let one = self.model.admin.start_run(&task, &run).await.unwrap();
        let two = self.sqlite.admin.start_run(&task, &run).await.unwrap();
        assert_eq!(one, two, "started");
    }

    async fn revoke(&self, pick: u64, stale: bool) {
        let runs = aged(self.some(pick).await, stale);
        let one = self.model.store.settle_revoked(&runs, self.clock).await.unwrap();
        let two = self.sqlite.store.settle_revoked(&runs, self.clock).await.unwrap();
        assert_eq!(one, two, "settled");
    }

    async fn skip(&self, second: i64) {
        for task in self.tasks {
            let seen = self.model.task(task).await;
            let fire_time = NOW + second * 1_000;
            let skip = Skip { id: self.model.id(), fire_time, message: "by hand".to_owned() };
            let one = self.model.admin.skip_fire(&seen, &skip, NOW).await;
            let two = self.sqlite.admin.skip_fire(&seen, &skip, NOW).await;
            assert_eq!(one.map_err(|error| error.kind()), two.map_err(|error| error.kind()), "skipped");
        }
    }

    async fn restore(&self, second: i64) {
        for task in self.tasks {
            let seen = self.model.task(task).await;
            let fire_time = NOW + second * 1_000;
            let one = self.model.admin.restore_fire(&seen, fire_time, true, NOW).await;
            let two = self.sqlite.admin.restore_fire(&seen, fire_time, true, NOW).await;
            assert_eq!(one.map_err(|error| error.kind()), two.map_err(|error| error.kind()), "let come");
        }
    }

    async fn redefine(&self, to: &Activity) {
        for task in self.tasks {
            let before = self.model.task(task).await;
            let change = async |world: &World| {
                let change = match to {
                    Activity { started: true, .. } => start(&before),
                    Activity { pause_note: Some(note), .. } => pause(&before, note),
                    Activity { .. } => stop(&before),
                };
                let held = world.change(change, NOW).await.unwrap();
                held.into_iter()
                    .map(|dispatched| (dispatched.run.id, dispatched.run))
                    .collect::<std::collections::BTreeMap<_, _>>()
            };
            assert_eq!(change(&self.model).await, change(&self.sqlite).await, "held by executors");
        }
    }

    async fn compare(&self) {
        for task in self.tasks {
            let (one, two) = (self.model.task(task).await, self.sqlite.task(task).await);
            assert_eq!(format!("{one:?}"), format!("{two:?}"));
            let mut rows = (self.model.rows(task).await, self.sqlite.rows(task).await);
            // Names stand beside the row in lists; the model keeps rows alone.
            for row in &mut rows.1 {
                (row.task_name, row.app_name) = (None, None);
            }
            assert_eq!(rows.0.len(), rows.1.len());
            assert_eq!(self.model.admin.watched(task).await, self.sqlite.admin.watched(task).await);
            for (one, two) in rows.0.iter().zip(&rows.1) {
                assert_eq!(format!("{one:?}"), format!("{two:?}"));
                let (tenant, log) = (one.dispatched.run.tenant_id, one.dispatched.run.id);
                let kept = [&self.model, &self.sqlite].map(|world| world.admin.attempts(tenant, log));
                let [one, two] = kept;
                assert_eq!(one.await, two.await, "attempts");
            }
        }
        let claimable = async |world: &World| {
            let runs = world.store.claimable(None, DueRange::until(i64::MAX), 1_000).await.unwrap();
            runs.into_iter().map(|run| run.id).collect::<BTreeSet<_>>()
        };
        assert_eq!(claimable(&self.model).await, claimable(&self.sqlite).await);
    }
}

/// The copies that a node has which missed the last step.
fn aged(runs: Vec<Run>, stale: bool) -> Vec<Run> {
    runs.into_iter().map(|run| Run { version: run.version - i64::from(stale), ..run }).collect()
}

#[test]
fn the_model_and_sqlite_take_the_same_steps() {
    assert_ne!(HOME, ["twin", "twin"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(async {
            let mut pair = Pair::new().await;
            for step in &steps {
                pair.take(step).await;
                pair.compare().await;
            }
        });
        Ok(())
    });
    outcome.unwrap();
}
