//! Figures for tests.

use super::input::{Input, Machine, Parts, Ramp, Retention, Run, Window};
use crate::lateness::Lateness;
use crate::load::Load;
use crate::old_logs::Kept;

/// Of some runs.
pub fn input(runs: Vec<Run>) -> Input {
    Input {
        runs,
        machine: Machine { cores: 2, cpu: Some("A Processor".to_owned()) },
        version: "1.2.3".to_owned(),
        days: vec!["2026-11-28".to_owned()],
        commits: vec!["abc1234".to_owned()],
        ..Input::default()
    }
}

fn window(database: &str, rate: u32) -> Window {
    let of_database = (database != "sqlite").then_some(87.0);
    Window {
        rate,
        seconds: 20,
        sustained: true,
        complaints: Vec::new(),
        handled: u64::from(rate) * 20,
        lateness_ms: Lateness {
            p50: 0.9,
            p99: 1.5,
            p999: 1.6,
            max: 2.25,
            curve: vec![(0.0, 0.0), (50.0, 0.9), (99.0, 1.5), (99.9, 1.6), (100.0, 2.25)],
        },
        cpu_us_per_fire: Parts { node: Some(9.0), executor: Some(5.0), database: of_database },
        statements_per_fire: 0.014_3,
        rss_mb: Parts { node: Some(60.0), executor: Some(20.0), database: None },
    }
}

/// One at a fixed rate.
pub fn run(database: &str, rate: u32) -> Run {
    Run { database: database.to_owned(), load: Load::ONE, window: window(database, rate), retention: None }
}

/// One with retention.
pub fn kept(database: &str, rate: u32) -> Run {
    let ends = [1_000_000, 1_000_500].map(|rows| Kept { deleted: 0, rows, overdue_ms: 0, uncounted_minutes: 1 });
    let [start, end] = ends;
    Run { retention: Some(Retention { deleted_per_second: 499.5, start, end }), ..run(database, rate) }
}

/// The last step is not sustained.
pub fn ramp(database: &str, rates: &[u32]) -> Ramp {
    let mut steps: Vec<Window> = rates.iter().map(|rate| window(database, *rate)).collect();
    let last_sustained = rates.iter().rev().nth(1).copied();
    if let Some(last) = steps.last_mut() {
        last.sustained = false;
        last.complaints = vec!["7 fires lost".to_owned()];
    }
    Ramp { database: database.to_owned(), last_sustained, steps }
}
