//! The handlers of simulated executors: what they do follows from their names and from chance.

use super::ledger::{Start, Stopped};
use super::process::{Process, Tasks};
use super::{MachineParts, note};
use crate::Dice;
use carillon::domain::TaskId;
use carillon_executor::{Output, TaskContext, TaskError};
use carillon_protocol::{RunKey, RunStatus};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How long a handler may take to notice that it is to stop, µs.
const STOPPING_MAX_US: i64 = 400_000;

/// What handlers of a process work with.
pub(super) struct Work {
    pub(super) machine: usize,
    pub(super) parts: MachineParts,
    pub(super) tasks: Arc<Tasks>,
    /// Which one; it owns the handlers.
    pub(super) process: OnceLock<Weak<Process>>,
}

/// A handler that has been entered: it notes the end, however that comes about.
struct Entered {
    work: Arc<Work>,
    key: RunKey,
    has_ended: bool,
}

impl Entered {
    fn new(work: &Arc<Work>, ctx: &TaskContext) -> Self {
        let key = RunKey(ctx.log(), ctx.attempt());
        work.note(key, "STARTS");
        work.parts.ledger.started(Start {
            key,
            task: TaskId(ctx.task()),
            machine: work.machine,
            executor_id: work.executor_id(),
            fire_time: ctx.fire_time(),
            due_time: ctx.due_time(),
            at: work.parts.time.now_ms(),
        });
        Self { work: work.clone(), key, has_ended: false }
    }

    fn end(mut self, status: RunStatus) {
        self.note_end(Stopped::Ended(status));
    }

    fn note_end(&mut self, how: Stopped) {
        self.has_ended = true;
        self.work.note(self.key, &format!("{how:?}"));
        self.work.parts.ledger.stopped(self.key, self.work.machine, self.work.parts.time.now_ms(), how);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Without a runtime the simulation is over.
        if !self.has_ended && tokio::runtime::Handle::try_current().is_ok() {
            self.note_end(self.work.tasks.how_dropped());
        }
    }
}

impl Work {
    /// As the nodes know the process, 0 before they do.
    fn executor_id(&self) -> i64 {
        let process = self.process.get().and_then(Weak::upgrade);
        process.map_or(0, |process| process.server.executor_id())
    }

    fn note(&self, RunKey(log, attempt): RunKey, what: &str) {
        note(&self.parts, self.machine, &format!("log {log} attempt {attempt}: {what}"));
    }
}

/// How long a run lasts if nobody stops it, and whether it fails then.
pub(crate) fn handler_fate(dice: &Dice, handler: &str, RunKey(log, attempt): RunKey) -> (Duration, bool) {
    let purpose = format!("run {log} {attempt}");
    let (low, high) = match handler {
        "slow" => (1_000, 8_000),
        "steady" => (500, 2_500),
        // Some of them longer than a silent executor is waited for.
        "long" => (15_000, 60_000),
        _ => (1, 300),
    };
    let lasts = Duration::from_millis(dice.between(&format!("{purpose} lasts"), low, high) as u64);
    (lasts, handler == "flaky" && dice.happens(&format!("{purpose} fails"), 500))
}

/// How long its handler takes to end when it is told to stop.
pub(crate) fn stopping_takes(dice: &Dice, RunKey(log, attempt): RunKey) -> Duration {
    Duration::from_micros(dice.between(&format!("run {log} {attempt} stops"), 0, STOPPING_MAX_US) as u64)
}

/// A handler's work. The output of a success names its run.
pub(super) async fn handle(work: Arc<Work>, ctx: TaskContext) -> Result<Output, TaskError> {
    let entered = Entered::new(&work, &ctx);
    let (dice, key) = (&work.parts.dice, RunKey(ctx.log(), ctx.attempt()));
    let (lasts, fails) = handler_fate(dice, ctx.handler(), key);
    tokio::select! {
        biased;
        () = ctx.cancelled() => {
            tokio::time::sleep(stopping_takes(dice, key)).await;
            entered.end(RunStatus::Cancelled);
            Err(TaskError::failed("told to stop"))
        }
        () = tokio::time::sleep(lasts) => {
            if fails {
                entered.end(RunStatus::Failed);
                return Err(TaskError::failed("by chance"));
            }
            entered.end(RunStatus::Succeeded);
            Ok(Output::text(ctx.log().to_string()))
        }
    }
}
