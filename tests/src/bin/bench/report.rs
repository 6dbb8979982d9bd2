//! Figures as JSON, and JSON as a table.

use crate::counters::Progress;
pub use crate::rounding::rounded;
use crate::run::{Run, Table};
use serde_json::{Map, Value, json};

/// The figures of one run, and what it was made with.
pub fn of_run(run: &Run) -> Value {
    let mut figures = of_window(run);
    figures["load"] = json!(run.plan.load);
    figures["protocol"] = json!(run.plan.protocol);
    figures["statements_source"] = run.statements_source.into();
    figures["executor_records_mb"] = rounded(run.seen.records_mb, 1).into();
    figures["node_log"] = run.node_log.clone();
    figures["machine"] = machine();
    let (before, after) = &run.observed.costs;
    if let (Some(before), Some(after)) = (&before.profile, &after.profile) {
        figures["statements"] = after.by_fire_since(before, fires(run));
    }
    if let Some(old) = &run.old {
        figures["retention"] = retention(run, old);
    }
    figures
}

/// The window holds as many fires as its length in seconds has bursts.
fn fires(run: &Run) -> f64 {
    (run.succeeded() as f64).max(1.0)
}

/// The figures of one window.
pub fn of_window(run: &Run) -> Value {
    let observed = &run.observed;
    let (before, after) = &observed.costs;
    let (start, end) = &observed.progress;
    let (fires, seconds) = (fires(run), after.at.duration_since(before.at).as_secs_f64());
    let (by_server, by_node) = after.statements_since(before);
    let complaints = run.complaints();
    let cpu_us: f64 = observed.cpu_us.iter().flatten().sum();
    json!({
        "rate": run.plan.rate,
        "seconds": run.plan.seconds,
        "sustained": complaints.is_empty(),
        "complaints": complaints,
        "fires_per_second": rounded(run.succeeded() as f64 / f64::from(run.plan.seconds), 1),
        "committed_per_second": per_second(&observed.progress, |at| at.committed),
        "written_per_second": per_second(&observed.progress, |at| at.written),
        "lateness_ms": run.seen.lateness_ms,
        "early": run.seen.early,
        "lost": run.lost(),
        "duplicated": run.seen.duplicated,
        "expected": run.plan.expected(),
        "handled": run.seen.handled,
        "rows": run.rows,
        "statements_per_fire": rounded(by_server.unwrap_or(by_node) as f64 / fires, 4),
        "node_statements_per_fire": rounded(by_node as f64 / fires, 4),
        "cpu_us_per_fire": parts(observed.cpu_us, |us| us / fires),
        "cpu_percent": parts(observed.cpu_us, |us| us / seconds / 10_000.0),
        "others_cpu_percent": rounded((after.machine_us - before.machine_us - cpu_us) / seconds / 10_000.0, 1),
        "written_bytes_per_fire": parts(observed.written_bytes, |bytes| bytes / fires),
        "work_per_fire": after.work.by_fire_since(&before.work, fires),
        "rss_mb": parts(observed.rss_mb, |mb| mb),
        "clock_lag_us": run.seen.clock_lag_us,
        "backlog": { "start": start.backlog, "end": end.backlog },
        "written_ahead_ms": { "start": start.ahead_ms, "end": end.ahead_ms },
    })
}

/// What retention and statistics did in the window.
fn retention(run: &Run, old: &Table) -> Value {
    let ends = &run.observed.progress;
    let deleted = per_second(ends, |at| at.kept.map_or(0, |kept| kept.deleted));
    let (counted, _) = old.rows;
    json!({
        "old_logs": old.logs.count(),
        "deleted_per_second": deleted,
        "start": ends.0.kept,
        "end": ends.1.kept,
        "rows_counted_after": counted,
    })
}

fn per_second((before, after): &(Progress, Progress), count: impl Fn(&Progress) -> i64) -> f64 {
    let seconds = after.at.duration_since(before.at).as_secs_f64();
    rounded((count(after) - count(before)) as f64 / seconds, 1)
}

/// One figure for node, executor and database; null for a part that does not exist.
pub fn parts(figures: [Option<f64>; 3], scale: impl Fn(f64) -> f64) -> Value {
    let [node, executor, database] = figures.map(|figure| figure.map(|figure| rounded(scale(figure), 1)));
    json!({ "node": node, "executor": executor, "database": database })
}

/// What it was measured on.
pub fn machine() -> Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    json!({ "cores": cores, "cpu": model })
}

/// One line per figure.
pub fn print_table(figures: &Value) {
    let mut lines = Vec::new();
    if let Value::Object(figures) = figures {
        flatten("", figures, &mut lines);
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in lines {
        println!("{name:<width$}  {value}");
    }
}

fn flatten(prefix: &str, figures: &Map<String, Value>, lines: &mut Vec<(String, String)>) {
    for (name, value) in figures {
        match value {
            // Points to draw; the figures beside it say it in words.
            Value::Array(_) if name == "curve" => {}
            Value::Object(inner) => flatten(&format!("{prefix}{name}."), inner, lines),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let line = |(at, item): (usize, &Value)| (format!("{prefix}{name}.{}", at + 1), item.to_string());
                lines.extend(items.iter().enumerate().map(line));
            }
            Value::String(text) => lines.push((format!("{prefix}{name}"), text.clone())),
            value => lines.push((format!("{prefix}{name}"), value.to_string())),
        }
    }
}
