//! One run, from its first process to its last.

use crate::catalog::{self, Draft};
use crate::checker::{self, Broken};
use crate::edits::{self, Ledger};
use crate::history::{History, Schedule, Task};
use crate::host::Host;
use crate::options::Options;
use crate::plan;
use crate::stand::{Stand, TENANTS};
use crate::story::Story;
use crate::{collect, faults, machine, settle};
use anyhow::{Context as _, Result};
use carillon_tests::api::id_of;
use carillon_tests::now_us;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long making one task may take.
const MAKE_MAX: Duration = Duration::from_secs(30);

/// The plan of these options, without running it.
pub fn plan_as_json(options: &Options) -> Value {
    let faults = plan::faults(options.seed, options.seconds, options.database.members(), &options.only);
    let edits = plan::edits(options.seed, options.seconds, catalog::EDITED);
    let edits: Vec<String> = edits.iter().map(|edit| format!("{edit:?}")).collect();
    json!({ "faults": faults.iter().map(plan::Fault::to_json).collect::<Vec<_>>(), "edits": edits })
}

/// Runs it: what happened, and what was broken.
pub async fn run(options: &Options, story: &Story) -> Result<(History, Vec<Broken>)> {
    story.write("plan.json", &format!("{:#}\n", plan_as_json(options)));
    let stand = Arc::new(Stand::raise(options.database, story).await?);
    let supervisors = supervise(&stand);
    let mut ledger = Ledger::default();
    let tasks = make_tasks(&stand, &mut ledger).await?;
    story.tell("tasks are made", json!(tasks.len()));
    let begin = Instant::now();
    let edited: Vec<i64> = tasks.iter().filter(|task| task.is_edited).map(|task| task.id).collect();
    let planned = plan::faults(options.seed, options.seconds, options.database.members(), &options.only);
    let edits = plan::edits(options.seed, options.seconds, edited.len());
    let (troubles, changed) = tokio::join!(
        faults::go_through(&stand, planned, begin),
        edits::go_through(&stand, edits, &edited, &mut ledger, begin),
    );
    // A plan may end before its time.
    tokio::time::sleep_until(begin + Duration::from_secs(options.seconds.into())).await;
    faults::mend(&stand);
    let mended_us = now_us();
    if let Err(error) = &changed {
        story.incident(&format!("a change could not be made: {error:#}"));
    }
    let others = machine::Watch::begin(story);
    let stopped_us = settle::settle(&stand, &tasks).await;
    drop(supervisors);
    for host in stand.executors.iter().map(|one| &one.host).chain(stand.nodes.iter().map(|one| &*one.host)) {
        host.stop().await;
    }
    let broken = troubles?;
    let mut history = History {
        tasks,
        spans: ledger.spans(),
        manual_runs: std::mem::take(&mut ledger.manual_runs),
        troubles: broken.troubles,
        traps: broken.traps,
        mended_us,
        stopped_us,
        others: others.seen(),
        ..History::default()
    };
    gather(&stand, &mut history).await;
    let broken = checker::check(&history);
    if options.keep || !broken.is_empty() {
        keep_evidence(&stand, &history, &broken).await;
    }
    Ok((history, broken))
}

/// Ends with what it answers.
struct Supervisors(Vec<tokio::task::JoinHandle<()>>);

impl Drop for Supervisors {
    fn drop(&mut self) {
        for one in &self.0 {
            one.abort();
        }
    }
}

fn supervise(stand: &Arc<Stand>) -> Supervisors {
    let watch = |number: usize| {
        let stand = Arc::clone(stand);
        tokio::spawn(async move {
            let host: Option<&Host> = stand.hosts().nth(number);
            if let Some(host) = host {
                host.supervise().await;
            }
        })
    };
    Supervisors((0..stand.hosts().count()).map(watch).collect())
}

async fn make_tasks(stand: &Stand, ledger: &mut Ledger) -> Result<Vec<Task>> {
    let mut ids: HashMap<String, i64> = HashMap::new();
    let mut tasks = Vec::new();
    let drafts = catalog::drafts();
    for Draft { mut body, mut task, parents } in drafts.clone() {
        body["tenant"] = TENANTS[task.tenant].into();
        body["app"] = "chaos".into();
        body["name"] = task.name.as_str().into();
        if !parents.is_empty() {
            body["parents"] = parents.iter().map(|parent| json!({ "task": parent })).collect();
        }
        // A parent's end that comes before the child is there starts none: parents begin when all children are made.
        let is_parent = drafts.iter().any(|other| other.parents.contains(&task.name));
        body["started"] = (!is_parent).into();
        let made = stand.client.until_done(tasks.len(), Method::POST, "/tasks", Some(&body), MAKE_MAX).await?;
        task.id = id_of(&made.body["id"]).with_context(|| format!("no id in {}", made.body))?;
        let of = |at: usize| parents.get(at).and_then(|parent| ids.get(parent)).copied();
        task.schedule = match task.schedule {
            Schedule::After(..) => Schedule::After(of(0).context("a parent")?, of(1)),
            Schedule::AfterAll(..) => Schedule::AfterAll(of(0).context("a parent")?, of(1).context("another parent")?),
            other => other,
        };
        if !is_parent {
            ledger.made(task.id, every(&task));
        }
        ids.insert(task.name.clone(), task.id);
        tasks.push(task);
    }
    // The last first: a child that has children of its own is started before its parents.
    for task in tasks.iter().rev().filter(|task| drafts.iter().any(|other| other.parents.contains(&task.name))) {
        let path = format!("/tasks/{}/start", task.id);
        stand.client.until_done(0, Method::POST, &path, None, MAKE_MAX).await?;
        ledger.made(task.id, every(task));
    }
    Ok(tasks)
}

/// How often a task fires for certain while it is started, ms.
fn every(task: &Task) -> Option<i64> {
    match task.schedule {
        Schedule::Cron(ms) => Some(ms),
        _ => None,
    }
}

/// Reads what is left.
async fn gather(stand: &Stand, history: &mut History) {
    history.rows = collect::rows(stand.database()).await;
    history.attempts = collect::attempts(stand.database()).await;
    let processes = |host: &Host| host.pids().into_iter().map(|pid| (pid, host.name().to_owned())).collect::<Vec<_>>();
    history.tenants = stand.tenants_of_executors();
    history.processes = stand.executors.iter().flat_map(|executor| processes(&executor.host)).collect();
    history.deaths = stand.hosts().flat_map(Host::deaths).collect();
    let mut incidents = stand.story.incidents();
    let files = collect::record_files(&stand.story.path(""));
    history.visits = collect::visits(&files, &history.deaths, &mut incidents);
    for host in stand.hosts() {
        let log = std::fs::read_to_string(stand.story.path(&format!("{}.log", host.name()))).unwrap_or_default();
        let panics = log.lines().filter(|line| line.contains("panicked at"));
        incidents.extend(panics.map(|line| format!("{}: {line}", host.name())));
    }
    history.incidents = incidents;
}

/// Everything that is needed to look into a failure and is not in the folder yet.
async fn keep_evidence(stand: &Stand, history: &History, broken: &[Broken]) {
    let lines = |items: Vec<Value>| {
        let mut text = String::new();
        for item in items {
            text.push_str(&item.to_string());
            text.push('\n');
        }
        text
    };
    let story = &stand.story;
    story.write("rows.jsonl", &lines(history.rows.iter().map(|row| json!(row)).collect()));
    story.write("attempts.jsonl", &lines(history.attempts.iter().map(|one| json!(one)).collect()));
    story.write("visits.jsonl", &lines(history.visits.iter().map(|visit| json!(visit)).collect()));
    story.write("tasks.jsonl", &lines(history.tasks.iter().map(|task| json!(task)).collect()));
    story.write("spans.jsonl", &lines(history.spans.iter().map(|span| json!(span)).collect()));
    story.write("troubles.jsonl", &lines(history.troubles.iter().map(|one| json!(one)).collect()));
    story.write("traps.jsonl", &lines(history.traps.iter().map(|one| json!(one)).collect()));
    story.write("broken.jsonl", &lines(broken.iter().map(|one| json!(one)).collect()));
    for (name, log) in stand.servers.logs() {
        story.write(&name, &log);
    }
    story.write("dump.sql", &stand.database().dump().await);
}
