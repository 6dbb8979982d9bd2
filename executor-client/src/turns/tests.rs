//! The table and its turns without clock, threads or handlers.

use super::*;
use crate::TaskContext;
use crate::clock::ClusterClock;
use crate::output::{Folder, Limits, Outputs};
use crate::run::Stop;
use crate::table::Begin;
use crate::{Output, TaskError};
use carillon_protocol::{CancelOutcome, DispatchItem, DispatchOutcome, RunResult};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const CAPACITY: usize = 3;

/// A table with what surrounds it: the timer's tickets, the slots, and what became of each run.
struct World {
    table: Table,
    now_ms: i64,
    may_start: bool,
    clock: Arc<ClusterClock>,
    outputs: Arc<Outputs>,
    /// Not due yet.
    timer: BTreeSet<Ticket>,
    running: BTreeMap<RunKey, Arc<Run>>,
    /// In the order of the starts.
    started: Vec<RunKey>,
    /// How each run has ended; `None` is dropped by a cancel or the drain.
    ended: BTreeMap<RunKey, Option<RunStatus>>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ClusterClock::new());
        let none = Limits { run_bytes: 0, total_bytes: 0, age: Duration::ZERO };
        let folder = Folder::of(Path::new("nowhere/0"), 1);
        Self {
            outputs: Arc::new(Outputs::new(none, folder, Arc::clone(&clock))),
            table: Table::new(10_000),
            now_ms: 1_000,
            may_start: true,
            clock,
            timer: BTreeSet::new(),
            running: BTreeMap::new(),
            started: Vec::new(),
            ended: BTreeMap::new(),
        }
    }

    fn item(&self, log: i64, strategy: BlockStrategy) -> DispatchItem {
        DispatchItem {
            log,
            attempt: 1,
            task: 1,
            task_name: String::new(),
            handler: String::new(),
            params: String::new(),
            fire_time: self.now_ms,
            due_time: self.now_ms,
            accept_until: i64::MAX,
            shard_index: 0,
            shard_total: 1,
            timeout_ms: 0,
            block_strategy: strategy,
            wait_timeout_ms: 0,
            priority: 5,
            trace: String::new(),
        }
    }

    fn accept(&mut self, item: DispatchItem) {
        let handler = |_: TaskContext| async { Ok::<_, TaskError>(Output::none()) };
        let run = Arc::new(Run::new(item, Arc::new(handler), Arc::clone(&self.clock), Arc::clone(&self.outputs)));
        self.timer.insert(run.ticket());
        assert_eq!(self.table.accept(run, false, 0), DispatchOutcome::Accepted);
    }

    /// Accepts a run that is due now, and releases it.
    fn arrives(&mut self, log: i64, strategy: BlockStrategy) {
        self.accept(self.item(log, strategy));
        self.release();
    }

    fn release(&mut self) {
        let cluster_us = self.now_ms * 1_000;
        while let Some(ticket) = self.timer.first().copied().filter(|ticket| ticket.due_ms <= self.now_ms) {
            self.timer.remove(&ticket);
            self.table.due(ticket, self.may_start, cluster_us);
        }
        while self.table.expire(cluster_us).is_some_and(|at| at <= self.now_ms) {}
        self.settle();
    }

    /// A slot takes the next run.
    fn take(&mut self) -> bool {
        while self.running.len() < CAPACITY {
            let Some(ticket) = self.table.ready.pop() else { return false };
            match self.table.begin(ticket, self.may_start, self.now_ms * 1_000) {
                Begin::Start(run) => {
                    self.starts(run);
                    self.settle();
                    return true;
                }
                Begin::Early => _ = self.timer.insert(ticket),
                Begin::Skipped => {}
            }
            self.settle();
        }
        false
    }

    fn starts(&mut self, run: Arc<Run>) {
        assert!(run.item.due_time <= self.now_ms, "early");
        let others = self.running.values().filter(|other| other.item.task == run.item.task);
        assert!(!run.is_exclusive() || others.count() == 0, "beside another");
        if run.item.wait_timeout_ms > 0 {
            assert!(self.now_ms < run.give_up_ms(), "too late");
        }
        if run.is_exclusive() {
            let at = self.table.tasks.find(run.item.task).unwrap();
            assert!(self.table.tasks.waiting(at).all(|other| run.ticket() < other), "out of order");
        }
        self.started.push(run.key());
        assert!(self.running.insert(run.key(), run).is_none(), "twice");
    }

    fn end(&mut self, key: RunKey) {
        let run = self.running.remove(&key).expect("running");
        let status = match run.stop_reason() {
            None => RunStatus::Succeeded,
            Some(Stop::Covered(_)) => RunStatus::Covered,
            Some(_) => RunStatus::Cancelled,
        };
        self.table.finish(RunResult {
            log: key.0,
            attempt: key.1,
            status,
            message: String::new(),
            output: String::new(),
            started_at: 1,
            finished_at: 2,
            due_time: 0,
        });
        self.settle();
    }

    fn cancel(&mut self, key: RunKey) -> CancelOutcome {
        let (outcome, run) = self.table.cancel(key, false, 0);
        if let Some(run) = run {
            run.stop(Stop::Cancelled);
        }
        if outcome == CancelOutcome::Dropped {
            assert!(self.ended.insert(key, None).is_none());
        }
        self.settle();
        outcome
    }

    /// What the caller that changed the table must do, and what must hold after every change.
    fn settle(&mut self) {
        for (run, log) in std::mem::take(&mut self.table.covered) {
            run.stop(Stop::Covered(log));
        }
        for result in std::mem::take(&mut self.table.finished) {
            let before = self.ended.insert(RunKey(result.log, result.attempt), Some(result.status));
            assert_eq!(before, None, "{result:?} ended twice");
        }
        assert_eq!(self.table.counts.running, self.running.len());
        let sets = self.table.snapshot();
        assert_eq!((sets.held.len(), sets.running.len()), (self.table.counts.held, self.table.counts.running));
        // No run waits for a turn that never comes.
        for task in 0..10 {
            if let Some(at) = self.table.tasks.find(task)
                && self.table.tasks.running(at) == 0
                && let Some(first) = self.table.tasks.waiting(at).next()
            {
                assert!(self.table.ready.iter().any(|ticket| *ticket == first), "{first:?} is stuck");
            }
        }
    }

    fn status(&self, log: i64) -> Option<RunStatus> {
        self.ended.get(&RunKey(log, 1)).copied().flatten()
    }

    fn started(&self) -> Vec<i64> {
        self.started.iter().map(|key| key.0).collect()
    }

    /// Lets everything end.
    fn run_out(&mut self) {
        self.may_start = true;
        while !self.timer.is_empty() || self.table.counts.held + self.table.counts.running > 0 {
            self.now_ms += 1;
            self.release();
            while self.take() {}
            while let Some(key) = self.running.keys().next().copied() {
                self.end(key);
            }
        }
    }
}

#[test]
fn serial_runs_start_one_after_another_in_the_order_of_their_due_times() {
    let mut world = World::new();
    let item = |world: &World, log, ago| DispatchItem {
        due_time: world.now_ms - ago,
        ..world.item(log, BlockStrategy::Serial)
    };
    for (log, ago) in [(3, 0), (2, 0), (4, 10)] {
        world.accept(item(&world, log, ago));
    }
    world.release();
    assert!(world.take());
    assert!(!world.take());
    // Arrives late, was due first: before those that have not started.
    world.accept(item(&world, 1, 20));
    world.release();
    for _ in 0..3 {
        let running = *world.started.last().unwrap();
        world.end(running);
        assert!(world.take());
        assert!(!world.take());
    }
    assert_eq!(world.started(), [4, 1, 2, 3]);
}

#[test]
fn one_that_arrives_late_overtakes_the_one_whose_turn_it_was() {
    let mut world = World::new();
    world.arrives(2, BlockStrategy::Serial);
    world.accept(DispatchItem { due_time: 5, ..world.item(1, BlockStrategy::Serial) });
    world.release();
    world.run_out();
    assert_eq!(world.started(), [1, 2]);
}

#[test]
fn discard_later_ends_what_is_due_while_another_runs_or_waits() {
    let mut world = World::new();
    world.arrives(1, BlockStrategy::DiscardLater);
    world.arrives(2, BlockStrategy::DiscardLater);
    assert_eq!(world.status(2), Some(RunStatus::Blocked));
    assert!(world.take());
    world.arrives(3, BlockStrategy::DiscardLater);
    assert_eq!(world.status(3), Some(RunStatus::Blocked));
    world.end(RunKey(1, 1));
    world.arrives(4, BlockStrategy::DiscardLater);
    world.run_out();
    assert_eq!(world.started(), [1, 4]);
}

#[test]
fn cover_early_stops_the_running_and_only_the_newest_follows() {
    let mut world = World::new();
    world.arrives(1, BlockStrategy::CoverEarly);
    assert!(world.take());
    world.arrives(2, BlockStrategy::CoverEarly);
    assert_eq!(world.running[&RunKey(1, 1)].stop_reason(), Some(Stop::Covered(2)));
    world.arrives(3, BlockStrategy::CoverEarly);
    assert_eq!(world.status(2), Some(RunStatus::Covered));
    assert!(!world.take(), "the first has not ended");
    // Older than what waits: it comes too late.
    world.accept(DispatchItem { due_time: 5, ..world.item(4, BlockStrategy::CoverEarly) });
    world.release();
    assert_eq!(world.status(4), Some(RunStatus::Covered));
    world.end(RunKey(1, 1));
    assert!(world.take());
    world.end(RunKey(3, 1));
    assert_eq!(world.status(1), Some(RunStatus::Covered));
    assert_eq!(world.status(3), Some(RunStatus::Succeeded));
}

#[test]
fn without_a_lease_nothing_is_stopped_for_a_run_that_may_be_elsewhere() {
    let mut world = World::new();
    world.arrives(1, BlockStrategy::CoverEarly);
    assert!(world.take());
    world.may_start = false;
    world.arrives(2, BlockStrategy::CoverEarly);
    assert_eq!(world.status(2), Some(RunStatus::NotStarted));
    assert_eq!(world.running[&RunKey(1, 1)].stop_reason(), None);
}

#[test]
fn a_wait_ends_at_its_limit_for_a_turn_as_for_a_slot() {
    let mut world = World::new();
    let limited = |world: &World, log, strategy| DispatchItem { wait_timeout_ms: 10, ..world.item(log, strategy) };
    world.arrives(1, BlockStrategy::Serial);
    assert!(world.take());
    world.accept(limited(&world, 2, BlockStrategy::Serial));
    world.accept(limited(&world, 3, BlockStrategy::Concurrent));
    world.arrives(4, BlockStrategy::Serial);
    assert_eq!(world.table.expire(world.now_ms * 1_000), Some(world.now_ms + 10));
    world.now_ms += 9;
    world.release();
    assert_eq!((world.status(2), world.status(3)), (None, None));
    world.now_ms += 1;
    world.release();
    assert_eq!(world.status(2), Some(RunStatus::WaitTimedOut));
    assert_eq!(world.status(3), Some(RunStatus::WaitTimedOut));
    world.end(RunKey(1, 1));
    world.run_out();
    assert_eq!(world.started(), [1, 4]);
    assert!(world.table.waits.is_empty());
}

#[test]
fn a_cancel_takes_one_run_and_the_turn_goes_on() {
    let mut world = World::new();
    for log in 1..=4 {
        world.arrives(log, BlockStrategy::Serial);
    }
    // The first has the turn and waits for a slot.
    assert_eq!(world.cancel(RunKey(1, 1)), CancelOutcome::Dropped);
    assert!(world.take());
    assert_eq!(world.cancel(RunKey(3, 1)), CancelOutcome::Dropped);
    assert_eq!(world.cancel(RunKey(2, 1)), CancelOutcome::Stopping);
    assert!(!world.take());
    world.run_out();
    assert_eq!(world.started(), [2, 4]);
    assert_eq!(world.status(2), Some(RunStatus::Cancelled));
}

#[test]
fn busy_is_what_runs_or_is_due_and_waits() {
    let mut world = World::new();
    let of = |world: &World, task, strategy, in_ms| DispatchItem {
        task,
        due_time: world.now_ms + in_ms,
        ..world.item(task, strategy)
    };
    for (task, strategy, in_ms) in [
        (1, BlockStrategy::Concurrent, 0),
        (2, BlockStrategy::Serial, 0),
        (3, BlockStrategy::Concurrent, 50),
        (4, BlockStrategy::Serial, 50),
        (5, BlockStrategy::Concurrent, 0),
    ] {
        world.accept(of(&world, task, strategy, in_ms));
    }
    world.release();
    let asked = [5, 4, 3, 2, 1, 2, 9];
    assert_eq!(world.table.busy(&asked), [5, 2, 1]);
    world.cancel(RunKey(5, 1));
    assert_eq!(world.table.busy(&asked), [2, 1]);
    while world.take() {}
    assert_eq!(world.table.busy(&asked), [2, 1]);
    world.end(RunKey(1, 1));
    world.end(RunKey(2, 1));
    assert!(world.table.busy(&asked).is_empty());
}

#[test]
fn a_drain_gives_back_what_waits_for_its_turn() {
    let mut world = World::new();
    for log in 1..=3 {
        world.arrives(log, BlockStrategy::Serial);
    }
    assert!(world.take());
    let mut held = world.table.drain();
    held.sort_unstable();
    assert_eq!(held, [RunKey(2, 1), RunKey(3, 1)]);
    world.end(RunKey(1, 1));
    assert!(!world.take());
    assert_eq!(world.table.counts.held, 0);
}

/// One step of a random walk; numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Accept { task: i64, strategy: BlockStrategy, in_ms: i64, wait_ms: i64, priority: i32 },
    Pass(i64),
    Take,
    End(usize),
    Cancel(i64),
    Lease(bool),
    Acknowledge,
}

fn strategy() -> impl Strategy<Value = BlockStrategy> {
    use BlockStrategy::{Concurrent, CoverEarly, DiscardLater, Serial};
    prop::sample::select(vec![Concurrent, Serial, DiscardLater, CoverEarly])
}

fn step() -> impl Strategy<Value = Step> {
    let accept = (0i64..3, strategy(), -20i64..20, prop::sample::select(vec![0, 0, 1, 15]), 1..10);
    prop_oneof![
        6 => accept.prop_map(|(task, strategy, in_ms, wait_ms, priority)| {
            Step::Accept { task, strategy, in_ms, wait_ms, priority }
        }),
        4 => (0i64..12).prop_map(Step::Pass),
        6 => Just(Step::Take),
        5 => any::<usize>().prop_map(Step::End),
        2 => (0i64..100).prop_map(Step::Cancel),
        1 => prop::bool::weighted(0.8).prop_map(Step::Lease),
        1 => Just(Step::Acknowledge),
    ]
}

proptest! {
    /// [`World`] checks each step: no exclusive run starts beside another of its task, none ends
    /// twice, none is stuck.
    #[test]
    fn whatever_happens_every_run_ends_once_and_exclusive_ones_never_meet(
        steps in prop::collection::vec(step(), 1..200),
        // Of each task, or of each run as after edits.
        by_task in prop::option::of(prop::array::uniform3(strategy())),
    ) {
        let mut world = World::new();
        let mut accepted = 0;
        for step in steps {
            match step {
                Step::Accept { task, strategy, in_ms, wait_ms, priority } => {
                    accepted += 1;
                    let strategy = by_task.map_or(strategy, |of| of[task as usize]);
                    let due_time = world.now_ms + in_ms;
                    let item = world.item(accepted, strategy);
                    world.accept(DispatchItem { task, due_time, wait_timeout_ms: wait_ms, priority, ..item });
                }
                Step::Pass(ms) => {
                    world.now_ms += ms;
                    world.release();
                }
                Step::Take => _ = world.take(),
                Step::End(which) => {
                    if let Some(key) = world.running.keys().nth(which % CAPACITY).copied() {
                        world.end(key);
                    }
                }
                Step::Cancel(log) if log <= accepted => _ = world.cancel(RunKey(log, 1)),
                Step::Cancel(_) => {}
                Step::Lease(may_start) => world.may_start = may_start,
                Step::Acknowledge => {
                    let keys: Vec<_> = world.ended.keys().copied().collect();
                    world.table.acknowledged(&keys, 0);
                }
            }
        }
        world.run_out();
        prop_assert_eq!(world.ended.len() as i64, accepted);
        let keys: Vec<_> = world.ended.keys().copied().collect();
        world.table.acknowledged(&keys, 0);
        prop_assert!(world.table.live.is_empty() && world.table.waits.is_empty());
        for task in 0..3 {
            prop_assert!(world.table.tasks.find(task).is_none(), "a task without runs is kept");
        }
    }
}
