//! The highest rate that is sustained.

use crate::plan::Plan;
use crate::run::{self, Run};
use crate::stand::Bench;
use crate::{progress, report};
use anyhow::{Result, bail};
use serde_json::{Value, json};

/// Where the search begins, fires per second.
const FIRST: u32 = 1_000;

/// Length of a trial's window.
const TRIAL_S: u32 = 10;

/// Logs are written less far ahead in a trial: what a fire costs is the same, and the warm-up
/// is shorter.
const TRIAL_AHEAD_S: u32 = 30;

/// The search ends when the rates that are and are not sustained differ by less than this share.
const PRECISION: f64 = 0.05;

/// Or by so many fires per second.
const STEP_MIN: f64 = 10.0;

/// A full window may fail where a trial did not; then a lower rate is measured, so often.
const FULL_TRIES: usize = 5;

/// Searches by trials, then measures the best with a full window of `seconds`.
pub async fn measure(bench: &Bench, seconds: u32) -> Result<Value> {
    let mut trials = Vec::new();
    let (mut good, mut bad) = (0, None);
    loop {
        let rate = match bad {
            None if good == 0 => FIRST,
            None => good * 2,
            Some(bad) if f64::from(bad - good) <= (f64::from(bad) * PRECISION).max(STEP_MIN) => break,
            Some(bad) => u32::midpoint(good, bad),
        };
        let plan = Plan { ahead_s: TRIAL_AHEAD_S, ..Plan::full(rate, TRIAL_S) };
        if attempt(bench, plan, "trial", &mut trials).await.is_some() {
            good = rate;
        } else {
            bad = Some(rate);
        }
    }
    for _ in 0..FULL_TRIES {
        if good == 0 {
            break;
        }
        if let Some(run) = attempt(bench, Plan::full(good, seconds), "full", &mut trials).await {
            let mut figures = report::of_run(&run);
            figures["search"] = trials.into();
            return Ok(figures);
        }
        good = good * 19 / 20;
    }
    bail!("no rate was sustained: {}", Value::from(trials))
}

/// The run, if it was sustained. A process that gives up under the load is an answer too.
async fn attempt(bench: &Bench, plan: Plan, window: &str, trials: &mut Vec<Value>) -> Option<Run> {
    let run = run::measure(bench, plan).await;
    let complaints = match &run {
        Ok(run) => run.complaints(),
        Err(error) => vec![format!("{error:#}")],
    };
    let verdict = if complaints.is_empty() { "sustained".to_owned() } else { complaints.join(", ") };
    progress(&format!("{} fires/s ({window}): {verdict}", plan.rate));
    trials.push(json!({
        "rate": plan.rate,
        "window": window,
        "sustained": complaints.is_empty(),
        "complaints": complaints,
        "p99_ms": run.as_ref().ok().map(|run| run.seen.lateness_ms.p99),
    }));
    run.ok().filter(|_| complaints.is_empty())
}
