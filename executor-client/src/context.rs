//! What a handler sees of its run, and what it gives back.

use crate::TaskError;
use crate::clock::ClusterClock;
use crate::handler::Handler;
use crate::output::span::RunSpan;
use crate::output::{Level, Outlet, Outputs};
use crate::parts::{BlockingPart, Parts};
use crate::ready::Ticket;
use carillon_protocol::{BlockStrategy, DispatchItem, RunKey, TEXT_BYTES_MAX};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Why a running handler is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Somebody cancelled the run.
    Cancelled,
    /// Contact was lost for too long, or the shutdown could not wait any longer.
    Abandoned,
    /// Its time-out has passed.
    TimedOut,
    /// A later run of the task, this log, takes its place.
    Covered(i64),
}

/// One accepted run, from its arrival to its end. Everything it needs is made on arrival, so
/// that starting it allocates only the handler's future.
pub(crate) struct Run {
    pub(crate) item: DispatchItem,
    pub(crate) handler: Arc<dyn Handler>,
    clock: Arc<ClusterClock>,
    pub(crate) parts: Parts,
    cancel: CancellationToken,
    /// 0 until stopped, then which was the first [`Stop`].
    stop: AtomicU8,
    /// The first log that took its place.
    covered_by: OnceLock<i64>,
    outputs: Arc<Outputs>,
    pub(crate) outlet: Outlet,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("item", &self.item).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(
        item: DispatchItem,
        handler: Arc<dyn Handler>,
        clock: Arc<ClusterClock>,
        outputs: Arc<Outputs>,
    ) -> Self {
        Self {
            item,
            handler,
            clock,
            parts: Parts::default(),
            cancel: CancellationToken::new(),
            stop: AtomicU8::new(0),
            covered_by: OnceLock::new(),
            outputs,
            outlet: Outlet::default(),
        }
    }

    pub(crate) fn key(&self) -> RunKey {
        RunKey(self.item.log, self.item.attempt)
    }

    pub(crate) fn ticket(&self) -> Ticket {
        Ticket {
            due_ms: self.item.due_time,
            key: self.key(),
            task: self.item.task,
            priority: self.item.priority,
            exclusive: self.is_exclusive(),
            limited: self.item.wait_timeout_ms > 0,
        }
    }

    /// Whether it may not start beside another run of its task.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.item.block_strategy != BlockStrategy::Concurrent
    }

    /// When it may start, cluster µs.
    pub(crate) fn due_us(&self) -> i64 {
        self.item.due_time.saturating_mul(1_000)
    }

    /// From when on it may not start any more if its wait is limited, cluster ms.
    pub(crate) fn give_up_ms(&self) -> i64 {
        self.item.due_time.saturating_add(self.item.wait_timeout_ms)
    }

    /// Tells the handler and its blocking parts to stop. The first reason stays; whether it was
    /// this one.
    pub(crate) fn stop(&self, why: Stop) -> bool {
        let number = match why {
            Stop::Cancelled => 1,
            Stop::Abandoned => 2,
            Stop::TimedOut => 3,
            Stop::Covered(log) => {
                self.covered_by.get_or_init(|| log);
                4
            }
        };
        let first = self.stop.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire).is_ok();
        self.cancel.cancel();
        first
    }

    /// Adds a line to its output.
    pub(crate) fn log(&self, level: Level, text: &dyn Display) {
        self.outputs.log(self, level, text);
    }

    /// Nothing more is logged for it.
    pub(crate) fn end_output(&self) {
        self.outputs.end(self);
    }

    /// Tells the blocking parts to stop after the handler has panicked.
    pub(crate) fn signal(&self) {
        self.cancel.cancel();
    }

    /// Whether anything has told it to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Resolves when [`Run::stop`] was called.
    pub(crate) async fn stopped(&self) -> Stop {
        self.cancel.cancelled().await;
        self.stop_reason().unwrap_or(Stop::Abandoned)
    }

    /// Why [`Run::stop`] was called, if it was.
    pub(crate) fn stop_reason(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Abandoned),
            3 => Some(Stop::TimedOut),
            _ => Some(Stop::Covered(self.covered_by.get().copied().unwrap_or_default())),
        }
    }
}

/// One run as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct TaskContext {
    run: Arc<Run>,
    started_at_us: i64,
    span: RunSpan,
}

impl std::fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskContext")
            .field("log", &self.log())
            .field("attempt", &self.attempt())
            .field("task_name", &self.task_name())
            .finish_non_exhaustive()
    }
}

impl TaskContext {
    pub(crate) fn new(run: Arc<Run>, started_at_us: i64) -> Self {
        let span = RunSpan::of(&run);
        Self { run, started_at_us, span }
    }

    pub(crate) fn span(&self) -> &RunSpan {
        &self.span
    }

    /// Id of this run's task log.
    pub fn log(&self) -> i64 {
        self.run.item.log
    }

    /// Attempt, counted from 1. With [`TaskContext::log`] it names this dispatch for ever; a
    /// handler that must not repeat an effect can store the pair beside it.
    pub fn attempt(&self) -> i32 {
        self.run.item.attempt
    }

    /// Id of the task.
    pub fn task(&self) -> i64 {
        self.run.item.task
    }

    /// Name of the task.
    pub fn task_name(&self) -> &str {
        &self.run.item.task_name
    }

    /// Name of the handler.
    pub fn handler(&self) -> &str {
        &self.run.item.handler
    }

    /// Parameters as entered; empty when there are none.
    pub fn params(&self) -> &str {
        &self.run.item.params
    }

    /// Parameters read as JSON. Empty ones count as `null`, or as `{}` where that does not fit.
    ///
    /// # Errors
    /// A fatal [`TaskError`]: the same parameters will be wrong at every attempt.
    pub fn params_as<P: DeserializeOwned>(&self) -> Result<P, TaskError> {
        let text = self.params().trim();
        let parsed = if text.is_empty() {
            serde_json::from_str("null").or_else(|_| serde_json::from_str("{}"))
        } else {
            serde_json::from_str(text)
        };
        parsed.map_err(|error| {
            TaskError::fatal(format!("the parameters are not what handler `{}` takes: {error}", self.handler()))
        })
    }

    /// The instant that the schedule names, epoch ms.
    pub fn fire_time(&self) -> i64 {
        self.run.item.fire_time
    }

    /// When this attempt was due, epoch ms; the fire time, or later for a retry.
    pub fn due_time(&self) -> i64 {
        self.run.item.due_time
    }

    /// Shard of this run, from 0.
    pub fn shard_index(&self) -> i32 {
        self.run.item.shard_index
    }

    /// Number of shards; 1 when the task is not sharded.
    pub fn shard_total(&self) -> i32 {
        self.run.item.shard_total
    }

    /// Time-out of this run, ms; 0 is none.
    pub fn timeout_ms(&self) -> i64 {
        self.run.item.timeout_ms
    }

    /// W3C trace context of the dispatch; empty when there is none.
    pub fn trace(&self) -> &str {
        &self.run.item.trace
    }

    /// Runs blocking `work` on a thread of its own, as a part of this run: the run counts as
    /// running until `work` has returned, even when it was stopped and the handler's future is
    /// gone. Nothing can stop a thread from outside, so `work` must look at
    /// [`TaskContext::is_cancelled`] from time to time. Work that never returns keeps its run
    /// running, its slot taken and, where the task is serial, every later run of it waiting,
    /// until this process ends; after a shutdown that could not wait the process still has to
    /// wait for it or be ended from outside.
    ///
    /// Awaiting it gives what `work` returned; a panic of `work` goes on in the handler.
    /// Work that has not begun when the run is told to stop never does.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn_blocking<T, F>(&self, work: F) -> BlockingPart<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let span = self.span.clone();
        BlockingPart::spawn(&self.run, move || span.enter(work))
    }

    /// Adds a line of level INFO to the output of this run, which its record in the console shows,
    /// also while it runs. It never waits: the line is written to a file a little later, and is
    /// lost when lines come faster than that, or when the run has ended. Of one run so much is
    /// kept as [`ExecutorBuilder::output_run_bytes_max`](crate::ExecutorBuilder::output_run_bytes_max)
    /// says.
    ///
    /// What is to go into the service's own log as well is better logged through `tracing`; see
    /// the feature `layer`.
    pub fn log_info(&self, text: impl Display) {
        self.run.log(Level::Info, &text);
    }

    /// [`TaskContext::log_info`] with level WARN.
    pub fn log_warn(&self, text: impl Display) {
        self.run.log(Level::Warn, &text);
    }

    /// [`TaskContext::log_info`] with level ERROR. The run does not fail for it.
    pub fn log_error(&self, text: impl Display) {
        self.run.log(Level::Error, &text);
    }

    /// [`TaskContext::log_info`] with level DEBUG.
    pub fn log_debug(&self, text: impl Display) {
        self.run.log(Level::Debug, &text);
    }

    /// Whether this run should stop: cancelled, timed out, covered by a later one, or given up by
    /// the executor. Work in [`TaskContext::spawn_blocking`] looks at it from time to time.
    pub fn is_cancelled(&self) -> bool {
        self.run.cancel.is_cancelled()
    }

    /// Resolves when this run should stop; a handler may tidy up then, within the grace.
    pub async fn cancelled(&self) {
        self.run.cancel.cancelled().await;
    }

    /// The cluster clock, epoch ms.
    pub fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// The cluster clock, epoch µs.
    pub fn now_us(&self) -> i64 {
        // Known since the registration, which comes before every run.
        self.run.clock.now_us().unwrap_or(self.started_at_us)
    }

    /// Cluster clock at the instant when the handler was entered, epoch µs.
    pub fn started_at_us(&self) -> i64 {
        self.started_at_us
    }
}

/// What a handler returns on success: a text that the run's record shows, at most 16 KiB; what
/// is longer is cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output(String);

impl Output {
    /// Nothing to show.
    pub fn none() -> Self {
        Self::default()
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A value as JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, TaskError> {
        Ok(Self(serde_json::to_string(value)?))
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl From<()> for Output {
    fn from((): ()) -> Self {
        Self::none()
    }
}

/// Cuts `text` to what a result may carry, at a character border.
pub(crate) fn cut(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - MARK.len()));
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let cut = cut("é".repeat(TEXT_BYTES_MAX));
        assert!(cut.len() <= TEXT_BYTES_MAX);
        assert!(cut.ends_with('…'));
        assert_eq!(super::cut("short".to_owned()), "short");
    }
}
