//! From the first fires to the end of the measured window, on a stand that is there.

use crate::counters::{Costs, Parts, Progress, ahead_ms, backlog};
use crate::old_logs::OldLogs;
use crate::plan::Plan;
use crate::proc::MemoryWatch;
use crate::progress;
use crate::server::Server;
use crate::stand::Stand;
use anyhow::Result;
use carillon_tests::now_ms;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The node writes ahead every 5 s and takes its time: so much less is still keeping up.
const AHEAD_SLACK_MS: i64 = 10_000;

/// How long the warm-up waits beyond the first fire for a steady state: this and once the time
/// that is written ahead.
const WARM_UP_MORE_MS: i64 = 30_000;

/// So long before the window the database is asked how far it is: one round of writing ahead, so
/// that the figures per second hold whole rounds.
const BEFORE_MS: i64 = 5_000;

/// How long the fires of the window may take to end after it.
pub const SETTLE_MAX: Duration = Duration::from_secs(30);

/// What was counted outside of the handler.
pub struct Observed {
    /// Fire times, epoch ms.
    pub window: Range<i64>,
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
}

/// Warms up, watches a window, and waits until its runs have ended; the newest tasks fire from `first` (epoch ms) on.
pub async fn observe(
    server: &Server,
    stand: &Stand,
    plan: Plan,
    first: i64,
    old: Option<&OldLogs>,
) -> Result<Observed> {
    let steady = warm_up(stand, plan, first).await?;
    let begin = (now_ms() + BEFORE_MS) / 1_000 * 1_000 + 2_000;
    let window = begin..begin + i64::from(plan.seconds) * 1_000;
    progress(&format!("measuring for {} s", plan.seconds));
    let parts = Parts::of(server, stand)?;
    let since = window.start - Progress::SINCE_MS;
    sleep_until(window.start - 500 - BEFORE_MS).await;
    let progress_before = Progress::read(server, stand, since, old).await?;
    // Half a second before the fires of a full second, so that each end falls between two bursts.
    sleep_until(window.start - 500).await;
    let memory = MemoryWatch::start(parts.targets());
    let before = parts.read(server, stand).await?;
    sleep_until(window.end - 500).await;
    let after = parts.read(server, stand).await?;
    let progress_after = Progress::read(server, stand, since, old).await?;
    stand.check_alive()?;
    let rss = memory.finish()?;
    settle(stand, window.end).await?;
    let costs = (before, after);
    Ok(Observed {
        cpu_us: used(&parts, &costs, |costs| Some(&costs.cpu_us)),
        written_bytes: used(&parts, &costs, |costs| costs.written_bytes.as_deref()),
        rss_mb: parts.spread(&rss),
        progress: (progress_before, progress_after),
        window,
        steady,
        costs,
    })
}

impl Observed {
    /// Why this was not keeping up; empty when it was.
    pub fn complaints(&self, plan: Plan) -> Vec<String> {
        let (before, after) = &self.progress;
        let mut complaints = Vec::new();
        let mut complain = |holds: bool, text: String| complaints.extend(holds.then_some(text));
        complain(!self.steady, "the warm-up reached no steady state".to_owned());
        // Half a second's fires may be under way whenever one looks.
        let growth = after.backlog - before.backlog;
        complain(growth > i64::from(plan.rate / 2), format!("the backlog grew by {growth}"));
        let short = i64::from(plan.ahead_s) * 1_000 - AHEAD_SLACK_MS - after.ahead_ms;
        complain(short > 0, format!("logs are written {short} ms less far ahead than they should be"));
        complaints
    }
}

/// So long after a node has started it looks more closely for what others left behind, ms (`WATCH_MS` of the reaper, and a round).
const WATCHFUL_MS: i64 = 65_000;

/// Waits until logs are written as far ahead as they should be, fires flow, and nodes have been there for a while; `false` when
/// that does not happen.
pub async fn warm_up(stand: &Stand, plan: Plan, first: i64) -> Result<bool> {
    let ahead_full = i64::from(plan.ahead_s) * 1_000;
    let (ahead_due, patience) = (ahead_full - AHEAD_SLACK_MS, ahead_full + WARM_UP_MORE_MS);
    let mut told = Instant::now();
    loop {
        stand.check_alive()?;
        let ahead = ahead_ms(stand).await?;
        let now = now_ms();
        let open = if now > first { backlog(stand, now).await? } else { 0 };
        let is_calm = now >= (first + 5_000).max(stand.joined_at() + WATCHFUL_MS);
        if is_calm && ahead >= ahead_due && open <= i64::from(plan.rate) {
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

/// Waits until every run that was due in the window has ended, within reason.
pub async fn settle(stand: &Stand, end: i64) -> Result<()> {
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
