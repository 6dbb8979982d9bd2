//! The thread that writes lines to files.

use super::keeper::Keeper;
use super::{Entry, Outputs, RunOutput, What, line};
use carillon_protocol::RunKey;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long lines gather before they are written: one write for many, and none in the first
/// milliseconds of a burst.
const GATHER: Duration = Duration::from_millis(25);

/// How often the writer checks for files that are too old when no run logs.
const IDLE: Duration = Duration::from_secs(10);

/// The lines of one run in one round.
struct Batch {
    output: Arc<RunOutput>,
    text: String,
    lines: u64,
    ends: bool,
}

/// Writes until stopped.
pub(crate) fn write(outputs: &Outputs) {
    let mut keeper = Keeper::new(outputs.folder.clone(), outputs.limits);
    let mut failing = Failing::default();
    let open = || outputs.open_runs();
    loop {
        if let Err(error) = keeper.tidy(open) {
            tracing::warn!(%error, "output.not_tidied");
        }
        outputs.written.wait(IDLE);
        let stopping = outputs.stopping.load(Ordering::Acquire);
        if !stopping {
            std::thread::sleep(GATHER);
        }
        let mut finished = Vec::new();
        for batch in batches(outputs.take(), outputs.clock.now_ms().unwrap_or_default()) {
            let key = batch.output.key;
            let written = match batch.text.as_str() {
                "" => Ok(()),
                text => keeper.append(key, text.as_bytes(), open),
            };
            match written {
                Ok(()) => failing.ended(),
                Err(error) => {
                    // The run's next line says so, if it can be written.
                    batch.output.lost.fetch_add(batch.lines, Ordering::Relaxed);
                    failing.again(&error, batch.lines);
                }
            }
            if batch.ends {
                finished.push(key);
            }
        }
        outputs.finished(&finished);
        if stopping {
            return;
        }
    }
}

/// The lines of each run, in the order of arrival.
fn batches(entries: Vec<Entry>, now_ms: i64) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut places: HashMap<RunKey, usize> = HashMap::new();
    for Entry { output, lost, what } in entries {
        let place = *places.entry(output.key).or_insert(batches.len());
        if place == batches.len() {
            batches.push(Batch { output, text: String::new(), lines: 0, ends: false });
        }
        let batch = &mut batches[place];
        if lost > 0 {
            batch.text.push_str(&line::lost(now_ms, lost));
            batch.lines += lost;
        }
        match what {
            What::Line(line) => {
                batch.text.push_str(&line);
                batch.lines += 1;
            }
            What::Cut => batch.text.push_str(&line::cut(now_ms)),
            What::End => batch.ends = true,
        }
    }
    batches
}

/// A series of failures: its start and end are logged, not every failure.
#[derive(Default)]
struct Failing {
    count: u64,
    lines: u64,
}

impl Failing {
    fn again(&mut self, error: &io::Error, lines: u64) {
        self.count += 1;
        self.lines += lines;
        // The first failure, then at growing distances.
        if self.count.is_power_of_two() {
            tracing::warn!(%error, lines = self.lines, "output.not_written: runs go on, their lines are lost");
        }
    }

    fn ended(&mut self) {
        if self.count > 0 {
            tracing::info!(lines_lost = self.lines, "output.written_again");
            *self = Self::default();
        }
    }
}
