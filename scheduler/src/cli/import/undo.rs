//! `carillon import undo`: stops tasks here, and gives their jobs back, at the first fire that was not taken here.

use super::args::SwitchArgs;
use super::both::{Both, Pair};
use super::switch::{Moved, number};
use crate::cli::client::Client;
use crate::cli::node::{ApiRequest, Node};
use crate::domain::TaskId;
use crate::domain::task::{NEVER, ScheduleKind, TaskSpec};
use crate::store::foreign::RunningJob;
use anyhow::Context;
use serde_json::{Map, Value};

/// Most runs of a task that are looked at.
const RUNS_MAX: usize = 1_000;

/// Does it.
pub async fn run(client: &Client, args: &SwitchArgs) -> anyhow::Result<()> {
    let node = &client.node;
    let Both { mut database, groups, pairs } = Both::read(node, args).await?;
    let (mut moved, mut back) = (Moved::default(), Vec::new());
    for pair in pairs.values() {
        let (Some(id), Some(task)) = (pair.planned.id.as_deref(), &pair.task) else { continue };
        let was_moved = pair.job.trigger_status == 0 && pair.job.trigger_next_time > 0;
        // An undo that broke off has stopped the task, and not given its job back.
        let is_left = !task.is_used && was_moved && task.valid_from > 0;
        if !task.is_started && !is_left {
            continue;
        }
        let next = stop(node, id, task.is_started).await?;
        let name = pair.planned.full_name();
        match next {
            Some(next_fire_at) if was_moved => {
                back.push(RunningJob { id: pair.job.id, next_fire_at });
                moved.add(name, next_fire_at);
            }
            _ => moved.tell(told(pair, &name)),
        }
    }
    let switch = database.begin_switch(&groups).await?;
    switch.give_back(&back).await.context("the tasks are stopped here: repeat the undo, which goes on from here")?;
    database.close().await;
    moved.show(client, "is stopped here and runs there")
}

fn told(pair: &Pair, name: &str) -> String {
    let why =
        if pair.job.trigger_status == 1 { "its job runs there already" } else { "its job did not run by itself there" };
    format!("task {name} is stopped; {why}")
}

/// Stops a task; the first fire that it has not taken.
async fn stop(node: &Node, id: &str, is_started: bool) -> anyhow::Result<Option<i64>> {
    let before = node.answer(ApiRequest::get(["tasks", id])).await?;
    let spec = spec_of(&before)?;
    let next = if is_started {
        node.answer(ApiRequest::post(["tasks", id, "stop"])).await?;
        before["next_fire_at"].as_i64()
    } else {
        after(&spec, number(&before, "updated_at")?)
    };
    let Some(next) = next else { return Ok(None) };
    let runs = ApiRequest::get(["task-logs"]).with("task", Some(id)).with("from", Some(next));
    let (runs, _) = node.list(&runs, Some("before"), RUNS_MAX).await?;
    let is_taken = |run: &&Value| {
        let is_of_schedule = ["schedule", "misfire"].iter().any(|trigger| run["trigger"] == *trigger);
        is_of_schedule && (run["status"] != "cancelled" || run["reason"] == "cancelled_manually")
    };
    match runs.iter().filter(is_taken).filter_map(|run| run["fire_time"].as_i64()).max() {
        None => Ok(Some(next)),
        Some(taken) if spec.schedule == ScheduleKind::FixedRate => Ok(Some(taken + spec.interval_ms)),
        Some(taken) => Ok(after(&spec, taken)),
    }
}

/// The first fire of a schedule after an instant.
fn after(spec: &TaskSpec, instant: i64) -> Option<i64> {
    // A fixed rate that was switched counts from its first fire.
    let schedule = spec.to_schedule(spec.valid_from.saturating_sub(1), TaskId(0)).ok()?;
    Some(schedule.next_after(instant)).filter(|next| *next != NEVER)
}

/// The definition of a task as the node shows it.
fn spec_of(task: &Value) -> anyhow::Result<TaskSpec> {
    let fields: Map<String, Value> =
        TaskSpec::field_names().filter_map(|name| Some((name.to_owned(), task.get(name)?.clone()))).collect();
    serde_json::from_value(Value::Object(fields)).context("the node's answer cannot be understood")
}
