//! The log output of runs: each run has a file of its own, which nodes read from.
//!
//! A line goes into a queue that is bounded in bytes, and one thread ([`writer`]) writes it to its
//! run's file. Logging never waits for the disk: lines that the queue cannot take are counted, and
//! the file says how many are missing. The output of one run is bounded before the queue, so that a
//! run that logs without end costs the others nothing. A run that logs nothing has no file and
//! costs one check of an empty cell when it ends.

mod folder;
mod keeper;
#[cfg(feature = "layer")]
pub(crate) mod layer;
mod line;
mod page;
pub(crate) mod run_span;
pub(crate) mod span;
mod writer;

pub(crate) use folder::Folder;
pub(crate) use line::Level;
pub(crate) use writer::write;

use crate::clock::ClusterClock;
use crate::sync::{Signal, lock};
use carillon_protocol::{OUTPUT_PAGE_BYTES, OutputPage, OutputState, ReadOutput, RunKey};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Lines in memory that wait for the writer, bytes.
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What an entry of the queue costs besides its text, bytes.
const ENTRY_BYTES: usize = 64;

/// Runs at once that have logged something and whose file is not finished. More can be open only
/// while the disk hangs; what further runs log is lost.
const OPEN_MAX: usize = 16_384;

/// Room for a line about other lines in a run's share, bytes.
const REMARK_BYTES: u64 = 128;

/// Pages that are read from the disk at once; it may hang.
const READS_MAX: usize = 8;

/// How long a page waits for the disk; well below a node's time-out.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// How long the answer about a run that has ended waits for its last lines to be written.
const FINISH_LIMIT: Duration = Duration::from_millis(300);

/// Polling interval for that.
const FINISH_LOOK: Duration = Duration::from_millis(10);

/// How much output is kept, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of one run, bytes.
    pub(crate) run_bytes: u64,
    /// Of all runs of this process and those before it, bytes on the disk; 0 keeps nothing.
    pub(crate) total_bytes: u64,
    /// Since the last line.
    pub(crate) age: Duration,
}

/// Why no page could be read.
#[derive(Debug)]
pub(crate) enum NoPage {
    /// This executor keeps no output.
    KeepsNone,
    /// The limit of concurrent reads is reached.
    Busy,
    /// The disk failed, or did not respond.
    Disk(String),
}

/// The output of every run.
#[derive(Debug)]
pub(crate) struct Outputs {
    limits: Limits,
    folder: Folder,
    clock: Arc<ClusterClock>,
    queue: Mutex<Queue>,
    /// Set when there is something to write.
    written: Signal,
    stopping: AtomicBool,
    reads: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    bytes: usize,
    /// Runs that have logged something and whose file is not finished.
    open: HashMap<RunKey, Arc<RunOutput>>,
}

/// Something to put into a run's file.
#[derive(Debug)]
struct Entry {
    output: Arc<RunOutput>,
    /// Lines lost before it.
    lost: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Line(String),
    /// The output of this run has reached its limit.
    Cut,
    /// The run has ended.
    End,
}

/// The output of one run that has logged something. Changed under the queue's lock, except that the
/// writer adds to the lost lines.
#[derive(Debug)]
pub(crate) struct RunOutput {
    key: RunKey,
    /// Takes nothing more: cut, or ended.
    deaf: AtomicBool,
    /// Taken so far.
    bytes: AtomicU64,
    /// Lines lost that the file does not mention yet.
    lost: AtomicU64,
}

/// Where a run keeps its output: empty until it logs or ends, `None` when it will never have any.
#[derive(Debug, Default)]
pub(crate) struct Outlet(OnceLock<Option<Arc<RunOutput>>>);

impl Outputs {
    pub(crate) fn new(limits: Limits, folder: Folder, clock: Arc<ClusterClock>) -> Self {
        Self {
            limits,
            folder,
            clock,
            queue: Mutex::default(),
            written: Signal::default(),
            stopping: AtomicBool::new(false),
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// Whether anything is kept at all.
    pub(crate) fn are_kept(&self) -> bool {
        self.limits.total_bytes > 0
    }

    /// Adds a line to the output of `run`. Never waits for the disk; lost when the run has ended.
    pub(crate) fn log(&self, outlet: &Outlet, run: RunKey, level: Level, text: &dyn Display) {
        if !self.are_kept() {
            return;
        }
        let Some(output) = outlet.0.get_or_init(|| self.open(run)) else {
            return;
        };
        // Checked first: a run that was cut should not spend its time on formatting lines.
        if !output.deaf.load(Ordering::Relaxed) {
            self.push(output, line::line(self.clock.now_ms().unwrap_or_default(), level, text));
        }
    }

    fn open(&self, key: RunKey) -> Option<Arc<RunOutput>> {
        let mut queue = lock(&self.queue);
        if queue.open.len() >= OPEN_MAX {
            return None;
        }
        let output = RunOutput { key, deaf: AtomicBool::new(false), bytes: AtomicU64::new(0), lost: AtomicU64::new(0) };
        let output = Arc::new(output);
        queue.open.insert(key, Arc::clone(&output));
        Some(output)
    }

    fn push(&self, output: &Arc<RunOutput>, line: String) {
        let mut queue = lock(&self.queue);
        if output.deaf.load(Ordering::Relaxed) {
            return;
        }
        let remark = if output.lost.load(Ordering::Relaxed) > 0 { REMARK_BYTES } else { 0 };
        let bytes = output.bytes.load(Ordering::Relaxed) + line.len() as u64 + remark;
        if bytes > self.limits.run_bytes {
            output.deaf.store(true, Ordering::Relaxed);
            self.enqueue(queue, output, What::Cut);
        } else if queue.bytes + line.len() + ENTRY_BYTES > QUEUE_BYTES_MAX {
            output.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            output.bytes.store(bytes, Ordering::Relaxed);
            queue.bytes += line.len() + ENTRY_BYTES;
            self.enqueue(queue, output, What::Line(line));
        }
    }

    /// Lines that wait for the writer.
    pub(crate) fn unwritten(&self) -> Vec<String> {
        let lines = |entry: &Entry| match &entry.what {
            What::Line(line) => Some(line.clone()),
            What::Cut | What::End => None,
        };
        lock(&self.queue).entries.iter().filter_map(lines).collect()
    }

    /// The run has ended: nothing more is taken for it.
    pub(crate) fn end(&self, outlet: &Outlet) {
        if let Some(output) = outlet.0.get_or_init(|| None) {
            let queue = lock(&self.queue);
            output.deaf.store(true, Ordering::Relaxed);
            self.enqueue(queue, output, What::End);
        }
    }

    fn enqueue(&self, mut queue: std::sync::MutexGuard<'_, Queue>, output: &Arc<RunOutput>, what: What) {
        let first = queue.entries.is_empty();
        let lost = output.lost.swap(0, Ordering::Relaxed);
        queue.entries.push(Entry { output: Arc::clone(output), lost, what });
        drop(queue);
        if first {
            self.written.set();
        }
    }

    /// The entries since the last call.
    fn take(&self) -> Vec<Entry> {
        let mut queue = lock(&self.queue);
        queue.bytes = 0;
        std::mem::take(&mut queue.entries)
    }

    /// The files of these runs are finished.
    fn finished(&self, keys: &[RunKey]) {
        let mut queue = lock(&self.queue);
        for key in keys {
            queue.open.remove(key);
        }
    }

    /// Whether lines of this run may still be on their way to its file.
    fn is_open(&self, key: RunKey) -> bool {
        lock(&self.queue).open.contains_key(&key)
    }

    fn open_runs(&self) -> HashSet<RunKey> {
        lock(&self.queue).open.keys().copied().collect()
    }

    /// Stops the writer, which first writes what is left.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.written.set();
    }

    /// A page of a run's output; `state` is the table's, which must have been read before.
    pub(crate) async fn page(&self, asked: &ReadOutput, mut state: Option<OutputState>) -> Result<OutputPage, NoPage> {
        if !self.are_kept() {
            return Err(NoPage::KeepsNone);
        }
        let key = RunKey(asked.log, asked.attempt);
        if state == Some(OutputState::Ended) && !self.is_finished(key).await {
            state = Some(OutputState::Running);
        }
        let Ok(permit) = Arc::clone(&self.reads).try_acquire_owned() else {
            return Err(NoPage::Busy);
        };
        let (folder, from) = (self.folder.clone(), asked.from);
        let limit = asked.limit.clamp(*OUTPUT_PAGE_BYTES.start(), *OUTPUT_PAGE_BYTES.end());
        let read = tokio::task::spawn_blocking(move || {
            let page = page::read(&folder, key, from, limit, state);
            drop(permit);
            page
        });
        match tokio::time::timeout(READ_LIMIT, read).await {
            Ok(Ok(Ok(page))) => Ok(page),
            Ok(Ok(Err(error))) => Err(NoPage::Disk(error.to_string())),
            Ok(Err(error)) => Err(NoPage::Disk(error.to_string())),
            Err(_) => Err(NoPage::Disk(format!("no answer within {READ_LIMIT:?}"))),
        }
    }

    /// Waits a little for the last lines of a run that has ended. Whether they are written.
    async fn is_finished(&self, key: RunKey) -> bool {
        let deadline = tokio::time::Instant::now() + FINISH_LIMIT;
        while self.is_open(key) {
            if tokio::time::Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(FINISH_LOOK).await;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;
    use crate::{Output, TaskContext, TaskError};
    use carillon_protocol::DispatchItem;
    use std::path::Path;

    #[test]
    fn a_run_that_logs_nothing_allocates_nothing_for_it() {
        let clock = Arc::new(ClusterClock::new());
        let limits = Limits { run_bytes: 1_024, total_bytes: 10_240, age: Duration::from_hours(1) };
        let outputs = Arc::new(Outputs::new(limits, Folder::of(Path::new("nowhere/0"), 1), Arc::clone(&clock)));
        let item = r#"{"log": 1, "attempt": 1, "task": 2, "task_name": "t", "handler": "h", "fire_time": 5,
            "due_time": 5, "accept_until": 9, "shard_index": 0, "shard_total": 1, "timeout_ms": 0}"#;
        let item: DispatchItem = serde_json::from_str(item).unwrap();
        let handler = |_: TaskContext| async { Ok::<_, TaskError>(Output::none()) };
        let run = Arc::new(Run::new(item, Arc::new(handler), clock, Arc::clone(&outputs)));
        let live = |log: bool| {
            allocation_counter::measure(|| {
                let span = run_span::span_of(&run);
                let context = TaskContext::new(Arc::clone(&run), 0, span.clone());
                span.enter(|| log.then(|| context.log_info("x")));
                run.end_output();
            })
        };
        assert_eq!(live(false).count_total, 0);
        // It has ended: nothing is opened any more.
        assert_eq!(live(true).count_total, 0);
        assert!(!outputs.is_open(run.key()));
    }
}
