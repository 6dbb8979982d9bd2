//! Random steps, taken on the model and on a database: the same answers and the same rows.

mod calls;
mod concurrent;
mod members;
mod reads;
mod steps;

use crate::fixture::{HOME, World, dispatch_of, pause, start, stop, success};
use crate::permits;
use calls::{Actor, Call};
use carillon::domain::permit::{Bounds, PermitRequest};
use carillon::domain::plan::{Window, plan};
use carillon::domain::routing::UseChange;
use carillon::domain::task::{ParentLink, ParentOutcome, Routing, ScheduleKind, TaskSpec};
use carillon::domain::task_log::STATUSES;
use carillon::domain::trigger::TRIGGERS;
use carillon::domain::{AppId, BackfillId, ExecutorId, LogId, Owner, Reason, Run, Status, TaskId, Transition};
use carillon::store::{Activity, Backfill, NewRun, NewTask, Skip, TaskChange, TaskView, UnclaimedEnd};
use carillon_simulation::store::admin::new_task;
use carillon_tests::Kind;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reads::reads;
use steps::{Ask, REASONS, Step, When, story};

/// Sequences tried with each database.
const CASES: u32 = 24;

/// The instant that all sequences count from, ms.
const NOW: i64 = 1_800_000_000_000;

/// How many tasks there are.
const TASKS: usize = 3;

/// One that pauses after failures, a sharded one, and one that runs after both.
type Tasks = [TaskId; TASKS];

/// A model and a database, and the tasks that they were given.
struct Twins {
    model: World,
    sql: World,
    tasks: Tasks,
    /// Counts the steps, so that no two write the same times.
    clock: i64,
    /// Rows that a step takes at most.
    rows_max: usize,
    /// Runs of the tenant at once, where an ask for permits has no such bound.
    bound_of_tenant: Option<i32>,
}

/// The same home and tasks on all sides.
async fn furnished(mut world: World, tasks: Tasks) -> World {
    world.owner = world.admin.make_app([3, 4], "twin", "twin").await;
    let every_second = |name| TaskSpec { max_fires: 6, ..World::every_second(name) };
    let after = |task: &str| ParentLink { task: task.to_owned(), on: ParentOutcome::Always };
    let specs = [
        TaskSpec { pause_after_failures: 2, ..every_second("plain") },
        TaskSpec { routing: Routing::Sharding, ..every_second("sharded") },
        TaskSpec {
            schedule: ScheduleKind::None,
            cron: String::new(),
            parents: vec![after("plain"), after("sharded")],
            parent_output: true,
            ..World::every_second("child")
        },
    ];
    for (id, spec) in tasks.into_iter().zip(specs) {
        let task = NewTask { activity: Activity::of(true), ..new_task(id, world.owner, spec) };
        world.admin.apply(&[task], &[], NOW).await.unwrap();
    }
    world
}

/// All that is there of these tasks.
async fn picture(world: &World, tasks: Tasks, at: i64) -> Vec<String> {
    let (mut picture, mut runs) = (Vec::new(), Vec::new());
    for task in tasks {
        picture.push(format!("{:?}", world.task(task).await));
        for mut row in world.rows(task).await {
            // Names stand beside the row in lists; the model keeps rows alone.
            (row.task_name, row.app_name) = (None, None);
            picture.push(format!("{row:?}"));
            let run = &row.dispatched.run;
            picture.push(format!("{:?}", world.admin.attempts(run.tenant_id, run.id).await));
            runs.push(row.dispatched.run);
        }
        picture.push(format!("watched: {:?}", world.admin.watched(task).await));
        picture.push(format!("permits: {:?}", world.admin.permits(task).await));
    }
    picture.push(format!("to follow: {:?}", world.store.ended(LogId::NONE, 1_000).await.unwrap()));
    picture.extend(reads(world, tasks, &runs, at).await);
    picture
}

impl Twins {
    async fn new(kind: Kind) -> Self {
        let model = World::model().await;
        let tasks = [model.id(), model.id(), model.id()];
        let (model, sql) = (furnished(model, tasks).await, furnished(World::sql(kind).await, tasks).await);
        Self { model, sql, tasks, clock: NOW, rows_max: usize::MAX, bound_of_tenant: None }
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
        let (model, sql) = (picture(&self.model, self.tasks, self.clock), picture(&self.sql, self.tasks, self.clock));
        let (model, sql) = (model.await, sql.await);
        assert!(
            model == sql,
            "only the model has\n{}\nonly the database has\n{}",
            missing(&model, &sql),
            missing(&sql, &model)
        );
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
        self.some_of(pick, stale, |_| true).await
    }

    /// The same of those rows alone.
    async fn some_of(&self, pick: u64, stale: bool, wanted: impl Fn(&Run) -> bool) -> Vec<Run> {
        let rows = self.rows().await.into_iter().filter(wanted).enumerate();
        let picked = rows.filter(|(at, _)| pick >> (at % 64) & 1 == 1);
        picked.map(|(_, run)| Run { version: run.version - i64::from(stale), ..run }).take(self.rows_max).collect()
    }

    async fn some_without_parents(&self, pick: u64, stale: bool) -> Vec<Run> {
        self.some_of(pick, stale, |run| !run.is_parent()).await
    }

    /// Shards go by what their parents have.
    async fn some_but_shards(&self, pick: u64, stale: bool) -> Vec<Run> {
        self.some_of(pick, stale, |run| run.parent_id.is_none()).await
    }

    /// What a step comes to by what the model has now.
    async fn calls(&mut self, step: &Step) -> Vec<Call> {
        self.clock += 10;
        let at = self.clock;
        match step {
            Step::WriteAhead { seconds } => vec![self.write_ahead(*seconds).await],
            Step::Claim { node, pick, stale } => vec![Call::Claim(*node, self.some(*pick, *stale).await, at)],
            Step::ExpireUnclaimed { pick, stale } => {
                let runs = self.some_but_shards(*pick, *stale).await;
                let (reason, message) = (Reason::MisfireSkipped, "late".to_owned());
                let end =
                    |run: &Run| UnclaimedEnd { id: run.id, version: run.version, reason, message: message.clone() };
                vec![Call::ExpireUnclaimed(runs.iter().map(end).collect(), at)]
            }
            Step::Acquire { pick, stale, ask } => vec![self.acquire(*pick, *stale, *ask).await],
            Step::Release { pick, in_order } => {
                let runs = self.some_but_shards(*pick, false).await;
                vec![Call::Release(runs.iter().map(|run| run.id).collect(), *in_order)]
            }
            Step::NoteWaits { pick, stale } => {
                let runs = self.some(*pick, *stale).await;
                vec![Call::NoteWaits(runs.iter().map(|run| (run.id, run.version, Reason::TaskLimit)).collect())]
            }
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
            Step::Succeed { pick, older, stranger, whole } => {
                let runs = self.some_without_parents(*pick, false).await;
                let app_id = AppId(self.model.owner.app_id.0 + i64::from(*stranger));
                let results = runs.iter().map(|run| success(run, run.attempt - older)).collect();
                let call = if *whole { Call::SucceedWhole } else { Call::Succeed };
                vec![call(Owner { app_id, ..self.model.owner }, results)]
            }
            Step::Transition { pick, to, reason, stale } => {
                let runs = self.some(*pick, false).await;
                let changes = runs.iter().filter_map(|run| change(run, *to, REASONS[*reason], *stale));
                vec![Call::Change(changes.collect())]
            }
            Step::NoteStop { pick, stale } => {
                let runs = self.some(*pick, *stale).await.into_iter().map(|run| (run.id, run.version));
                vec![Call::NoteStop(runs.collect(), Reason::CancelledManually)]
            }
            Step::ProcessOutbox { pick } => {
                let runs: Vec<LogId> = self.some(*pick, false).await.iter().map(|run| run.id).collect();
                let ended = self.model.store.ended_among(&runs).await.unwrap();
                // A child of each, and the entry of the task that pauses.
                let ids = (0..=ended.len()).map(|_| self.model.id()).collect();
                vec![Call::ProcessOutbox(ended, ids, at)]
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
            Step::Backfill { second } => {
                self.seen().await.map(|task| Call::Backfill(self.backfill(&task, *second), at)).into()
            }
            Step::Advance { stale } => {
                let open = self.model.store.open_backfills(BackfillId(0), 10).await.unwrap().into_iter();
                let seen = open.map(|one| Backfill { next_at: one.next_at - i64::from(*stale), ..one });
                let ids = || (0..16).map(|_| self.model.id()).collect();
                seen.map(|one| Call::Advance(one, ids(), at)).collect()
            }
            Step::Use { task, executor, floor } => {
                let (task_id, address) = (self.tasks[*task], format!("http://{executor}"));
                let change = UseChange { task_id, address, floor: *floor, added: 1, last: at };
                vec![Call::Use(vec![change], self.model.id())]
            }
            Step::Purge { second } => vec![Call::Purge(NOW + second * 1_000)],
            Step::Redefine { to } => self.seen().await.map(|before| Call::Redefine(redefinition(&before, to))).into(),
        }
    }

    async fn seen(&self) -> [TaskView; TASKS] {
        let [one, two, three] = self.tasks.map(|task| self.model.task(task));
        [one.await, two.await, three.await]
    }

    /// Of five seconds.
    fn backfill(&self, task: &TaskView, second: i64) -> Backfill {
        let range_from = NOW + second * 1_000;
        Backfill {
            id: self.model.id(),
            tenant_id: task.owner.tenant_id,
            task_id: task.id,
            range_from,
            range_until: range_from + 5_000,
            next_at: range_from,
            max_concurrent: 2,
            params: None,
            status: "open".to_owned(),
            written: 0,
            existing: 0,
            created_at: NOW,
            finished_at: 0,
        }
    }

    async fn acquire(&self, pick: u64, stale: bool, ask: Ask) -> Call {
        let Ask { bounds, in_order, when, from_the_last } = ask;
        let bounds = Bounds { tenant: bounds.tenant.or(self.bound_of_tenant), ..bounds };
        let held = |run: &Run| matches!(run.status, Status::Queued | Status::Dispatched);
        let mut runs = self.some_of(pick, stale, |run| run.parent_id.is_none() && held(run)).await;
        if from_the_last {
            runs.reverse();
        }
        let asks = runs.iter().map(|run| PermitRequest {
            stands_in_line: when == When::Long,
            in_order,
            is_early: when == When::Early,
            ..permits::ask(run, bounds)
        });
        Call::Acquire(asks.collect())
    }

    async fn write_ahead(&self, seconds: i64) -> Call {
        let window = Window {
            now: NOW,
            until: NOW + seconds * 1_000,
            misfire_after_ms: 30_000,
            fires_max: 100,
            doubted_until: i64::MIN,
        };
        let tasks = self.model.store.tasks(&self.tasks).await.unwrap();
        Call::WriteAhead(tasks.iter().filter_map(|task| plan(task, window, || self.model.id())).collect())
    }
}

/// What one picture has and the other does not.
fn missing(rows: &[String], other: &[String]) -> String {
    rows.iter().filter(|row| !other.contains(row)).cloned().collect::<Vec<_>>().join("\n")
}

fn redefinition(before: &TaskView, to: &Activity) -> TaskChange {
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
    holds_for(CASES, 200, &story(5..40), |steps| {
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
