//! The demo executor: one handler per kind of outcome.
//!
//! Settings come from the `CARILLON_*` variables. Besides:
//!
//! - `DEMO_REPORT=path` appends one JSON line per run, when it has ended, to a file;
//! - `DEMO_EVENTS=path` appends one JSON line when a run comes in and one when it has gone, with
//!   the cluster time of each and how many other runs of its task were inside this process;
//! - `DEMO_PRINT=1` prints one line per run;
//! - `DEMO_DRAIN_MS` bounds how long running handlers may finish when the executor is stopped.
//!
//! The records are written by a thread of their own, within 50 ms and when the executor ends, so that
//! none makes a run late.

mod handlers;
mod records;

use carillon_executor::{Executor, output_layer};
use records::{Message, Writer};
use std::fs::File;
use std::io::BufWriter;
use std::sync::mpsc::channel;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The file that a variable names, for appending.
fn file(variable: &str) -> std::io::Result<Option<BufWriter<File>>> {
    let open = |path| File::options().create(true).append(true).open(path).map(BufWriter::new);
    std::env::var_os(variable).map(open).transpose()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let to_screen = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
    tracing_subscriber::registry().with(to_screen).with(output_layer(LevelFilter::INFO)).init();
    let (report, events) = (file("DEMO_REPORT")?, file("DEMO_EVENTS")?);
    let print = std::env::var("DEMO_PRINT").is_ok_and(|value| value == "1");

    let (sender, messages) = channel();
    let mut builder = Executor::builder().description("demo executor").version(env!("CARGO_PKG_VERSION")).from_env()?;
    if let Ok(ms) = std::env::var("DEMO_DRAIN_MS") {
        builder = builder.drain_timeout(Duration::from_millis(ms.parse()?));
    }
    let executor = handlers::add(builder, &sender).build()?;
    let writer = Writer { report, events, print, executor: format!("demo-{}", executor.port()) };
    let writing = std::thread::Builder::new().name("demo-records".to_owned()).spawn(move || writer.run(&messages))?;
    let ended = executor.run().await;
    // Fails only when the writer has ended already, which its own result explains.
    let _ = sender.send(Message::Finish);
    match writing.join() {
        Ok(written) => written?,
        Err(_) => return Err("the record writer panicked".into()),
    }
    ended?;
    Ok(())
}
