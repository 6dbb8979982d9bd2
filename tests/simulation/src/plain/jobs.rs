//! Runs of a plain process: a thread and a queue for each job, whose runs go one after the other. Who is told to stop is off the list
//! at once, though its handler may go on for a moment.

use super::Process;
use super::callbacks::Ended;
use super::place::Place;
use crate::executor::{Start, Stopped, handler_fate, stopping_takes};
use carillon::domain::LogId;
use carillon_protocol::{RunKey, RunStatus};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What to do while an earlier run of the job goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Block {
    SerialExecution,
    DiscardLater,
    CoverEarly,
}

/// What is to be run.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) number: i64,
    pub(super) key: Option<RunKey>,
    pub(super) handler: String,
    /// 0 for none.
    pub(super) timeout_s: u64,
}

/// The thread of a job.
#[derive(Debug, Default)]
pub(super) struct JobThread {
    state: Mutex<ThreadState>,
    come: Notify,
    stop: CancellationToken,
    why_stopped: OnceLock<&'static str>,
}

#[derive(Debug, Default)]
struct ThreadState {
    queue: VecDeque<Job>,
    runs: bool,
}

impl JobThread {
    fn count(&self) -> usize {
        let state = self.state.lock().unwrap();
        state.queue.len() + usize::from(state.runs)
    }

    fn stop(&self, why: &'static str) {
        self.why_stopped.get_or_init(|| why);
        self.stop.cancel();
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock().unwrap();
        let next = state.queue.pop_front();
        state.runs = next.is_some();
        next
    }

    /// Runs what comes, until it is stopped.
    pub(super) async fn work(&self, process: &Process) {
        loop {
            if self.stop.is_cancelled() {
                break;
            }
            if let Some(job) = self.next() {
                self.run(process, job).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = self.come.notified() => {}
            }
        }
        self.give_back_queue(process);
    }

    fn why(&self) -> &'static str {
        self.why_stopped.get().copied().unwrap_or_default()
    }

    /// It is stopped: none of those that wait will run.
    fn give_back_queue(&self, process: &Process) {
        let queue = {
            let mut state = self.state.lock().unwrap();
            state.runs = false;
            std::mem::take(&mut state.queue)
        };
        for Job { number, key, .. } in queue {
            let message = format!("{} [job not executed, in the job queue, killed.]", self.why());
            process.callbacks.say(Ended { number, key, status: RunStatus::NotStarted, code: 500, message });
        }
    }

    async fn run(&self, process: &Process, job: Job) {
        let place = &process.place;
        place.logs.lock().unwrap().insert(job.number);
        let entered = Entered::new(place, &job);
        let fate_of = job.key.unwrap_or(RunKey(job.number, 0));
        let (lasts, fails) = handler_fate(&place.parts.dice, &job.handler, fate_of);
        let timeout = if job.timeout_s > 0 { Duration::from_secs(job.timeout_s) } else { Duration::MAX };
        let (status, code, message) = tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                if let Some(key) = job.key {
                    place.parts.ledger.taken_off_the_list(key);
                }
                tokio::time::sleep(stopping_takes(&place.parts.dice, fate_of)).await;
                (RunStatus::Cancelled, 500, format!("{} [job running, killed]", self.why()))
            }
            () = tokio::time::sleep(lasts.min(timeout)) => match (lasts > timeout, fails) {
                (true, _) => (RunStatus::Cancelled, 502, "job execute timeout ".to_owned()),
                (false, true) => (RunStatus::Failed, 500, "by chance".to_owned()),
                (false, false) => (RunStatus::Succeeded, 200, fate_of.0.to_string()),
            },
        };
        entered.end(status);
        process.callbacks.say(Ended { number: job.number, key: job.key, status, code, message });
    }
}

/// A handler that has been entered: it notes the end, however that comes about.
struct Entered {
    place: Arc<Place>,
    key: Option<RunKey>,
    has_ended: bool,
}

impl Entered {
    fn new(place: &Arc<Place>, job: &Job) -> Self {
        let at = place.parts.time.now_ms();
        // Of a run that the database has lost nobody knows anything.
        let key = job.key.filter(|key| {
            let start = place.store.inspect(|state| {
                let run = &state.logs.get(&LogId(key.0))?.run;
                let executor_id = state.dispatch_marks.get(&(run.id, key.1)).map_or(0, |mark| mark.executor_id.0);
                let (task, fire_time, due_time) = (run.task_id, run.fire_time, run.due_time);
                Some(Start { key: *key, task, machine: place.index, executor_id, fire_time, due_time, at })
            });
            let is_known = start.is_some();
            if let Some(start) = start {
                place.note(format!("log {} attempt {}: STARTS", key.0, key.1));
                place.parts.ledger.started(start);
            }
            is_known
        });
        Self { place: place.clone(), key, has_ended: false }
    }

    fn end(mut self, status: RunStatus) {
        self.note_end(Stopped::Ended(status));
    }

    fn note_end(&mut self, how: Stopped) {
        self.has_ended = true;
        let Some(key) = self.key else { return };
        self.place.note(format!("log {} attempt {}: {how:?}", key.0, key.1));
        self.place.parts.ledger.stopped(key, self.place.index, self.place.parts.time.now_ms(), how);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Without a runtime the simulation is over.
        if !self.has_ended && tokio::runtime::Handle::try_current().is_ok() {
            self.note_end(Stopped::Killed);
        }
    }
}

/// All threads of a process.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    by_number: Mutex<BTreeMap<i32, Arc<JobThread>>>,
    /// Stopped, and perhaps not at their end.
    stopped: Mutex<Vec<Arc<JobThread>>>,
}

impl Jobs {
    /// Runs of all jobs that wait or go on.
    pub(super) fn count(&self) -> usize {
        let mut stopped = self.stopped.lock().unwrap();
        stopped.retain(|thread| thread.count() > 0);
        let listed: usize = self.by_number.lock().unwrap().values().map(|thread| thread.count()).sum();
        listed + stopped.iter().map(|thread| thread.count()).sum::<usize>()
    }

    pub(super) fn is_busy(&self, job: i32) -> bool {
        self.by_number.lock().unwrap().get(&job).is_some_and(|thread| thread.count() > 0)
    }

    /// Takes a run; else says why not. `spawn` starts a thread.
    pub(super) fn take(
        &self,
        number: i32,
        job: Job,
        block: Block,
        spawn: impl FnOnce(Arc<JobThread>),
    ) -> Result<(), String> {
        if self.is_busy(number) {
            match block {
                Block::DiscardLater => return Err("block strategy effect：Discard Later".to_owned()),
                Block::CoverEarly => drop(self.stop(number, "block strategy effect：Cover Early")),
                Block::SerialExecution => {}
            }
        }
        let (thread, is_new) = {
            let mut threads = self.by_number.lock().unwrap();
            let is_new = !threads.contains_key(&number);
            (threads.entry(number).or_default().clone(), is_new)
        };
        {
            let mut state = thread.state.lock().unwrap();
            if state.queue.iter().any(|other| other.number == job.number) {
                return Err(format!("repeat trigger job, logId:{}", job.number));
            }
            state.queue.push_back(job);
        }
        thread.come.notify_one();
        if is_new {
            spawn(thread);
        }
        Ok(())
    }

    /// Takes a job's thread off the list, and tells it to stop; whether there is one.
    pub(super) fn stop(&self, number: i32, why: &'static str) -> bool {
        let Some(thread) = self.by_number.lock().unwrap().remove(&number) else { return false };
        thread.stop(why);
        self.stopped.lock().unwrap().push(thread);
        true
    }

    pub(super) fn stop_all(&self, why: &'static str) {
        let all: Vec<i32> = self.by_number.lock().unwrap().keys().copied().collect();
        for number in all {
            self.stop(number, why);
        }
    }
}
