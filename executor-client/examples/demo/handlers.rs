//! One handler per kind of outcome.

use crate::records::{Message, Visit};
use carillon_executor::{ExecutorBuilder, HandlerInfo, Output, TaskContext, TaskError};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between looks of blocking work at whether it should stop.
const LOOK: Duration = Duration::from_millis(5);

/// Logs whose failures `fail_n` remembers at most.
const FAILURES_MAX: usize = 100_000;

/// How often `fail_n` has failed, by log.
static FAILURES: LazyLock<Mutex<HashMap<i64, u32>>> = LazyLock::new(Mutex::default);

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

/// Parameters of `overlap`.
#[derive(Deserialize)]
#[serde(default)]
struct Overlap {
    /// How long to stay inside.
    ms: u64,
    /// Leave as soon as this file exists.
    until: Option<PathBuf>,
    /// On a thread of its own instead of awaiting.
    blocking: bool,
    /// With `blocking`: goes on although it was told to stop.
    stubborn: bool,
}

impl Default for Overlap {
    fn default() -> Self {
        Self { ms: 500, until: None, blocking: false, stubborn: false }
    }
}

/// Parameters of `talk`.
#[derive(Deserialize)]
#[serde(default)]
struct Talk {
    lines: u32,
    /// Pause after each line.
    ms: u64,
    /// Length of each line besides its number.
    width: usize,
    /// What each line says besides.
    text: String,
    /// Whether it fails in the end.
    fail: bool,
}

impl Default for Talk {
    fn default() -> Self {
        Self { lines: 3, ms: 0, width: 0, text: String::new(), fail: false }
    }
}

/// Parameters of `fail_n`.
#[derive(Deserialize)]
#[serde(default)]
struct FailN {
    fail: Fail,
    /// How many runs of one log fail in this process before one succeeds.
    times: u32,
}

impl Default for FailN {
    fn default() -> Self {
        Self { fail: Fail::Failed, times: 1 }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fail {
    Failed,
    ForGood,
    Panic,
}

async fn tick(_: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    Ok(Output::none())
}

async fn sharded(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    let (index, total) = (ctx.shard_index(), ctx.shard_total());
    Ok(Output::text(format!("shard {index} of {total}")))
}

async fn flaky(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    let succeed_at = ctx.params_as::<Flaky>()?.succeed_at;
    if ctx.attempt() < succeed_at {
        return Err(TaskError::failed(format!("attempt {} fails; {succeed_at} will succeed", ctx.attempt())));
    }
    Ok(Output::text(format!("attempt {} succeeded", ctx.attempt())))
}

async fn sleep(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    // Plain `250` works as well as `{"ms": 250}`.
    let ms = match ctx.params().trim().parse() {
        Ok(ms) => ms,
        Err(_) => ctx.params_as::<Sleep>()?.ms,
    };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(Output::text(format!("slept {ms} ms")))
}

/// Every other line through `tracing`.
async fn talk(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    let Talk { lines, ms, width, text, fail } = ctx.params_as()?;
    for line in 1..=lines {
        let padding = format!("{text}{}", "~".repeat(width));
        if line % 2 == 1 {
            ctx.log_info(format_args!("attempt {} line {line} of {lines} äöü€😀 {padding}", ctx.attempt()));
        } else {
            tracing::info!("attempt {} line {line} of {lines} äöü€😀 {padding}", ctx.attempt());
        }
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
    if fail { Err(TaskError::failed("on purpose")) } else { Ok(Output::text(format!("{lines} lines"))) }
}

async fn overlap(ctx: TaskContext, visit: Arc<Visit>) -> Result<Output, TaskError> {
    let Overlap { ms, until, blocking, stubborn } = ctx.params_as()?;
    let look = if until.is_some() { LOOK } else { Duration::MAX };
    let released = move || until.as_ref().is_some_and(|file| file.exists());
    let deadline = Instant::now() + Duration::from_millis(ms);
    let beside = visit.beside;
    if blocking {
        let context = ctx.clone();
        let stay = move || {
            // Inside until this thread is done, whatever has become of the handler.
            let _visit = visit;
            while Instant::now() < deadline && !released() && (stubborn || !context.is_cancelled()) {
                std::thread::sleep(LOOK.min(deadline.saturating_duration_since(Instant::now())));
            }
        };
        ctx.spawn_blocking(stay).await?;
    } else {
        while Instant::now() < deadline && !released() {
            tokio::time::sleep(look.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
    Output::json(&json!({ "beside": beside }))
}

async fn fail_n(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    let FailN { fail, times } = ctx.params_as()?;
    let failed = {
        let mut failures = FAILURES.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= FAILURES_MAX {
            failures.clear();
        }
        let failed = failures.entry(ctx.log()).or_default();
        *failed += u32::from(*failed <= times);
        *failed
    };
    if failed > times {
        return Ok(Output::text(format!("succeeded after {times} failures")));
    }
    let message = format!("failure {failed} of {times}");
    match fail {
        Fail::Failed => Err(TaskError::failed(message)),
        Fail::ForGood => Err(TaskError::fatal(message)),
        Fail::Panic => panic!("{message}"),
    }
}

async fn panic(_: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    panic!("the demo panics on purpose")
}

async fn fail(_: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    Err(TaskError::failed("the demo fails on purpose"))
}

async fn fatal(_: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    Err(TaskError::fatal("the demo fails for good on purpose"))
}

async fn echo(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
    Ok(Output::text(ctx.params()))
}

async fn output(ctx: TaskContext, _: Arc<Visit>) -> Result<Output, TaskError> {
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
    messages: &Sender<Message>,
    (name, description): (&str, &str),
    handler: F,
) -> ExecutorBuilder
where
    F: Fn(TaskContext, Arc<Visit>) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
{
    let messages = messages.clone();
    let info = HandlerInfo { name: name.to_owned(), description: description.to_owned(), ..HandlerInfo::default() };
    builder.handler_with(info, move |context| {
        let visit = Visit::begin(&context, &messages);
        async move {
            let result = handler(context, Arc::clone(&visit)).await;
            visit.set(match &result {
                Ok(_) => "ok",
                Err(error) if error.is_fatal() => "fatal",
                Err(_) => "failed",
            });
            result
        }
    })
}

/// Adds every handler.
pub fn add(mut builder: ExecutorBuilder, messages: &Sender<Message>) -> ExecutorBuilder {
    builder = recorded(builder, messages, ("tick", "Does nothing"), tick);
    builder = recorded(builder, messages, ("sharded", "Says its shard"), sharded);
    let about = ("flaky", r#"Fails before attempt {"succeed_at": 3}"#);
    builder = recorded(builder, messages, about, flaky);
    let about = ("fail_n", r#"Fails {"times": 1} as {"fail": "failed" | "for_good" | "panic"}, then succeeds"#);
    builder = recorded(builder, messages, about, fail_n);
    let about = ("sleep", r#"Sleeps {"ms": …}"#);
    builder = recorded(builder, messages, about, sleep);
    let about = (
        "overlap",
        r#"Stays {"ms": 500, "blocking": false, "stubborn": false}, or until the file {"until": …} exists"#,
    );
    builder = recorded(builder, messages, about, overlap);
    let about = ("talk", r#"Logs {"lines": 3, "ms": 0, "width": 0}, and may {"fail": true}"#);
    builder = recorded(builder, messages, about, talk);
    builder = recorded(builder, messages, ("panic", "Panics"), panic);
    builder = recorded(builder, messages, ("fail", "Fails"), fail);
    builder = recorded(builder, messages, ("fatal", "Fails for good"), fatal);
    builder = recorded(builder, messages, ("echo", "Returns its parameters"), echo);
    recorded(builder, messages, ("output", "Returns JSON"), output)
}
