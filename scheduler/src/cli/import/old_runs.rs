//! Runs of an xxl-job that have ended, of the last days: read page by page, and written among those of their tasks.

use super::calls::calls;
use super::here::Tenant;
use super::report::Runs;
use super::source::SourceArgs;
use crate::cli::node::{ApiRequest, Node};
use crate::domain::import::ImportRun;
use crate::domain::xxljob::OldRuns;
use crate::store::OLD_RUNS_MAX;
use crate::store::foreign::FOREIGN_PAGE_MAX;
use serde_json::{Value, json};

const DAY_MS: i64 = 86_400_000;

/// Brings the runs of the last `days` over; those of tasks that are not here are counted only.
pub async fn bring(node: &Node, source: &SourceArgs, (name, tenant): (&str, &str), days: u16) -> anyhow::Result<Runs> {
    let here = Tenant::read(node, tenant).await?;
    let now = chrono::Utc::now().timestamp_millis();
    let since = now - i64::from(days) * DAY_MS;
    let (mut runs, mut read) = (Runs::default(), OldRuns::new(name, now));
    let mut database = source.connect().await?;
    let mut snapshot = database.snapshot().await?;
    let mut after = snapshot.xxl_job_log_before(since, source.time_zone).await?;
    loop {
        let page = snapshot.xxl_job_logs(after, FOREIGN_PAGE_MAX, source.time_zone).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        let mut items = Vec::new();
        for log in &page {
            let Some(run) = read.read(log) else {
                runs.not_ended += 1;
                continue;
            };
            match here.origins.get(&run.origin) {
                Some(task) => items.push(item(task, &run)),
                None => runs.without_task += 1,
            }
        }
        send(node, tenant, items, &mut runs).await?;
    }
    snapshot.end().await?;
    database.close().await;
    Ok(runs)
}

fn item(task: &str, run: &ImportRun) -> Value {
    json!({
        "task": task, "fire_time": run.fire_time, "finished_at": run.finished_at, "end": run.end, "message": run.message,
    })
}

async fn send(node: &Node, tenant: &str, items: Vec<Value>, runs: &mut Runs) -> anyhow::Result<()> {
    for call in calls(items, OLD_RUNS_MAX) {
        let count = call.len() as u64;
        let ask = ApiRequest::post(["tenants", tenant, "origins", "runs"]).body(json!({ "items": call }));
        let written = node.answer(ask).await?["written"].as_u64().unwrap_or_default();
        runs.written += written;
        runs.already_there += count - written.min(count);
    }
    Ok(())
}
