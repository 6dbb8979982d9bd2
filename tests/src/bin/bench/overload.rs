//! What a node does that is offered more than it can carry, and what that does to another tenant.
//!
//! ```text
//! before: S seconds of N/2 fires/s ──▶ overload: 3 S seconds of N ──▶ after: N/8, until all is on time
//! ```

use crate::options::Kind;
use crate::proc::{self, MemoryWatch};
use crate::records::{self, Seen};
use crate::stand::{Bench, Stand};
use crate::steady::{self, STEADY_TASKS};
use crate::tasks::{self, Firing};
use crate::window::sleep_until;
use crate::{progress, report};
use anyhow::{Context as _, Result};
use carillon_tests::now_ms;
use serde_json::{Value, json};
use std::ops::Range;
use std::time::Duration;

/// How far ahead nodes write logs: what was written before the overload is used up sooner than with the default.
const AHEAD_S: u32 = 30;

/// After the first fires, before anything is measured, ms.
const WARM_UP_MS: i64 = 10_000;

/// Between two looks at the node's figures.
const LOOK: Duration = Duration::from_secs(5);

/// The overload lasts so many times as long as what is measured before it.
const OVERLOAD_TIMES: i64 = 3;

/// How long it may take after the overload until all is on time.
const AFTER_MAX_MS: i64 = 180_000;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Fires per second that are offered.
    pub rate: u32,
    /// Length of the first phase.
    pub seconds: u32,
}

/// What the node's figures were in the middle of it.
struct Sample {
    at: i64,
    succeeded: f64,
    rss_mb: f64,
    figures: Value,
}

/// Measures on a fresh database.
pub async fn measure(bench: &Bench, plan: Plan) -> Result<Value> {
    let server = &bench.server;
    let mut stand = Stand::raise(bench, AHEAD_S).await?;
    stand.start_executor(bench, u64::from(STEADY_TASKS) * 3_600).await?;
    let app = stand.api.make_app("burst", "burst").await;
    let seconds = i64::from(plan.seconds);
    let runs = u64::from(plan.rate) * u64::from(plan.seconds) * 4;
    let executor = stand.executor_of(bench, &app, runs).await?;
    let template =
        stand.api.make_task(&app, "template", "bench", json!({ "cron": "* * * * * ?", "started": false })).await;

    let half = plan.rate / 2;
    let first = (now_ms() / 1_000 + 15) * 1_000;
    progress(&format!("{half} fires/s of one tenant, {STEADY_TASKS} of another, for {seconds} s"));
    tasks::create(server, &stand, STEADY_TASKS, Firing::EverySecondFrom(first)).await?;
    tasks::copy_of(server, &stand, template, half, Firing::EverySecondFrom(first)).await?;
    let before = first + WARM_UP_MS..first + WARM_UP_MS + seconds * 1_000;
    sleep_until(before.start).await;
    let (mut samples, before_rss) = watch(&stand, before.end).await?;

    progress(&format!("{} fires/s for {} s", plan.rate, OVERLOAD_TIMES * seconds));
    let more = (now_ms() / 1_000 + i64::from(AHEAD_S) / 2) * 1_000;
    tasks::copy_from(server, &stand, template, half, plan.rate - half, Firing::EverySecondFrom(more)).await?;
    let overload = now_ms().max(more)..now_ms().max(more) + OVERLOAD_TIMES * seconds * 1_000;
    let (during, overload_rss) = watch(&stand, overload.end).await?;
    samples.extend(during);

    let kept = plan.rate / 8;
    progress(&format!("{kept} fires/s until all is on time"));
    stop_all_but(&stand, template, kept).await?;
    let end = now_ms();
    let mut after = end;
    while after < end + AFTER_MAX_MS && crate::counters::backlog_of_due(&stand, now_ms() - 1_000).await? > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        after = now_ms();
    }
    let (ended, _) = watch(&stand, after + 15_000).await?;
    samples.extend(ended);
    let accounts = accounts(&stand, bench.server.kind, template, kept, first).await?;
    let node_log = stand.node_alarms();
    let said = stand.node_said("overload");

    let others = stand.stop_executor().await?;
    let own = executor.stop().await?;
    let database = stand.kill_node().await;
    let rows = steady::rows_by_reason(&database, "burst").await?;
    let rows_of_others = steady::rows_by_reason(&database, "bench").await?;
    server.remove(database).await?;
    let phase = |window: &Range<i64>, rss: &[f64]| -> Result<Value> {
        let (other, own) = (records::read(&others, window)?, records::read(&own, window)?);
        Ok(json!({
            "seconds": (window.end - window.start) / 1_000,
            "carried_per_second": carried(&samples, window),
            "lateness_ms": { "p50": own.lateness_ms.p50, "p99": own.lateness_ms.p99, "max": own.lateness_ms.max },
            "duplicated": own.duplicated,
            "early": own.early,
            "others": steady::figures(&other, window),
            "node_rss_mb": report::rounded(rss.first().copied().unwrap_or_default(), 1),
        }))
    };
    let all = first..i64::MAX;
    let seen: Seen = records::read(&own, &all)?;
    let figures = json!({
        "offered_per_second": plan.rate,
        "written_ahead_s": AHEAD_S,
        "before": phase(&before, &before_rss)?,
        "overload": phase(&overload, &overload_rss)?,
        "on_time_again_after_s": (after < end + AFTER_MAX_MS).then(|| report::rounded((after - end) as f64 / 1_000.0, 1)),
        "handled": seen.handled,
        "duplicated": seen.duplicated,
        "rows": rows,
        "rows_of_others": rows_of_others,
        "accounts": accounts,
        "node_log": node_log,
        "node_said": said,
        "timeline": samples.iter().map(|sample| timeline(sample, first)).collect::<Vec<_>>(),
        "machine": report::machine(),
    });
    std::fs::remove_file(others)?;
    std::fs::remove_file(own)?;
    Ok(figures)
}

/// Looks at the node now and then until `end`; the samples, and the most memory.
async fn watch(stand: &Stand, end: i64) -> Result<(Vec<Sample>, Vec<f64>)> {
    let memory = MemoryWatch::start(stand.nodes());
    let mut samples = Vec::new();
    loop {
        stand.check_alive()?;
        let metrics = stand.metrics().await.unwrap_or_default();
        let of = |name: &str| metrics.get(name).copied();
        samples.push(Sample {
            at: now_ms(),
            succeeded: of("carillon_results_total{outcome=\"succeeded\"}").unwrap_or(f64::NAN),
            rss_mb: proc::memory_mb(stand.node()),
            figures: json!({
                "pregeneration_lag_s": of("carillon_pregeneration_lag_seconds"),
                "queue_depth": of("carillon_queue_depth"),
                "overloaded": of("carillon_overloaded"),
            }),
        });
        if now_ms() >= end {
            return Ok((samples, memory.finish()?));
        }
        tokio::time::sleep(LOOK.min(Duration::from_millis(u64::try_from(end - now_ms()).unwrap_or(0)))).await;
    }
}

/// Successes committed per second, by the node's counter at the samples next to both ends.
fn carried(samples: &[Sample], window: &Range<i64>) -> Option<f64> {
    let known = || samples.iter().filter(|sample| sample.succeeded.is_finite());
    let first = known().find(|sample| sample.at >= window.start)?;
    let last = known().rfind(|sample| sample.at <= window.end + 1_000)?;
    let ms = (last.at - first.at) as f64;
    (ms > 0.0).then(|| report::rounded((last.succeeded - first.succeeded) * 1_000.0 / ms, 1))
}

fn timeline(sample: &Sample, first: i64) -> Value {
    json!([(sample.at - first) / 1_000, sample.succeeded, report::rounded(sample.rss_mb, 1), sample.figures])
}

/// Ends the overload: only the first `kept` tasks go on.
async fn stop_all_but(stand: &Stand, template: i64, kept: u32) -> Result<()> {
    let never = i64::MAX;
    let sql = format!(
        "UPDATE task SET started = 0, next_fire_at = {never} WHERE id > {} AND tenant_id = (SELECT id FROM tenant WHERE name = 'burst')",
        template + i64::from(kept)
    );
    for _ in 0..20 {
        // The node has the file, or the rows, for a while.
        if stand.database.execute(&sql).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stand.database.execute(&sql).await.context("ending the overload")
}

/// Whether each fire of the tasks that went on has a row, or is counted in one.
async fn accounts(stand: &Stand, kind: Kind, template: i64, kept: u32, first: i64) -> Result<Value> {
    let (low, high) = (template, template + i64::from(kept));
    let integer = if kind == Kind::Mariadb { "SIGNED" } else { "BIGINT" };
    // One look: the watermarks move.
    let sql = format!(
        "SELECT CAST((SELECT SUM((next_fire_at - {first}) / 1000) FROM task WHERE id > {low} AND id <= {high}) AS {integer}), \
         (SELECT COUNT(*) FROM task_log WHERE task_id > {low} AND task_id <= {high} AND shard_index = 0)"
    );
    let rows = stand.database.query(&sql).await?;
    let row = rows.first().context("no row")?;
    let (fires, rows): (i64, i64) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
    let sql = format!(
        "SELECT message FROM task_log WHERE task_id > {low} AND task_id <= {high} AND message LIKE '%more before it were missed%'"
    );
    let counted: i64 = stand
        .database
        .query(&sql)
        .await?
        .iter()
        .filter_map(|row| steady::more_before(&row.try_get_by_index::<String>(0).ok()?))
        .sum();
    Ok(json!({ "fires": fires, "rows": rows, "counted_in_rows": counted, "unaccounted": fires - rows - counted }))
}
