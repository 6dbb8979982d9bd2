//! One node on one database, and more fires each step, until a step is not sustained.

use crate::plan::Plan;
use crate::rates::Ramp;
use crate::records;
use crate::run::{Run, rows};
use crate::stand::{Bench, Stand};
use crate::tasks::{self, Firing};
use crate::window::{self, Observed};
use crate::{progress, report};
use anyhow::Result;
use carillon_tests::now_ms;
use serde_json::{Value, json};

/// Logs are written less far ahead than by default: what a fire costs is the same, and a step is steady sooner.
const AHEAD_S: u32 = 30;

/// From the creation of a step's tasks to their first fire.
const LEAD_S: u32 = 15;

/// What a step takes beside its window, at most, s.
const BESIDE_S: u32 = 120;

/// A run that started so long after its time is late, ms; more than a hundredth of them end the ramp.
const LATE_MS: i64 = 1_000;

/// Raises the rate on a fresh database; a window of `seconds` each step.
pub async fn measure(bench: &Bench, ramp: Ramp, seconds: u32) -> Result<Value> {
    let server = &bench.server;
    let mut stand = Stand::raise(bench, AHEAD_S).await?;
    let fires: u64 = ramp.rates().map(u64::from).sum();
    stand.start_executor(bench, fires * u64::from(seconds + BESIDE_S)).await?;
    let (mut there, mut steps) = (0, Vec::new());
    for rate in ramp.rates() {
        let plan = Plan { ahead_s: AHEAD_S, ..Plan::full(rate, seconds) };
        let first = (now_ms() / 1_000 + 1 + i64::from(LEAD_S)) * 1_000;
        progress(&format!("{rate} fires/s in {LEAD_S} s"));
        tasks::deal_out(server, &stand, 1, (there, rate - there), Firing::EverySecondFrom(first)).await?;
        there = rate;
        let observed = window::observe(server, &stand, plan, first, None).await?;
        let complaints = complaints(&stand, plan, &observed).await?;
        steps.push((plan, observed));
        if !complaints.is_empty() {
            progress(&format!("{rate} fires/s are not sustained: {}", complaints.join(", ")));
            break;
        }
    }
    let file = stand.stop_executor().await?;
    let node_log = stand.node_alarms();
    let database = stand.kill_node().await;
    let mut runs = Vec::new();
    for (plan, observed) in steps {
        runs.push(Run {
            plan,
            seen: records::read(&file, &observed.window)?,
            rows: rows(&database, &observed.window).await?,
            observed,
            old: None,
            node_log: Value::Null,
            statements_source: server.statements_source(),
        });
    }
    let sustained = runs.iter().take_while(|run| run.complaints().is_empty()).last();
    std::fs::remove_file(file)?;
    server.remove(database).await?;
    Ok(json!({
        "last_sustained": sustained.map(|run| run.plan.rate),
        "seconds": seconds,
        "written_ahead_s": AHEAD_S,
        "steps": runs.iter().map(report::of_window).collect::<Vec<_>>(),
        "statements_source": server.statements_source(),
        "node_log": node_log,
        "machine": report::machine(),
    }))
}

/// Why the ramp ends here, by what the database knows: what the handler has seen is told at the executor's end.
async fn complaints(stand: &Stand, plan: Plan, observed: &Observed) -> Result<Vec<String>> {
    let mut complaints = observed.complaints(plan);
    let of_window = |which: &str| {
        let window = &observed.window;
        format!(
            "SELECT COUNT(*) FROM task_log WHERE fire_time >= {} AND fire_time < {} AND status = 10 {which}",
            window.start, window.end
        )
    };
    let expected = plan.expected() as i64;
    let missing = expected - stand.database.number(&of_window("")).await?;
    let late = stand.database.number(&of_window(&format!("AND started_at > fire_time + {LATE_MS}"))).await?;
    let mut complain = |holds: bool, text: String| complaints.extend(holds.then_some(text));
    complain(missing != 0, format!("{missing} fires not committed as succeeded"));
    complain(late * 100 > expected, format!("{late} fires more than {LATE_MS} ms late"));
    Ok(complaints)
}
