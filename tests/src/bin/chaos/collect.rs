//! Reads what is left: rows, attempts, and the executors' files.

use crate::history::{Attempt, Row, Visit};
use carillon_tests::Database;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Every row of `task_log`.
pub async fn rows(database: &Database) -> Vec<Row> {
    let sql = "SELECT id, task_id, parent_id, shard_index, shard_total, fire_time, due_time, status, attempt, failures, \
               started_at, finished_at, reason, trigger_kind FROM task_log ORDER BY task_id, fire_time, shard_index";
    let read = |row: &sea_orm::QueryResult| {
        Ok(Row {
            id: row.try_get_by_index(0)?,
            task: row.try_get_by_index(1)?,
            parent: row.try_get_by_index(2)?,
            shard_index: row.try_get_by_index(3)?,
            shard_total: row.try_get_by_index(4)?,
            fire_time: row.try_get_by_index(5)?,
            due_time: row.try_get_by_index(6)?,
            status: row.try_get_by_index(7)?,
            attempt: row.try_get_by_index(8)?,
            failures: row.try_get_by_index(9)?,
            started_at: row.try_get_by_index(10)?,
            finished_at: row.try_get_by_index(11)?,
            reason: row.try_get_by_index(12)?,
            trigger: row.try_get_by_index(13)?,
        })
    };
    database.query(sql, read).await
}

/// Every row of `task_log_attempt`.
pub async fn attempts(database: &Database) -> Vec<Attempt> {
    let sql =
        "SELECT log_id, attempt, due_time, finished_at, status, reason FROM task_log_attempt ORDER BY log_id, attempt";
    let read = |row: &sea_orm::QueryResult| {
        Ok(Attempt {
            log: row.try_get_by_index(0)?,
            attempt: row.try_get_by_index(1)?,
            due_time: row.try_get_by_index(2)?,
            finished_at: row.try_get_by_index(3)?,
            status: row.try_get_by_index(4)?,
            reason: row.try_get_by_index(5)?,
        })
    };
    database.query(sql, read).await
}

/// A line of an executor's file.
#[derive(Deserialize)]
struct Line {
    event: String,
    mono_us: i64,
    wall_us: i64,
    log: i64,
    attempt: i32,
    pid: u32,
    #[serde(default)]
    task: i64,
    #[serde(default)]
    fire_time: i64,
    #[serde(default)]
    due_time: i64,
    #[serde(default)]
    outcome: String,
}

/// The files of all incarnations of all executors.
pub fn record_files(folder: &Path) -> Vec<PathBuf> {
    let within = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_records = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("records-"))
    };
    let mut files: Vec<PathBuf> =
        within(folder).filter(|path| path.is_dir()).flat_map(|path| within(&path)).filter(is_records).collect();
    files.sort();
    files
}

/// What handlers wrote down, by their starts. Those of killed processes ended with them.
pub fn visits(files: &[PathBuf], deaths: &BTreeMap<u32, i64>, incidents: &mut Vec<String>) -> Vec<Visit> {
    let mut visits: Vec<Visit> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let mut open: HashMap<(i64, i32), usize> = HashMap::new();
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Line>(line) else {
                incidents.push(format!("{}: cannot be read: {line}", file.display()));
                continue;
            };
            if line.event == "start" {
                open.insert((line.log, line.attempt), visits.len());
                visits.push(begun(&line));
            } else if let Some(at) = open.remove(&(line.log, line.attempt)) {
                let visit = &mut visits[at];
                (visit.end_mono, visit.end_us, visit.outcome) = (line.mono_us, line.wall_us, line.outcome);
            } else {
                incidents.push(format!("{}: an end without a start: log {}", file.display(), line.log));
            }
        }
    }
    for visit in visits.iter_mut().filter(|visit| visit.outcome.is_empty()) {
        match deaths.get(&visit.pid) {
            Some(at) => {
                // What was written between the look at the clock and the signal began after it.
                visit.end_mono = (*at).max(visit.start_mono);
                visit.end_us = visit.start_us + visit.end_mono - visit.start_mono;
                "killed".clone_into(&mut visit.outcome);
            }
            None => "unknown".clone_into(&mut visit.outcome),
        }
    }
    visits.sort_by_key(|visit| visit.start_mono);
    visits
}

fn begun(line: &Line) -> Visit {
    Visit {
        log: line.log,
        attempt: line.attempt,
        task: line.task,
        fire_time: line.fire_time,
        due_time: line.due_time,
        pid: line.pid,
        start_us: line.wall_us,
        start_mono: line.mono_us,
        end_mono: i64::MAX,
        end_us: i64::MAX,
        outcome: String::new(),
    }
}
