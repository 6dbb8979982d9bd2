//! A process that is killed, paused and started again, and is started again when it ends by itself, as by a supervisor.

use crate::signals;
use crate::story::Story;
use carillon_tests::process::Process;
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a process may take to end in good order.
const END_MAX: Duration = Duration::from_secs(75);

/// Between two looks at a process.
const LOOK: Duration = Duration::from_millis(50);

/// How soon a supervisor starts again what ended by itself.
const SUPERVISOR: Duration = Duration::from_secs(1);

/// A process that finds no database, or no node, at its start ends within this time.
const START_MAX: Duration = Duration::from_mins(1);

/// A process of one name, in its incarnations.
pub struct Host {
    name: String,
    story: Story,
    make: Box<dyn Fn(usize) -> Command + Send + Sync>,
    state: Mutex<State>,
    /// One fault of it at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    process: Option<Process>,
    incarnation: usize,
    /// Whether it should run.
    is_wanted: bool,
    /// Those that were killed, and when.
    deaths: BTreeMap<u32, i64>,
    /// Every one that there was.
    pids: Vec<u32>,
}

/// The monotonic clock, µs.
pub fn mono_us() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

impl Host {
    /// One whose command `make` gives by the number of the incarnation.
    pub fn new(name: &str, story: &Story, make: impl Fn(usize) -> Command + Send + Sync + 'static) -> Self {
        Self {
            name: name.to_owned(),
            story: story.clone(),
            make: Box::new(make),
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// As files call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts the next incarnation.
    pub fn start(&self) {
        let mut state = self.state.lock().unwrap();
        state.incarnation += 1;
        state.is_wanted = true;
        let log = self.story.path(&format!("{}.log", self.name));
        let process = Process::start(&self.name, (self.make)(state.incarnation), &log);
        self.story.tell("start", json!({ "name": self.name, "incarnation": state.incarnation, "pid": process.pid() }));
        state.pids.push(process.pid());
        state.process = Some(process);
    }

    /// Waits until the fault before is mended.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Its processes so far.
    pub fn pids(&self) -> Vec<u32> {
        self.state.lock().unwrap().pids.clone()
    }

    /// The process that runs.
    pub fn pid(&self) -> Option<u32> {
        self.process().map(|process| process.pid())
    }

    /// Processes that were killed, and when: just before, by the monotonic clock.
    pub fn deaths(&self) -> BTreeMap<u32, i64> {
        self.state.lock().unwrap().deaths.clone()
    }

    fn process(&self) -> Option<Process> {
        self.state.lock().unwrap().process.clone().filter(Process::is_running)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.process().is_some()
    }

    /// `kill -9`; returns when it is gone.
    pub async fn kill(&self) {
        let Some(process) = self.unwanted() else { return };
        self.story.tell("kill", json!({ "name": self.name, "pid": process.pid() }));
        self.state.lock().unwrap().deaths.insert(process.pid(), mono_us());
        signals::send(&[process.pid()], Signal::KILL);
        while process.is_running() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// From now on it need not run; the process, if it does.
    fn unwanted(&self) -> Option<Process> {
        self.state.lock().unwrap().is_wanted = false;
        self.process()
    }

    /// SIGSTOP or SIGCONT.
    pub fn signal(&self, signal: Signal) {
        if let Some(process) = self.process() {
            self.story.tell("signal", json!({ "name": self.name, "signal": format!("{signal:?}") }));
            signals::send(&[process.pid()], signal);
        }
    }

    /// SIGTERM; returns when it is gone. What takes too long is an incident.
    pub async fn stop(&self) {
        let Some(process) = self.unwanted() else { return };
        self.story.tell("stop", json!({ "name": self.name, "pid": process.pid() }));
        let began = Instant::now();
        signals::send(&[process.pid()], Signal::TERM);
        while process.exit().is_none() {
            if began.elapsed() > END_MAX {
                self.story.incident(&format!("{} did not end within {END_MAX:?} after SIGTERM", self.name));
                self.state.lock().unwrap().deaths.insert(process.pid(), mono_us());
                signals::send(&[process.pid()], Signal::KILL);
                tokio::time::sleep(Duration::from_secs(1)).await;
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        let (ms, exit) = (began.elapsed().as_millis() as u64, process.exit());
        self.story.tell("stopped", json!({ "name": self.name, "ms": ms, "exit": format!("{exit:?}") }));
    }

    /// Starts it again whenever it has ended by itself.
    pub async fn supervise(&self) {
        loop {
            tokio::time::sleep(SUPERVISOR).await;
            let Some((exit, ran)) = self.ended_by_itself() else { continue };
            // The database being away at its start is a reason to end; a panic or a signal is none, nor is anything later.
            let what = format!("{} ended by itself after {ran:.0?}: {exit}", self.name);
            if exit.code() == Some(1) && ran < START_MAX {
                self.story.tell(&what, json!({}));
            } else {
                self.story.incident(&what);
            }
            self.start();
        }
    }

    /// How, and how long it ran.
    fn ended_by_itself(&self) -> Option<(ExitStatus, Duration)> {
        let state = self.state.lock().unwrap();
        let process = state.process.as_ref().filter(|_| state.is_wanted)?;
        Some((process.exit()?, process.age()))
    }
}
