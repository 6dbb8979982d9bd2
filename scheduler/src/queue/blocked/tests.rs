use super::*;
use crate::domain::stable_random::stable_random;
use crate::domain::task::{BlockScope, TaskSpec, test::task_of};
use crate::domain::task_log::test::run_of;

fn task(block_strategy: BlockStrategy, wait_timeout_ms: i64, max_concurrent: i32) -> Task {
    let block_scope = BlockScope::App;
    task_of(TaskSpec { block_strategy, block_scope, max_concurrent, wait_timeout_ms, ..TaskSpec::default() })
}

fn block(blocked: &BlockedRuns, run: Run, task: &Task) {
    blocked.block(run, task, Limit::Task, 0);
}

fn ids(runs: &[Run]) -> Vec<i64> {
    runs.iter().map(|run| run.id.0).collect()
}

#[test]
fn a_serial_task_shows_its_first_run_only() {
    let blocked = BlockedRuns::default();
    for id in [3, 1, 2] {
        block(&blocked, run_of(id, id * 10), &task(BlockStrategy::Serial, 0, 0));
    }
    assert_eq!(ids(&blocked.look(100, 0, &HashSet::new()).again), [1]);
    // It is being tried.
    assert!(blocked.look(101, 0, &HashSet::new()).again.is_empty());
    block(&blocked, run_of(1, 10), &task(BlockStrategy::Serial, 0, 0));
    assert_eq!(ids(&blocked.look(102, 0, &HashSet::new()).again), [1]);
    blocked.leave(&run_of(1, 10));
    assert_eq!((blocked.len(), ids(&blocked.look(103, 0, &HashSet::new()).again)), (2, vec![2]));
    assert_eq!(ids(&blocked.look(103 + TRY_AGAIN_MS, 0, &HashSet::new()).again), [2], "whatever became of the try");
}

#[test]
fn what_is_being_tried_is_not_tried_twice() {
    let blocked = BlockedRuns::default();
    block(&blocked, run_of(1, 10), &task(BlockStrategy::Serial, 0, 0));
    let tried = HashSet::from([LogId(1)]);
    assert!(blocked.look(TRY_AGAIN_MS, 0, &tried).again.is_empty(), "its try hangs");
    assert_eq!(ids(&blocked.look(TRY_AGAIN_MS, 0, &HashSet::new()).again), [1]);
}

#[test]
fn what_was_tried_before_the_clock_was_set_back_is_tried() {
    let blocked = BlockedRuns::default();
    block(&blocked, run_of(1, 10), &task(BlockStrategy::Serial, 0, 0));
    assert_eq!(ids(&blocked.look(90_000, 0, &HashSet::new()).again), [1]);
    assert_eq!(ids(&blocked.look(20_000, 0, &HashSet::new()).again), [1]);
    assert!(blocked.look(20_001, 0, &HashSet::new()).again.is_empty(), "just now");
}

#[test]
fn an_older_copy_neither_displaces_nor_takes_out_a_newer_one() {
    let blocked = BlockedRuns::default();
    let serial = task(BlockStrategy::Serial, 0, 0);
    let newer = Run { version: 5, ..run_of(1, 10) };
    block(&blocked, newer.clone(), &serial);
    block(&blocked, run_of(1, 10), &serial);
    blocked.leave(&run_of(1, 10));
    assert_eq!(blocked.copies(), [(LogId(1), 5, 10)]);
    blocked.leave(&newer);
    assert!(blocked.is_empty());
}

#[test]
fn expiring_runs_are_found_anywhere_in_the_queue() {
    let blocked = BlockedRuns::default();
    for id in 1..=3 {
        block(&blocked, run_of(id, id * 10), &task(BlockStrategy::Serial, 50, 0));
    }
    assert_eq!(ids(&blocked.look(71, 0, &HashSet::new()).again), [1, 2]);
    let discards = BlockedRuns::default();
    for id in 1..=3 {
        block(&discards, run_of(id, id * 10), &task(BlockStrategy::DiscardLater, 0, 0));
    }
    assert_eq!(ids(&discards.look(25, 0, &HashSet::new()).again), [1, 2]);
}

#[test]
fn only_the_newest_due_run_stays_when_later_ones_cover() {
    let blocked = BlockedRuns::default();
    for id in 1..=4 {
        block(&blocked, run_of(id, id * 10), &task(BlockStrategy::CoverEarly, 0, 0));
    }
    let looked = blocked.look(35, 0, &HashSet::new());
    assert_eq!(looked.covered.iter().map(|(run, by)| (run.id.0, by.0)).collect::<Vec<_>>(), [(1, 3), (2, 3)]);
    assert_eq!((ids(&looked.again), blocked.len()), (vec![3], 2));
}

#[test]
fn the_most_urgent_of_a_task_show_first_unless_they_keep_their_order() {
    for (strategy, scope, first) in
        [(BlockStrategy::Concurrent, BlockScope::Executor, [3, 1]), (BlockStrategy::Serial, BlockScope::App, [1, 2])]
    {
        let blocked = BlockedRuns::default();
        let (block_strategy, block_scope) = (strategy, scope);
        let spec = TaskSpec { block_strategy, block_scope, max_concurrent: 1, ..TaskSpec::default() };
        for (id, priority) in [(1, 5), (2, 5), (3, 9)] {
            block(&blocked, Run { priority, ..run_of(id, id * 10) }, &task_of(spec.clone()));
        }
        for id in first {
            let [run] = blocked.look(0, 0, &HashSet::new()).again.try_into().unwrap();
            assert_eq!(run.id, LogId(id), "{strategy:?}");
            blocked.leave(&run);
        }
    }
}

#[test]
fn a_tenant_with_many_blocked_runs_keeps_no_other_from_being_looked_at() {
    let blocked = BlockedRuns::default();
    let task = task(BlockStrategy::Serial, 0, 0);
    let count = LOOK_MAX as i64 + 100;
    for id in 1..=count {
        // Each of a task of its own, all of them before the other tenant's.
        let run = Run { task_id: TaskId(1_000 + id), ..run_of(id, id) };
        block(&blocked, run, &task);
    }
    let light = Run { task_id: TaskId(7), tenant_id: TenantId(99), ..run_of(count + 1, count + 1) };
    block(&blocked, light, &task);
    let again = blocked.look(0, 0, &HashSet::new()).again;
    assert_eq!(again.len(), LOOK_MAX);
    assert!(again[..2].iter().any(|run| run.tenant_id == TenantId(99)));
}

#[test]
fn a_bound_of_the_task_shows_as_many() {
    let blocked = BlockedRuns::default();
    for id in 1..=9 {
        block(&blocked, run_of(id, id * 10), &task(BlockStrategy::Concurrent, 0, 4));
    }
    assert_eq!(blocked.look(0, 0, &HashSet::new()).again.len(), 4);
}

#[test]
fn a_long_wait_is_reported_once() {
    let (blocked, task) = (BlockedRuns::default(), task(BlockStrategy::Concurrent, 0, 1));
    blocked.block(run_of(1, 10), &task, Limit::Task, 0);
    blocked.block(run_of(2, 20), &task, Limit::Tenant, 500);
    // Its row says why it is retried.
    blocked.block(Run { reason: Reason::HandlerFailed, ..run_of(3, 30) }, &task, Limit::App, 0);
    // From its due time on, not from when it was held up.
    assert!(blocked.look(1_009, 0, &HashSet::new()).to_note.is_empty());
    blocked.block(run_of(1, 10), &task, Limit::App, 1_009);
    assert_eq!(blocked.look(1_010, 0, &HashSet::new()).to_note, [(LogId(1), 1, Reason::AppLimit)]);
    blocked.block(run_of(1, 10), &task, Limit::App, 1_200);
    assert_eq!(blocked.look(9_000, 0, &HashSet::new()).to_note, [(LogId(2), 1, Reason::TenantLimit)]);
    assert!(blocked.look(99_000, 0, &HashSet::new()).to_note.is_empty());
}

/// Every index agrees with what waits, whatever came, went and came again.
#[test]
fn what_answers_quickly_agrees_with_what_waits() {
    let blocked = BlockedRuns::default();
    let tasks = [
        task(BlockStrategy::Serial, 500, 0),
        task(BlockStrategy::CoverEarly, 0, 0),
        task(BlockStrategy::Concurrent, 0, 3),
        task(BlockStrategy::DiscardLater, 0, 0),
    ];
    for step in 0..4_000_i64 {
        // Some come, some again under another version or limit, some leave; all by a fixed sequence.
        let draw = stable_random(step as u64);
        let id = (draw % 60) as i64;
        let run = Run {
            task_id: TaskId(id % 4),
            tenant_id: TenantId(1 + id % 3),
            app_id: AppId(1 + id % 2),
            version: (draw >> 8) as i64 % 3,
            priority: (id % 5) as i32,
            ..run_of(id, id * 37 % 1_000)
        };
        let limit = if (draw >> 16).trailing_zeros() >= 2 { Limit::Executor } else { Limit::Task };
        match draw >> 20 & 7 {
            0 => blocked.leave(&run),
            1 => drop(blocked.look(step, 0, &HashSet::new())),
            2 if (draw >> 24).trailing_zeros() >= 3 => {
                drop(blocked.leave_for(&HashSet::from([(run.tenant_id, run.app_id)])));
            }
            _ => blocked.block(run, &tasks[(id % 4) as usize], limit, step),
        }
        let waiting = blocked.lock();
        let all: Vec<&BlockedRun> = waiting.all().collect();
        let count = |which: &dyn Fn(&BlockedRun) -> bool| all.iter().filter(|w| which(w)).count();
        assert_eq!(waiting.tenants.values().sum::<usize>(), all.len());
        for (tenant, inside) in &waiting.tenants {
            assert_eq!(*inside, count(&|w| w.run.tenant_id == *tenant));
        }
        assert_eq!(waiting.wakes.len(), count(&|w| w.wake_at() < i64::MAX));
        assert!(waiting.wakes.iter().all(|(at, task, place)| waiting.get(*task, *place).unwrap().wake_at() == *at));
        assert_eq!(waiting.unnoted.len(), count(&|w| !w.is_noted));
        let for_executors = waiting.for_executors.values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(for_executors, count(&|w| w.limit == Limit::Executor));
        let covering: BTreeSet<TaskId> = all.iter().filter(|w| w.newest_only).map(|w| w.run.task_id).collect();
        assert_eq!(waiting.covering, covering);
        let by_priority = waiting.lines.values().map(|line| line.by_priority.len()).sum::<usize>();
        assert_eq!(by_priority, all.len());
        assert!(waiting.lines.values().all(|line| !line.runs.is_empty()));
    }
}

/// What asks early gets half of the permits at most; a backfill has the lowest priority.
#[test]
fn what_is_due_is_not_hidden_by_what_is_more_urgent_and_asks_early() {
    let (blocked, two) = (BlockedRuns::default(), task(BlockStrategy::Concurrent, 0, 2));
    for (id, due_time, priority) in
        [(1, 9_000, 5), (2, 9_001, 5), (3, 9_002, 5), (4, 50, 1), (5, 60, 1), (6, 70, 1), (7, 80, 3)]
    {
        block(&blocked, Run { priority, ..run_of(id, due_time) }, &two);
    }
    let again = |now| {
        let mut again = ids(&blocked.look(now, 500, &HashSet::new()).again);
        again.sort_unstable();
        again
    };
    assert_eq!(again(100), [1, 2, 4, 7], "the most urgent, and of those that are due the most urgent");
    assert_eq!(again(9_000), [1, 2], "all are due");
}
