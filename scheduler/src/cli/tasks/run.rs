//! `carillon tasks run`, `carillon run`.

use crate::cli::client::{Client, Output};
use crate::cli::logs::{WAIT_MS, follow_run, wait_for_run};
use crate::cli::node::ApiRequest;
use crate::cli::table::text;
use crate::cli::{find, instant};
use anyhow::Context;
use clap::Args;
use std::time::{Duration, Instant};

/// A run to start.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task's id, or tenant/app/name.
    task: String,
    /// Parameters instead of the task's.
    #[arg(long)]
    params: Option<String>,
    /// Start at this time: 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, +2h; now by default.
    #[arg(long, value_name = "TIME", value_parser = instant::parse)]
    at: Option<i64>,
    /// Priority instead of the task's, 9 is the most urgent.
    #[arg(long)]
    priority: Option<i32>,
    /// Idempotency key: requests for the task with the same key start only one run.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Show the run's state and output until it ends; exit with 1 unless it succeeds.
    #[arg(long)]
    follow: bool,
    /// Wait until the run ends, show its outcome and the end of its output; exit with 1 unless it succeeds.
    #[arg(long, conflicts_with = "follow")]
    wait: bool,
    /// Wait at most this many seconds; after that the run goes on, and the command exits with 1.
    #[arg(long, value_name = "SECONDS", requires = "wait", value_parser = clap::value_parser!(u64).range(1..=2_592_000))]
    timeout: Option<u64>,
}

impl RunArgs {
    /// Starts it.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { task, params, at, priority, idempotency_key, follow, wait, timeout } = self;
        let ask = ApiRequest::post(["tasks", &find::task(&client.node, &task).await?, "run"]).fields([
            ("params", params.map(Into::into)),
            ("at", at.map(Into::into)),
            ("priority", priority.map(Into::into)),
            ("idempotency_key", idempotency_key.map(Into::into)),
        ]);
        let timeout = timeout.map(Duration::from_secs);
        let wait_ms = timeout.map_or(WAIT_MS, |timeout| WAIT_MS.min(timeout.as_millis().try_into().unwrap_or(WAIT_MS)));
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let answer = client.node.answer(ask.with("wait_ms", wait.then_some(wait_ms))).await?;
        if wait {
            return wait_for_run(client, answer["run"].clone(), deadline).await;
        }
        let log = answer["log"].as_str().context("the node's answer cannot be understood")?;
        let time = text("fire_time", &answer["fire_time"]);
        let is_repeated = answer["repeated"] == true;
        let what = if is_repeated { "was started before, for" } else { "starts at" };
        // What follows is the run itself, one document per line.
        if !(follow && client.output == Output::Json) {
            client.says(&answer, &format!("run {log} {what} {time}"))?;
        }
        if follow {
            return follow_run(client, log).await;
        }
        Ok(())
    }
}
