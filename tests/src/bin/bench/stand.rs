//! What is measured: one node, and one executor with the handler `bench`.

use crate::database::Database;
use crate::proc::Target;
use crate::server::Server;
use anyhow::{Context, Result, bail, ensure};
use carillon_tests::process::{Process, bound};
use carillon_tests::{Api, folder, port};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The node's API token.
const TOKEN: &str = "the-token-of-the-benchmark-0123456789";

/// How long a process may take to be ready.
const READY_MAX: Duration = Duration::from_mins(1);

/// How long the executor may take to deliver its last results and to write its records.
const EXECUTOR_END_MAX: Duration = Duration::from_secs(90);

/// Variables that reach node and executor, for experiments; all others of theirs are cleared.
const TUNABLE: [&str; 5] = [
    "CARILLON__SCHEDULERS__",
    "CARILLON__EXECUTORS__",
    "CARILLON__DATABASE__MAX_CONNECTIONS",
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
    url: String,
    node: Process,
    executor: Option<Executor>,
    app: carillon_tests::App,
}

struct Executor {
    process: Process,
    records: PathBuf,
}

impl Stand {
    /// Starts a node that writes logs `ahead_s` ahead, and makes a tenant and an app.
    pub async fn raise(bench: &Bench, ahead_s: u32) -> Result<Self> {
        let database = bench.server.create().await?;
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
        let client = reqwest::Client::new();
        let ready = || async {
            let asked = client.get(format!("{url}/readyz")).timeout(Duration::from_secs(3)).send().await;
            asked.is_ok_and(|reply| reply.status().is_success())
        };
        until("the node is ready", &node, ready).await?;
        let api = Api::with_token(&url, TOKEN);
        let app = api.make_app("bench", "bench").await;
        let fields = json!({ "cron": "* * * * * ?", "started": false });
        let template = api.make_task(&app, "template", "bench", fields).await;
        Ok(Self { database, api, template, url, node, executor: None, app })
    }

    /// Starts the executor with room for `runs` in its memory.
    pub async fn start_executor(&mut self, bench: &Bench, runs: u64) -> Result<()> {
        let folder = folder::fresh("bench-executor");
        let records = folder.join("records");
        let port = port::free();
        let mut command = program(&bench.programs, "examples/bench")?;
        command
            .current_dir(&folder)
            .env("CARILLON_SCHEDULERS", &self.url)
            .env("CARILLON_TENANT", &self.app.tenant)
            .env("CARILLON_APP", &self.app.name)
            .env("CARILLON_KEY_ID", &self.app.key.id)
            .env("CARILLON_KEY_SECRET", &self.app.key.secret)
            .env("CARILLON_BIND", "127.0.0.1")
            .env("CARILLON_PORT", port.to_string())
            .env("CARILLON_JOURNAL_DIR", folder.join("journal"))
            .env("BENCH_RECORDS", &records)
            .env("BENCH_ROOM", runs.to_string());
        let process = Process::start("the executor", command, &folder.join("executor.log"));
        let online =
            || async { self.api.get("/executors").await["items"].as_array().is_some_and(|all| !all.is_empty()) };
        until("the executor has registered", &process, online).await?;
        self.executor = Some(Executor { process, records });
        Ok(())
    }

    /// The node's process.
    pub fn node(&self) -> Target {
        Target { pid: self.node.pid(), family: false }
    }

    /// The executor's process.
    pub fn executor(&self) -> Option<Target> {
        self.executor.as_ref().map(|executor| Target { pid: executor.process.pid(), family: false })
    }

    /// Statements that the node has sent, with the one that this question costs it.
    pub async fn node_statements(&self) -> Result<i64> {
        let answer = self.api.get("/nodes").await;
        answer["this"]["statements"].as_i64().with_context(|| format!("no this.statements in {answer}"))
    }

    /// Fails when a process has ended.
    pub fn check_alive(&self) -> Result<()> {
        for process in [Some(&self.node), self.executor.as_ref().map(|executor| &executor.process)] {
            let Some(process) = process else { continue };
            ensure!(process.is_running(), "{} has ended:\n{}", process.name(), process.log_digest());
        }
        Ok(())
    }

    /// Stops the executor in good order; the file of its records.
    pub async fn stop_executor(&mut self) -> Result<PathBuf> {
        let Executor { process, records } = self.executor.take().context("the executor was started")?;
        process.signal("TERM");
        let deadline = Instant::now() + EXECUTOR_END_MAX;
        while process.is_running() {
            ensure!(Instant::now() < deadline, "the executor does not end:\n{}", process.log_digest());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ensure!(records.exists(), "the executor wrote no records:\n{}", process.log_digest());
        Ok(records)
    }

    /// Warnings and errors that the node has logged.
    pub fn node_alarms(&self) -> Value {
        let log = self.node.log();
        let count = |word: &str| log.lines().filter(|line| line.contains(word)).count();
        json!({ "warnings": count(" WARN "), "errors": count("ERROR ") })
    }

    /// Kills the node: nothing is measured any more.
    pub async fn kill_node(self) -> Database {
        self.node.kill9().await;
        self.database
    }
}

/// Waits until `holds`.
async fn until<W: Future<Output = bool>>(what: &str, process: &Process, holds: impl Fn() -> W) -> Result<()> {
    let deadline = Instant::now() + READY_MAX;
    while !holds().await {
        if Instant::now() > deadline || !process.is_running() {
            bail!("in vain waited until {what}:\n{}", process.log_digest());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// A program to be measured, dying with this one, with only the tunable settings.
fn program(programs: &Path, name: &str) -> Result<Command> {
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
