//! A history in which everything is as it should be: every kind of task, for ninety seconds.

use crate::history::{Attempt, Bound, History, ManualRun, Misfire, Row, Schedule, Span, Task, Trouble, Visit, status};

/// The first fire, epoch ms.
pub const T0: i64 = 1_800_000_000_000;

/// Everything is mended.
pub const MENDED: i64 = T0 + 20_000;

/// The tasks are stopped.
const STOPPED: i64 = T0 + 90_000;

/// The process of an executor that nothing befalls.
pub const WELL: u32 = 11;

/// Tasks of the good history.
pub const PLAIN: i64 = 1;
pub const ONCE: i64 = 2;
pub const SERIAL: i64 = 3;
pub const RATE: i64 = 4;
pub const DELAY: i64 = 5;
pub const CHILD: i64 = 6;
pub const EDITED: i64 = 7;
pub const SHARDED: i64 = 8;
pub const FLAKY: i64 = 9;
pub const BOTH: i64 = 10;

fn task(id: i64, name: &str, schedule: Schedule) -> Task {
    Task {
        id,
        name: name.to_owned(),
        tenant: 0,
        schedule,
        is_at_most_once: false,
        bound: None,
        is_sharded: false,
        succeed_at: 1,
        attempts_max: 6,
        timeout_ms: 0,
        expire_after_ms: 0,
        misfire: Misfire::FireOnce,
        yields: None,
        is_edited: false,
        is_plain: false,
    }
}

/// A good history in the making.
#[derive(Default)]
struct Good(History);

impl Good {
    /// A run that succeeds at its first attempt.
    fn run(&mut self, task: i64, fire: i64, trigger: &str) -> i64 {
        let id = self.row(task, fire, trigger);
        self.visit(id, 1, fire + 2, fire + 50, "ok");
        id
    }

    fn row(&mut self, task: i64, fire: i64, trigger: &str) -> i64 {
        let id = 1_000 + self.0.rows.len() as i64;
        self.0.rows.push(Row {
            id,
            task,
            shard_total: 1,
            fire_time: fire,
            due_time: fire,
            status: status::SUCCEEDED,
            attempt: 1,
            started_at: fire + 2,
            finished_at: fire + 50,
            trigger: trigger.to_owned(),
            ..Row::default()
        });
        id
    }

    fn visit(&mut self, log: i64, attempt: i32, start: i64, end: i64, outcome: &str) {
        let row = self.0.rows.iter().find(|row| row.id == log).unwrap();
        self.0.visits.push(Visit {
            log,
            attempt,
            task: row.task,
            fire_time: row.fire_time,
            due_time: row.fire_time,
            pid: 10,
            start_us: start * 1_000,
            start_mono: (start - T0) * 1_000,
            end_us: end * 1_000,
            end_mono: (end - T0) * 1_000,
            outcome: outcome.to_owned(),
        });
    }
}

fn span(task: i64, from: i64, until: i64, every_ms: Option<i64>) -> Span {
    let until_us = if until == i64::MAX { until } else { until * 1_000 };
    Span { task, from_us: from * 1_000, until_us, every_ms, unreachable: Vec::new() }
}

/// Ninety seconds in which everything is as it should be.
pub fn good() -> History {
    let mut good = Good::default();
    let cron = Schedule::Cron(1_000);
    good.0.tasks = vec![
        Task { is_plain: true, ..task(PLAIN, "plain", cron) },
        Task { is_at_most_once: true, ..task(ONCE, "once", Schedule::Cron(5_000)) },
        Task { bound: Some(Bound { most: 1, in_process: false }), ..task(SERIAL, "serial", Schedule::Cron(2_000)) },
        task(RATE, "rate", Schedule::Rate(3_000)),
        task(DELAY, "delay", Schedule::Delay(1_000)),
        task(CHILD, "child", Schedule::After(SERIAL, None)),
        Task { is_edited: true, ..task(EDITED, "edited", cron) },
        Task { is_sharded: true, ..task(SHARDED, "sharded", Schedule::Cron(10_000)) },
        Task { succeed_at: 2, ..task(FLAKY, "flaky", Schedule::Cron(10_000)) },
        task(BOTH, "both", Schedule::AfterAll(ONCE, FLAKY)),
    ];
    for (task, every) in [(PLAIN, 1_000), (ONCE, 5_000), (SERIAL, 2_000), (SHARDED, 10_000), (FLAKY, 10_000)] {
        good.0.spans.push(span(task, T0 - 500, i64::MAX, Some(every)));
    }
    for at in 0..90 {
        let fire = T0 + at * 1_000;
        good.run(PLAIN, fire, "schedule");
        if at % 5 == 0 {
            good.run(ONCE, fire, "schedule");
        }
        if at % 2 == 0 {
            good.run(SERIAL, fire, "schedule");
            good.run(CHILD, fire + 60, "parent");
        }
        if at % 3 == 0 {
            good.run(RATE, fire + 333, "schedule");
        }
        if at % 10 == 0 {
            sharded(&mut good, fire);
            flaky(&mut good, fire);
            good.run(BOTH, fire + 1_110, "parent");
        }
    }
    for number in 0..84 {
        good.run(DELAY, T0 + number * 1_050, "schedule");
    }
    edited(&mut good);
    let mut history = good.0;
    let trouble = |name: &str, target: &str, from: i64, until: i64| Trouble {
        name: name.to_owned(),
        target: target.to_owned(),
        from_us: from * 1_000,
        until_us: until * 1_000,
    };
    history.troubles = vec![
        trouble("pause-node", "node-0", T0, MENDED),
        trouble("partition-executor", "executor-0", T0 + 2_000, T0 + 6_000),
    ];
    history.processes = [(10, "executor-0".to_owned()), (WELL, "executor-1".to_owned())].into();
    history.tenants = [("executor-0".to_owned(), 0), ("executor-1".to_owned(), 0)].into();
    (history.mended_us, history.stopped_us) = (MENDED * 1_000, STOPPED * 1_000);
    history.visits.sort_by_key(|visit| visit.start_mono);
    history
}

fn sharded(good: &mut Good, fire: i64) {
    let parent = good.row(SHARDED, fire, "schedule");
    let row = good.0.rows.last_mut().unwrap();
    (row.shard_index, row.shard_total) = (-1, 2);
    for shard in 0..2 {
        let id = good.row(SHARDED, fire, "schedule");
        let row = good.0.rows.last_mut().unwrap();
        (row.parent, row.shard_index, row.shard_total) = (parent, shard, 2);
        good.visit(id, 1, fire + 2, fire + 50, "ok");
    }
}

fn flaky(good: &mut Good, fire: i64) {
    let id = good.row(FLAKY, fire, "schedule");
    let row = good.0.rows.last_mut().unwrap();
    (row.attempt, row.failures, row.finished_at) = (2, 1, fire + 1_100);
    good.visit(id, 1, fire + 2, fire + 50, "failed");
    good.visit(id, 2, fire + 1_060, fire + 1_100, "ok");
    let reason = "handler_failed".to_owned();
    good.0.attempts.push(Attempt { log: id, attempt: 1, due_time: fire, finished_at: fire + 50, status: 3, reason });
}

/// Every second for 30 s, then stopped for 10 s, then every two seconds; and a run by hand.
fn edited(good: &mut Good) {
    let (stop, start) = (T0 + 30_200, T0 + 40_200);
    good.0.spans.extend([
        span(EDITED, T0 - 500, stop - 100, Some(1_000)),
        span(EDITED, stop, start - 100, None),
        span(EDITED, start, i64::MAX, Some(2_000)),
    ]);
    for at in (0..90).filter(|at| *at <= 30 || (*at > 40 && *at % 2 == 0)) {
        good.run(EDITED, T0 + at * 1_000, "schedule");
    }
    // Written ahead, and cancelled by the stop.
    for at in 31..40 {
        let id = good.row(EDITED, T0 + at * 1_000, "schedule");
        let row = good.0.rows.iter_mut().find(|row| row.id == id).unwrap();
        (row.status, row.attempt, row.finished_at) = (status::CANCELLED, 0, stop);
        "task_stopped".clone_into(&mut row.reason);
    }
    let by_hand = good.run(EDITED, T0 + 35_123, "manual");
    good.0.manual_runs.push(ManualRun { task: EDITED, key: "key".to_owned(), logs: vec![by_hand] });
}
