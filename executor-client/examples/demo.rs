//! The demo executor: one handler per kind of outcome.
//!
//! Settings come from the `CARILLON_*` variables. Besides:
//!
//! - `DEMO_REPORT=path` appends one JSON line per run to a file;
//! - `DEMO_PRINT=1` prints one line per run.
//!
//! Both are written by a thread of their own, within 50 ms and when the executor ends, so that
//! neither makes a run late.

use carillon_executor::{Executor, ExecutorBuilder, HandlerInfo, Output, TaskContext, TaskError};
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::future::Future;
use std::io::{BufWriter, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long records gather before they are written.
const GATHER: Duration = Duration::from_millis(25);

/// What is kept of a run.
struct Record {
    context: TaskContext,
    outcome: &'static str,
}

/// What the writer gets.
enum Message {
    Run(Record),
    /// The executor has ended; write what is there and end too.
    End,
}

/// Parameters of `flaky`.
#[derive(Deserialize)]
struct Flaky {
    #[serde(default = "third")]
    succeed_at: i32,
}

fn third() -> i32 {
    3
}

/// Parameters of `sleep`.
#[derive(Deserialize)]
struct Sleep {
    #[serde(default)]
    ms: u64,
}

async fn tick(_: TaskContext) -> Result<Output, TaskError> {
    Ok(Output::none())
}

async fn sharded(ctx: TaskContext) -> Result<Output, TaskError> {
    let (index, total) = (ctx.shard_index(), ctx.shard_total());
    Ok(Output::text(format!("shard {index} of {total}")))
}

async fn flaky(ctx: TaskContext) -> Result<Output, TaskError> {
    let succeed_at = ctx.params_as::<Flaky>()?.succeed_at;
    if ctx.attempt() < succeed_at {
        return Err(TaskError::failed(format!("attempt {} fails; {succeed_at} will succeed", ctx.attempt())));
    }
    Ok(Output::text(format!("attempt {} succeeded", ctx.attempt())))
}

async fn sleep(ctx: TaskContext) -> Result<Output, TaskError> {
    // Plain `250` works as well as `{"ms": 250}`.
    let ms = match ctx.params().trim().parse() {
        Ok(ms) => ms,
        Err(_) => ctx.params_as::<Sleep>()?.ms,
    };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(Output::text(format!("slept {ms} ms")))
}

async fn panic(_: TaskContext) -> Result<Output, TaskError> {
    panic!("the demo panics on purpose")
}

async fn fail(_: TaskContext) -> Result<Output, TaskError> {
    Err(TaskError::failed("the demo fails on purpose"))
}

async fn fatal(_: TaskContext) -> Result<Output, TaskError> {
    Err(TaskError::fatal("the demo fails for good on purpose"))
}

async fn echo(ctx: TaskContext) -> Result<Output, TaskError> {
    Ok(Output::text(ctx.params()))
}

async fn output(ctx: TaskContext) -> Result<Output, TaskError> {
    Output::json(&json!({
        "log": ctx.log(),
        "attempt": ctx.attempt(),
        "fire_time": ctx.fire_time(),
        "started_at_us": ctx.started_at_us(),
    }))
}

/// Adds a handler whose runs are recorded, whatever becomes of them.
fn recorded<F, Fut>(
    builder: ExecutorBuilder,
    records: &Sender<Message>,
    (name, description): (&str, &str),
    handler: F,
) -> ExecutorBuilder
where
    F: Fn(TaskContext) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
{
    let records = records.clone();
    let info = HandlerInfo { name: name.to_owned(), description: description.to_owned(), ..HandlerInfo::default() };
    builder.handler_with(info, move |context| {
        let mut record = OnEnd {
            record: Some(Record {
                context: context.clone(),
                // Stays when the handler is dropped or panics.
                outcome: "stopped",
            }),
            records: records.clone(),
        };
        async move {
            let result = handler(context).await;
            record.set(match &result {
                Ok(_) => "ok",
                Err(error) if error.is_fatal() => "fatal",
                Err(_) => "failed",
            });
            result
        }
    })
}

/// Sends its record when the handler's future ends in any way.
struct OnEnd {
    record: Option<Record>,
    records: Sender<Message>,
}

impl OnEnd {
    fn set(&mut self, outcome: &'static str) {
        if let Some(record) = &mut self.record {
            record.outcome = outcome;
        }
    }
}

impl Drop for OnEnd {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            if std::thread::panicking() {
                record.outcome = "panicked";
            }
            // The writer is gone only after the executor has ended.
            let _ = self.records.send(Message::Run(record));
        }
    }
}

/// Writes records until told to end.
fn write(messages: &Receiver<Message>, report: Option<File>, print: bool, executor: &str) -> std::io::Result<()> {
    let mut report = report.map(BufWriter::new);
    let mut screen = BufWriter::new(std::io::stdout());
    let mut ended = false;
    while !ended {
        let Ok(first) = messages.recv() else {
            return Ok(());
        };
        // Not in the first milliseconds of a burst.
        std::thread::sleep(GATHER);
        for message in std::iter::once(first).chain(messages.try_iter()) {
            let Message::Run(record) = message else {
                ended = true;
                continue;
            };
            if let Some(file) = &mut report {
                writeln!(file, "{}", json_line(&record, executor))?;
            }
            if print {
                writeln!(screen, "{}", human_line(&record))?;
            }
        }
        if let Some(file) = &mut report {
            file.flush()?;
        }
        screen.flush()?;
    }
    Ok(())
}

fn json_line(record: &Record, executor: &str) -> serde_json::Value {
    let ctx = &record.context;
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
        "pid": std::process::id(),
        "executor": executor,
        "outcome": record.outcome,
    })
}

fn human_line(record: &Record) -> String {
    let ctx = &record.context;
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
        record.outcome,
    )
}

fn handlers(mut builder: ExecutorBuilder, records: &Sender<Message>) -> ExecutorBuilder {
    builder = recorded(builder, records, ("tick", "Does nothing"), tick);
    builder = recorded(builder, records, ("sharded", "Says its shard"), sharded);
    let about = ("flaky", r#"Fails before attempt {"succeed_at": 3}"#);
    builder = recorded(builder, records, about, flaky);
    let about = ("sleep", r#"Sleeps {"ms": …}"#);
    builder = recorded(builder, records, about, sleep);
    builder = recorded(builder, records, ("panic", "Panics"), panic);
    builder = recorded(builder, records, ("fail", "Fails"), fail);
    builder = recorded(builder, records, ("fatal", "Fails for good"), fatal);
    builder = recorded(builder, records, ("echo", "Returns its parameters"), echo);
    recorded(builder, records, ("output", "Returns JSON"), output)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let report = match std::env::var_os("DEMO_REPORT") {
        Some(path) => Some(File::options().create(true).append(true).open(path)?),
        None => None,
    };
    let print = std::env::var("DEMO_PRINT").is_ok_and(|value| value == "1");

    let (sender, records) = channel();
    let builder = Executor::builder().description("demo executor").version(env!("CARGO_PKG_VERSION")).from_env()?;
    let executor = handlers(builder, &sender).build()?;
    let name = format!("demo-{}", executor.port());
    let writer = std::thread::Builder::new()
        .name("demo-records".to_owned())
        .spawn(move || write(&records, report, print, &name))?;
    let ended = executor.run().await;
    // Fails only when the writer has ended already, which its own result explains.
    let _ = sender.send(Message::End);
    match writer.join() {
        Ok(written) => written?,
        Err(_) => return Err("the record writer panicked".into()),
    }
    ended?;
    Ok(())
}
