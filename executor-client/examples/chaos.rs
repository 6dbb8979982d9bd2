//! The executor of `scripts/chaos`: one handler, `chaos`, that writes down when it is entered and left.
//!
//! Each of these lines goes to the file with one `write(2)`, without a buffer, before anything else happens: what this
//! process did is there when it is killed in the next instant. Settings come from the `CARILLON_*` variables; besides:
//!
//! - `CHAOS_RECORDS=path`: where the lines are appended, as JSON;
//! - `CHAOS_DRAIN_MS`: how long running handlers may finish when the executor is stopped.

use carillon_executor::{Executor, Output, TaskContext, TaskError};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// What a run does.
#[derive(Deserialize)]
#[serde(default)]
struct Work {
    /// How long it takes.
    ms: u64,
    /// The first attempt that succeeds; 0: none does.
    succeed_at: i32,
}

impl Default for Work {
    fn default() -> Self {
        Self { ms: 0, succeed_at: 1 }
    }
}

/// The file of records. Appending writes of one line are whole, whatever other threads write.
struct Records(File);

impl Records {
    fn write(&self, line: &serde_json::Value) {
        let line = format!("{line}\n");
        // A run that nobody can see makes the history worthless: better none at all.
        if (&self.0).write(line.as_bytes()).ok() != Some(line.len()) {
            eprintln!("cannot write a record");
            std::process::abort();
        }
    }
}

/// A stay inside the handler; left when it is dropped, however that comes.
struct Visit {
    records: Arc<Records>,
    log: i64,
    attempt: i32,
    outcome: &'static str,
}

impl Visit {
    fn enter(records: &Arc<Records>, context: &TaskContext) -> Self {
        let (mono_us, wall_us) = now();
        records.write(&json!({
            "event": "start", "mono_us": mono_us, "wall_us": wall_us, "cluster_us": context.started_at_us(),
            "log": context.log(), "attempt": context.attempt(), "task": context.task(),
            "fire_time": context.fire_time(), "due_time": context.due_time(),
            "shard": context.shard_index(), "pid": std::process::id(),
        }));
        Self { records: Arc::clone(records), log: context.log(), attempt: context.attempt(), outcome: "dropped" }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let (mono_us, wall_us) = now();
        self.records.write(&json!({
            "event": "end", "mono_us": mono_us, "wall_us": wall_us, "log": self.log, "attempt": self.attempt,
            "outcome": self.outcome, "pid": std::process::id(),
        }));
    }
}

/// The monotonic clock, which all processes of this machine share, and the wall clock, µs.
fn now() -> (i64, i64) {
    let us = |id| {
        let time = clock_gettime(id);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    };
    (us(ClockId::Monotonic), us(ClockId::Realtime))
}

async fn work(context: TaskContext, records: Arc<Records>) -> Result<Output, TaskError> {
    let mut visit = Visit::enter(&records, &context);
    let Work { ms, succeed_at } = context.params_as()?;
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if succeed_at == 0 || context.attempt() < succeed_at {
        visit.outcome = "failed";
        return Err(TaskError::failed(format!("attempt {} fails on purpose", context.attempt())));
    }
    visit.outcome = "ok";
    Ok(Output::none())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let path = std::env::var_os("CHAOS_RECORDS").ok_or("CHAOS_RECORDS is not set: a path for the records")?;
    let records = Arc::new(Records(File::options().create(true).append(true).open(path)?));
    let mut builder = Executor::builder().description("chaos").version(env!("CARGO_PKG_VERSION")).from_env()?;
    if let Ok(ms) = std::env::var("CHAOS_DRAIN_MS") {
        builder = builder.drain_timeout(Duration::from_millis(ms.parse()?));
    }
    let executor = builder.handler("chaos", move |context| work(context, Arc::clone(&records))).build()?;
    executor.run().await?;
    Ok(())
}
