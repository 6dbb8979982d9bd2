//! After everything is mended: a calm time, then every task is stopped, and every run must end.

use crate::history::{Schedule, Task};
use crate::stand::Stand;
use carillon_tests::now_us;
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Everything goes on undisturbed for so long; the checker looks at its last part.
const CALM: Duration = Duration::from_secs(55);

/// How long it may take until fewer are open than ever before: longer than `executors.abandon_after`, after which the last
/// doubt about a dead executor's runs ends, and retries after it. A machine that has other work takes longer in all.
const SETTLE_MAX: Duration = Duration::from_secs(150);

/// How long stopping a task may take.
const STOP_MAX: Duration = Duration::from_mins(1);

/// Between two looks at the rows.
const LOOK: Duration = Duration::from_millis(500);

/// Returns when the first task was told to stop, epoch µs.
pub async fn settle(stand: &Stand, tasks: &[Task]) -> i64 {
    tokio::time::sleep(CALM).await;
    // What is stuck must not be ended by the stop.
    let due = format!("status < 10 AND fire_time <= {}", now_us() / 1_000 - 5_000);
    await_none(stand, "due runs that do not end by themselves", &due).await;
    let stopped_us = now_us();
    stand.story.tell("tasks are stopped", json!({}));
    let is_child = |task: &&Task| matches!(task.schedule, Schedule::After(..) | Schedule::AfterAll(..));
    stop(stand, tasks.iter().filter(|task| !is_child(task))).await;
    await_none(stand, "runs that do not end after the stop", "status < 10").await;
    await_followers(stand).await;
    stop(stand, tasks.iter().filter(is_child)).await;
    await_none(stand, "runs that do not end after the last stop", "status < 10").await;
    states_agree(stand, tasks).await;
    stopped_us
}

async fn stop(stand: &Stand, tasks: impl Iterator<Item = &Task>) {
    for (number, task) in tasks.enumerate() {
        let path = format!("/tasks/{}/stop", task.id);
        if let Err(error) = stand.client.until_done(number, Method::POST, &path, None, STOP_MAX).await {
            stand.story.incident(&format!("{} cannot be stopped: {error:#}", task.name));
        }
    }
}

/// Waits until no row meets the condition; the checker names those that still do.
async fn await_none(stand: &Stand, what: &str, condition: &str) {
    wear_off(stand, what, &format!("SELECT COUNT(*) FROM task_log WHERE {condition}")).await;
}

/// Waits until a count is zero, for as long as it goes down.
async fn wear_off(stand: &Stand, what: &str, count: &str) {
    let (mut fewest, mut since) = (i64::MAX, Instant::now());
    loop {
        let open = stand.database().number(count).await;
        if open == 0 {
            return;
        }
        if open < fewest {
            (fewest, since) = (open, Instant::now());
        }
        if since.elapsed() > SETTLE_MAX {
            stand.story.incident(&format!("{open} {what}; for {SETTLE_MAX:?} never fewer than {fewest}"));
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until what follows ends is written, and has ended too.
async fn await_followers(stand: &Stand) {
    let open = "SELECT (SELECT COUNT(*) FROM outbox) + (SELECT COUNT(*) FROM task_log WHERE status < 10)";
    wear_off(stand, "ends whose followers are not written, or followers that do not end", open).await;
}

/// The API says of each task what was made of it.
async fn states_agree(stand: &Stand, tasks: &[Task]) {
    let mut started = BTreeSet::new();
    for (number, task) in tasks.iter().enumerate() {
        match stand.client.until_done(number, Method::GET, &format!("/tasks/{}", task.id), None, STOP_MAX).await {
            Ok(shown) if shown.body["started"] == false => {}
            Ok(_) => drop(started.insert(task.name.clone())),
            Err(error) => stand.story.incident(&format!("{} cannot be read: {error:#}", task.name)),
        }
    }
    if !started.is_empty() {
        stand.story.incident(&format!("stopped, and shown as started: {started:?}"));
    }
}
