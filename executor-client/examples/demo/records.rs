//! What becomes of each run, written by a thread of its own, so that no run is late for it.

use carillon_executor::TaskContext;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long records gather before they are written.
const GATHER: Duration = Duration::from_millis(25);

/// Runs inside a handler, by task.
static INSIDE: LazyLock<Mutex<HashMap<i64, usize>>> = LazyLock::new(Mutex::default);

/// What the writer gets.
pub enum Message {
    Start(Start),
    End(End),
    /// The executor has ended; write what is there and end too.
    Finish,
}

/// A run has come in.
pub struct Start {
    context: TaskContext,
    /// Other runs of its task that were inside.
    beside: usize,
    wall_us: i64,
}

/// A run has gone, with all its parts.
pub struct End {
    context: TaskContext,
    outcome: &'static str,
    /// Cluster clock, epoch µs.
    at_us: i64,
    beside: usize,
    wall_us: i64,
}

/// One run inside its handler. It ends when the last part of it lets go of this.
pub struct Visit {
    context: TaskContext,
    outcome: Mutex<&'static str>,
    pub beside: usize,
    messages: Sender<Message>,
}

impl Visit {
    pub fn begin(context: &TaskContext, messages: &Sender<Message>) -> Arc<Self> {
        let mut inside = lock(&INSIDE);
        let runs = inside.entry(context.task()).or_default();
        let beside = *runs;
        *runs += 1;
        drop(inside);
        // The writer is gone only after the executor has ended; here and below.
        let _ = messages.send(Message::Start(Start { context: context.clone(), beside, wall_us: wall_us() }));
        // The outcome stays when the handler is dropped.
        Arc::new(Self { context: context.clone(), outcome: Mutex::new("stopped"), beside, messages: messages.clone() })
    }

    pub fn set(&self, outcome: &'static str) {
        *lock(&self.outcome) = outcome;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let outcome = if std::thread::panicking() { "panicked" } else { *lock(&self.outcome) };
        // Read while it still counts as inside.
        let (at_us, wall_us) = (self.context.now_us(), wall_us());
        let mut inside = lock(&INSIDE);
        let beside = match inside.get_mut(&self.context.task()) {
            Some(runs) => {
                *runs -= 1;
                *runs
            }
            None => 0,
        };
        if beside == 0 {
            inside.remove(&self.context.task());
        }
        drop(inside);
        let end = End { context: self.context.clone(), outcome, at_us, beside, wall_us };
        let _ = self.messages.send(Message::End(end));
    }
}

/// This machine's clock, epoch µs: executors on one machine can be compared by it to the microsecond.
fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Every critical section here leaves its data whole.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where records go.
pub struct Writer {
    pub report: Option<BufWriter<File>>,
    pub events: Option<BufWriter<File>>,
    pub print: bool,
    pub executor: String,
}

impl Writer {
    /// Writes until told to finish.
    pub fn run(mut self, messages: &Receiver<Message>) -> std::io::Result<()> {
        let mut screen = BufWriter::new(std::io::stdout());
        let mut finished = false;
        while !finished {
            let Ok(first) = messages.recv() else {
                return Ok(());
            };
            // Not in the first milliseconds of a burst.
            std::thread::sleep(GATHER);
            for message in std::iter::once(first).chain(messages.try_iter()) {
                match message {
                    Message::Start(start) => self.start(&start)?,
                    Message::End(end) => {
                        self.end(&end)?;
                        if self.print {
                            writeln!(screen, "{}", human_line(&end))?;
                        }
                    }
                    Message::Finish => finished = true,
                }
            }
            for file in [&mut self.report, &mut self.events].into_iter().flatten() {
                file.flush()?;
            }
            screen.flush()?;
        }
        Ok(())
    }

    fn start(&mut self, start: &Start) -> std::io::Result<()> {
        if let Some(file) = &mut self.events {
            let at_us = start.context.started_at_us();
            let mut line = event(&start.context, "start", at_us, start.beside, &self.executor);
            line["wall_us"] = start.wall_us.into();
            writeln!(file, "{line}")?;
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> std::io::Result<()> {
        if let Some(file) = &mut self.report {
            writeln!(file, "{}", report_line(end, &self.executor))?;
        }
        if let Some(file) = &mut self.events {
            let mut line = event(&end.context, "end", end.at_us, end.beside, &self.executor);
            line["wall_us"] = end.wall_us.into();
            line["outcome"] = end.outcome.into();
            writeln!(file, "{line}")?;
        }
        Ok(())
    }
}

fn event(ctx: &TaskContext, event: &str, at_us: i64, beside: usize, executor: &str) -> Value {
    json!({
        "event": event,
        "log": ctx.log(),
        "attempt": ctx.attempt(),
        "task": ctx.task(),
        "handler": ctx.handler(),
        "at_ms": at_us.div_euclid(1_000),
        "at_us": at_us,
        "beside": beside,
        "pid": std::process::id(),
        "executor": executor,
    })
}

fn report_line(end: &End, executor: &str) -> Value {
    let ctx = &end.context;
    json!({
        "log": ctx.log(),
        "attempt": ctx.attempt(),
        "task": ctx.task(),
        "handler": ctx.handler(),
        "fire_time": ctx.fire_time(),
        "due_time": ctx.due_time(),
        "shard_index": ctx.shard_index(),
        "shard_total": ctx.shard_total(),
        "started_at_us": ctx.started_at_us(),
        "ended_at_us": end.at_us,
        "pid": std::process::id(),
        "executor": executor,
        "outcome": end.outcome,
    })
}

fn human_line(end: &End) -> String {
    let ctx = &end.context;
    let clock = |ms: i64| {
        chrono::DateTime::from_timestamp_millis(ms)
            .map_or_else(|| ms.to_string(), |at| at.with_timezone(&chrono::Local).format("%H:%M:%S%.3f").to_string())
    };
    let late_ms = (ctx.started_at_us() - ctx.due_time() * 1_000) as f64 / 1_000.0;
    format!(
        "{}  {:<28} fire {}  shard {}/{}  attempt {}  late {late_ms:>6.1} ms  {}",
        clock(ctx.started_at_us().div_euclid(1_000)),
        ctx.task_name(),
        clock(ctx.fire_time()),
        ctx.shard_index(),
        ctx.shard_total(),
        ctx.attempt(),
        end.outcome,
    )
}
