//! Runs for the unit tests of handlers: no node, no network, no file.

use crate::clock::ClusterClock;
use crate::output::run_span::span_of;
use crate::output::{Folder, Limits, Outputs};
use crate::run::{Run, Stop};
use crate::{Output, TaskContext};
use carillon_protocol::{BlockStrategy, DispatchItem};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A run that a test starts itself, to check a handler.
///
/// ```
/// use carillon_executor::{Output, TaskContext, TaskError, TestRun};
///
/// async fn close_books(ctx: TaskContext) -> Result<Output, TaskError> {
///     let day: u32 = ctx.params_as()?;
///     ctx.log_info(format!("shard {} of {}", ctx.shard_index(), ctx.shard_total()));
///     Ok(Output::text(format!("closed day {day}")))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), TaskError> {
/// let run = TestRun::of("close-books").params("7").shard(1, 4).start();
/// assert_eq!(close_books(run.context()).await?, Output::text("closed day 7"));
/// assert_eq!(run.lines(), ["INFO  shard 1 of 4"]);
///
/// let wrong = TestRun::of("close-books").params("{").start();
/// assert!(close_books(wrong.context()).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestRun {
    context: TaskContext,
    run: Arc<Run>,
    outputs: Arc<Outputs>,
}

/// Builder of a [`TestRun`].
#[derive(Debug, Clone)]
pub struct TestRunBuilder {
    item: DispatchItem,
}

impl TestRun {
    /// A first attempt of a task without parameters, due now, for the handler of this name.
    #[must_use]
    pub fn of(handler: &str) -> TestRunBuilder {
        TestRunBuilder { item: item(handler) }
    }

    /// The context to pass to the handler.
    #[must_use]
    pub fn context(&self) -> TaskContext {
        self.context.clone()
    }

    /// Tells the run to stop, as a cancel by a user does.
    pub fn cancel(&self) {
        self.run.stop(Stop::Cancelled);
    }

    /// The lines it has logged: level and text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = self.outputs.unwritten().into_iter();
        lines.map(|line| line.split_once(' ').map_or("", |(_, text)| text).trim_end().to_owned()).collect()
    }
}

impl TestRunBuilder {
    /// Sets the parameters, as entered.
    #[must_use]
    pub fn params(mut self, params: impl Into<String>) -> Self {
        self.item.params = params.into();
        self
    }

    /// Sets the name of the task.
    #[must_use]
    pub fn task_name(mut self, name: impl Into<String>) -> Self {
        self.item.task_name = name.into();
        self
    }

    /// Sets the id of the task log.
    #[must_use]
    pub fn log(mut self, id: i64) -> Self {
        self.item.log = id;
        self
    }

    /// Sets the attempt, counted from 1.
    #[must_use]
    pub fn attempt(mut self, number: i32) -> Self {
        self.item.attempt = number;
        self
    }

    /// Sets the scheduled instant, epoch ms.
    #[must_use]
    pub fn fire_time(mut self, at: i64) -> Self {
        (self.item.fire_time, self.item.due_time) = (at, at);
        self
    }

    /// Makes it one shard of several, counted from 0.
    #[must_use]
    pub fn shard(mut self, index: i32, total: i32) -> Self {
        (self.item.shard_index, self.item.shard_total) = (index, total);
        self
    }

    /// Sets the time-out, ms. Nothing enforces it: a test stops the handler with [`TestRun::cancel`].
    #[must_use]
    pub fn timeout_ms(mut self, ms: i64) -> Self {
        self.item.timeout_ms = ms;
        self
    }

    /// Starts it.
    #[must_use]
    pub fn start(self) -> TestRun {
        let clock = Arc::new(ClusterClock::new());
        let (local, now) = (clock.local(), now_us());
        clock.observe(local, local, now);
        // There is no writer: the lines stay in its queue.
        let limits = Limits { run_bytes: u64::MAX, total_bytes: u64::MAX, age: Duration::MAX };
        let outputs = Arc::new(Outputs::new(limits, Folder::of(Path::new(""), 0), Arc::clone(&clock)));
        let handler = |_: TaskContext| async { Ok(Output::default()) };
        let run = Arc::new(Run::new(self.item, Arc::new(handler), clock, Arc::clone(&outputs)));
        TestRun { context: TaskContext::new(Arc::clone(&run), now, span_of(&run)), run, outputs }
    }
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// A first attempt of a task without parameters, due now.
pub(crate) fn item(handler: &str) -> DispatchItem {
    let now = now_us().div_euclid(1_000);
    DispatchItem {
        log: 1,
        attempt: 1,
        task: 1,
        task_name: handler.to_owned(),
        handler: handler.to_owned(),
        params: String::new(),
        fire_time: now,
        due_time: now,
        accept_until: now,
        shard_index: 0,
        shard_total: 1,
        timeout_ms: 0,
        block_strategy: BlockStrategy::Concurrent,
        wait_timeout_ms: 0,
        priority: 5,
        trace: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancelled_run_is_seen_by_its_handler_and_its_blocking_parts() {
        let run = TestRun::of("slow").attempt(2).log(9).start();
        let context = run.context();
        assert_eq!((context.log(), context.attempt(), context.is_cancelled()), (9, 2, false));
        let part = context.spawn_blocking({
            let context = context.clone();
            move || {
                while !context.is_cancelled() {
                    std::thread::yield_now();
                }
                context.log_warn("stopped");
            }
        });
        run.cancel();
        context.cancelled().await;
        drop(part);
        assert!(run.context().is_cancelled());
    }

    #[test]
    fn times_are_those_that_the_test_names() {
        let run = TestRun::of("h").fire_time(1_700_000_000_000).task_name("nightly").timeout_ms(5).start();
        let context = run.context();
        assert_eq!((context.fire_time(), context.due_time()), (1_700_000_000_000, 1_700_000_000_000));
        assert_eq!((context.task_name(), context.handler(), context.timeout_ms()), ("nightly", "h", 5));
        assert!((context.now_us() - now_us()).abs() < 5_000_000);
    }
}
