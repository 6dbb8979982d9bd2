//! A machine that is suspended, or whose clock a time service slews.

use super::ClusterClock;
use crate::carrier::{Carried, Carrier};
use crate::ready::Ticket;
use crate::runs::Runs;
use crate::surroundings::Surroundings;
use crate::{Executor, Output, TaskContext};
use carillon_protocol::exchange::Request;
use carillon_protocol::testing::{EPOCH_US, SECOND_US, TestMachine};
use carillon_protocol::{DispatchItem, DispatchOutcome, ExecutorSettings, LocalClock, RunKey, RunStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;

fn cluster_clock(machine: &TestMachine) -> ClusterClock {
    ClusterClock::over(Arc::new(LocalClock::over(machine.clone())))
}

/// A node's time comes after a way of so long there and back each.
fn asks_a_node(machine: &TestMachine, clock: &ClusterClock, way_us: i64) {
    let sent = clock.local();
    machine.passes(way_us);
    let read_us = machine.true_us();
    machine.passes(way_us);
    clock.observe(sent, clock.local(), read_us);
}

/// The way to no node.
#[derive(Debug)]
struct Nowhere;

impl Carrier for Nowhere {
    fn carry<'a>(&'a self, _: &'a str, _: Request, _: Duration) -> Carried<'a> {
        Box::pin(std::future::ready(Err("there is no node".to_owned())))
    }
}

/// An executor that may start runs for 10 s after each heartbeat, and has just sent one.
fn executor(machine: &TestMachine, journal: &TempDir) -> Arc<Runs> {
    let builder = Executor::builder().scheduler("http://node:1").tenant("retail").app("orders").key("key", "a secret");
    let builder = builder.journal_dir(journal.path()).handler("pay", |_: TaskContext| async { Ok(Output::none()) });
    let time = Arc::new(LocalClock::over(machine.clone()));
    let surroundings = Surroundings { time, ..Surroundings::machine(Arc::new(Nowhere)) };
    let runs = Arc::clone(&builder.build_within(surroundings).unwrap().server.member.runs);
    asks_a_node(machine, &runs.clock, 200);
    runs.lease.configure(&ExecutorSettings {
        heartbeat_interval_ms: 3_000,
        metadata_interval_ms: 30_000,
        offline_after_ms: 10_000,
        abandon_after_ms: 20_000,
    });
    runs.lease.confirm(runs.clock.local_us());
    runs
}

/// A run that is due so long after everything begins, and may be accepted until 4 s after that.
fn run(due_after_s: i64) -> DispatchItem {
    let due_time = EPOCH_US / 1_000 + due_after_s * 1_000;
    DispatchItem { fire_time: due_time, due_time, accept_until: due_time + 4_000, ..crate::testing::item("pay") }
}

fn ticket(item: &DispatchItem) -> Ticket {
    let key = RunKey(item.log, item.attempt);
    Ticket { due_ms: item.due_time, key, task: item.task, priority: item.priority, exclusive: false, limited: false }
}

#[test]
fn after_a_suspension_nothing_starts_that_was_given_away_meanwhile() {
    let (machine, journal) = (TestMachine::default(), TempDir::new().unwrap());
    let runs = executor(&machine, &journal);
    let pay = run(5);
    let ticket = ticket(&pay);
    assert_eq!(runs.dispatch(vec![pay]), [DispatchOutcome::Accepted]);
    machine.passes(SECOND_US);
    machine.is_suspended_for(60 * SECOND_US);
    assert!(!runs.lease.may_start(runs.clock.local_us()), "a minute is longer than the lease");
    assert!(runs.lease.until_abandon_us(runs.clock.local_us()) < 0, "what runs is given up");
    machine.passes(5 * SECOND_US);
    let slots = AtomicI64::new(0);
    runs.release(vec![ticket], runs.clock.now_us().unwrap(), |more| _ = slots.fetch_add(more as i64, Relaxed));
    assert!((0..slots.into_inner()).all(|_| runs.next(None, runs.clock.local()).is_none()), "started");
    let ended: Vec<RunStatus> = runs.take_finished().into_iter().map(|result| result.status).collect();
    assert_eq!(ended, [RunStatus::NotStarted]);
}

#[test]
fn a_dispatch_from_before_a_suspension_comes_too_late() {
    let (machine, journal) = (TestMachine::default(), TempDir::new().unwrap());
    let runs = executor(&machine, &journal);
    machine.is_suspended_for(8 * SECOND_US);
    assert_eq!(runs.dispatch(vec![run(3)]), [DispatchOutcome::TooLate]);
    let missing_us = machine.true_us() - runs.clock.now_us().unwrap();
    assert!((0..1_500).contains(&missing_us), "the clock is {missing_us} µs behind");
}

/// Its node has given it to another executor meanwhile.
#[test]
fn a_dispatch_that_was_refused_stays_so_when_its_message_comes_again() {
    let (machine, journal) = (TestMachine::default(), TempDir::new().unwrap());
    let runs = executor(&machine, &journal);
    let (refused, other) = (run(5), DispatchItem { log: 2, ..run(5) });
    assert_ne!(refused.log, other.log);
    runs.journal_full.store(true, Relaxed);
    assert_eq!(runs.dispatch(vec![refused.clone()]), [DispatchOutcome::Busy]);
    runs.journal_full.store(false, Relaxed);
    assert_eq!(runs.dispatch(vec![refused.clone(), other]), [DispatchOutcome::Busy, DispatchOutcome::Accepted]);
    let next = DispatchItem { attempt: refused.attempt + 1, ..refused };
    assert_eq!(runs.dispatch(vec![next]), [DispatchOutcome::Accepted], "another attempt may come back");
}

#[test]
fn between_two_exchanges_a_clock_that_is_slewed_fast_lets_nothing_start_early() {
    let (machine, way_us) = (TestMachine::default(), 200);
    let clock = cluster_clock(&machine);
    for slew_ppm in [0, 50_000, 83_333, 500, 0, 0, 50_000] {
        asks_a_node(&machine, &clock, way_us);
        machine.is_slewed_by(slew_ppm);
        for _ in 0..3_000 {
            machine.passes(1_000);
            let behind_us = machine.true_us() - clock.now_us().unwrap();
            assert!(behind_us >= 0, "{} µs early at {slew_ppm} ppm", -behind_us);
            // The way back, and what two clocks may drift apart in three seconds.
            assert!(behind_us <= way_us + 302, "{behind_us} µs late at {slew_ppm} ppm");
        }
    }
}

/// A reader that had the time from before the clock was set back, and tells it late.
#[test]
fn what_one_reader_tells_late_stops_no_other() {
    let machine = TestMachine::default();
    let clock = cluster_clock(&machine);
    asks_a_node(&machine, &clock, 200);
    let before_us = clock.now_us().unwrap();
    let sent = clock.local();
    clock.observe(sent, clock.local(), before_us - 60 * SECOND_US);
    clock.told_us.fetch_max(before_us, Relaxed);
    for _ in 0..2 {
        assert!(clock.now_us().unwrap() < before_us - 59 * SECOND_US);
    }
}
