//! When runs were inside their handlers, of all executors, by one clock: what overlaps is told by
//! the executors and not by the database.

use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// A stay inside a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of the demo's events
pub struct Visit {
    pub log: i64,
    pub attempt: i32,
    pub task: i64,
    pub executor: String,
    pub pid: u32,
    /// Epoch µs of this machine's clock.
    pub start_us: i64,
    /// `i64::MAX` while it goes on.
    pub end_us: i64,
    /// How it ended; empty while it goes on.
    pub outcome: String,
}

#[derive(Deserialize)]
struct Line {
    event: String,
    log: i64,
    attempt: i32,
    task: i64,
    wall_us: i64,
    pid: u32,
    executor: String,
    #[serde(default)]
    outcome: String,
}

/// Reads what one executor wrote. The last line may be cut off.
#[must_use]
pub fn read(path: &Path) -> Vec<Visit> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut visits: Vec<Visit> = Vec::new();
    let mut open: HashMap<(i64, i32), usize> = HashMap::new();
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let Line { event, log, attempt, task, wall_us, pid, executor, outcome } =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()));
        if event == "start" {
            open.insert((log, attempt), visits.len());
            let end_us = i64::MAX;
            visits.push(Visit { log, attempt, task, executor, pid, start_us: wall_us, end_us, outcome });
        } else {
            let at = open.remove(&(log, attempt)).unwrap_or_else(|| panic!("an end without a start: {line}"));
            visits[at].end_us = wall_us;
            visits[at].outcome = outcome;
        }
    }
    visits
}

/// How many were inside at once at most.
#[must_use]
pub fn most_at_once(visits: &[Visit]) -> usize {
    let mut steps: Vec<(i64, i32)> = visits.iter().flat_map(|v| [(v.start_us, 1), (v.end_us, -1)]).collect();
    // Who leaves at an instant makes room for who comes.
    steps.sort_unstable();
    let (mut inside, mut most) = (0i32, 0);
    for (_, step) in steps {
        inside += step;
        most = most.max(inside);
    }
    usize::try_from(most).unwrap_or(0)
}

/// No two of them were inside at once.
pub fn assert_apart(what: &str, visits: &[Visit]) {
    let mut last: Option<&Visit> = None;
    for visit in visits {
        if let Some(last) = last {
            let beside_us = last.end_us - visit.start_us;
            assert!(beside_us <= 0, "{what}: two at once for {beside_us} µs:\n  {last:?}\n  {visit:?}");
        }
        last = last.filter(|last| last.end_us > visit.end_us).or(Some(visit));
    }
}

/// The logs in the order in which they came in, each once.
#[must_use]
pub fn order(visits: &[Visit]) -> Vec<i64> {
    let mut logs = Vec::new();
    for visit in visits {
        if !logs.contains(&visit.log) {
            logs.push(visit.log);
        }
    }
    logs
}
