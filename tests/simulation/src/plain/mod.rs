//! A machine of a plain executor, and the process on it: it speaks xxl-job's protocol as the Java client does, and knows nothing of
//! carillon. It registers, runs what it gets (`jobs.rs`), tells how that ended (`callbacks.rs`), and keeps nothing but the logs of
//! runs on its disk. Its handlers are those of every simulated executor.

mod callbacks;
mod jobs;
mod place;
mod requests;

use crate::executor::{MachineParts, NodeServer, Tasks};
use crate::net::Broken;
use crate::{SimStore, messages};
use callbacks::Callbacks;
use carillon_executor::simulation::Process as _;
use carillon_protocol::exchange::{Answer, Request};
use jobs::Jobs;
use place::{Place, REGISTER_PATH, REMOVE_PATH};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Between two registrations.
const REGISTER_EVERY: Duration = Duration::from_secs(30);

/// How long a process takes until its server listens, ms: from, to.
const BOOTS_MS: (i64, i64) = (1_000, 3_500);

/// A process that leaves lets its runs go on for so long.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// What it stops then has ended after this long: no handler takes longer to notice.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// Between two looks whether they have.
const LOOK: Duration = Duration::from_millis(50);

/// A machine.
pub struct PlainExecutor {
    place: Arc<Place>,
    process: Mutex<Option<Arc<Process>>>,
    processes: AtomicUsize,
    /// Handlers that processes started from now on do not have.
    missing: Mutex<Vec<String>>,
}

/// A running process.
struct Process {
    name: String,
    place: Arc<Place>,
    tasks: Arc<Tasks>,
    /// Whether its server listens.
    is_open: AtomicBool,
    handlers: Vec<String>,
    jobs: Jobs,
    callbacks: Callbacks,
    /// Asks it to end.
    drain: CancellationToken,
}

impl fmt::Debug for PlainExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plain executor {}", self.place.index)
    }
}

impl PlainExecutor {
    /// A machine without a process. `store` is where the world, and nobody in it, finds out which run a number means.
    #[must_use]
    pub fn new(index: usize, parts: MachineParts, store: SimStore) -> Arc<Self> {
        let place = Arc::new(Place::new(index, parts, store));
        Arc::new(Self { place, process: Mutex::default(), processes: AtomicUsize::new(0), missing: Mutex::default() })
    }

    /// Tells it where the nodes are.
    pub fn connect(&self, servers: Vec<Weak<dyn NodeServer>>) {
        self.place.connect(servers);
    }

    /// Its number.
    pub fn index(&self) -> usize {
        self.place.index
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.place.address
    }

    /// Processes started from now on lack these handlers.
    pub fn lack(&self, handlers: &[&str]) {
        *self.missing.lock().unwrap() = handlers.iter().map(|&name| name.to_owned()).collect();
    }

    fn process(&self) -> Option<Arc<Process>> {
        self.process.lock().unwrap().clone()
    }

    /// Whether a process runs here.
    pub fn is_running(&self) -> bool {
        self.process().is_some()
    }

    /// Starts a process, if none runs.
    pub fn start(self: &Arc<Self>) {
        if self.is_running() {
            return;
        }
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let missing = self.missing.lock().unwrap().clone();
        let process = Arc::new(Process {
            name: format!("executor-{}-{number}", self.index()),
            place: self.place.clone(),
            tasks: Tasks::new(self.place.parts.time.clone()),
            is_open: AtomicBool::new(false),
            handlers: self.place.parts.handlers.iter().filter(|name| !missing.contains(name)).cloned().collect(),
            jobs: Jobs::default(),
            callbacks: Callbacks::default(),
            drain: CancellationToken::new(),
        });
        self.place.note(format!("process {} starts", process.name));
        *self.process.lock().unwrap() = Some(process.clone());
        let machine = self.clone();
        process.spawn(async move |process| {
            process.live().await;
            machine.end(&process);
        });
    }

    /// The process has come to its end.
    fn end(&self, process: &Arc<Process>) {
        self.place.note("process ends: Ok");
        self.place.parts.ledger.gone(self.index(), self.place.parts.time.now_ms());
        self.process.lock().unwrap().take_if(|present| Arc::ptr_eq(present, process));
        process.tasks.kill();
    }

    /// Kills the process (SIGKILL): what it runs, and what it has not told, is forgotten.
    pub fn kill(&self) {
        let Some(process) = self.process.lock().unwrap().take() else { return };
        self.place.note(format!("process {} is killed", process.name));
        process.tasks.kill();
        self.place.parts.ledger.gone(self.index(), self.place.parts.time.now_ms());
    }

    /// Asks the process to end (SIGTERM).
    pub fn drain(&self) {
        if let Some(process) = self.process() {
            self.place.note(format!("process {} is asked to end", process.name));
            process.drain.cancel();
        }
    }

    /// Stops the process (SIGSTOP) until then, epoch ms.
    pub fn pause(&self, until_ms: i64) {
        if let Some(process) = self.process() {
            process.tasks.freeze(until_ms);
        }
    }

    /// Whether it has yet to tell how runs ended.
    pub fn has_results(&self) -> bool {
        self.process().is_some_and(|process| process.callbacks.count() > 0)
    }

    /// What its process keeps of runs, by name, where there is anything.
    pub fn kept(&self) -> Vec<(&'static str, usize)> {
        let Some(process) = self.process() else { return Vec::new() };
        let sizes = [("results", process.callbacks.count()), ("runs", process.jobs.count())];
        sizes.into_iter().filter(|(_, size)| *size > 0).collect()
    }

    /// What a request to this machine comes to.
    pub(super) async fn serve(&self, request: Request) -> Result<Answer, Broken> {
        let process = self.process().filter(|process| process.is_open.load(Ordering::Relaxed));
        let process = process.ok_or(Broken::Refused)?;
        let (back, answer) = oneshot::channel();
        let what = messages::summary(&request);
        process.spawn(async move |process| {
            let reply = process.answer(&request).await;
            if reply["code"] != 200 {
                process.place.note(format!("{what} answered {} by {}", reply["msg"], process.name));
            }
            drop(back.send(Answer::unsigned(200, reply.to_string())));
        });
        answer.await.map_err(|_| Broken::Reset)
    }
}

impl Process {
    /// Runs `work` in it.
    fn spawn<W, F>(self: &Arc<Self>, work: W)
    where
        W: FnOnce(Arc<Self>) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.run(Box::pin(work(self.clone())));
    }

    /// From its start to its end in good order.
    async fn live(self: &Arc<Self>) {
        let ms = self.place.parts.dice.between(&format!("{} boots", self.name), BOOTS_MS.0, BOOTS_MS.1);
        tokio::time::sleep(Duration::from_millis(ms as u64)).await;
        self.is_open.store(true, Ordering::Relaxed);
        self.spawn(async |process| process.callbacks.tell_as_they_come(&process.place).await);
        self.spawn(async |process| process.callbacks.tell_again(&process.place).await);
        loop {
            self.place.call_first(REGISTER_PATH, &self.place.registration()).await;
            tokio::select! {
                biased;
                () = self.drain.cancelled() => break,
                () = tokio::time::sleep(REGISTER_EVERY) => {}
            }
        }
        self.leave().await;
    }

    /// First it listens no more, then it says so, and only then its runs end.
    async fn leave(&self) {
        self.is_open.store(false, Ordering::Relaxed);
        self.place.call_first(REMOVE_PATH, &self.place.registration()).await;
        self.wait_for_runs(LEAVES_WITHIN).await;
        self.jobs.stop_all("web container destroy and kill the job.");
        self.wait_for_runs(STOPS_WITHIN).await;
        self.callbacks.tell_all(&self.place).await;
    }

    async fn wait_for_runs(&self, most: Duration) {
        let ended = async {
            while self.jobs.count() > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        // What goes on is stopped, or lost with the process.
        drop(tokio::time::timeout(most, ended).await);
    }
}
