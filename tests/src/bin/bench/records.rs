//! What the handler saw: the records that the executor wrote at its end.

use anyhow::{Result, ensure};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Bytes of one record; see `executor-client/examples/bench.rs`.
const BYTES: usize = 36;

/// Bytes of one in the executor's memory, where each begins at a multiple of 8.
const BYTES_IN_MEMORY: usize = 40;

/// Starts of the handler in the window.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Different (task, fire time).
    pub handled: u64,
    /// Starts beyond the first of a (task, fire time).
    pub duplicated: u64,
    /// Starts before the fire time, by either clock.
    pub early: u64,
    /// Start after the fire time, by the wall clock that is also the database's.
    pub lateness_ms: Lateness,
    /// Wall clock before cluster clock at the start of a handler.
    pub clock_lag_us: ClockLag,
    /// Memory that the records took in the executor.
    #[serde(skip)]
    pub records_mb: f64,
}

/// How late.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct Lateness {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// How far the executor's estimate of the cluster clock lies behind the real one.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct ClockLag {
    pub min: i32,
    pub p50: i32,
    pub max: i32,
}

struct Record {
    task: i64,
    fire_time: i64,
    late_us: i32,
    late_wall_us: i32,
}

impl Record {
    fn parse(bytes: &[u8]) -> Self {
        let long = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Self { task: long(8), fire_time: long(16), late_us: short(24), late_wall_us: short(28) }
    }
}

/// Reads the records of fires in `window` (epoch ms).
pub fn read(file: &Path, window: &Range<i64>) -> Result<Seen> {
    let bytes = std::fs::read(file)?;
    ensure!(bytes.len() % BYTES == 0, "{} is not whole", file.display());
    let all = bytes.chunks_exact(BYTES).map(Record::parse);
    let records: Vec<Record> = all.filter(|record| window.contains(&record.fire_time)).collect();

    let mut fires: Vec<_> = records.iter().map(|record| (record.task, record.fire_time)).collect();
    fires.sort_unstable();
    fires.dedup();
    let mut late: Vec<i32> = records.iter().map(|record| record.late_wall_us).collect();
    late.sort_unstable();
    let mut lag: Vec<i32> = records.iter().map(|record| record.late_wall_us - record.late_us).collect();
    lag.sort_unstable();
    let at = |share| f64::from(quantile(&late, share)) / 1_000.0;
    Ok(Seen {
        handled: fires.len() as u64,
        duplicated: (records.len() - fires.len()) as u64,
        early: records.iter().filter(|record| record.late_us.min(record.late_wall_us) < 0).count() as u64,
        lateness_ms: Lateness { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) },
        clock_lag_us: ClockLag { min: quantile(&lag, 0.0), p50: quantile(&lag, 0.5), max: quantile(&lag, 1.0) },
        records_mb: (bytes.len() / BYTES * BYTES_IN_MEMORY) as f64 / 1_048_576.0,
    })
}

/// The first second (epoch ms) of `window` from which on all of `count` tasks' fires started within `late_us` of their time.
pub fn on_time_since(file: &Path, window: Range<i64>, count: usize, late_us: i32) -> Result<Option<i64>> {
    let bytes = std::fs::read(file)?;
    let mut fires: BTreeMap<i64, HashSet<i64>> = BTreeMap::new();
    for record in bytes.chunks_exact(BYTES).map(Record::parse) {
        if window.contains(&record.fire_time) && record.late_wall_us <= late_us {
            fires.entry(record.fire_time / 1_000).or_default().insert(record.task);
        }
    }
    let seconds = window.start.div_euclid(1_000) + 1..window.end.div_euclid(1_000);
    let last_bad = seconds.clone().rfind(|second| fires.get(second).is_none_or(|tasks| tasks.len() < count));
    let since = last_bad.map_or(seconds.start, |second| second + 1);
    Ok((since < seconds.end).then_some(since * 1_000))
}

/// The smallest value that at least `share` of all do not exceed; 0 of none.
fn quantile(sorted: &[i32], share: f64) -> i32 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0)
}
