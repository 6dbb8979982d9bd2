//! An executor of xxl-job on a published library: a probe of `tests/clients/`, built by `scripts/clients`.

use crate::command;
use crate::folder;
use crate::port;
use crate::process::Process;
use crate::wait::await_until;
use serde_json::Value;
use std::path::PathBuf;

/// A library, and what differs in how its executors behave: the table of `tests/clients/README.md`.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // a row of that table
pub struct Library {
    /// As `scripts/clients` names it.
    pub name: &'static str,
    /// A run waits there while another of its task goes on; else it is refused.
    pub queues: bool,
    /// It replaces the run that goes on where the task wants that; else the new one is refused.
    pub covers: bool,
    /// What runs at SIGTERM may come to its end; else it is interrupted.
    pub lets_runs_end: bool,
    /// The answer of a handler comes as JSON.
    pub answers_json: bool,
}

impl Library {
    /// What becomes of a handler's answer on the wire.
    #[must_use]
    pub fn answer(&self, text: &str) -> String {
        if self.answers_json { Value::from(text).to_string() } else { text.to_owned() }
    }
}

/// What a probe says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `start`, `interrupt`, `end`; `up` and the like have no handler.
    pub kind: String,
    /// Handler.
    pub handler: String,
    /// The run's number on the wire.
    pub log: i64,
    /// Its parameter.
    pub param: String,
    /// `succeeded`, `failed`, `thrown`, `interrupted` of an end.
    pub result: String,
    /// By the wall clock, epoch ms.
    pub at: i64,
}

/// A running probe.
#[derive(Debug)]
pub struct Client {
    /// Where it listens.
    pub port: u16,
    /// The process.
    pub process: Process,
    settings: Settings,
}

#[derive(Debug, Clone)]
struct Settings {
    library: Library,
    admin: String,
    app: String,
    token: String,
    folder: PathBuf,
    events: PathBuf,
}

impl Client {
    /// Starts one that registers at `node`; it may not have yet.
    ///
    /// # Panics
    /// When it is not built.
    #[must_use]
    pub fn start(library: Library, node: &str, app: &str, token: &str) -> Self {
        let folder = folder::fresh(library.name);
        let events = folder.join("client.log");
        let admin = format!("{node}/xxl-job-admin");
        let settings = Settings { library, admin, app: app.to_owned(), token: token.to_owned(), folder, events };
        let port = port::free();
        Self { port, process: settings.run(port), settings }
    }

    /// Starts it again where it was, its process having ended.
    pub fn restart(&mut self) {
        self.process = self.settings.run(self.port);
    }

    /// What it has said so far, also before a restart.
    ///
    /// # Panics
    /// When a line is broken.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let said = std::fs::read_to_string(&self.settings.events).unwrap_or_default();
        said.lines().filter(|line| line.starts_with("{\"event\"")).filter_map(read).collect()
    }

    /// The starts of a handler.
    #[must_use]
    pub fn starts(&self, handler: &str) -> Vec<Event> {
        self.of("start", handler)
    }

    /// The ends of a handler.
    #[must_use]
    pub fn ends(&self, handler: &str) -> Vec<Event> {
        self.of("end", handler)
    }

    fn of(&self, kind: &str, handler: &str) -> Vec<Event> {
        self.events().into_iter().filter(|event| event.kind == kind && event.handler == handler).collect()
    }

    /// Waits until so many runs of a handler have begun.
    pub async fn await_starts(&self, handler: &str, count: usize) -> Vec<Event> {
        await_until(&format!("{count} runs of {handler} have begun"), 60, || async {
            Some(self.starts(handler)).filter(|starts| starts.len() >= count)
        })
        .await
    }
}

impl Settings {
    fn run(&self, port: u16) -> Process {
        let mut command = command::client(self.library.name);
        command
            .current_dir(&self.folder)
            .env("PROBE_ADMIN", &self.admin)
            .env("PROBE_TOKEN", &self.token)
            .env("PROBE_APP", &self.app)
            .env("PROBE_PORT", port.to_string())
            .env("PROBE_LOGS", self.folder.join("logs"))
            .env("PROBE_GRACEFUL", "1");
        Process::start(&format!("client {}", self.library.name), command, &self.events)
    }
}

/// `None` for a line that is not whole yet.
fn read(line: &str) -> Option<Event> {
    let line: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| line[name].as_i64().unwrap_or_default();
    Some(Event {
        kind: text("event"),
        handler: text("handler"),
        log: number("log"),
        param: text("param"),
        result: text("result"),
        at: number("at"),
    })
}

impl Drop for Client {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.process.log_digest());
        }
    }
}
