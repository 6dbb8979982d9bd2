//! Runs when they are due, and their results on the way to a node.

use super::ledger::{Ack, Start, Stopped};
use super::server;
use super::table::Begin;
use super::{Process, SimExecutor};
use carillon::cluster::Clock;
use carillon::domain::TaskId;
use carillon_protocol::{DispatchItem, Results, RunKey, RunResult, RunStatus, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a result takes to be safe on disk.
const RECORDING: Duration = Duration::from_millis(25);

/// How long a handler may take to notice that it is to stop, µs.
const STOPPING_MAX_US: i64 = 400_000;

/// Results in one message at most.
const BATCH_MAX: usize = 100;

/// Holds a run until it is due by this machine's clock, then runs it if it still may.
pub(super) async fn run_when_due(machine: Arc<SimExecutor>, process: Arc<Process>, item: DispatchItem) {
    let key = RunKey(item.log, item.attempt);
    loop {
        let wait = item.due_time * 1_000 - machine.clock.now_us();
        if wait <= 0 {
            break;
        }
        tokio::time::sleep(Duration::from_micros(wait as u64)).await;
    }
    let now = machine.parts.time.now_ms();
    let may_start = process.lease.lock().unwrap().may_start(now);
    let begin = process.table.lock().unwrap().begin(key, may_start);
    match begin {
        Begin::Skipped => {}
        Begin::NotStarted => {
            machine.note(format!("log {} attempt {}: not started, the lease has run out", key.0, key.1));
            record(&machine, &process, result(&machine, key, RunStatus::NotStarted, 0)).await;
        }
        Begin::Start => {
            machine.note(format!("log {} attempt {}: STARTS", key.0, key.1));
            machine.parts.ledger.started(Start {
                key,
                task: TaskId(item.task),
                executor_id: process.executor_id.load(Ordering::Relaxed),
                fire_time: item.fire_time,
                due_time: item.due_time,
                at: now,
            });
            let (lasts_ms, status) = behaviour(&machine, &item);
            tokio::time::sleep(Duration::from_millis(lasts_ms)).await;
            finish(&machine, &process, key, status, now).await;
        }
    }
}

/// How long a run takes and how it ends: by its handler's name and by chance.
fn behaviour(machine: &SimExecutor, item: &DispatchItem) -> (u64, RunStatus) {
    let dice = &machine.parts.dice;
    let purpose = format!("run {} {}", item.log, item.attempt);
    let (low, high) = match item.handler.as_str() {
        "slow" => (1_000, 8_000),
        "steady" => (500, 2_500),
        _ => (1, 300),
    };
    let lasts = dice.between(&format!("{purpose} lasts"), low, high) as u64;
    let fails = item.handler == "flaky" && dice.happens(&format!("{purpose} fails"), 500);
    (lasts, if fails { RunStatus::Failed } else { RunStatus::Succeeded })
}

/// Ends a running run.
pub(super) async fn finish(
    machine: &Arc<SimExecutor>,
    process: &Arc<Process>,
    key: RunKey,
    status: RunStatus,
    started_at: i64,
) {
    if process.table.lock().unwrap().finish(key) {
        machine.note(format!("log {} attempt {}: ends {status:?}", key.0, key.1));
        machine.parts.ledger.stopped(key, machine.parts.time.now_ms(), Stopped::Ended(status));
        record(machine, process, result(machine, key, status, started_at)).await;
    }
}

/// Ends a run that was told to stop: its handler takes a moment to notice.
pub(super) async fn stop(machine: Arc<SimExecutor>, process: Arc<Process>, key: RunKey) {
    let purpose = format!("run {} {} stops", key.0, key.1);
    let us = machine.parts.dice.between(&purpose, 0, STOPPING_MAX_US);
    tokio::time::sleep(Duration::from_micros(us as u64)).await;
    let now = machine.parts.time.now_ms();
    finish(&machine, &process, key, RunStatus::Cancelled, now).await;
}

/// The output of a success names its run.
fn result(machine: &SimExecutor, key: RunKey, status: RunStatus, started_at: i64) -> RunResult {
    RunResult {
        log: key.0,
        attempt: key.1,
        status,
        message: String::new(),
        output: if status == RunStatus::Succeeded { key.0.to_string() } else { String::new() },
        started_at,
        finished_at: machine.clock.now_ms(),
        due_time: 0,
    }
}

async fn record(machine: &Arc<SimExecutor>, process: &Arc<Process>, result: RunResult) {
    tokio::time::sleep(RECORDING).await;
    machine.journal.lock().unwrap().push(result);
    process.results.notify_one();
}

/// Sends what is in the journal until a node has taken it.
pub(super) async fn send_results(machine: Arc<SimExecutor>, process: Arc<Process>) {
    let mut pause = 200;
    loop {
        let batch: Vec<RunResult> = machine.journal.lock().unwrap().iter().take(BATCH_MAX).cloned().collect();
        let executor_id = process.executor_id.load(Ordering::Relaxed);
        if batch.is_empty() || executor_id == 0 {
            // A registration does not wake this loop; what the journal held at start waits so long.
            drop(tokio::time::timeout(Duration::from_secs(1), process.results.notified()).await);
            continue;
        }
        if send(&machine, &process, executor_id, batch).await {
            pause = 200;
        } else {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(2_000);
        }
    }
}

async fn send(machine: &Arc<SimExecutor>, process: &Arc<Process>, executor_id: i64, batch: Vec<RunResult>) -> bool {
    let keys: Vec<RunKey> = batch.iter().map(|result| RunKey(result.log, result.attempt)).collect();
    let answer = server::call(machine, process, &format!("results {keys:?}"), |node| {
        let message = Results { executor_id, results: batch.clone() };
        async move { node.results(message).await }
    })
    .await;
    let Ok(answer) = answer else { return false };
    let mut done = Vec::with_capacity(keys.len());
    for ((key, result), verdict) in keys.iter().zip(&batch).zip(answer.verdicts) {
        machine.note(format!("log {} attempt {}: {:?} answered {verdict:?}", key.0, key.1, result.status));
        if verdict != Verdict::Again {
            machine.parts.ledger.acknowledged(Ack { key: *key, status: result.status, verdict });
            done.push(*key);
        }
    }
    machine.journal.lock().unwrap().retain(|result| !done.contains(&RunKey(result.log, result.attempt)));
    let mut table = process.table.lock().unwrap();
    for key in &done {
        table.acknowledged(*key);
    }
    done.len() == keys.len()
}
