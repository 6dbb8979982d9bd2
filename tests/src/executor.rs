//! An executor: the SDK's own example, as an adopter would run it.

use crate::api::App;
use crate::command;
use crate::folder;
use crate::port;
use crate::process::Process;
use crate::report::{self, Start};
use crate::visits::{self, Visit};
use std::path::PathBuf;

/// How a demo executor differs from the usual one.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Tags, comma-separated.
    pub tags: &'a str,
    /// Where it listens; 0 takes a free port.
    pub port: u16,
    /// More environment.
    pub env: &'a [(&'a str, &'a str)],
}

/// A demo executor process.
#[derive(Debug, Clone)]
pub struct Executor {
    /// For people.
    pub name: String,
    /// Where it listens.
    pub port: u16,
    /// The process.
    pub process: Process,
    /// Its journal, unless another was set.
    pub journal: PathBuf,
    report: PathBuf,
    events: PathBuf,
}

impl Executor {
    /// Starts it; it may not be registered yet.
    #[must_use]
    pub fn start(name: &str, app: &App, nodes: &[String], options: &Options) -> Self {
        let folder = folder::fresh(name);
        let port = if options.port == 0 { port::free() } else { options.port };
        let (report, events) = (folder.join("report.jsonl"), folder.join("events.jsonl"));
        let journal = folder.join("journal");
        let mut command = command::demo();
        command
            .current_dir(&folder)
            .env("CARILLON_SCHEDULERS", nodes.join(","))
            .env("CARILLON_TENANT", &app.tenant)
            .env("CARILLON_APP", &app.name)
            .env("CARILLON_KEY_ID", &app.key.id)
            .env("CARILLON_KEY_SECRET", &app.key.secret)
            .env("CARILLON_PORT", port.to_string())
            .env("CARILLON_BIND", "127.0.0.1")
            .env("CARILLON_JOURNAL_DIR", &journal)
            .env("CARILLON_CAPACITY", "256")
            .env("DEMO_REPORT", &report)
            .env("DEMO_EVENTS", &events)
            .env("RUST_LOG", "info");
        if !options.tags.is_empty() {
            command.env("CARILLON_TAGS", options.tags);
        }
        command.envs(options.env.iter().copied());
        let process = Process::start(&format!("executor {name}"), command, &folder.join("executor.log"));
        Self { name: name.to_owned(), port, process, journal, report, events }
    }

    /// Every stay inside a handler so far, also those that go on.
    #[must_use]
    pub fn visits(&self) -> Vec<Visit> {
        visits::read(&self.events)
    }

    /// Every handler that was left so far.
    #[must_use]
    pub fn starts(&self) -> Vec<Start> {
        report::read(&self.report)
    }
}
