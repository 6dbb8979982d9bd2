//! Waiting for a run: its outcome and the end of its output, once.

use super::follow::verdict;
use crate::cli::client::{Client, Output, print};
use crate::cli::node::ApiRequest;
use crate::cli::table::{escaped, text};
use crate::domain::Status;
use anyhow::bail;
use serde_json::Value;
use std::time::Instant;

/// Longest wait of one request, ms; it is followed by the next.
pub const WAIT_MS: u64 = 30_000;

/// Bytes shown from the end of the run's output.
const TAIL_BYTES: u64 = 4_096;

/// Waits until the run ends and prints its outcome; an error unless it succeeds. `log` is the run's current state.
pub async fn wait_for_run(client: &Client, mut log: Value, deadline: Option<Instant>) -> anyhow::Result<()> {
    let id = text("id", &log["id"]);
    while !has_ended(&log) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            bail!("run {id} goes on: it has not ended in time (`carillon logs show {id} --follow`)");
        }
        let wait_ms = left.map_or(WAIT_MS, |left| WAIT_MS.min(left.as_millis().try_into().unwrap_or(WAIT_MS)));
        log = client.node.answer(ApiRequest::get(["task-logs", &id]).with("wait_ms", Some(wait_ms))).await?;
    }
    if client.output == Output::Json {
        client.one(&log)?;
    } else {
        let why = [text("", &log["reason"]), text("", &log["message"])];
        let why = why.into_iter().filter(|why| why != "-").collect::<Vec<_>>().join(": ");
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        let outcome = format!("run {id} has ended: {}{why}, attempts: {}", text("", &log["status"]), log["attempt"]);
        print(&(escaped(&outcome) + "\n"))?;
        let returned = log["output"].as_str().unwrap_or_default();
        for line in tail(client, &id).await.lines().chain(returned.lines()) {
            print(&(escaped(line) + "\n"))?;
        }
    }
    verdict(&log)
}

fn has_ended(log: &Value) -> bool {
    log["status"].as_str().and_then(Status::parse).is_some_and(Status::is_terminal)
}

/// The last lines of the run's output; empty if there is none, or the caller may not read it.
async fn tail(client: &Client, id: &str) -> String {
    let page = async |offset: u64| {
        let ask = ApiRequest::get(["task-logs", id, "output"]).with("offset", Some(offset));
        client.node.ask(&ask).await.ok()?.ok()
    };
    // An offset past the end means the end.
    let Some(length) = page(u64::from(u32::MAX)).await.and_then(|end| end["next"].as_u64()) else {
        return String::new();
    };
    let from = length.saturating_sub(TAIL_BYTES);
    let text = page(from).await.and_then(|page| page["text"].as_str().map(str::to_owned)).unwrap_or_default();
    match text.split_once('\n') {
        // The first line may be cut.
        Some((_, rest)) if from > 0 => rest.to_owned(),
        _ => text,
    }
}
