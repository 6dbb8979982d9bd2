//! What is measured: nodes, and executors with the handler `bench`.

use crate::database::Database;
use crate::options::Kind;
use crate::plain;
use crate::proc::Target;
use crate::server::Server;
use crate::tenants;
use anyhow::{Context, Result, bail, ensure};
use carillon_tests::process::{Process, bound};
use carillon_tests::{Api, App, folder, now_ms, port};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The node's API token.
const TOKEN: &str = "the-token-of-the-benchmark-0123456789";

/// How long a process may take to be ready.
const READY_MAX: Duration = Duration::from_mins(1);

/// How long the executor may take to deliver its last results and to write its records.
const EXECUTOR_END_MAX: Duration = Duration::from_secs(90);

/// How long a node may take to show its figures.
const METRICS_MAX: Duration = Duration::from_secs(3);

/// Lines that are quoted from a node's log.
const SAID_MAX: usize = 20;

/// What executors write at their end, in their folder.
pub const RECORDS: &str = "records";

/// Variables that reach node and executor, for experiments; all others of theirs are cleared.
const TUNABLE: [&str; 7] = [
    "CARILLON__SCHEDULERS__",
    "CARILLON__EXECUTORS__",
    "CARILLON__DATABASE__MAX_CONNECTIONS",
    "CARILLON__DATA__PURGE_INTERVAL",
    "CARILLON__DATA__STATISTICS_INTERVAL",
    "CARILLON__LOG__LEVEL",
    "CARILLON_CAPACITY",
];

/// The settings of this process's environment that differ from the defaults.
pub fn overrides() -> Vec<(String, String)> {
    std::env::vars().filter(|(name, _)| TUNABLE.iter().any(|tunable| name.starts_with(tunable))).collect()
}

/// Where stands are raised.
pub struct Bench {
    /// With a database for each.
    pub server: Server,
    /// Folder of the programs that are measured.
    pub programs: PathBuf,
}

/// A node on a fresh database.
pub struct Stand {
    /// The driver's own connection to it.
    pub database: Database,
    /// The node's API.
    pub api: Api,
    /// Id of a stopped task that others are copied from.
    pub template: i64,
    ahead_s: u32,
    /// Of every node.
    urls: Vec<String>,
    node: Process,
    /// When the youngest node started, epoch ms.
    joined_at: i64,
    more_nodes: Vec<Process>,
    executor: Option<Executor>,
    /// One, or one of each tenant.
    apps: Vec<App>,
}

/// An executor that writes down what its handler sees.
pub struct Executor {
    process: Process,
    records: PathBuf,
}

impl Executor {
    /// Stops it in good order; the file of its records.
    pub async fn stop(self) -> Result<PathBuf> {
        let Self { process, records } = self;
        process.signal("TERM");
        let deadline = Instant::now() + EXECUTOR_END_MAX;
        while process.is_running() {
            ensure!(Instant::now() < deadline, "the executor does not end:\n{}", process.log_digest());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ensure!(records.exists(), "the executor wrote no records:\n{}", process.log_digest());
        Ok(records)
    }
}

impl Stand {
    /// Starts a node that writes logs `ahead_s` ahead, and makes a tenant and an app.
    pub async fn raise(bench: &Bench, ahead_s: u32) -> Result<Self> {
        let database = bench.server.create().await?;
        let (node, url) = start_node(bench, &database, ahead_s).await?;
        let api = Api::with_token(&url, TOKEN);
        let app = api.make_app("bench", "bench").await;
        let fields = json!({ "cron": "* * * * * ?", "started": false });
        let template = api.make_task(&app, "template", "bench", fields).await;
        Ok(Self {
            database,
            api,
            template,
            ahead_s,
            urls: vec![url],
            node,
            joined_at: now_ms(),
            more_nodes: Vec::new(),
            executor: None,
            apps: vec![app],
        })
    }

    /// The app of the executor that comes with the stand.
    pub fn app(&self) -> &App {
        &self.apps[0]
    }

    /// Makes so many more tenants, with an app each.
    pub async fn add_tenants(&mut self, kind: Kind, count: u32) -> Result<()> {
        let more = tenants::add(kind, &self.database, self.template, count).await?;
        self.apps.extend(more);
        Ok(())
    }

    /// Ends the first node at once.
    pub async fn stop_first_node(&self) {
        self.node.kill9().await;
    }

    /// Starts it anew on the same database.
    pub async fn start_first_node_again(&mut self, bench: &Bench) -> Result<()> {
        let (node, url) = start_node(bench, &self.database, self.ahead_s).await?;
        self.api = Api::with_token(&url, TOKEN);
        self.urls[0] = url;
        self.node = node;
        self.joined_at = now_ms();
        Ok(())
    }

    /// Where the first node is, and what opens it.
    pub fn address(&self) -> Value {
        json!({ "url": self.urls[0], "token": TOKEN })
    }

    /// Ends the node that was started last, at once.
    pub async fn kill_youngest_node(&mut self) {
        if let Some(node) = self.more_nodes.pop() {
            self.urls.pop();
            node.kill9().await;
        }
    }

    /// Starts another node on the same database.
    pub async fn add_node(&mut self, bench: &Bench) -> Result<()> {
        let (node, url) = start_node(bench, &self.database, self.ahead_s).await?;
        self.urls.push(url);
        self.more_nodes.push(node);
        self.joined_at = now_ms();
        Ok(())
    }

    /// Starts the executor with room for `runs` in its memory.
    pub async fn start_executor(&mut self, bench: &Bench, runs: u64) -> Result<()> {
        self.start_executors(bench, 1, runs).await
    }

    /// Starts a process of `count` executors, dealt out to the apps in turn.
    pub async fn start_executors(&mut self, bench: &Bench, count: u32, runs: u64) -> Result<()> {
        let apps: Vec<&App> = self.apps.iter().cycle().take(count as usize).collect();
        self.executor = Some(self.executors_of(bench, &apps, runs).await?);
        Ok(())
    }

    /// Starts an executor of `app`, one process among those of the stand.
    pub async fn executor_of(&self, bench: &Bench, app: &App, runs: u64) -> Result<Executor> {
        self.executors_of(bench, &[app], runs).await
    }

    /// Starts a process of `count` plain executors, dealt out to the apps in turn.
    pub async fn start_plain_executors(&mut self, bench: &Bench, count: u32, runs: u64) -> Result<()> {
        let due = self.registrations().await? + i64::from(count);
        let (command, folder) = plain::fleet(bench, (&self.api, self.url()), &self.apps, count, runs).await?;
        self.executor = Some(self.registered(command, &folder, due).await?);
        Ok(())
    }

    /// Starts one process with an executor for each of `apps`.
    async fn executors_of(&self, bench: &Bench, apps: &[&App], runs: u64) -> Result<Executor> {
        let due = self.registrations().await? + apps.len() as i64;
        let folder = folder::fresh("bench-executor");
        let list = folder.join("apps");
        let line = |app: &&App| format!("{}\t{}\t{}\t{}\n", app.tenant, app.name, app.key.id, app.key.secret);
        std::fs::write(&list, apps.iter().map(line).collect::<String>())?;
        let mut command = program(&bench.programs, "examples/bench")?;
        command
            .current_dir(&folder)
            .env("CARILLON_SCHEDULERS", self.urls.join(","))
            .env("CARILLON_BIND", "127.0.0.1")
            .env("CARILLON_PORT", "0")
            .env("BENCH_APPS", &list)
            .env("BENCH_RECORDS", folder.join(RECORDS))
            .env("BENCH_ROOM", runs.to_string());
        self.registered(command, &folder, due).await
    }

    /// Starts executors, and waits until `due` have registered in all.
    async fn registered(&self, command: Command, folder: &Path, due: i64) -> Result<Executor> {
        let process = Process::start("the executor", command, &folder.join("executor.log"));
        let have_registered = || async { self.registrations().await.is_ok_and(|count| count >= due) };
        until("every executor has registered", &process, have_registered).await?;
        Ok(Executor { process, records: folder.join(RECORDS) })
    }

    /// How many executors have registered so far.
    async fn registrations(&self) -> Result<i64> {
        self.database.number("SELECT COUNT(*) FROM executor").await
    }

    /// When the youngest node started, epoch ms.
    pub fn joined_at(&self) -> i64 {
        self.joined_at
    }

    /// The address of the first node.
    pub fn url(&self) -> &str {
        &self.urls[0]
    }

    /// Every node's process, the first in front.
    pub fn nodes(&self) -> Vec<Target> {
        let all = std::iter::once(&self.node).chain(&self.more_nodes);
        all.map(|node| Target { pid: node.pid(), family: false }).collect()
    }

    /// Statements that all nodes have sent, with the one that this question costs each.
    pub async fn statements_of_nodes(&self) -> Result<i64> {
        let mut sum = 0;
        for url in &self.urls {
            let answer = Api::with_token(url, TOKEN).get("/nodes").await;
            sum += answer["this"]["statements"].as_i64().with_context(|| format!("no this.statements in {answer}"))?;
        }
        Ok(sum)
    }

    /// The node's process.
    pub fn node(&self) -> Target {
        Target { pid: self.node.pid(), family: false }
    }

    /// The executor's process.
    pub fn executor(&self) -> Option<Target> {
        self.executor.as_ref().map(|executor| Target { pid: executor.process.pid(), family: false })
    }

    /// Fails when a process has ended.
    pub fn check_alive(&self) -> Result<()> {
        let executor = self.executor.as_ref().map(|executor| &executor.process);
        for process in std::iter::once(&self.node).chain(&self.more_nodes).chain(executor) {
            ensure!(process.is_running(), "{} has ended:\n{}", process.name(), process.log_digest());
        }
        Ok(())
    }

    /// Stops the executor in good order; the file of its records.
    pub async fn stop_executor(&mut self) -> Result<PathBuf> {
        self.executor.take().context("the executor was started")?.stop().await
    }

    /// What the node has said last.
    pub fn node_log(&self) -> String {
        self.node.log_digest()
    }

    /// Warnings and errors that the node has logged.
    pub fn node_alarms(&self) -> Value {
        let logs: Vec<String> = std::iter::once(&self.node).chain(&self.more_nodes).map(Process::log).collect();
        let count = |word: &str| logs.iter().flat_map(|log| log.lines()).filter(|line| line.contains(word)).count();
        json!({ "warnings": count(" WARN "), "errors": count("ERROR ") })
    }

    /// What the first node shows on `/metrics`, by name and labels.
    pub async fn metrics(&self) -> Result<HashMap<String, f64>> {
        let client = carillon_tests::http::shared();
        let asked = client.get(format!("{}/metrics", self.urls[0])).bearer_auth(TOKEN).timeout(METRICS_MAX);
        let text = asked.send().await?.error_for_status()?.text().await?;
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// Lines of the nodes' logs with this word.
    pub fn node_said(&self, word: &str) -> Vec<String> {
        let logs = std::iter::once(&self.node).chain(&self.more_nodes).map(Process::log);
        logs.flat_map(|log| {
            log.lines().filter(|line| line.contains(word)).take(SAID_MAX).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
    }

    /// Kills the nodes: nothing is measured any more.
    pub async fn kill_node(self) -> Database {
        self.node.kill9().await;
        for node in &self.more_nodes {
            node.kill9().await;
        }
        self.database
    }
}

/// Starts a node that writes logs `ahead_s` ahead; its process and its address.
async fn start_node(bench: &Bench, database: &Database, ahead_s: u32) -> Result<(Process, String)> {
    let folder = folder::fresh("bench-node");
    let port = port::free();
    let url = format!("http://127.0.0.1:{port}");
    let mut command = program(&bench.programs, "carillon")?;
    command
        .arg("serve")
        .current_dir(&folder)
        .env("CARILLON__SERVER__PORT", port.to_string())
        .env("CARILLON__DATABASE__URL", &database.url)
        .env("CARILLON__API__TOKEN", TOKEN)
        .env("CARILLON__SCHEDULERS__TASK_PRE_GENERATION_MAX_TIME", format!("{ahead_s}s"));
    let node = Process::start("the node", command, &folder.join("node.log"));
    let client = carillon_tests::http::client().build()?;
    let ready = || async {
        let asked = client.get(format!("{url}/readyz")).timeout(Duration::from_secs(3)).send().await;
        asked.is_ok_and(|reply| reply.status().is_success())
    };
    until("the node is ready", &node, ready).await?;
    Ok((node, url))
}

/// Waits until `holds`.
async fn until<W: Future<Output = bool>>(what: &str, process: &Process, holds: impl Fn() -> W) -> Result<()> {
    let deadline = Instant::now() + READY_MAX;
    while !holds().await {
        if Instant::now() > deadline || !process.is_running() {
            bail!("timed out waiting until {what}:\n{}", process.log_digest());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// A program to be measured, dying with this one, with only the tunable settings.
pub fn program(programs: &Path, name: &str) -> Result<Command> {
    let path = std::path::absolute(programs.join(name))?;
    ensure!(path.exists(), "{} is not built; scripts/bench builds it", path.display());
    let mut command = bound(&path, None);
    for (name, _) in std::env::vars() {
        if name.starts_with("CARILLON") || name.starts_with("RUST_LOG") {
            command.env_remove(name);
        }
    }
    command.envs(overrides());
    Ok(command)
}
