//! What a node costs that has many tasks and nothing to do.

use crate::counters::Parts;
use crate::proc::MemoryWatch;
use crate::stand::{Bench, Stand};
use crate::tasks::{self, Firing};
use crate::{progress, report};
use anyhow::Result;
use carillon_tests::now_ms;
use serde_json::{Value, json};
use std::time::Duration;

/// How far ahead the node writes logs: its default.
const AHEAD_S: u32 = 180;

/// First fire of the first tasks after now, ms: no measurement lasts so long.
const FAR_MS: i64 = 6 * 3_600_000;

/// Between the last task and the window: two rounds of the slowest worker but one.
const CALM: Duration = Duration::from_secs(10);

/// Measures a node without executors for `seconds`.
pub async fn measure(bench: &Bench, count: u32, seconds: u32) -> Result<Value> {
    let server = &bench.server;
    let stand = Stand::raise(bench, AHEAD_S).await?;
    progress(&format!("{count} daily tasks"));
    tasks::create(server, &stand, count, Firing::DailyFrom(now_ms() + FAR_MS)).await?;
    let enabled = stand.database.number("SELECT COUNT(*) FROM task WHERE started = 1").await?;
    tokio::time::sleep(CALM).await;

    progress(&format!("measuring for {seconds} s"));
    let parts = Parts::of(server, &stand)?;
    let memory = MemoryWatch::start(parts.targets());
    let before = parts.read(server, &stand).await?;
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    let after = parts.read(server, &stand).await?;
    let rss = memory.finish()?;
    stand.check_alive()?;

    let elapsed = after.at.duration_since(before.at).as_secs_f64();
    let used: Vec<f64> = after.cpu_us.iter().zip(&before.cpu_us).map(|(after, before)| after - before).collect();
    let (by_server, by_node) = after.statements_since(&before);
    let node_log = stand.node_alarms();
    let database = stand.kill_node().await;
    let logs = database.number("SELECT COUNT(*) FROM task_log").await?;
    server.remove(database).await?;
    Ok(json!({
        "idle_tasks": enabled,
        "logs_written": logs,
        "seconds": seconds,
        "cpu_percent": report::parts(parts.spread(&used), |us| us / elapsed / 10_000.0),
        "rss_mb": report::parts(parts.spread(&rss), |mb| mb),
        "statements_per_second": report::rounded(by_server.unwrap_or(by_node) as f64 / elapsed, 2),
        "statements_source": server.statements_source(),
        "node_statements_per_second": report::rounded(by_node as f64 / elapsed, 2),
        "node_log": node_log,
        "machine": report::machine(),
    }))
}
