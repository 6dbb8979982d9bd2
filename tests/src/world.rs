//! Everything that one scenario runs, and what is checked at its end.

use crate::api::{Api, App};
use crate::clock::{now_ms, now_us};
use crate::command;
use crate::database::Database;
use crate::executor::{Executor, Options};
use crate::invariants::Invariants;
use crate::node::{Node, Settings};
use crate::report::Start;
use crate::rows::LogRow;
use crate::server::Kind;
use crate::visits::Visit;
use crate::wait::{await_until, when};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long runs may take to end; longer than `executors.abandon_after` and twice `executors.offline_after`, after which the
/// last doubt about a dead executor's runs ends. s.
const SETTLE_S: u64 = 120;

/// A scenario's database, nodes and executors. When the scenario fails, their logs are printed.
#[derive(Debug)]
pub struct World {
    /// The database.
    pub database: Database,
    nodes: Mutex<Vec<Node>>,
    executors: Mutex<Vec<Executor>>,
    is_report_cut: Mutex<bool>,
    /// When executors were killed, by process, epoch µs.
    killed: Mutex<HashMap<u32, i64>>,
}

impl World {
    /// A world on a shared server, the schema in its database.
    pub async fn new(kind: Kind) -> Self {
        Self::on(Database::fresh(kind).await)
    }

    /// A world on a shared server, without a schema.
    pub async fn empty(kind: Kind) -> Self {
        Self::on(Database::empty(kind).await)
    }

    /// A world on a server of its own, which may be stopped, without a schema.
    pub async fn private(kind: Kind) -> Self {
        Self::on(Database::private(kind).await)
    }

    /// A world whose database is there already.
    #[must_use]
    pub fn on(database: Database) -> Self {
        Self {
            database,
            nodes: Mutex::default(),
            executors: Mutex::default(),
            is_report_cut: Mutex::default(),
            killed: Mutex::default(),
        }
    }

    /// Starts a node and waits until it is ready.
    pub async fn node(&self, name: &str, settings: Settings<'_>) -> Node {
        let node = self.unready_node(name, 0, settings);
        node.ready().await;
        node
    }

    /// Starts node `a`, and `b` beside it where the database may be shared; answers `a`.
    pub async fn nodes(&self, settings: Settings<'_>) -> Node {
        let node = self.node("a", settings).await;
        if self.database.kind != Kind::Sqlite {
            self.node("b", settings).await;
        }
        node
    }

    /// Starts a node that uses the database by an address of its own, and waits until it is ready.
    pub async fn node_on(&self, name: &str, database: &Database, settings: Settings<'_>) -> Node {
        let node = self.kept(Node::start(name, &database.url, 0, settings));
        node.ready().await;
        node
    }

    /// Starts a node.
    pub fn unready_node(&self, name: &str, port: u16, settings: Settings<'_>) -> Node {
        self.kept(Node::start(name, &self.database.url, port, settings))
    }

    /// Counts it among the nodes of this world.
    fn kept(&self, node: Node) -> Node {
        self.nodes.lock().unwrap().push(node.clone());
        node
    }

    /// Starts a node of a later release, which knows so many steps of the schema more, and waits until it is ready.
    pub async fn later_node(&self, name: &str, port: u16, steps: usize, settings: Settings<'_>) -> Node {
        let node = self.kept(Node::start_of(command::later_carillon(steps), name, &self.database.url, port, settings));
        node.ready().await;
        node
    }

    /// A client of any node that runs.
    #[must_use]
    pub fn api(&self) -> Api {
        let nodes = self.nodes.lock().unwrap();
        let running = nodes.iter().rev().find(|node| node.process.is_running());
        Api::new(&running.expect("a node runs").url)
    }

    /// The nodes that run.
    #[must_use]
    pub fn running_nodes(&self) -> Vec<Node> {
        let nodes = self.nodes.lock().unwrap();
        nodes.iter().filter(|node| node.process.is_running()).cloned().collect()
    }

    /// Where the nodes that run listen.
    #[must_use]
    pub fn node_urls(&self) -> Vec<String> {
        self.running_nodes().into_iter().map(|node| node.url).collect()
    }

    /// Everything that the nodes printed.
    #[must_use]
    pub fn node_logs(&self) -> String {
        self.nodes.lock().unwrap().iter().map(|node| node.process.log()).collect()
    }

    /// Starts a demo executor that knows all nodes, and waits until it is registered.
    pub async fn executor(&self, name: &str, app: &App) -> Executor {
        self.executor_with(name, app, &Options::default()).await
    }

    /// Starts a demo executor with options, and waits until it is registered.
    pub async fn executor_with(&self, name: &str, app: &App, options: &Options<'_>) -> Executor {
        let urls: Vec<String> = self.nodes.lock().unwrap().iter().map(|node| node.url.clone()).collect();
        let executor = Executor::start(name, app, &urls, options);
        self.executors.lock().unwrap().push(executor.clone());
        let sql = format!("SELECT COUNT(*) FROM executor WHERE address LIKE '%:{}' AND gone_at = 0", executor.port);
        await_until(&format!("executor {name} is registered"), 60, || async {
            assert!(executor.process.is_running(), "{}", executor.process.log_digest());
            when(self.database.number(&sql).await > 0)
        })
        .await;
        executor
    }

    /// Kills an executor; its report may lack its last starts from then on.
    pub async fn kill9(&self, executor: &Executor) {
        *self.is_report_cut.lock().unwrap() = true;
        self.killed.lock().unwrap().insert(executor.process.pid(), now_us());
        executor.process.kill9().await;
    }

    /// Every stay of a run of `task` inside a handler, by its start. What a killed executor was in
    /// ended with it.
    #[must_use]
    pub fn visits(&self, task: i64) -> Vec<Visit> {
        let executors = self.executors.lock().unwrap().clone();
        let killed = self.killed.lock().unwrap();
        let mut visits: Vec<Visit> =
            executors.iter().flat_map(Executor::visits).filter(|visit| visit.task == task).collect();
        for visit in visits.iter_mut().filter(|visit| visit.end_us == i64::MAX) {
            if let Some(at) = killed.get(&visit.pid) {
                visit.end_us = *at;
            }
        }
        visits.sort_by_key(|visit| visit.start_us);
        visits
    }

    /// Waits until every node goes by the rules (quotas, limits, windows, weights) that are there now.
    pub async fn await_rules(&self) {
        let version = self.database.number("SELECT version FROM rule_version").await;
        for url in self.node_urls() {
            let api = Api::new(&url);
            await_until(&format!("the node at {url} goes by the rules of now"), 30, || async {
                let known = api.get("/nodes").await["this"]["rule_version"].as_i64();
                when(known.is_some_and(|known| known >= version))
            })
            .await;
        }
    }

    /// Waits until every node routes to these executors.
    pub async fn await_online(&self, executors: &[i64]) {
        for url in self.node_urls() {
            let api = Api::new(&url);
            await_until(&format!("the node at {url} knows executors {executors:?}"), 30, || async {
                let shown = api.get("/executors").await;
                let shown: Vec<&str> = shown["items"].as_array()?.iter().filter_map(|one| one["id"].as_str()).collect();
                when(executors.iter().all(|id| shown.contains(&id.to_string().as_str())))
            })
            .await;
        }
    }

    /// Waits until `count` runs of `task` are inside a handler; those.
    pub async fn await_inside(&self, task: i64, count: usize) -> Vec<Visit> {
        await_until(&format!("{count} runs of task {task} are inside"), 60, || async {
            let mut visits = self.visits(task);
            visits.retain(|visit| visit.end_us == i64::MAX);
            (visits.len() >= count).then_some(visits)
        })
        .await
    }

    /// Waits until a run has ended; its row.
    pub async fn await_end(&self, log: i64) -> LogRow {
        await_until(&format!("log {log} has ended"), SETTLE_S, || async {
            let row = self.database.log(log).await;
            row.status.is_terminal().then_some(row)
        })
        .await
    }

    /// Waits until all of these runs have ended; their rows in this order.
    pub async fn await_ends(&self, logs: &[i64]) -> Vec<LogRow> {
        let mut rows = Vec::new();
        for log in logs {
            rows.push(self.await_end(*log).await);
        }
        rows
    }

    /// No node has panicked or logged an error, and no executor, save lines with one of `caused`.
    pub fn assert_quiet(&self, caused: &[&str]) {
        let is_loud = |line: &&str| {
            (line.contains(" ERROR ") || line.contains("panicked at"))
                && !line.contains("on purpose")
                && !caused.iter().any(|word| line.contains(word))
        };
        let nodes: Vec<_> = self.nodes.lock().unwrap().iter().map(|node| node.process.clone()).collect();
        let executors: Vec<_> = self.executors.lock().unwrap().iter().map(|one| one.process.clone()).collect();
        for process in nodes.into_iter().chain(executors) {
            let log = process.log();
            let loud: Vec<&str> = log.lines().filter(is_loud).collect();
            assert!(loud.is_empty(), "{} is not quiet: {}", process.name(), crate::wait::sample(&loud));
        }
    }

    /// Every start that a demo executor wrote down so far.
    #[must_use]
    pub fn starts(&self) -> Vec<Start> {
        let executors = self.executors.lock().unwrap().clone();
        executors.iter().flat_map(Executor::starts).collect()
    }

    /// Waits until `task` has at least `count` logs that ended well.
    pub async fn await_successes(&self, task: i64, count: usize) {
        let sql = format!("SELECT COUNT(*) FROM task_log WHERE task_id = {task} AND status = 10");
        await_until(&format!("task {task} has succeeded {count} times"), 60, || async {
            when(self.database.number(&sql).await >= count as i64)
        })
        .await;
    }

    /// Settles, checks, and no node may have logged an error. For worlds where nothing was broken
    /// on purpose that a node must complain about.
    pub async fn end_well(&self) -> (Vec<LogRow>, Vec<Start>) {
        let ended = self.settle_and_check().await;
        self.assert_quiet(&[]);
        ended
    }

    /// Waits until every run that is due has ended by itself (a stop would end some that are
    /// stuck), then stops every task and waits until every log has ended.
    pub async fn settle(&self) {
        let due = format!("status < 10 AND fire_time <= {}", now_ms());
        self.await_none("due runs that do not end by themselves", &due).await;
        let api = self.api();
        for task in api.tasks().await {
            if task["started"].as_bool() == Some(true) {
                let id = crate::api::id_of(&task["id"]).expect("a task has an id");
                api.stop(id).await;
            }
        }
        self.await_none("runs that do not end after the stop", "status < 10").await;
    }

    async fn await_none(&self, what: &str, condition: &str) {
        let deadline = Instant::now() + Duration::from_secs(SETTLE_S);
        let count = format!("SELECT COUNT(*) FROM task_log WHERE {condition}");
        while self.database.number(&count).await > 0 {
            if Instant::now() > deadline {
                let open = self.database.logs(condition).await;
                panic!("{what}, after {SETTLE_S} s: {}", crate::wait::sample(&open));
            }
            crate::wait::pass(0.1).await;
        }
    }

    /// Settles, then holds everything against the promises. Answers the rows and the starts.
    pub async fn settle_and_check(&self) -> (Vec<LogRow>, Vec<Start>) {
        self.settle_and_check_with(Vec::new).await
    }

    /// The same with the starts of scripted executors.
    pub async fn settle_and_check_with(&self, more: impl Fn() -> Vec<Start>) -> (Vec<LogRow>, Vec<Start>) {
        self.settle().await;
        let rows = self.database.logs("1 = 1").await;
        let is_report_cut = *self.is_report_cut.lock().unwrap();
        let starts = self.flushed_starts(&rows, is_report_cut, &more).await;
        Invariants { rows: &rows, starts: &starts, is_report_cut }.check();
        (rows, starts)
    }

    /// The demo executor writes its report some milliseconds after a run ended.
    async fn flushed_starts(&self, rows: &[LogRow], is_cut: bool, more: &impl Fn() -> Vec<Start>) -> Vec<Start> {
        let ran = |row: &&LogRow| row.status == crate::rows::Status::Succeeded && !row.is_parent();
        let expected = rows.iter().filter(ran).count();
        for _ in 0..20 {
            let mut starts = self.starts();
            starts.extend(more());
            let logs: std::collections::HashSet<i64> = starts.iter().map(|start| start.log).collect();
            if !is_cut && logs.len() >= expected {
                return starts;
            }
            crate::wait::pass(0.1).await;
        }
        let mut starts = self.starts();
        starts.extend(more());
        starts
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for node in self.nodes.get_mut().unwrap() {
            eprintln!("{}", node.process.log_digest());
        }
        for executor in self.executors.get_mut().unwrap() {
            eprintln!("{}", executor.process.log_digest());
        }
    }
}
