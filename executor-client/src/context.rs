//! A handler's view of its run.

use crate::TaskError;
use crate::blocking::BlockingPart;
use crate::output::Level;
use crate::output::span::RunSpan;
use crate::run::Run;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::sync::Arc;

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
    pub(crate) fn new(run: Arc<Run>, started_at_us: i64, span: RunSpan) -> Self {
        Self { run, started_at_us, span }
    }

    /// Id of this run's task log.
    pub fn log(&self) -> i64 {
        self.run.item.log
    }

    /// Attempt, counted from 1. Together with [`TaskContext::log`] it identifies this dispatch
    /// permanently; a handler that must not repeat an effect can store the pair along with it.
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

    /// Parameters parsed as JSON. Empty ones count as `null`, or as `{}` if `null` does not fit.
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
            TaskError::fatal(format!("the parameters do not fit handler `{}`: {error}", self.handler()))
        })
    }

    /// The scheduled instant, epoch ms.
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

    /// Time-out of this run, ms; 0 means none.
    pub fn timeout_ms(&self) -> i64 {
        self.run.item.timeout_ms
    }

    /// W3C trace context of the dispatch; empty when there is none.
    pub fn trace(&self) -> &str {
        &self.run.item.trace
    }

    /// Runs blocking `work` on a thread of its own, as a part of this run: the run counts as
    /// running until `work` has returned, even when it was stopped and the handler's future is
    /// gone. Nothing can stop a thread from outside, so `work` must check
    /// [`TaskContext::is_cancelled`] from time to time. Work that never returns keeps its run
    /// running, its slot taken and, if the task is serial, every later run of it waiting, until
    /// this process ends. Even after a shutdown that gave up on it, the process waits for the
    /// thread or must be killed.
    ///
    /// Awaiting the handle yields what `work` returned; a panic of `work` propagates to the
    /// handler. Work that has not started when the run is told to stop never starts.
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

    /// Adds a line of level INFO to the output of this run, which the console shows with the run,
    /// even while it is running. It never waits: the line is written to a file a little later, and
    /// is lost when lines come faster than they can be written, or when the run has ended.
    /// [`ExecutorBuilder::output_run_bytes_max`](crate::ExecutorBuilder::output_run_bytes_max)
    /// limits the output of one run.
    ///
    /// To log to the service's own log as well, use `tracing`; see the feature `layer`.
    pub fn log_info(&self, text: impl Display) {
        self.run.log(Level::Info, &text);
    }

    /// [`TaskContext::log_info`] with level WARN.
    pub fn log_warn(&self, text: impl Display) {
        self.run.log(Level::Warn, &text);
    }

    /// [`TaskContext::log_info`] with level ERROR. It does not make the run fail.
    pub fn log_error(&self, text: impl Display) {
        self.run.log(Level::Error, &text);
    }

    /// [`TaskContext::log_info`] with level DEBUG.
    pub fn log_debug(&self, text: impl Display) {
        self.run.log(Level::Debug, &text);
    }

    /// Whether this run should stop: cancelled, timed out, covered by a later one, or given up by
    /// the executor. Work in [`TaskContext::spawn_blocking`] should check it from time to time.
    pub fn is_cancelled(&self) -> bool {
        self.run.cancel.is_cancelled()
    }

    /// Resolves when this run should stop; the handler may then clean up, within the grace period.
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

    /// Cluster clock when the handler was called, epoch µs.
    pub fn started_at_us(&self) -> i64 {
        self.started_at_us
    }
}
