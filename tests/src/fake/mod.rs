//! An executor that keeps to the protocol except where a scenario tells it not to.
//!
//! It registers, beats and answers like the SDK, holds what it accepts until the due time,
//! "runs" it, and reports. A scenario chooses what its replies look like ([`OnDispatch`]) and
//! whether results go out by themselves ([`Script::auto_results`]).

mod engine;
mod http;

use crate::api::App;
use crate::clock::now_ms;
use crate::port;
use crate::report::Start;
use crate::wait::await_until;
use crate::wire::{Answer, Request};
use carillon_protocol::sign::Key;
use carillon_protocol::{
    Code, DispatchItem, HandlerInfo, Heartbeat, HeartbeatAck, Register, Registered, Results, ResultsAck, RunKey,
    RunResult, RunStatus, Verdict, sign,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// What happens to a `/dispatch`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDispatch {
    /// As the SDK does.
    #[default]
    Accept,
    /// The items are accepted, and the connection is dropped before the reply.
    AcceptThenDrop,
    /// Nothing is accepted, and the connection is dropped.
    Drop,
    /// A polite refusal of every item.
    Refuse,
    /// Nothing is accepted; the reply never comes.
    Hang,
    /// Nothing is accepted; a reply that says otherwise is signed without the right key.
    ForgedAck,
}

/// What happens to a `/health`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnHealth {
    /// The connection is dropped.
    #[default]
    Drop,
    /// As an executor of carillon 0.1 that took over the port: only `GET` is known, and answered without a signature.
    Older,
    /// As another process of the app does.
    Successor,
    /// As another process of the app does, signed without the right key.
    Forged,
}

/// How it behaves; changed by scenarios at any time.
#[derive(Debug, Clone)]
pub struct Script {
    /// Answer to dispatches.
    pub on_dispatch: OnDispatch,
    /// Answer to nodes that ask which process it is.
    pub on_health: OnHealth,
    /// Runs end as succeeded, and their results are sent, without the scenario's doing.
    pub auto_results: bool,
    /// Heartbeats go out.
    pub beats: bool,
    /// It drops and stops what it is told to; else it hears nothing of that.
    pub obeys: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            on_dispatch: OnDispatch::Accept,
            on_health: OnHealth::Drop,
            auto_results: true,
            beats: true,
            obeys: true,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    executor_id: i64,
    script: Script,
    held: BTreeMap<RunKey, DispatchItem>,
    running: BTreeMap<RunKey, DispatchItem>,
    /// Ended, not acknowledged.
    outbox: BTreeMap<RunKey, RunResult>,
    /// Cancelled before they came.
    refused: HashSet<RunKey>,
    seen: HashSet<RunKey>,
    /// Every item of every `/dispatch`, also of those that were not accepted.
    offered: Vec<DispatchItem>,
    cancels: Vec<RunKey>,
    starts: Vec<Start>,
    /// Key and method of the last message of a node.
    last_signed: (String, &'static str),
}

/// The scripted executor. Dropped, it is gone like a killed process.
#[derive(Debug)]
pub struct FakeExecutor {
    /// Whose it is, and the key that it signs with.
    app: Arc<Mutex<App>>,
    /// Where it listens.
    pub port: u16,
    node_url: String,
    instance: String,
    handlers: Vec<String>,
    state: Arc<Mutex<State>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for FakeExecutor {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl FakeExecutor {
    /// Listens, registers with the node at `node_url` and starts beating. With
    /// `is_reachable == false` it advertises its port but nothing listens there.
    pub async fn start(app: &App, node_url: &str, handlers: &[&str], is_reachable: bool) -> Self {
        let mut fake = Self {
            app: Arc::new(Mutex::new(app.clone())),
            port: port::free(),
            node_url: node_url.to_owned(),
            instance: sign::random_hex::<16>().expect("random bytes"),
            handlers: handlers.iter().map(ToString::to_string).collect(),
            state: Arc::default(),
            tasks: Vec::new(),
        };
        if is_reachable {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", fake.port)).await.expect("bind");
            fake.tasks.push(tokio::spawn(http::serve(listener, Arc::clone(&fake.app), Arc::clone(&fake.state))));
        }
        let registered = fake.register().await;
        fake.state().executor_id = registered.executor_id;
        fake.tasks.push(tokio::spawn(engine::run(fake.engine())));
        fake.tasks.push(tokio::spawn(engine::beat(fake.engine())));
        fake
    }

    fn engine(&self) -> engine::Engine {
        engine::Engine {
            app: Arc::clone(&self.app),
            node_url: self.node_url.clone(),
            instance: self.instance.clone(),
            state: Arc::clone(&self.state),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> Register {
        Register {
            instance: self.instance.clone(),
            address: format!("http://127.0.0.1:{}", self.port),
            own_address: true,
            host_name: "fake".into(),
            pid: std::process::id(),
            version: "0".into(),
            tags: Vec::new(),
            description: "scripted".into(),
            capacity: 100,
            handlers: self
                .handlers
                .iter()
                .map(|name| HandlerInfo { name: name.clone(), ..HandlerInfo::default() })
                .collect(),
            acknowledged_at: 0,
        }
    }

    fn app(&self) -> App {
        self.app.lock().unwrap().clone()
    }

    /// Signs with another key of the app from now on, and registers with it; it stays the process
    /// that it is.
    pub async fn take_key(&self, key: Key) {
        self.app.lock().unwrap().key = key;
        let registered = self.register().await;
        assert_eq!(registered.executor_id, self.executor_id(), "another key makes no other process");
    }

    /// Key id and method with which the last message of a node was signed.
    #[must_use]
    pub fn last_signed(&self) -> (String, &'static str) {
        self.state().last_signed.clone()
    }

    async fn register(&self) -> Registered {
        let request = Request::new(&self.app(), &self.node_url, "/openapi/executors/register", &self.description());
        request.send().await.data()
    }

    /// Sends any message, rightly signed.
    pub async fn send(&self, path: &str, message: &impl serde::Serialize) -> Answer {
        Request::new(&self.app(), &self.node_url, path, message).send().await
    }

    /// Changes how it behaves.
    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.state().script);
    }

    /// As registered.
    #[must_use]
    pub fn executor_id(&self) -> i64 {
        self.state().executor_id
    }

    /// Random per start.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Everything that was ever offered to it, accepted or not.
    #[must_use]
    pub fn offered(&self) -> Vec<DispatchItem> {
        self.state().offered.clone()
    }

    /// Every cancel that reached it.
    #[must_use]
    pub fn cancels(&self) -> Vec<RunKey> {
        self.state().cancels.clone()
    }

    /// Every run that it started.
    #[must_use]
    pub fn starts(&self) -> Vec<Start> {
        self.state().starts.clone()
    }

    /// Waits until it runs an attempt of `task` that is not in `known`.
    pub async fn next_running(&self, task: i64, known: &[RunKey]) -> RunKey {
        await_until("the scripted executor runs something", 30, || async {
            let state = self.state();
            let mut running = state.running.iter();
            running.find(|(key, item)| item.task == task && !known.contains(key)).map(|(key, _)| *key)
        })
        .await
    }

    /// Ends a run, or drops it before it starts, without sending its result.
    pub fn forget(&self, key: RunKey) {
        let mut state = self.state();
        state.running.remove(&key);
        state.held.remove(&key);
    }

    /// A heartbeat right now.
    pub async fn heartbeat(&self) -> HeartbeatAck {
        engine::heartbeat(&self.engine()).await.expect("the heartbeat is answered")
    }

    /// Sends results exactly as given, and ends those runs here. Answers the verdicts.
    pub async fn send_results(&self, results: &[RunResult]) -> Vec<Verdict> {
        let message = Results { executor_id: self.executor_id(), results: results.to_vec() };
        let request = Request::new(&self.app(), &self.node_url, "/openapi/results", &message);
        let ack: ResultsAck = request.send().await.data();
        for result in results {
            self.forget(RunKey(result.log, result.attempt));
        }
        assert_eq!(ack.verdicts.len(), results.len());
        ack.verdicts
    }
}

/// A result of a run that started when it was due (or just now).
#[must_use]
pub fn result(key: RunKey, status: RunStatus) -> RunResult {
    let now = now_ms();
    RunResult {
        log: key.0,
        attempt: key.1,
        status,
        message: String::new(),
        output: String::new(),
        started_at: now,
        finished_at: now,
        due_time: 0,
    }
}

/// How long between heartbeats: as the default setting asks.
const BEAT: Duration = Duration::from_secs(3);

/// A heartbeat that another executor could send too, for the wire scenarios.
#[must_use]
pub fn empty_heartbeat(executor_id: i64, instance: &str) -> Heartbeat {
    Heartbeat {
        executor_id,
        instance: instance.to_owned(),
        snapshot_at: now_ms(),
        held: Vec::new(),
        running: Vec::new(),
        unacknowledged: Vec::new(),
        capacity: 100,
        draining: false,
        acknowledged_at: 0,
        made_us: 0,
    }
}

/// Whether a refusal is one that registering again mends.
#[must_use]
pub fn is_register_again(code: Code) -> bool {
    code == Code::RegisterAgain
}
