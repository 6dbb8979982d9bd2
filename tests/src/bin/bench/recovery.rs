//! The start of a node after ten minutes without any.
//!
//! ```text
//! fires on time ──▶ node and executor stop ──▶ all instants in the database move back by ten minutes
//!     ──▶ executor and node start (0 s) ──▶ … ──▶ every fire starts on time again
//! ```
//!
//! Nobody waits for the outage: what a node finds is the same as if it had lasted that long, three minutes that were written
//! ahead included.

use crate::options::Kind;
use crate::proc::MemoryWatch;
use crate::records;
use crate::stand::{Bench, Stand};
use crate::tasks::{self, Firing};
use crate::{progress, report, steady};
use anyhow::{Context as _, Result, ensure};
use carillon_tests::now_ms;
use serde_json::{Value, json};
use std::time::Duration;

/// The outage, ms; whole minutes.
const OUTAGE_MS: i64 = 600_000;

/// How far ahead nodes write logs.
const AHEAD_S: u32 = 180;

/// How long the start is watched at most, and after everything was on time, ms.
const WATCH_MAX_MS: i64 = 300_000;
const WATCH_MORE_MS: i64 = 20_000;

/// A fire that starts later than this is not on time, ms.
const LATE_MS: i32 = 1_000;

/// What the tasks of each third do about missed fires.
const POLICIES: [(&str, i64); 3] = [("fire_once", 0), ("skip", 0), ("fire_all", 10)];

/// Every instant in the database that says when something was, or is to be; 0 and far ones mean none.
const INSTANTS: [(&str, &[&str]); 5] = [
    ("task", &["next_fire_at", "written_until"]),
    ("task_log", &["fire_time", "due_time", "queued_at", "dispatched_at", "started_at", "finished_at"]),
    ("node", &["heartbeat_at", "started_at"]),
    ("executor", &["heartbeat_at"]),
    ("lease", &["expires_at"]),
];

/// What lies beyond this means never, ms.
const NEVER: i64 = 4_000_000_000_000;

/// Measures on a fresh database; `rate` fires per second.
pub async fn measure(bench: &Bench, rate: u32) -> Result<Value> {
    let server = &bench.server;
    let mut stand = Stand::raise(bench, AHEAD_S).await?;
    let room = u64::from(rate) * (WATCH_MAX_MS / 1_000) as u64;
    stand.start_executor(bench, room).await?;
    let app = stand.app().clone();
    let first = (now_ms() / 1_000 + 10) * 1_000;
    let each = rate / POLICIES.len() as u32;
    let mut templates = Vec::new();
    for (policy, most) in POLICIES {
        let fields = json!({
            "cron": "* * * * * ?", "started": false, "misfire_strategy": policy, "misfire_max": most.max(1),
        });
        let template = stand.api.make_task(&app, policy, "bench", fields).await;
        let prefix_first = Firing::EverySecondFrom(first);
        tasks::copy_named(server, &stand, template, policy, each, prefix_first).await?;
        templates.push(template);
    }
    let count = each * POLICIES.len() as u32;
    progress(&format!("{count} tasks, until logs are written {AHEAD_S} s ahead"));
    let deadline = now_ms() + WATCH_MAX_MS;
    while now_ms() < first + 5_000 || crate::counters::ahead_ms(&stand).await? < i64::from(AHEAD_S) * 1_000 - 10_000 {
        ensure!(now_ms() < deadline, "logs were not written ahead in time");
        stand.check_alive()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    std::fs::remove_file(stand.stop_executor().await?)?;
    stand.stop_first_node().await;

    progress("moving everything back by ten minutes");
    for (table, columns) in INSTANTS {
        stand.database.execute(&moved_back(table, columns)).await?;
    }
    let open = stand.database.number("SELECT COUNT(*) FROM task_log WHERE status IN (0, 1, 2, 3)").await?;
    let watermark = stand.database.number("SELECT MIN(next_fire_at) FROM task WHERE started = 1").await?;
    let unwritten = (now_ms() - watermark).max(0) / 1_000 * i64::from(count);

    progress(&format!("{open} logs lie there, {unwritten} fires were not written; starting"));
    let begin = now_ms();
    stand.start_first_node_again(bench).await?;
    let memory = MemoryWatch::start(stand.nodes());
    stand.start_executor(bench, room).await?;
    let mut calm_since = None;
    while now_ms() < begin + WATCH_MAX_MS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stand.check_alive()?;
        let is_calm = is_calm(&stand, begin).await?;
        calm_since = is_calm.then(|| calm_since.unwrap_or_else(now_ms));
        if calm_since.is_some_and(|since| now_ms() > since + WATCH_MORE_MS) {
            break;
        }
    }
    let end = (now_ms() - 3_000) / 1_000 * 1_000;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let rss = memory.finish()?;
    let accounts = accounts(&stand, server.kind, count).await?;
    let node_log = stand.node_alarms();
    let said = stand.node_said("overload");
    let file = stand.stop_executor().await?;
    let database = stand.kill_node().await;
    let rows = steady::rows_by_reason(&database, "bench").await?;
    server.remove(database).await?;
    let on_time = records::on_time_since(&file, begin..end, count as usize, LATE_MS * 1_000)?;
    let seen = records::read(&file, &(0..i64::MAX))?;
    std::fs::remove_file(file)?;
    Ok(json!({
        "rate": count,
        "outage_s": OUTAGE_MS / 1_000,
        "written_before": open,
        "unwritten": unwritten,
        "on_time_again_after_s": on_time.map(|at| report::rounded((at - begin) as f64 / 1_000.0, 1)),
        "watched_s": (end - begin) / 1_000,
        "handled": seen.handled,
        "duplicated": seen.duplicated,
        "rows": rows,
        "accounts": accounts,
        "node_rss_mb": rss.first().map(|mb| report::rounded(*mb, 1)),
        "node_log": node_log,
        "node_said": said,
        "machine": report::machine(),
    }))
}

/// Whether nothing that is due waits for nodes, and logs are written well ahead again.
async fn is_calm(stand: &Stand, begin: i64) -> Result<bool> {
    let now = now_ms();
    Ok(crate::counters::ahead_ms(stand).await? > 10_000
        && now > begin + 15_000
        && crate::counters::backlog_of_due(stand, now - 1_000).await? == 0)
}

fn moved_back(table: &str, columns: &[&str]) -> String {
    let set = columns.iter().map(|column| {
        format!(
            "{column} = CASE WHEN {column} > 0 AND {column} < {NEVER} THEN {column} - {OUTAGE_MS} ELSE {column} END"
        )
    });
    format!("UPDATE {table} SET {}", set.collect::<Vec<_>>().join(", "))
}

/// Whether each fire has a row, or is counted in one; and how many rows say of a task's fires that they were missed.
async fn accounts(stand: &Stand, kind: Kind, count: u32) -> Result<Value> {
    let integer = if kind == Kind::Mariadb { "SIGNED" } else { "BIGINT" };
    let of_tasks = "SELECT id FROM task WHERE started = 1";
    let sql = format!(
        "SELECT (SELECT COUNT(*) FROM task_log WHERE task_id IN ({of_tasks})), \
         CAST((SELECT SUM(t.next_fire_at) FROM task t WHERE t.started = 1) AS {integer}), \
         (SELECT MIN(fire_time) FROM task_log)"
    );
    let rows = stand.database.query(&sql).await?;
    let row = rows.first().context("no row")?;
    let (rows, sum, first): (i64, i64, i64) =
        (row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    let fires = (sum - first * i64::from(count)) / 1_000;
    let counted: i64 = stand
        .database
        .query("SELECT message FROM task_log WHERE message LIKE '%more before it were missed%'")
        .await?
        .iter()
        .filter_map(|row| steady::more_before(&row.try_get_by_index::<String>(0).ok()?))
        .sum();
    Ok(json!({ "fires": fires, "rows": rows, "counted_in_rows": counted, "unaccounted": fires - rows - counted }))
}
