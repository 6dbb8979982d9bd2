//! Following runs: new ones as they come, and one until it ends.

use super::output::Reader;
use super::row::{Names, between, late};
use crate::cli::client::{Client, Output, print};
use crate::cli::node::ApiRequest;
use crate::cli::table::{escaped, text, time};
use crate::domain::Status;
use anyhow::bail;
use chrono::Utc;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// Polling interval.
const EVERY: Duration = Duration::from_secs(1);

/// Latest runs read in each poll; with more, some may be missed.
const LOOKED_AT_MAX: usize = 2_000;

/// Polls read runs whose fire time is at most this long ago …
const PAST_MS: i64 = 3_600_000;

/// … and at most this far ahead: runs are dispatched before their fire time.
const AHEAD_MS: i64 = 60_000;

/// Latest runs shown at the start.
const FIRST_SHOWN: usize = 10;

/// Further polls for the output of an ended run.
const LATE_LOOKS_MAX: u32 = 10;

/// Prints runs as they are dispatched and as they end, until interrupted.
pub async fn follow_list(client: &Client, ask: &ApiRequest) -> anyhow::Result<()> {
    let mut names = Names::default();
    let mut told: HashMap<String, String> = HashMap::new();
    let mut is_first = true;
    loop {
        let now = Utc::now().timestamp_millis();
        let ask = ask.clone().with("from", Some(now - PAST_MS)).with("until", Some(now + AHEAD_MS));
        let (mut logs, _) = client.node.list(&ask, Some("before"), LOOKED_AT_MAX).await?;
        // Oldest first, and not what is yet to come.
        logs.reverse();
        logs.retain(|log| !["init", "queued"].contains(&status(log)));
        let known = std::mem::take(&mut told);
        for log in &logs {
            told.insert(text("id", &log["id"]), step(log));
        }
        logs.retain(|log| known.get(&text("id", &log["id"])) != Some(&step(log)));
        if is_first {
            logs.drain(..logs.len().saturating_sub(FIRST_SHOWN));
        }
        if client.output == Output::Table {
            names.put(&client.node, &mut logs).await?;
        }
        for log in &logs {
            line(client, log, || last_words(log))?;
        }
        is_first = false;
        tokio::time::sleep(EVERY).await;
    }
}

/// Shows a run's state and output until it ends; an error unless it succeeds.
pub async fn follow_run(client: &Client, id: &str) -> anyhow::Result<()> {
    let mut reader = Reader::new(id, None);
    let (mut told, mut late_looks) = (String::new(), 0);
    loop {
        let log = client.node.answer(ApiRequest::get(["task-logs", id])).await?;
        if step(&log) != told {
            told = step(&log);
            reader.end_line(client)?;
            line(client, &log, || state(&log))?;
        }
        let attempt = log["attempt"].as_i64().and_then(|attempt| attempt.try_into().ok());
        let is_over = reader.read_on(client, attempt).await?;
        if Status::parse(status(&log)).is_some_and(Status::is_terminal) {
            late_looks += 1;
            if is_over || late_looks > LATE_LOOKS_MAX {
                reader.end_line(client)?;
                return verdict(&log);
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// An error unless the run succeeded.
pub fn verdict(log: &Value) -> anyhow::Result<()> {
    if status(log) == "succeeded" {
        return Ok(());
    }
    bail!("the run ended as {} ({})", status(log), text("", &log["reason"]))
}

fn status(log: &Value) -> &str {
    log["status"].as_str().unwrap_or_default()
}

/// The state of a run that is worth a line of its own.
fn step(log: &Value) -> String {
    format!("{} {} {}", status(log), log["attempt"], log["reason"])
}

fn state(log: &Value) -> String {
    let when = ["finished_at", "started_at", "dispatched_at", "queued_at"].iter().find_map(|name| log[*name].as_i64());
    let when = when.or(log["due_time"].as_i64()).map(time).unwrap_or_default();
    escaped(&format!("== {when} {} (attempt {}){}", status(log), log["attempt"], why(log))) + "\n"
}

fn last_words(log: &Value) -> String {
    let (late, took) = (late(log), between(log, "started_at", "finished_at"));
    let (when, task, id) = (text("fire_time", &log["fire_time"]), text("", &log["task_name"]), text("", &log["id"]));
    escaped(&format!("{when}  {:<10}  {task}  late {late}, took {took}  {id}{}", status(log), why(log))) + "\n"
}

/// The reason and the message.
fn why(log: &Value) -> String {
    let why = [text("", &log["reason"]), text("", &log["message"])];
    let why = why.into_iter().filter(|why| why != "-").collect::<Vec<_>>().join(": ");
    if why.is_empty() { why } else { format!(", {why}") }
}

/// The line of a run.
fn line(client: &Client, log: &Value, words: impl FnOnce() -> String) -> anyhow::Result<()> {
    print(&match client.output {
        Output::Json => format!("{log}\n"),
        Output::Table => words(),
    })
}
