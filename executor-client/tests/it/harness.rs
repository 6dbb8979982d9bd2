//! Starting executors, and waiting for conditions.

use crate::client::{self, call};
use crate::node::TestNode;
use carillon_executor::{Executor, ExecutorBuilder, Output, RunError, TaskContext, TaskError};
use carillon_protocol::*;
use serde::Deserialize;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const TENANT: &str = "retail";
pub const APP: &str = "orders";
pub const KEY: &str = "key-1";
pub const SECRET: &str = "a secret for tests";

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// Waits until `condition` holds.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

/// What the handlers of [`builder`] saw.
#[derive(Default)]
pub struct Seen {
    pub started: Mutex<Vec<(i64, i64, i64)>>,
    pub running: AtomicUsize,
    pub running_max: AtomicUsize,
    pub dropped: AtomicUsize,
}

impl Seen {
    pub fn has_started(&self, log: i64) -> bool {
        self.started.lock().unwrap().iter().any(|s| s.0 == log)
    }

    fn enter(self: &Arc<Self>, ctx: &TaskContext) -> Inside {
        let start = (ctx.log(), ctx.started_at_us(), ctx.due_time() * 1_000);
        self.started.lock().unwrap().push(start);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.running_max.fetch_max(running, Ordering::SeqCst);
        Inside(Arc::clone(self))
    }
}

struct Inside(Arc<Seen>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Deserialize)]
struct Amount {
    cents: u32,
}

/// An executor of `nodes` with the handlers that the tests use.
pub fn builder(nodes: &[&TestNode], journal: &TempDir, seen: &Arc<Seen>) -> ExecutorBuilder {
    let mut builder = Executor::builder();
    for node in nodes {
        builder = builder.scheduler(&node.url);
    }
    let (quick, endless, short) = (Arc::clone(seen), Arc::clone(seen), Arc::clone(seen));
    builder
        .tenant(TENANT)
        .app(APP)
        .key(KEY, SECRET)
        .bind("127.0.0.1")
        .port(0)
        .journal_dir(journal.path())
        .drain_timeout(Duration::from_millis(500))
        .cancel_grace(Duration::from_millis(50))
        .handler("quick", move |ctx: TaskContext| {
            let seen = Arc::clone(&quick);
            async move {
                let _inside = seen.enter(&ctx);
                Ok(Output::text(ctx.params()))
            }
        })
        .handler("endless", move |ctx: TaskContext| {
            let seen = Arc::clone(&endless);
            async move {
                let _inside = seen.enter(&ctx);
                std::future::pending::<()>().await;
                Ok(Output::none())
            }
        })
        .handler("short", move |ctx: TaskContext| {
            let seen = Arc::clone(&short);
            async move {
                let _inside = seen.enter(&ctx);
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(Output::none())
            }
        })
        .handler("polite", |ctx: TaskContext| async move {
            ctx.cancelled().await;
            Ok(Output::none())
        })
        .handler("panic", |_ctx: TaskContext| async move { panic!("out of cheese") })
        .handler("fail", |_ctx: TaskContext| async move { Err(TaskError::failed("not today")) })
        .handler("fatal", |_ctx: TaskContext| async move { Err(TaskError::fatal("never")) })
        .typed("typed", |_ctx: TaskContext, amount: Amount| async move {
            Ok(Output::text(format!("{} cents", amount.cents)))
        })
}

/// A running executor.
pub struct Running {
    pub port: u16,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub fn start(builder: ExecutorBuilder) -> Self {
        let executor = builder.build().unwrap();
        let port = executor.port();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(executor.run_until(async move {
            let _ = stopped.await;
        }));
        Self { port, stop: Some(stop), task }
    }

    /// Starts and waits for the registration and the first heartbeat.
    pub async fn registered(builder: ExecutorBuilder, node: &TestNode) -> Self {
        let before = node.state().heartbeats.len();
        let running = Self::start(builder);
        eventually("registered", || node.state().heartbeats.len() > before).await;
        running
    }

    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Resolves when it has left.
    pub async fn ended(&mut self) {
        (&mut self.task).await.unwrap().unwrap();
    }

    pub async fn stopped(mut self) {
        self.begin_stop();
        bounded(&mut self.task).await.unwrap().unwrap();
    }

    pub async fn dispatch(&self, items: Vec<DispatchItem>, node: &TestNode) -> Vec<DispatchOutcome> {
        let message = client::dispatch(items);
        let got = call(self.port, "/dispatch", &message, node.now_ms()).send().await;
        assert_eq!((got.code, got.signed), (Code::Ok, true));
        serde_json::from_value::<DispatchAck>(got.data).unwrap().outcomes
    }

    pub async fn cancel(&self, logs: &[i64], unstarted_only: bool, node: &TestNode) -> Vec<CancelOutcome> {
        let keys: Vec<RunKey> = logs.iter().map(|log| RunKey(*log, 1)).collect();
        let message = client::cancel(&keys, unstarted_only);
        let got = call(self.port, "/cancel", &message, node.now_ms()).send().await;
        assert_eq!((got.code, got.signed), (Code::Ok, true));
        serde_json::from_value::<CancelAck>(got.data).unwrap().outcomes
    }
}

/// `future`, which must not take for ever.
pub async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("hangs")
}
