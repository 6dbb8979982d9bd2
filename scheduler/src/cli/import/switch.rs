//! `carillon import switch`: stops jobs of an xxl-job, and starts their tasks, at one instant.
//!
//! While the switch holds the scanner's lock, the next time of a job is its first fire that the scanner has not taken. It is written
//! here first (`valid_from`), then the jobs are stopped there, then the tasks are started here. Whatever breaks it off, at most one of
//! the two runs a job; and a repeated switch finds those that neither runs: stopped there with a next time, stopped here from that
//! time on. What came between is filled in.

use super::apply::applied;
use super::args::SwitchArgs;
use super::both::{Both, Pair};
use crate::cli::client::{Client, Output, json, print};
use crate::cli::node::{ApiRequest, Node};
use crate::cli::table::escaped;
use crate::domain::instant::utc_words;
use crate::store::foreign::RunningJob;
use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

/// A fire that was due so long before the switch was missed by the other scheduler, not by the switch: what it takes for a fire to be
/// missed there, twice. ms.
const MISSED_MS: i64 = 10_000;

/// Most fires of a fixed rate that are made up for.
const MADE_UP_MAX: i64 = 100;

/// How often a fixed rate is given another first fire because the last one has passed.
const TRIES_MAX: usize = 5;

/// What became of the jobs.
#[derive(Debug, Default, Serialize)]
pub struct Moved {
    /// Tasks that run here from now on, with their first fire (epoch ms; 0 for those that run after others).
    tasks: BTreeMap<String, i64>,
    /// What is to be told of some: `task shop/orders/nightly`.
    told: Vec<String>,
}

/// Does it.
pub async fn run(client: &Client, args: &SwitchArgs) -> anyhow::Result<()> {
    let node = &client.node;
    let Both { mut database, groups, pairs } = Both::read(node, args).await?;
    let mut moved = Moved::default();
    let began = Instant::now();
    let switch = database.begin_switch(&groups).await?;
    let (jobs, stop) = to_move(switch.jobs(), &pairs, &mut moved)?;
    let entries = |is_started: bool| {
        let of_jobs = jobs.iter().map(|job| entry(&pairs[&job.id], job.next_fire_at, is_started));
        let followers =
            pairs.values().filter(|pair| is_started && starts_with_others(pair)).map(|pair| entry(pair, 0, true));
        of_jobs.chain(followers).collect::<Vec<Value>>()
    };
    applied(node, &entries(false), false).await?;
    if stop.is_empty() {
        switch.leave().await?;
    } else {
        switch.take_over(&stop).await?;
    }
    applied(node, &entries(true), false).await.context(
        "the jobs are stopped there, and their tasks are not started here: repeat the switch, which goes on from here",
    )?;
    let lasted = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    for job in &jobs {
        fill(node, &pairs[&job.id], job.next_fire_at, lasted, &mut moved).await?;
    }
    for pair in pairs.values().filter(|pair| starts_with_others(pair)) {
        moved.tasks.insert(pair.planned.full_name(), 0);
    }
    database.close().await;
    moved.show(client, "runs here from now on")
}

/// The jobs to move, and the ids of those among them that run there: all but what is not fit to be started.
fn to_move(
    running: &[RunningJob],
    pairs: &BTreeMap<i64, Pair>,
    moved: &mut Moved,
) -> anyhow::Result<(Vec<RunningJob>, Vec<i64>)> {
    let (mut jobs, mut stop) = (Vec::new(), Vec::new());
    for job in running {
        let Some(pair) = pairs.get(&job.id) else {
            moved.told.push(format!("job {} was made after this began: repeat the switch", job.id));
            continue;
        };
        let name = pair.planned.full_name();
        match &pair.task {
            None => bail!("job {} has no task here yet: repeat the import first (carillon import xxl-job)", job.id),
            Some(_) if !pair.planned.may_start => {
                moved.told.push(format!(
                    "task {name} is not started, and its job {} goes on there: see the import's report",
                    job.id
                ));
            }
            Some(task) if task.is_used => {
                moved.told.push(format!(
                    "task {name} is started or paused here, and job {} runs there as well: stop one of them",
                    job.id
                ));
            }
            Some(_) => {
                jobs.push(*job);
                stop.push(job.id);
            }
        }
    }
    // Those that a switch which broke off has stopped there, and not started here. Who stops a job there leaves it no next time.
    for (id, pair) in pairs {
        let next_fire_at = pair.job.trigger_next_time;
        let is_left = |task: &super::here::Task| !task.is_used && next_fire_at > 0 && task.valid_from == next_fire_at;
        if pair.job.trigger_status == 0 && pair.planned.may_start && pair.task.as_ref().is_some_and(is_left) {
            jobs.push(RunningJob { id: *id, next_fire_at });
        }
    }
    Ok((jobs, stop))
}

/// Whether the task runs after others, and has no schedule: its job is not running there, and runs after its parents all the same.
fn starts_with_others(pair: &Pair) -> bool {
    let is_free = pair.task.as_ref().is_some_and(|task| !task.is_used);
    is_free && pair.planned.starts && pair.job.trigger_status == 0
}

/// The entry of a task file, whose first fire is at that instant.
fn entry(pair: &Pair, first: i64, is_started: bool) -> Value {
    let mut entry = pair.planned.entry.clone();
    if first > 0 {
        entry.insert("valid_from".to_owned(), first.into());
    }
    if is_started {
        entry.insert("started".to_owned(), true.into());
    }
    Value::Object(entry)
}

/// Runs what was due from `first` until the task was started here. `lasted` is how long the switch took, ms.
async fn fill(node: &Node, pair: &Pair, first: i64, lasted: i64, moved: &mut Moved) -> anyhow::Result<()> {
    let Some(id) = pair.planned.id.as_deref() else { return Ok(()) };
    let name = pair.planned.full_name();
    moved.tasks.insert(name.clone(), first);
    let mut task = node.answer(ApiRequest::get(["tasks", id])).await?;
    let started_at = number(&task, "updated_at")?;
    if first == 0 || first > started_at {
        return Ok(());
    }
    let lost_from = first.max(started_at.saturating_sub(lasted).saturating_sub(MISSED_MS));
    if first < lost_from {
        let is_run = task["misfire_strategy"] == "fire_once";
        let what = if is_run { "runs once for all of them" } else { "skips them" };
        moved.told.push(format!("task {name}: fires from {} on were missed there; it {what}", utc_words(first)));
        if is_run {
            node.answer(ApiRequest::post(["tasks", id, "run"]).body(json!({}))).await?;
        }
    }
    if task["schedule"] != "fixed_rate" {
        let range = json!({ "from": lost_from, "until": started_at + 1 });
        node.answer(ApiRequest::post(["tasks", id, "backfills"]).body(range)).await?;
        return Ok(());
    }
    // A rate that begins in the past counts from its start: it is told its next fire, and the others are run.
    let interval = number(&task, "interval_ms")?.max(1);
    let mut next = first + (lost_from - first + interval - 1) / interval * interval;
    for _ in 0..TRIES_MAX {
        let until = number(&task, "updated_at")?;
        if next > until {
            break;
        }
        let missed = (until - next) / interval + 1;
        for _ in 0..missed.min(MADE_UP_MAX) {
            node.answer(ApiRequest::post(["tasks", id, "run"]).body(json!({}))).await?;
        }
        next += missed * interval;
        let edit = ApiRequest::patch(["tasks", id]).body(json!({ "valid_from": next }));
        task = node.answer(edit).await?["task"].take();
    }
    moved.tasks.insert(name, next);
    Ok(())
}

/// A number of the node's answer.
pub fn number(value: &Value, field: &str) -> anyhow::Result<i64> {
    value[field].as_i64().context("the node's answer cannot be understood")
}

impl Moved {
    /// Adds a task.
    pub fn add(&mut self, name: String, first: i64) {
        self.tasks.insert(name, first);
    }

    /// Adds a sentence.
    pub fn tell(&mut self, told: String) {
        self.told.push(told);
    }

    /// Shows it.
    pub fn show(&self, client: &Client, says: &str) -> anyhow::Result<()> {
        print(&match client.output {
            Output::Json => json(&serde_json::to_value(self)?)?,
            Output::Table => {
                let mut out = String::new();
                for (name, first) in &self.tasks {
                    let first = if *first > 0 { format!(", next at {}", utc_words(*first)) } else { String::new() };
                    // Writing to a String cannot fail.
                    let _ = writeln!(out, "{} {says}{first}", escaped(name));
                }
                for told in &self.told {
                    let _ = writeln!(out, "! {}", escaped(told));
                }
                let _ = writeln!(out, "{} tasks", self.tasks.len());
                out
            }
        })
    }
}
