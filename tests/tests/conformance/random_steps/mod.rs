//! Random steps, taken on the model and on a database: the same answers and the same rows.

mod calls;
mod concurrent;

use crate::fixture::{HOME, World, dispatch_of, pause, start, stop, success};
use calls::{Actor, Call};
use carillon::domain::plan::{Window, plan};
use carillon::domain::task::{Routing, TaskSpec};
use carillon::domain::task_log::STATUSES;
use carillon::domain::trigger::TRIGGERS;
use carillon::domain::{AppId, ExecutorId, NodeId, Owner, Reason, Run, Status, TaskId, Transition};
use carillon::store::{Activity, DueRange, NewRun, NewTask, Skip};
use carillon_simulation::store::admin::new_task;
use carillon_tests::Kind;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::ops::Range;

/// Sequences tried with each database.
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
    LeaveRunning { pick: u64, stale: bool },
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

fn steps(count: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
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
        1 => (pick(), stale()).prop_map(|(pick, stale)| Step::LeaveRunning { pick, stale }),
        3 => (pick(), stale()).prop_map(|(pick, stale)| Step::Revoke { pick, stale }),
        2 => (0i64..8).prop_map(|second| Step::Skip { second }),
        1 => (0i64..8).prop_map(|second| Step::Restore { second }),
        2 => activity().prop_map(|to| Step::Redefine { to }),
    ];
    prop::collection::vec(step, count)
}

/// A model and a database, and the two tasks (one sharded) that they were given.
struct Twins {
    model: World,
    sql: World,
    tasks: [TaskId; 2],
    /// Counts the steps, so that no two write the same times.
    clock: i64,
    /// Rows that a step takes at most.
    rows_max: usize,
}

/// The same home and tasks on all sides.
async fn furnished(mut world: World, tasks: [TaskId; 2]) -> World {
    world.owner = world.admin.make_app([3, 4], "twin", "twin").await;
    for (id, routing) in tasks.into_iter().zip([Routing::Random, Routing::Sharding]) {
        let spec = TaskSpec { routing, max_fires: 6, ..World::every_second(&format!("task-{routing:?}")) };
        let task = NewTask { activity: Activity::of(true), ..new_task(id, world.owner, spec) };
        world.admin.apply(&[task], &[], NOW).await.unwrap();
    }
    world
}

/// All that is there of these tasks.
async fn picture(world: &World, tasks: [TaskId; 2]) -> Vec<String> {
    let mut picture = Vec::new();
    for task in tasks {
        picture.push(format!("{:?}", world.task(task).await));
        for mut row in world.rows(task).await {
            // Names stand beside the row in lists; the model keeps rows alone.
            (row.task_name, row.app_name) = (None, None);
            picture.push(format!("{row:?}"));
            let run = &row.dispatched.run;
            picture.push(format!("{:?}", world.admin.attempts(run.tenant_id, run.id).await));
        }
        picture.push(format!("watched: {:?}", world.admin.watched(task).await));
    }
    let runs = world.store.claimable(None, DueRange::until(i64::MAX), 1_000).await.unwrap();
    picture.push(format!("claimable: {:?}", runs.into_iter().map(|run| run.id).collect::<BTreeSet<_>>()));
    picture
}

impl Twins {
    async fn new(kind: Kind) -> Self {
        let model = World::model().await;
        let tasks = [model.id(), model.id()];
        let (model, sql) = (furnished(model, tasks).await, furnished(World::sql(kind).await, tasks).await);
        Self { model, sql, tasks, clock: NOW, rows_max: usize::MAX }
    }

    /// Takes a step on both, which must come to the same. Answers the calls that it consists of.
    async fn take(&mut self, step: &Step) -> Vec<Call> {
        let calls = self.calls(step).await;
        for call in &calls {
            let (one, two) = (call.make(&Actor::of(&self.model)).await, call.make(&Actor::of(&self.sql)).await);
            assert_eq!(one, two, "{call:?}");
        }
        calls
    }

    async fn compare(&self) {
        assert_eq!(picture(&self.model, self.tasks).await, picture(&self.sql, self.tasks).await);
    }

    /// Every row, as the model has it.
    async fn rows(&self) -> Vec<Run> {
        let mut rows = Vec::new();
        for task in self.tasks {
            rows.extend(self.model.rows(task).await.into_iter().map(|log| log.dispatched.run));
        }
        rows
    }

    /// Some of the rows, as a node knows them that may have missed the last step: one bit of `pick` decides about each.
    async fn some(&self, pick: u64, stale: bool) -> Vec<Run> {
        let rows = self.rows().await.into_iter().enumerate();
        let picked = rows.filter(|(at, _)| pick >> (at % 64) & 1 == 1);
        picked.map(|(_, run)| Run { version: run.version - i64::from(stale), ..run }).take(self.rows_max).collect()
    }

    async fn some_without_parents(&self, pick: u64, stale: bool) -> Vec<Run> {
        self.some(pick, stale).await.into_iter().filter(|run| !run.is_parent()).collect()
    }

    /// What a step comes to by what the model has now.
    async fn calls(&mut self, step: &Step) -> Vec<Call> {
        self.clock += 10;
        let at = self.clock;
        match step {
            Step::WriteAhead { seconds } => vec![self.write_ahead(*seconds).await],
            Step::Claim { node, pick, stale } => vec![Call::Claim(*node, self.some(*pick, *stale).await, at)],
            Step::RunDispatch { node, pick, executor, stale } => {
                let runs = self.some_without_parents(*pick, *stale).await;
                vec![Call::Dispatch(
                    *node,
                    runs.iter().map(|run| dispatch_of(run, ExecutorId(*executor), at)).collect(),
                )]
            }
            Step::DispatchShards { node, pick, total } => {
                let parents: Vec<Run> = self.rows().await.into_iter().filter(Run::is_parent).collect();
                let Some(parent) = parents.get(pick % parents.len().max(1)) else { return Vec::new() };
                vec![Call::DispatchShards(*node, parent.clone(), self.model.shards_of(parent, *total), at)]
            }
            Step::Succeed { pick, older, stranger } => {
                let runs = self.some_without_parents(*pick, false).await;
                let app_id = AppId(self.model.owner.app_id.0 + i64::from(*stranger));
                let results = runs.iter().map(|run| success(run, run.attempt - older)).collect();
                vec![Call::Succeed(Owner { app_id, ..self.model.owner }, results)]
            }
            Step::Transition { pick, to, reason, stale } => {
                let runs = self.some(*pick, false).await;
                let changes = runs.iter().filter_map(|run| change(run, *to, REASONS[*reason], *stale));
                vec![Call::Change(changes.collect())]
            }
            Step::Settle => {
                let parents = self.rows().await.into_iter().filter(Run::is_parent).map(|run| run.id).collect();
                vec![Call::Settle(parents, at)]
            }
            Step::StartRun { task, second, trigger, key } => {
                let task = self.model.task(self.tasks[*task]).await;
                let (at, key, trigger) = (NOW + second * 1_000, key.map(|key| key.to_string()), TRIGGERS[*trigger].0);
                vec![Call::StartRun(task, NewRun { at, key, trigger, ..NewRun::manual(self.model.id(), NOW) })]
            }
            Step::LeaveRunning { pick, stale } => {
                let runs = self.some(*pick, *stale).await;
                vec![Call::LeaveRunning(runs.iter().map(|run| (run.id, run.version)).collect())]
            }
            Step::Revoke { pick, stale } => vec![Call::Revoke(self.some(*pick, *stale).await, at)],
            Step::Skip { second } => {
                let fire_time = NOW + second * 1_000;
                let skip =
                    |task| Call::Skip(task, Skip { id: self.model.id(), fire_time, message: "by hand".to_owned() });
                self.seen().await.map(skip).into()
            }
            Step::Restore { second } => self.seen().await.map(|task| Call::Restore(task, NOW + second * 1_000)).into(),
            Step::Redefine { to } => self.seen().await.map(|before| Call::Redefine(redefinition(&before, to))).into(),
        }
    }

    async fn seen(&self) -> [carillon::store::TaskView; 2] {
        [self.model.task(self.tasks[0]).await, self.model.task(self.tasks[1]).await]
    }

    async fn write_ahead(&self, seconds: i64) -> Call {
        let window = Window { now: NOW, until: NOW + seconds * 1_000, misfire_after_ms: 30_000, fires_max: 100 };
        let tasks = self.model.store.tasks(&self.tasks).await.unwrap();
        Call::WriteAhead(tasks.iter().filter_map(|task| plan(task, window, || self.model.id())).collect())
    }
}

fn redefinition(before: &carillon::store::TaskView, to: &Activity) -> carillon::store::TaskChange {
    match to {
        Activity { started: true, .. } => start(before),
        Activity { pause_note: Some(note), .. } => pause(before, note),
        Activity { .. } => stop(before),
    }
}

/// A step that the state machine allows for the run, if there is one.
fn change(run: &Run, to: usize, reason: Reason, stale: bool) -> Option<Transition> {
    let allowed: Vec<Status> = STATUSES
        .iter()
        .map(|(status, _)| *status)
        .filter(|status| run.status.may_become(*status, run.reason))
        .filter(|status| !matches!(status, Status::Queued | Status::Dispatched | Status::Succeeded))
        .collect();
    let to = *allowed.get(to % allowed.len().max(1))?;
    // What a waiting parent's reason becomes has a case of its own (`shards`).
    let reason = if run.is_parent() && to != Status::Cancelled { Reason::None } else { reason };
    let version = run.version - i64::from(stale);
    let (due_time, failures) = (run.due_time + 5, run.failures + 1);
    Some(Transition { version, due_time, failures, ..Transition::of(run, to, reason) })
}

fn same_steps(kind: Kind) {
    assert_ne!(HOME, ["twin", "twin"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    holds_for(CASES, 200, &steps(5..40), |steps| {
        runtime.block_on(async {
            let mut twins = Twins::new(kind).await;
            for step in &steps {
                twins.take(step).await;
                twins.compare().await;
            }
        });
    });
}

/// Tells so many stories, and the shortest that fails after so many tries to shorten it.
fn holds_for<S: Strategy>(cases: u32, max_shrink_iters: u32, stories: &S, tell: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters, ..Config::default() };
    let outcome = TestRunner::new(config).run(stories, |story| {
        tell(story);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn the_model_and_sqlite_take_the_same_steps() {
    same_steps(Kind::Sqlite);
}

#[test]
fn the_model_and_mariadb_take_the_same_steps() {
    same_steps(Kind::MariaDb);
}

#[test]
fn the_model_and_postgres_take_the_same_steps() {
    same_steps(Kind::Postgres);
}
