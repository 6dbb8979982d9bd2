//! A scheduler node: the built binary `carillon serve`.

use crate::command;
use crate::folder;
use crate::port;
use crate::process::Process;
use crate::wait::{await_until, when};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The bearer token of every node in the tests.
pub const TOKEN: &str = "the-token-of-the-system-tests-0123456789";

/// Settings as (`section.key`, value); `config` is a file of more.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// Every time-out after which a process counts as dead, and what depends on it, at a third of its default: for scenarios
/// that wait for that.
pub const QUICK: Settings = &[
    ("schedulers.heartbeat_interval", "1s"),
    ("schedulers.offline_after", "3300ms"),
    ("schedulers.look_interval", "330ms"),
    ("schedulers.reap_interval", "1s"),
    ("schedulers.load_interval", "1700ms"),
    ("executors.heartbeat_interval", "1s"),
    ("executors.offline_after", "3300ms"),
    ("executors.abandon_after", "20s"),
];

/// Puts settings into the environment as the node reads them.
pub fn configure(command: &mut Command, settings: Settings) {
    for (key, value) in settings {
        if *key == "config" {
            command.env("CARILLON_CONFIG", value);
            continue;
        }
        command.env(format!("CARILLON__{}", key.to_uppercase().replace('.', "__")), value);
    }
}

/// A node process.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name in the cluster.
    pub name: String,
    /// `http://127.0.0.1:port`.
    pub url: String,
    /// Where it listens.
    pub port: u16,
    /// The process.
    pub process: Process,
}

impl Node {
    /// Starts a node on `database_url`; `port` 0 takes a free one. It may not be ready yet.
    #[must_use]
    pub fn start(name: &str, database_url: &str, port: u16, settings: Settings) -> Self {
        Self::start_of(command::carillon(), name, database_url, port, settings)
    }

    /// Starts a node whose program is not `carillon`.
    #[must_use]
    pub fn start_of(mut command: Command, name: &str, database_url: &str, port: u16, settings: Settings) -> Self {
        let port = if port == 0 { port::free() } else { port };
        let folder: PathBuf = folder::fresh(name);
        command.arg("serve").current_dir(&folder);
        configure(
            &mut command,
            &[
                ("server.name", name),
                ("server.port", &port.to_string()),
                ("database.url", database_url),
                ("database.max_connections", "8"),
                ("api.token", TOKEN),
                ("log.level", "info"),
            ],
        );
        configure(&mut command, settings);
        let process = Process::start(&format!("node {name}"), command, &folder.join("node.log"));
        Self { name: name.to_owned(), url: format!("http://127.0.0.1:{port}"), port, process }
    }

    /// Waits until it has joined and its database answers.
    pub async fn ready(&self) {
        let what = format!("node {} is ready", self.name);
        await_until(&what, 60, || async {
            assert!(self.process.is_running(), "{}", self.process.log_digest());
            when(self.probe("/readyz").await == Some(200))
        })
        .await;
    }

    /// The status of `GET path`; `None` when it does not answer within 10 s.
    pub async fn probe(&self, path: &str) -> Option<u16> {
        let asked = crate::http::client()
            .build()
            .expect("build the HTTP client")
            .get(format!("{}{path}", self.url))
            .timeout(Duration::from_secs(10))
            .send()
            .await;
        asked.ok().map(|reply| reply.status().as_u16())
    }
}
