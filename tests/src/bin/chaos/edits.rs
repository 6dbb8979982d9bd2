//! Changes of tasks and runs by hand, through the API, while everything breaks.

use crate::history::{ManualRun, Span};
use crate::plan::{Change, Edit};
use crate::stand::Stand;
use anyhow::{Context as _, Result};
use carillon_tests::api::ids_of;
use carillon_tests::now_us;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a change may take until a node has made it: longer than anything breaks.
const DONE_MAX: Duration = Duration::from_mins(2);

/// What is known of the tasks that are edited.
#[derive(Default)]
pub struct Ledger {
    /// What each is, since when.
    open: BTreeMap<i64, Span>,
    /// What they were.
    closed: Vec<Span>,
    /// Runs by hand.
    pub manual_runs: Vec<ManualRun>,
}

impl Ledger {
    /// A task was made, and fires.
    pub fn made(&mut self, task: i64, every_ms: Option<i64>) {
        self.open.insert(task, Span { task, from_us: now_us(), until_us: i64::MAX, every_ms, unreachable: vec![] });
    }

    /// A call is sent: from now on nobody knows.
    fn asks(&mut self, task: i64) -> Option<Span> {
        let mut span = self.open.remove(&task)?;
        span.until_us = now_us();
        self.closed.push(span.clone());
        Some(span)
    }

    /// It was answered.
    fn answered(&mut self, task: i64, every_ms: Option<i64>, answer: &Value) {
        let unreachable = ids_of(&answer["unreachable"]);
        self.open.insert(task, Span { task, from_us: now_us(), until_us: i64::MAX, every_ms, unreachable });
    }

    /// All spans; the last ones are open.
    pub fn spans(&self) -> Vec<Span> {
        self.closed.iter().chain(self.open.values()).cloned().collect()
    }
}

/// Goes through the plan, one after the other.
pub async fn go_through(
    stand: &Arc<Stand>,
    plan: Vec<Edit>,
    tasks: &[i64],
    ledger: &mut Ledger,
    begin: Instant,
) -> Result<()> {
    let end = begin + Duration::from_millis(plan.last().map_or(0, |edit| edit.at_ms));
    // How often each fires when it is started, ms.
    let mut every: BTreeMap<i64, i64> = tasks.iter().map(|task| (*task, 1_000)).collect();
    for edit in plan {
        tokio::time::sleep_until(begin + Duration::from_millis(edit.at_ms)).await;
        // Those before took so long that the rest has no place any more.
        if Instant::now() > end + Duration::from_secs(1) {
            break;
        }
        let task = tasks[edit.task];
        let every = every.get_mut(&task).context("an edited task")?;
        if let Change::Run(number) = edit.what {
            run(stand, &edit, task, number, ledger).await?;
        } else {
            change(stand, &edit, task, every, ledger).await?;
        }
    }
    Ok(())
}

async fn change(stand: &Stand, edit: &Edit, task: i64, every: &mut i64, ledger: &mut Ledger) -> Result<()> {
    let before = ledger.asks(task).context("a task that is known")?;
    let is_started = before.every_ms.is_some();
    let (method, path, body, starts) = match edit.what {
        Change::Stop if is_started => (Method::POST, format!("/tasks/{task}/stop"), None, false),
        Change::Every(s) if is_started => {
            *every = s * 1_000;
            let cron = if s == 1 { "* * * * * ?".to_owned() } else { format!("0/{s} * * * * ?") };
            (Method::PATCH, format!("/tasks/{task}"), Some(json!({ "cron": cron })), true)
        }
        Change::Params(number) if is_started => {
            let params = json!({ "ms": 20, "succeed_at": 1, "number": number });
            (Method::PATCH, format!("/tasks/{task}"), Some(json!({ "params": params })), true)
        }
        _ => (Method::POST, format!("/tasks/{task}/start"), None, true),
    };
    stand.story.tell("change", json!({ "task": task, "path": path, "body": body }));
    let answer = stand.client.until_changed(edit.node, task, (method, &path), body.as_ref(), DONE_MAX).await?;
    let told = json!({ "task": task, "path": path, "tries": answer.tries, "before": answer.before, "unreachable": answer.body["unreachable"] });
    stand.story.tell("changed", told);
    ledger.answered(task, starts.then_some(*every), &answer.body);
    Ok(())
}

async fn run(stand: &Stand, edit: &Edit, task: i64, number: u64, ledger: &mut Ledger) -> Result<()> {
    let key = format!("key-{task}-{number}");
    let body = json!({ "idempotency_key": key });
    let path = format!("/tasks/{task}/run");
    let answer = stand.client.until_done(edit.node, Method::POST, &path, Some(&body), DONE_MAX).await?;
    stand.story.tell("run", json!({ "task": task, "key": key, "tries": answer.tries, "log": answer.body["log"] }));
    let logs = ids_of(&json!([answer.body["log"]]));
    ledger.manual_runs.push(ManualRun { task, key, logs });
    Ok(())
}
