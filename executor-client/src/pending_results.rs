//! Results on their way to a node, and the recorder that puts them on disk first.

use crate::journal::{Journal, Pending};
use crate::runs::Runs;
use crate::sync::lock;
use bytes::Bytes;
use carillon_protocol::{RESULT_ITEMS_MAX, RunKey, RunResult};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// How long results gather before they are written: past the first milliseconds of a burst, when
/// starting runs needs all of the machine.
const GATHER: Duration = Duration::from_millis(25);

/// Largest body of a result request, bytes; well below what a node takes.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How often the recorder looks for acknowledgements to write when there are no results.
const IDLE: Duration = Duration::from_secs(1);

/// Results to send: one entry per unacknowledged run.
#[derive(Debug)]
pub(crate) struct PendingResults {
    state: Mutex<State>,
    /// Woken when there is something to send.
    pub(crate) ready: Notify,
    stopping: AtomicBool,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    pending: Pending,
    /// Not in flight, in the order of sending.
    queue: VecDeque<RunKey>,
    /// Acknowledged, not yet noted in the journal.
    acknowledged: Vec<RunKey>,
    bytes: usize,
}

/// Results of one request, with their JSON.
pub(crate) type Batch = Vec<(RunKey, Bytes)>;

impl PendingResults {
    /// Starts with the contents of the journal. Holds no more than about `bytes_max`.
    pub(crate) fn new(pending: Pending, bytes_max: usize) -> Self {
        let mut queue: VecDeque<RunKey> = pending.keys().copied().collect();
        queue.make_contiguous().sort_unstable();
        let bytes = pending.values().map(Bytes::len).sum();
        Self {
            state: Mutex::new(State { pending, queue, acknowledged: Vec::new(), bytes }),
            ready: Notify::new(),
            stopping: AtomicBool::new(false),
            bytes_max,
        }
    }

    pub(crate) fn keys(&self) -> Vec<RunKey> {
        lock(&self.state).pending.keys().copied().collect()
    }

    /// How many results it keeps, by name.
    #[cfg(feature = "simulation")]
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 3] {
        let state = lock(&self.state);
        let (pending, queue) = (state.pending.len(), state.queue.len());
        [("results", pending), ("results to send", queue), ("results to strike", state.acknowledged.len())]
    }

    fn add(&self, results: &[(RunKey, Bytes)]) {
        let mut state = lock(&self.state);
        for (key, json) in results {
            state.bytes += json.len();
            state.pending.insert(*key, json.clone());
            state.queue.push_back(*key);
        }
        drop(state);
        self.ready.notify_waiters();
        self.ready.notify_one();
    }

    /// Takes up to `items_max` results into flight.
    pub(crate) fn take(&self, items_max: usize) -> Batch {
        let mut state = lock(&self.state);
        let mut batch = Batch::new();
        let mut bytes = 0;
        while batch.len() < items_max.min(RESULT_ITEMS_MAX) {
            let Some(key) = state.queue.front().copied() else {
                break;
            };
            if let Some(json) = state.pending.get(&key) {
                bytes += json.len() + 1;
                if bytes > BATCH_BYTES_MAX && !batch.is_empty() {
                    break;
                }
                batch.push((key, json.clone()));
            }
            state.queue.pop_front();
        }
        batch
    }

    /// Removes results that a node has committed.
    pub(crate) fn acknowledged(&self, keys: &[RunKey]) {
        let mut state = lock(&self.state);
        for key in keys {
            if let Some(json) = state.pending.remove(key) {
                state.bytes -= json.len();
                state.acknowledged.push(*key);
            }
        }
    }

    /// Puts back a batch that no node accepted: in front, or behind everything else when it was
    /// refused because of its content.
    pub(crate) fn put_back(&self, batch: &[(RunKey, Bytes)], in_front: bool) {
        let mut state = lock(&self.state);
        if in_front {
            for (key, _) in batch.iter().rev() {
                state.queue.push_front(*key);
            }
        } else {
            state.queue.extend(batch.iter().map(|(key, _)| *key));
        }
    }

    /// Makes the recorder write what is left and return.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

/// Writes results to the journal in batches, then lets them be sent. Keeps beside it when a node was heard last.
pub(crate) struct Recorder {
    pub(crate) journal: Journal,
    pub(crate) runs: Arc<Runs>,
    pub(crate) pending_results: Arc<PendingResults>,
    /// When a node last acknowledged a heartbeat, ms.
    pub(crate) acknowledged_at: Arc<AtomicI64>,
}

impl Recorder {
    /// The thread: until stopped.
    pub(crate) fn run(mut self) {
        loop {
            let woken = self.runs.record.wait(IDLE);
            let stopping = self.is_stopping();
            if woken && !stopping {
                std::thread::sleep(GATHER);
                if self.runs.is_bursting() {
                    std::thread::sleep(GATHER);
                }
            }
            if self.round(stopping) {
                return self.close();
            }
        }
    }

    /// The same as a task.
    #[cfg(feature = "simulation")]
    pub(crate) async fn run_as_task(mut self) {
        loop {
            let woken = self.runs.record.is_set(IDLE).await;
            let stopping = self.is_stopping();
            if woken && !stopping {
                tokio::time::sleep(GATHER).await;
                if self.runs.is_bursting() {
                    tokio::time::sleep(GATHER).await;
                }
            }
            if self.round(stopping) {
                return self.close();
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.pending_results.stopping.load(Ordering::Acquire)
    }

    /// Records what has come in. Whether that was the last round.
    fn round(&mut self, stopping: bool) -> bool {
        let Self { journal, runs, pending_results, acknowledged_at } = self;
        let results: Batch = runs.take_finished().iter().filter_map(encode).collect();
        // Without a journal they are sent anyway; but what is not safe on disk should not grow.
        let full = !record_batch(journal, pending_results, &results)
            || lock(&pending_results.state).bytes > pending_results.bytes_max;
        runs.journal_full.store(full, Ordering::Release);
        pending_results.add(&results);
        journal.acknowledged.follow(acknowledged_at.load(Ordering::Relaxed));
        if stopping && !results.is_empty() {
            runs.record.set();
        }
        stopping && results.is_empty()
    }

    fn close(mut self) {
        self.journal.acknowledged.keep(self.acknowledged_at.load(Ordering::Relaxed));
        if lock(&self.pending_results.state).pending.is_empty()
            && let Err(error) = self.journal.cut()
        {
            tracing::warn!(%error, "journal.cut_failed");
        }
    }
}

/// Returns whether the journal is intact afterwards.
fn record_batch(journal: &mut Journal, pending_results: &PendingResults, results: &Batch) -> bool {
    let (acknowledged, alive_bytes) = {
        let mut state = lock(&pending_results.state);
        let new: usize = results.iter().map(|(_, json)| json.len()).sum();
        (std::mem::take(&mut state.acknowledged), state.bytes + new)
    };
    let written = journal.append(results.iter().map(|(_, json)| json), &acknowledged, alive_bytes as u64, || {
        // A copy of handles, so that the file is written without the lock.
        let mut pending = lock(&pending_results.state).pending.clone();
        pending.extend(results.iter().cloned());
        pending
    });
    if let Err(error) = &written {
        tracing::error!(
            path = %journal.dir().display(),
            %error,
            "journal.write_failed: results are sent, but a restart would lose the unsent; \
             free disk space or fix the directory"
        );
    }
    written.is_ok()
}

fn encode(result: &RunResult) -> Option<(RunKey, Bytes)> {
    match serde_json::to_vec(result) {
        Ok(json) => Some((RunKey(result.log, result.attempt), Bytes::from(json))),
        Err(error) => {
            // Cannot happen for strings and numbers; a result must never vanish silently.
            tracing::error!(log = result.log, attempt = result.attempt, %error, "result.not_encoded");
            None
        }
    }
}
