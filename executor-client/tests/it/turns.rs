//! How many at once: block strategies, what ends a run, waiting and priorities.

use crate::client::{self, call, item};
use crate::gate::{Gate, run};
use crate::harness::{Running, Seen, bounded, builder, eventually};
use crate::node::{EXECUTOR_ID, TestNode};
use carillon_executor::{Output, TaskContext};
use carillon_protocol::BlockStrategy::{Concurrent, CoverEarly, DiscardLater, Serial};
use carillon_protocol::*;
use std::sync::Arc;
use std::time::Duration;

struct Setup {
    node: TestNode,
    gate: Gate,
    running: Running,
    _journal: tempfile::TempDir,
    _open_at_end: OpenAtEnd,
}

/// A test that fails must not hang on the threads inside.
struct OpenAtEnd(Gate);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Setup {
    async fn new(capacity: usize) -> Self {
        let node = TestNode::start().await;
        let (journal, gate) = (tempfile::tempdir().unwrap(), Gate::default());
        let executor = gate.handlers(builder(&[&node], &journal, &Arc::new(Seen::default()))).capacity(capacity);
        let running = Running::registered(executor, &node).await;
        let open_at_end = OpenAtEnd(gate.clone());
        Self { node, gate, running, _journal: journal, _open_at_end: open_at_end }
    }

    async fn dispatch(&self, items: Vec<DispatchItem>) {
        let accepted = vec![DispatchOutcome::Accepted; items.len()];
        assert_eq!(self.running.dispatch(items, &self.node).await, accepted);
    }

    async fn cancel(&self, log: i64) -> CancelOutcome {
        self.running.cancel(&[log], false, &self.node).await[0]
    }

    fn status(&self, log: i64) -> Option<RunStatus> {
        self.node.result(log).map(|result| result.status)
    }

    /// Waits for a heartbeat, taken from now on, with exactly these sets.
    async fn heartbeat(&self, held: &[i64], running: &[i64]) {
        let now = self.node.now_ms();
        let set = |keys: &[RunKey]| {
            let mut logs: Vec<i64> = keys.iter().map(|key| key.0).collect();
            logs.sort_unstable();
            logs
        };
        eventually(&format!("a heartbeat with {held:?} held and {running:?} running"), || {
            let state = self.node.state();
            let mut fresh = state.heartbeats.iter().rev().take_while(|beat| beat.snapshot_at > now);
            fresh.any(|beat| set(&beat.held) == held && set(&beat.running) == running)
        })
        .await;
    }

    async fn probe(&self, tasks: &[i64]) -> ProbeAck {
        let message = Probe { executor_id: EXECUTOR_ID, tasks: tasks.to_vec() };
        let got = call(self.running.port, "/probe", &message, self.node.now_ms()).send().await;
        assert_eq!((got.code, got.signed), (Code::Ok, true));
        serde_json::from_value(got.data).unwrap()
    }

    /// Waits until the timer has released runs of these tasks.
    async fn until_busy(&self, tasks: &[i64]) {
        let busy = async {
            while self.probe(tasks).await.busy != tasks {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        bounded(busy).await;
    }

    /// Lets everything end and looks whether any two met.
    async fn stop(self) {
        self.gate.open();
        self.running.stopped().await;
        assert_eq!(self.gate.met(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serial_runs_follow_each_other_and_other_tasks_do_not_wait() {
    let setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    let mut items: Vec<_> =
        (1..=20).map(|log| run(log, if log % 2 == 0 { "waits" } else { "blocks" }, Serial, now)).collect();
    items[19].due_time = now - 100;
    let other = DispatchItem { task: 2, ..run(100, "waits", Serial, now) };
    setup.dispatch(items.into_iter().chain([other]).collect()).await;
    eventually("both tasks", || setup.gate.has_entered(20) && setup.gate.has_entered(100)).await;
    setup.heartbeat(&(1..=19).collect::<Vec<_>>(), &[20, 100]).await;
    setup.gate.let_out(100);
    setup.gate.let_out(20);
    for log in 1..=19 {
        eventually("the next", || setup.gate.has_entered(log)).await;
        setup.gate.let_out(log);
    }
    eventually("all", || setup.node.state().results.len() == 21).await;
    let order: Vec<i64> = setup.gate.entered().into_iter().filter(|log| *log != 100).collect();
    assert_eq!(order, [20].into_iter().chain(1..=19).collect::<Vec<_>>());
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_run_holds_its_turn_until_it_has_ended() {
    let setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    setup.dispatch((1..=4).map(|log| run(log, "blocks", Serial, now)).collect()).await;
    eventually("first", || setup.gate.has_entered(1)).await;
    assert!(matches!(setup.cancel(1).await, CancelOutcome::Stopping | CancelOutcome::Stopped));
    assert_eq!(setup.cancel(3).await, CancelOutcome::Dropped);
    for _ in 0..3 {
        setup.heartbeat(&[2, 4], &[1]).await;
    }
    assert_eq!(setup.status(1), None);
    setup.gate.let_out(1);
    eventually("second", || setup.gate.has_entered(2)).await;
    eventually("cancelled", || setup.status(1) == Some(RunStatus::Cancelled)).await;
    assert!(setup.node.result(1).unwrap().message.contains("blocking part"));
    setup.gate.let_out(2);
    setup.gate.let_out(4);
    eventually("the others", || setup.status(4) == Some(RunStatus::Succeeded)).await;
    assert_eq!(setup.status(2), Some(RunStatus::Succeeded));
    assert_eq!((setup.gate.entered(), setup.node.result(3)), (vec![1, 2, 4], None));
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_kills_one_run() {
    let setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    setup.dispatch((1..=3).map(|log| run(log, "waits", Concurrent, now)).collect()).await;
    eventually("all inside", || setup.gate.entered().len() == 3).await;
    assert!(matches!(setup.cancel(2).await, CancelOutcome::Stopping | CancelOutcome::Stopped));
    eventually("cancelled", || setup.status(2) == Some(RunStatus::Cancelled)).await;
    setup.heartbeat(&[], &[1, 3]).await;
    setup.gate.let_out(1);
    setup.gate.let_out(3);
    eventually("the others", || setup.node.state().results.len() == 3).await;
    assert_eq!((setup.status(1), setup.status(3)), (Some(RunStatus::Succeeded), Some(RunStatus::Succeeded)));
    setup.gate.open();
    setup.running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_out_is_reported_when_the_run_has_ended() {
    let setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    for (log, handler) in [(1, "waits"), (2, "blocks"), (3, "leaves"), (4, "waits")] {
        setup.dispatch(vec![DispatchItem { timeout_ms: 50, ..run(log, handler, Serial, now) }]).await;
    }
    eventually("the first is over", || setup.status(1) == Some(RunStatus::TimedOut)).await;
    for (log, held) in [(2, vec![3, 4]), (3, vec![4])] {
        eventually("inside", || setup.gate.has_entered(log)).await;
        for _ in 0..3 {
            setup.heartbeat(&held, &[log]).await;
        }
        assert_eq!(setup.status(log), None);
        setup.gate.let_out(log);
        eventually("reported", || setup.status(log) == Some(RunStatus::TimedOut)).await;
    }
    eventually("the last", || setup.status(4) == Some(RunStatus::TimedOut)).await;
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_ends_with_its_last_blocking_part() {
    let setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    setup.dispatch(vec![run(1, "leaves", Serial, now), run(2, "blocks", Serial, now)]).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    for _ in 0..3 {
        setup.heartbeat(&[2], &[1]).await;
    }
    setup.gate.let_out(1);
    eventually("ended", || setup.node.result(1).is_some()).await;
    assert_eq!(setup.node.result(1).unwrap().output, "left");
    setup.gate.let_out(2);
    eventually("ended", || setup.node.result(2).is_some()).await;
    assert_eq!(setup.node.result(2).unwrap().output, "let out");
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cover_early_starts_the_newest_when_the_old_one_has_ended() {
    for handler in ["waits", "blocks"] {
        let setup = Setup::new(64).await;
        let now = setup.node.now_ms();
        setup.dispatch(vec![run(1, handler, CoverEarly, now)]).await;
        eventually("inside", || setup.gate.has_entered(1)).await;
        setup.dispatch(vec![run(2, handler, CoverEarly, now + 1), run(3, handler, CoverEarly, now + 2)]).await;
        eventually("covered", || setup.status(2) == Some(RunStatus::Covered)).await;
        assert!(setup.node.result(2).unwrap().message.contains("run 3"));
        if handler == "blocks" {
            for _ in 0..3 {
                setup.heartbeat(&[3], &[1]).await;
            }
            setup.gate.let_out(1);
        }
        eventually("the newest", || setup.gate.has_entered(3)).await;
        assert!(setup.gate.has_left(1));
        eventually("covered", || setup.status(1) == Some(RunStatus::Covered)).await;
        assert_eq!(setup.node.result(2).unwrap().started_at, 0);
        assert!(setup.node.result(1).unwrap().message.contains("run 2"));
        assert_eq!(setup.gate.entered(), [1, 3]);
        setup.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discard_later_does_not_start_what_comes_in_between() {
    let setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    setup.dispatch(vec![run(1, "blocks", DiscardLater, now)]).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    assert!(matches!(setup.cancel(1).await, CancelOutcome::Stopping | CancelOutcome::Stopped));
    // It has been told to stop, and goes on all the same.
    setup.dispatch(vec![run(2, "blocks", DiscardLater, now)]).await;
    eventually("blocked", || setup.status(2) == Some(RunStatus::Blocked)).await;
    let result = setup.node.result(2).unwrap();
    assert!(result.message.contains("run 1 ") && result.started_at == 0, "{result:?}");
    setup.gate.let_out(1);
    eventually("ended", || setup.status(1) == Some(RunStatus::Cancelled)).await;
    setup.dispatch(vec![run(3, "waits", DiscardLater, now)]).await;
    eventually("inside", || setup.gate.has_entered(3)).await;
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_gives_back_what_waits_for_its_turn_and_starts_nothing() {
    let mut setup = Setup::new(64).await;
    let now = setup.node.now_ms();
    setup.dispatch((1..=3).map(|log| run(log, "blocks", Serial, now)).collect()).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    setup.running.begin_stop();
    eventually("given back", || !setup.node.state().unregisters.is_empty()).await;
    {
        let state = setup.node.state();
        let mut held = state.unregisters[0].held.clone();
        held.sort_unstable();
        assert_eq!(held, [RunKey(2, 1), RunKey(3, 1)]);
        assert_eq!(state.unregisters[0].running, [RunKey(1, 1)]);
    }
    let message = Probe { executor_id: EXECUTOR_ID, tasks: vec![1] };
    let got = call(setup.running.port, "/probe", &message, setup.node.now_ms()).send().await;
    assert_eq!((got.code, got.signed), (Code::ShuttingDown, true));
    // The drain time-out passes while it is inside: the executor stays, or the next run of the
    // task would begin elsewhere.
    let Setup { node, gate, mut running, .. } = setup;
    assert!(tokio::time::timeout(Duration::from_secs(4), running.ended()).await.is_err(), "left a serial run behind");
    assert_eq!((node.result(1).is_none(), gate.has_left(1)), (true, false));
    gate.open();
    running.stopped().await;
    assert_eq!(node.result(1).unwrap().status, RunStatus::Abandoned);
    assert_eq!((gate.has_left(1), gate.entered()), (true, vec![1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_gives_up_a_concurrent_run_that_nothing_stops() {
    let setup = Setup::new(64).await;
    setup.dispatch(vec![run(1, "blocks", Concurrent, setup.node.now_ms())]).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    let Setup { node, gate, running, .. } = setup;
    running.stopped().await;
    assert_eq!(node.result(1).unwrap().status, RunStatus::Abandoned);
    assert!(!gate.has_left(1));
    gate.open();
}

/// The runtime of the handlers is gone, and a serial run with it: nothing would ever end it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_serial_run_without_a_runtime_is_given_up() {
    let node = TestNode::start().await;
    let (journal, seen) = (tempfile::tempdir().unwrap(), Arc::new(Seen::default()));
    let executor = builder(&[&node], &journal, &seen).build().unwrap();
    let port = executor.port();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.spawn(executor.run_until(std::future::pending()));
    eventually("registered", || !node.state().heartbeats.is_empty()).await;
    let items = client::dispatch(vec![run(1, "endless", Serial, node.now_ms())]);
    call(port, "/dispatch", &items, node.now_ms()).send().await;
    eventually("running", || seen.has_started(1)).await;
    runtime.shutdown_background();
    eventually("given up", || node.result(1).is_some_and(|result| result.status == RunStatus::Abandoned)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_waits_for_the_blocking_part_and_no_longer() {
    let mut setup = Setup::new(64).await;
    setup.dispatch(vec![run(1, "blocks", Serial, setup.node.now_ms())]).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    setup.running.begin_stop();
    eventually("draining", || setup.node.state().heartbeats.iter().any(|beat| beat.draining)).await;
    assert_eq!(setup.status(1), None);
    setup.gate.let_out(1);
    let Setup { node, gate, running, .. } = setup;
    running.stopped().await;
    assert_eq!(node.result(1).unwrap().status, RunStatus::Succeeded);
    assert!(gate.has_left(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_a_turn_or_a_slot_ends_at_its_limit() {
    let setup = Setup::new(1).await;
    let now = setup.node.now_ms();
    setup.dispatch(vec![run(1, "waits", Serial, now)]).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    let due = setup.node.now_ms();
    let limited = |log, strategy, wait| DispatchItem { wait_timeout_ms: wait, ..run(log, "waits", strategy, due) };
    let patient = DispatchItem { task: 2, ..limited(5, Concurrent, 60_000) };
    setup.dispatch(vec![limited(2, Serial, 80), limited(3, Concurrent, 120), limited(4, Serial, 0), patient]).await;
    for (log, wait) in [(2, 80), (3, 120)] {
        eventually("waited long enough", || setup.status(log) == Some(RunStatus::WaitTimedOut)).await;
        let result = setup.node.result(log).unwrap();
        assert!(result.finished_at >= due + wait && result.started_at == 0, "{result:?}");
    }
    setup.heartbeat(&[4, 5], &[1]).await;
    for log in [1, 4, 5] {
        setup.gate.let_out(log);
    }
    eventually("the others", || setup.node.state().results.len() == 5).await;
    assert!(!setup.gate.has_entered(2) && !setup.gate.has_entered(3));
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_most_urgent_of_those_that_wait_starts_first() {
    let setup = Setup::new(1).await;
    let now = setup.node.now_ms();
    setup.dispatch(vec![run(1, "waits", Concurrent, now)]).await;
    eventually("inside", || setup.gate.has_entered(1)).await;
    let urgent = |log, priority, ago| DispatchItem { priority, ..run(log, "quick", Concurrent, now - ago) };
    let serial = DispatchItem { task: 2, priority: 7, ..run(6, "waits", Serial, now) };
    setup.dispatch(vec![urgent(2, 1, 50), urgent(3, 5, 0), urgent(4, 9, 0), urgent(5, 5, 10), serial]).await;
    // The timer releases all that is due at once.
    setup.until_busy(&[2]).await;
    setup.heartbeat(&[2, 3, 4, 5, 6], &[1]).await;
    setup.gate.open();
    eventually("all", || setup.node.state().results.len() == 6).await;
    let order: Vec<i64> = setup.node.state().results.iter().map(|result| result.log).collect();
    assert_eq!(order, [1, 4, 6, 5, 3, 2]);
    setup.running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_tells_what_is_busy_to_a_node_only() {
    let setup = Setup::new(2).await;
    let now = setup.node.now_ms();
    let of = |task, strategy, due| DispatchItem { task, ..run(task, "waits", strategy, due) };
    setup.dispatch(vec![of(1, Serial, now), of(2, Concurrent, now), of(4, Serial, now + 60_000)]).await;
    eventually("inside", || setup.gate.entered().len() == 2).await;
    setup.dispatch(vec![of(3, Concurrent, now), of(5, Serial, now)]).await;
    setup.until_busy(&[3, 5]).await;
    let expected = ProbeAck { held: 3, running: 2, capacity: 2, busy: vec![5, 3, 2, 1] };
    assert_eq!(setup.probe(&[5, 4, 3, 2, 1, 9, 5]).await, expected);
    assert!(setup.probe(&[]).await.busy.is_empty());

    let ask = |executor_id, tasks| Probe { executor_id, tasks };
    let honest = |message: &Probe| call(setup.running.port, "/probe", message, now);
    let unsigned = honest(&ask(EXECUTOR_ID, vec![1])).without(sign::header::SIGN).send().await;
    assert_eq!((unsigned.code, unsigned.signed), (Code::Unsigned, false));
    let other = honest(&ask(EXECUTOR_ID + 1, vec![1])).send().await;
    assert_eq!((other.code, other.signed), (Code::WrongExecutor, true));
    let many = honest(&ask(EXECUTOR_ID, vec![1; PROBE_TASKS_MAX + 1])).send().await;
    assert_eq!((many.code, many.signed), (Code::BadRequest, true));
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_and_panics_of_blocking_work_reach_the_handler() {
    let node = TestNode::start().await;
    let journal = tempfile::tempdir().unwrap();
    let executor = builder(&[&node], &journal, &Arc::new(Seen::default()))
        .handler("counts", |ctx: TaskContext| async move {
            let sum = ctx.spawn_blocking(|| (1..=10).sum::<i32>()).await?;
            Ok(Output::text(sum.to_string()))
        })
        .handler("bursts", |ctx: TaskContext| async move {
            ctx.spawn_blocking(|| panic!("out of biscuits")).await?;
            Ok(Output::none())
        });
    let running = Running::registered(executor, &node).await;
    let now = node.now_ms();
    running.dispatch(vec![item(1, "counts", now), item(2, "bursts", now)], &node).await;
    eventually("both", || node.state().results.len() == 2).await;
    assert_eq!(node.result(1).unwrap().output, "55");
    let burst = node.result(2).unwrap();
    assert_eq!((burst.status, burst.message.as_str()), (RunStatus::Panicked, "out of biscuits"));
    running.stopped().await;
}
