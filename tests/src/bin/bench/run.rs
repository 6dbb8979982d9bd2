//! One measurement: tasks that fire every second, a warm-up, a window.

use crate::counters::{Costs, Parts, Progress, ahead_ms, backlog};
use crate::proc::MemoryWatch;
use crate::records::{self, Seen};
use crate::server::Server;
use crate::stand::{Bench, Stand};
use crate::{progress, steady, tasks};
use anyhow::Result;
use carillon_tests::now_ms;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How far ahead a node writes logs by default.
const AHEAD_S: u32 = 180;

/// The node writes ahead every 5 s and takes its time: so much less is still keeping up.
const AHEAD_SLACK_MS: i64 = 10_000;

/// Rows per second that a database is supposed to write before the first fire. Only the comfort
/// of the warm-up hangs on it.
const ROWS_PER_SECOND: u32 = 20_000;

/// How long the warm-up waits beyond the first fire for a steady state: this and once the time
/// that is written ahead.
const WARM_UP_MORE_MS: i64 = 30_000;

/// So long before the window the database is asked how far it is: one round of writing ahead, so
/// that the figures per second hold whole rounds.
const BEFORE_MS: i64 = 5_000;

/// How long the fires of the window may take to end after it.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Tasks, and so fires per second.
    pub rate: u32,
    /// Length of the window.
    pub seconds: u32,
    /// How far ahead logs are written.
    pub ahead_s: u32,
}

impl Plan {
    /// With the node's default distance.
    pub fn full(rate: u32, seconds: u32) -> Self {
        Self { rate, seconds, ahead_s: AHEAD_S }
    }
}

/// What was measured.
pub struct Run {
    /// What was asked for.
    pub plan: Plan,
    /// By the handler.
    pub seen: Seen,
    /// Rows of the window by status, after it has settled.
    pub rows: BTreeMap<&'static str, i64>,
    /// Whether the warm-up reached a steady state.
    pub steady: bool,
    /// At both ends.
    pub progress: (Progress, Progress),
    /// At both ends.
    pub costs: (Costs, Costs),
    /// Node, executor, database; microseconds of processor time in the window.
    pub cpu_us: [Option<f64>; 3],
    /// Node, executor, database; bytes written to disks in the window.
    pub written_bytes: [Option<f64>; 3],
    /// Node, executor, database; most of the samples in the window.
    pub rss_mb: [Option<f64>; 3],
    /// What the node complained of.
    pub node_log: Value,
    /// Who counted the statements.
    pub statements_source: &'static str,
}

/// Measures on a fresh database.
pub async fn measure(bench: &Bench, plan: Plan) -> Result<Run> {
    let server = &bench.server;
    let mut stand = Stand::raise(bench, plan.ahead_s).await?;
    let lead_s = (plan.ahead_s * plan.rate).div_ceil(ROWS_PER_SECOND + plan.rate).max(15);
    let seconds = u64::from(lead_s + plan.seconds) + SETTLE_MAX.as_secs();
    stand.start_executor(bench, u64::from(plan.rate) * seconds).await?;
    let first = (now_ms() / 1_000 + 1 + i64::from(lead_s)) * 1_000;
    progress(&format!("{} tasks, first fire in {lead_s} s", plan.rate));
    tasks::create(server, &stand, plan.rate, tasks::Firing::EverySecondFrom(first)).await?;
    let steady = warm_up(&stand, plan, first).await?;

    let begin = (now_ms() + BEFORE_MS) / 1_000 * 1_000 + 2_000;
    let window = begin..begin + i64::from(plan.seconds) * 1_000;
    progress(&format!("measuring for {} s", plan.seconds));
    let parts = Parts::of(server, &stand)?;
    let (costs, progresses, rss) = watch(server, &stand, &parts, &window).await?;
    settle(&stand, window.end).await?;

    let file = stand.stop_executor().await?;
    let node_log = stand.node_alarms();
    let database = stand.kill_node().await;
    let run = Run {
        plan,
        seen: records::read(&file, &window)?,
        rows: rows(&database, &window).await?,
        steady,
        cpu_us: used(&parts, &costs, |costs| Some(&costs.cpu_us)),
        written_bytes: used(&parts, &costs, |costs| costs.written_bytes.as_deref()),
        rss_mb: parts.spread(&rss),
        progress: progresses,
        costs,
        node_log,
        statements_source: server.statements_source(),
    };
    std::fs::remove_file(file)?;
    server.remove(database).await?;
    Ok(run)
}

/// Waits until logs are written as far ahead as they should be and fires flow; `false` when
/// that does not happen.
async fn warm_up(stand: &Stand, plan: Plan, first: i64) -> Result<bool> {
    let ahead_full = i64::from(plan.ahead_s) * 1_000;
    let (ahead_due, patience) = (ahead_full - AHEAD_SLACK_MS, ahead_full + WARM_UP_MORE_MS);
    let mut told = Instant::now();
    loop {
        stand.check_alive()?;
        let ahead = ahead_ms(stand).await?;
        let now = now_ms();
        let open = if now > first { backlog(stand, now).await? } else { 0 };
        if now >= first + 5_000 && ahead >= ahead_due && open <= i64::from(plan.rate) {
            return Ok(true);
        }
        if now > first + patience {
            progress(&format!("no steady state: written {ahead} ms ahead, {open} runs overdue"));
            return Ok(false);
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            progress(&format!("warming up: written {} s ahead, {open} runs overdue", ahead / 1_000));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Reads everything at both ends of the window, half a second before the fires of a full second,
/// so that each end falls between two bursts.
async fn watch(
    server: &Server,
    stand: &Stand,
    parts: &Parts,
    window: &Range<i64>,
) -> Result<((Costs, Costs), (Progress, Progress), Vec<f64>)> {
    let since = window.start - Progress::SINCE_MS;
    sleep_until(window.start - 500 - BEFORE_MS).await;
    let progress_before = Progress::read(server, stand, since).await?;
    sleep_until(window.start - 500).await;
    let memory = MemoryWatch::start(parts.targets());
    let before = parts.read(server, stand).await?;
    sleep_until(window.end - 500).await;
    let after = parts.read(server, stand).await?;
    let progress_after = Progress::read(server, stand, since).await?;
    stand.check_alive()?;
    Ok(((before, after), (progress_before, progress_after), memory.finish()?))
}

/// Waits until every run that was due in the window has ended, within reason.
async fn settle(stand: &Stand, end: i64) -> Result<()> {
    let deadline = Instant::now() + SETTLE_MAX;
    sleep_until(end).await;
    loop {
        let open = backlog(stand, end).await?;
        if open == 0 || Instant::now() > deadline {
            if open > 0 {
                progress(&format!("{open} runs have not ended"));
            }
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// What became of the rows of the window.
async fn rows(database: &crate::database::Database, window: &Range<i64>) -> Result<BTreeMap<&'static str, i64>> {
    let sql = format!(
        "SELECT status, COUNT(*) FROM task_log WHERE fire_time >= {} AND fire_time < {} GROUP BY status",
        window.start, window.end
    );
    let mut rows = BTreeMap::from([("succeeded", 0)]);
    for row in database.query(&sql).await? {
        let status = steady::status_word(row.try_get_by_index(0)?);
        rows.insert(status, row.try_get_by_index(1)?);
    }
    Ok(rows)
}

/// What each part has used up in between; `None` for all where that is not counted.
fn used(parts: &Parts, (before, after): &(Costs, Costs), of: impl Fn(&Costs) -> Option<&[f64]>) -> [Option<f64>; 3] {
    let Some((before, after)) = of(before).zip(of(after)) else { return [None; 3] };
    let used: Vec<f64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    parts.spread(&used)
}

/// Sleeps until the wall clock shows `at`, epoch ms.
pub async fn sleep_until(at: i64) {
    let left = u64::try_from(at - now_ms()).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(left)).await;
}

impl Run {
    /// Fires that the window should hold.
    pub fn expected(&self) -> u64 {
        u64::from(self.plan.rate) * u64::from(self.plan.seconds)
    }

    /// Fires that no handler saw.
    pub fn lost(&self) -> u64 {
        self.expected().saturating_sub(self.seen.handled)
    }

    /// Fires of the window that were committed as succeeded.
    pub fn succeeded(&self) -> i64 {
        self.rows["succeeded"]
    }

    /// Why this rate is not sustained; empty when it is.
    pub fn complaints(&self) -> Vec<String> {
        let (before, after) = &self.progress;
        let mut complaints = Vec::new();
        let mut complain = |holds: bool, text: String| complaints.extend(holds.then_some(text));
        complain(!self.steady, "the warm-up reached no steady state".to_owned());
        complain(self.lost() > 0, format!("{} fires lost", self.lost()));
        complain(self.seen.early > 0, format!("{} starts too early", self.seen.early));
        complain(self.seen.duplicated > 0, format!("{} fires duplicated", self.seen.duplicated));
        let uncommitted = self.expected() as i64 - self.succeeded();
        complain(uncommitted != 0, format!("{uncommitted} fires not committed as succeeded"));
        let p99 = self.seen.lateness_ms.p99;
        complain(p99 > 1_000.0, format!("p99 lateness {p99:.0} ms is over 1000"));
        // Half a second's fires may be under way whenever one looks.
        let growth = after.backlog - before.backlog;
        complain(growth > i64::from(self.plan.rate / 2), format!("the backlog grew by {growth}"));
        let short = i64::from(self.plan.ahead_s) * 1_000 - AHEAD_SLACK_MS - after.ahead_ms;
        complain(short > 0, format!("logs are written {short} ms less far ahead than they should be"));
        complaints
    }
}
