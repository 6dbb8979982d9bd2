//! What the handler saw: the records that the executor wrote at its end.

use crate::fires::Fires;
use crate::lateness::{Histo, Lateness};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

/// Bytes of one record; see `executor-client/examples/bench.rs`.
pub const BYTES: usize = 36;

/// Bytes of one in the executor's memory, where each begins at a multiple of 8.
const BYTES_IN_MEMORY: u64 = 40;

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 20;

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
    fn parse(bytes: &[u8; BYTES]) -> Self {
        let long = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Self { task: long(8), fire_time: long(16), late_us: short(24), late_wall_us: short(28) }
    }
}

/// Passes each record on; how many there are.
fn each(file: &Path, mut take: impl FnMut(Record)) -> Result<u64> {
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("cannot open {name}"))?;
    let length = opened.metadata()?.len();
    ensure!(length.is_multiple_of(BYTES as u64), "{name} is not whole");
    let count = length / BYTES as u64;
    let mut reader = BufReader::with_capacity(BUFFER, opened);
    let mut bytes = [0; BYTES];
    for _ in 0..count {
        reader.read_exact(&mut bytes).with_context(|| format!("cannot read {name}"))?;
        take(Record::parse(&bytes));
    }
    Ok(count)
}

/// Reads the records of fires in `window` (epoch ms).
pub fn read(file: &Path, window: &Range<i64>) -> Result<Seen> {
    let (mut fires, mut late, mut lag) = (Fires::default(), Histo::new()?, Lag::default());
    let (mut duplicated, mut early) = (0, 0);
    let count = each(file, |record| {
        if !window.contains(&record.fire_time) {
            return;
        }
        duplicated += u64::from(!fires.insert(record.task, record.fire_time));
        early += u64::from(record.late_us.min(record.late_wall_us) < 0);
        late.record(record.late_wall_us);
        lag.record(record.late_wall_us - record.late_us);
    })?;
    Ok(Seen {
        handled: fires.count,
        duplicated,
        early,
        lateness_ms: late.summary(),
        clock_lag_us: lag.summary(),
        records_mb: (count * BYTES_IN_MEMORY) as f64 / 1_048_576.0,
    })
}

/// How often each difference of the clocks was seen: there are few.
#[derive(Default)]
struct Lag(BTreeMap<i32, u64>);

impl Lag {
    fn record(&mut self, us: i32) {
        *self.0.entry(us).or_default() += 1;
    }

    fn summary(&self) -> ClockLag {
        let half = self.0.values().sum::<u64>().div_ceil(2);
        let mut passed = 0;
        let middle = self.0.iter().find(|(_, count)| {
            passed += *count;
            passed >= half
        });
        let of = |entry: Option<(&i32, &u64)>| entry.map_or(0, |(us, _)| *us);
        ClockLag { min: of(self.0.first_key_value()), p50: of(middle), max: of(self.0.last_key_value()) }
    }
}

/// The first second (epoch ms) of `window` from which on all of `count` tasks' fires started within `late_us` of their time.
pub fn on_time_since(file: &Path, window: Range<i64>, count: usize, late_us: i32) -> Result<Option<i64>> {
    let mut fires: BTreeMap<i64, HashSet<i64>> = BTreeMap::new();
    each(file, |record| {
        if window.contains(&record.fire_time) && record.late_wall_us <= late_us {
            fires.entry(record.fire_time / 1_000).or_default().insert(record.task);
        }
    })?;
    let seconds = window.start.div_euclid(1_000) + 1..window.end.div_euclid(1_000);
    let last_bad = seconds.clone().rfind(|second| fires.get(second).is_none_or(|tasks| tasks.len() < count));
    let since = last_bad.map_or(seconds.start, |second| second + 1);
    Ok((since < seconds.end).then_some(since * 1_000))
}

/// Fires that started too late.
#[derive(Debug, PartialEq, Eq)]
pub struct Late {
    /// How many.
    pub count: u64,
    /// The last of their fire times, epoch ms.
    pub last: Option<i64>,
}

/// Fires of `window` (epoch ms) that started more than `late_us` after their time.
pub fn late(file: &Path, window: &Range<i64>, late_us: i32) -> Result<Late> {
    let mut late = Late { count: 0, last: None };
    each(file, |record| {
        if window.contains(&record.fire_time) && record.late_wall_us > late_us {
            late.count += 1;
            late.last = late.last.max(Some(record.fire_time));
        }
    })?;
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(task: i64, fire_time: i64, late_us: i32, late_wall_us: i32) -> Vec<u8> {
        let longs = [1, task, fire_time].into_iter().flat_map(i64::to_le_bytes);
        longs.chain([late_us, late_wall_us, 1].into_iter().flat_map(i32::to_le_bytes)).collect()
    }

    #[test]
    fn fires_of_the_window_are_counted_once_and_their_repetitions_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let all = [
            record(7, 1_000, 400, 900),
            record(8, 1_000, 500, 800),
            record(8, 1_000, 600, 1_300),
            record(7, 2_000, -2, 100),
            record(7, 9_000, 1, 1),
        ];
        std::fs::write(file.path(), all.concat()).unwrap();
        let seen = read(file.path(), &(1_000..3_000)).unwrap();
        assert_eq!((seen.handled, seen.duplicated, seen.early), (3, 1, 1));
        assert!((seen.lateness_ms.max - 1.3).abs() < 1e-9, "{:?}", seen.lateness_ms);
        let ClockLag { min, p50, max } = seen.clock_lag_us;
        assert_eq!((min, p50, max), (102, 300, 700));
        assert_eq!(late(file.path(), &(1_000..3_000), 850).unwrap(), Late { count: 2, last: Some(1_000) });
        assert_eq!(late(file.path(), &(2_000..3_000), 850).unwrap(), Late { count: 0, last: None });
        std::fs::write(file.path(), &all.concat()[1..]).unwrap();
        assert!(read(file.path(), &(1_000..3_000)).is_err(), "not whole");
    }
}
