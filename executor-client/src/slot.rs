//! The slot task: runs handlers one after another and reports how each ended.

use crate::output::run_span::span_of;
use crate::result::cut;
use crate::run::{Run, Stop};
use crate::runs::Runs;
use crate::spawn::Spawn;
use crate::{Output, TaskError};
use carillon_protocol::{LocalInstant, RunResult, RunStatus};
use futures_util::FutureExt as _;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Runs after which a slot lets other tasks of the runtime in, even if no handler ever waited.
const RUNS_PER_TURN: u32 = 32;

/// Slot tasks that one task starts; they spread over the workers by stealing.
const SLOTS_PER_STARTER: usize = 256;

/// How long after a stop a run whose blocking part continues is logged.
const STILL_RUNNING: Duration = Duration::from_secs(10);

/// How a handler ended.
enum Ended {
    Returned(Result<Output, TaskError>),
    Stopped(Stop),
}

/// Starts `count` slot tasks on the handlers' runtime. Only the starters pass through the
/// runtime's shared queue; the slots go to a worker's own.
pub(crate) fn start_slots(runs: &Arc<Runs>, runtime: &impl Spawn, count: usize) {
    let mut left = count;
    while left > 0 {
        let here = left.min(SLOTS_PER_STARTER);
        left -= here;
        let (runs, starter) = (Arc::clone(runs), runtime.clone());
        runtime.spawn(async move {
            for _ in 1..here {
                starter.spawn(work(Arc::clone(&runs)));
            }
            work(runs).await;
        });
    }
}

async fn work(runs: Arc<Runs>) {
    let mut now = runs.clock.local();
    let mut done = None;
    let mut turns = 0u32;
    while let Some(run) = runs.next(done.take(), now) {
        let (result, ended) = execute(&runs, run).await;
        (done, now) = (Some(result), ended);
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(RUNS_PER_TURN) {
            tokio::task::yield_now().await;
            now = runs.clock.local();
        }
    }
}

/// Returns how a run ended, and when: the next one starts by the same reading of the clock.
async fn execute(runs: &Runs, run: Arc<Run>) -> (RunResult, LocalInstant) {
    // The start was checked against the clock; only a new estimate in between could be lower.
    let started_us = runs.clock.now_us().unwrap_or_default();
    let ended = AssertUnwindSafe(drive(&run, started_us, runs.cancel_grace)).catch_unwind().await;
    let (status, mut message, output) = match (ended, run.stop_reason()) {
        (Ok(ended), _) => describe(&run, ended),
        // A panic while stopping is not an outcome either.
        (Err(_), Some(why)) => describe(&run, Ended::Stopped(why)),
        (Err(panic), None) => (RunStatus::Panicked, panic_message(&*panic), String::new()),
    };
    if !run.parts.close() {
        let waited = end_parts(&run).await;
        message = format!("{message}; its blocking part returned {} ms later", waited.as_millis());
    }
    run.end_output();
    let ended = runs.clock.local();
    let result = RunResult {
        log: run.item.log,
        attempt: run.item.attempt,
        status,
        message: cut(message),
        output: cut(output),
        started_at: started_us.div_euclid(1_000),
        finished_at: runs.clock.at_us(ended).unwrap_or_default().div_euclid(1_000),
        due_time: run.item.due_time,
    };
    (result, ended)
}

/// Awaits the handler and its blocking parts until they end, time out or are stopped; then drops
/// the handler.
async fn drive(run: &Arc<Run>, started_us: i64, grace: Duration) -> Ended {
    let span = span_of(run);
    let handler = span.enter(|| run.handler.call(run, started_us, &span));
    let handler = span.carry(handler);
    let whole = async {
        let result = handler.await;
        run.parts.none_left().await;
        result
    };
    let mut whole = std::pin::pin!(whole);
    // A lazy block: a handler that never waits costs no timer.
    let timeout = async {
        match u64::try_from(run.item.timeout_ms) {
            Ok(ms) if ms > 0 => tokio::time::sleep(Duration::from_millis(ms)).await,
            _ => std::future::pending().await,
        }
    };
    let mut timeout = std::pin::pin!(timeout);
    let why = tokio::select! {
        biased;
        result = &mut whole => {
            // What a handler returns after it was told to stop is not an outcome.
            return run.stop_reason().map_or(Ended::Returned(result), Ended::Stopped);
        }
        () = &mut timeout => {
            // For work that outlives the handler's future, such as a blocking part.
            run.stop(Stop::TimedOut);
            return Ended::Stopped(run.stop_reason().unwrap_or(Stop::TimedOut));
        }
        why = run.stopped() => why,
    };
    if matches!(why, Stop::Cancelled | Stop::Covered(_)) {
        tokio::select! {
            biased;
            _ = &mut whole => {}
            () = &mut timeout => {}
            () = tokio::time::sleep(grace) => {}
        }
    }
    Ended::Stopped(why)
}

/// Waits for the blocking parts of a run whose handler is gone. Returns how long that took.
async fn end_parts(run: &Run) -> Duration {
    let since = Instant::now();
    run.signal();
    let ended = async {
        // A part may start another one until it has been counted out.
        while !run.parts.close() {
            run.parts.none_left().await;
        }
    };
    let mut ended = std::pin::pin!(ended);
    if tokio::time::timeout(STILL_RUNNING, &mut ended).await.is_err() {
        tracing::warn!(
            log = run.item.log,
            attempt = run.item.attempt,
            task = run.item.task,
            task_name = run.item.task_name,
            "run.still_running: it was told to stop, but a blocking part of it has not returned"
        );
        ended.await;
    }
    since.elapsed()
}

fn describe(run: &Run, ended: Ended) -> (RunStatus, String, String) {
    match ended {
        Ended::Returned(Ok(output)) => (RunStatus::Succeeded, String::new(), output.into_text()),
        Ended::Returned(Err(error)) => {
            let status = if error.is_fatal() { RunStatus::FailedForGood } else { RunStatus::Failed };
            (status, error.into_message(), String::new())
        }
        Ended::Stopped(Stop::TimedOut) => {
            (RunStatus::TimedOut, format!("stopped after its time-out of {} ms", run.item.timeout_ms), String::new())
        }
        Ended::Stopped(Stop::Covered(log)) => {
            (RunStatus::Covered, format!("stopped: run {log} of the task replaced it"), String::new())
        }
        Ended::Stopped(Stop::Cancelled) => (RunStatus::Cancelled, "cancelled".to_owned(), String::new()),
        Ended::Stopped(Stop::Abandoned) => (
            RunStatus::Abandoned,
            "stopped by the executor: no contact with any node for too long, or its shutdown \
             could not wait"
                .to_owned(),
            String::new(),
        ),
    }
}

/// The text of a panic, as far as it has one.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked with a value that is not text".to_owned())
}
