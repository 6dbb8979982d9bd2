//! The death of one of two nodes, which share tasks that fire every second.
//!
//! ```text
//! warm-up ──▶ calm: S seconds ──▶ kill -9 of one node ──▶ after: S seconds, at least 40
//! ```

use crate::plan::Plan;
use crate::records::{self, Seen};
use crate::stand::{Bench, Stand};
use crate::tasks::{self, Firing};
use crate::window::{self, SETTLE_MAX, sleep_until};
use crate::{progress, report, run, steady};
use anyhow::Result;
use carillon_tests::now_ms;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;

/// How far ahead nodes write logs: what a death does hangs on the lead, not on this.
const AHEAD_S: u32 = 30;

/// Room for making the tasks, and for the first look of both nodes.
const LEAD_S: i64 = 15;

/// A fire that starts later than this is late, ms: less than a person notices, more than a calm second's last fire.
const LATE_MS: i32 = 100;

/// The other nodes take a death for one after ten seconds of silence, and then have to carry what was left.
const AFTER_MIN_S: u32 = 40;

/// Measures on a fresh database.
pub async fn measure(bench: &Bench, rate: u32, seconds: u32) -> Result<Value> {
    let server = &bench.server;
    let mut stand = Stand::raise(bench, AHEAD_S).await?;
    stand.add_node(bench).await?;
    let after_s = seconds.max(AFTER_MIN_S);
    let all_s = u64::from(2 * AHEAD_S + seconds + after_s) + 2 * SETTLE_MAX.as_secs() + 120;
    stand.start_executor(bench, u64::from(rate) * all_s).await?;
    let first = (now_ms() / 1_000 + LEAD_S) * 1_000;
    tasks::create(server, &stand, rate, Firing::EverySecondFrom(first)).await?;
    let plan = Plan { ahead_s: AHEAD_S, ..Plan::full(rate, seconds) };
    let is_steady = window::warm_up(&stand, plan, first).await?;

    progress(&format!("{rate} fires/s for {seconds} s, then kill -9 of one of two nodes, and {after_s} s more"));
    let begin = (now_ms() / 1_000 + 2) * 1_000;
    // Between two bursts, so that the dying node holds what it has claimed and has sent what was to be sent.
    let killed_at = begin + i64::from(seconds) * 1_000 + 500;
    sleep_until(killed_at).await;
    stand.kill_youngest_node().await;
    let (calm, after) = (begin..killed_at, killed_at..killed_at - 500 + i64::from(after_s) * 1_000);
    sleep_until(after.end).await;
    stand.check_alive()?;
    window::settle(&stand, after.end).await?;

    let file = stand.stop_executor().await?;
    let node_log = stand.node_alarms();
    let database = stand.kill_node().await;
    let rows = run::rows(&database, &(begin..after.end)).await?;
    server.remove(database).await?;
    let figures = json!({
        "rate": rate,
        "steady": is_steady,
        "calm": phase(&file, &calm, rate)?,
        "after": phase(&file, &after, rate)?,
        "late": late(&file, killed_at, after.end)?,
        "rows": rows,
        "node_log": node_log,
        "machine": report::machine(),
    });
    std::fs::remove_file(file)?;
    Ok(figures)
}

fn phase(file: &Path, window: &Range<i64>, rate: u32) -> Result<Value> {
    let Seen { handled, duplicated, early, lateness_ms, .. } = records::read(file, window)?;
    Ok(json!({
        "fires": handled,
        "lost": steady::expected(rate, window) - handled as i64,
        "duplicated": duplicated,
        "early": early,
        "lateness_ms": lateness_ms,
    }))
}

/// How many fires were late, and for how long after the death there were such.
fn late(file: &Path, killed_at: i64, end: i64) -> Result<Value> {
    let late = records::late(file, &(killed_at..end), LATE_MS * 1_000)?;
    Ok(json!({
        "over_ms": LATE_MS,
        "fires": late.count,
        "last_fire_time_after_death_ms": late.last.map(|last| last - killed_at),
    }))
}
