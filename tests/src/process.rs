//! Child processes that never outlive the test process.
//!
//! `setpriv --pdeathsig KILL` makes the kernel kill a child when the *thread* that started it
//! ends; so all children are started by one thread that lives as long as the process.

use crate::wait::await_until;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

type Order = (Command, Sender<std::io::Result<Child>>);

static KEEPER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();

fn keeper() -> &'static Mutex<Sender<Order>> {
    KEEPER.get_or_init(|| {
        let (send, orders) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in orders {
                // The asker is gone only when the test process is ending.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(send)
    })
}

fn spawn(command: Command) -> std::io::Result<Child> {
    let (send, answer) = channel();
    keeper().lock().unwrap().send((command, send)).expect("the keeper thread lives");
    answer.recv().expect("the keeper thread answers")
}

/// A command that dies with the test process; run as `user` when this process is root and a
/// user is given.
#[must_use]
pub fn bound(program: &Path, user: Option<&str>) -> Command {
    // Every scenario comes by here before it speaks HTTP.
    crate::http::install_provider();
    let mut command = Command::new("setpriv");
    if let Some(user) = user.filter(|_| is_root()) {
        command.args(["--reuid", user, "--regid", user, "--init-groups"]);
    }
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Whether this process is root.
#[must_use]
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

#[derive(Debug)]
struct Inner {
    name: String,
    log: PathBuf,
    started: Instant,
    child: Mutex<Child>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        // It may have ended by itself; then there is nothing to kill.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// A running child and its log file. Clones are the same process; it is killed with the last.
#[derive(Debug, Clone)]
pub struct Process(Arc<Inner>);

impl Process {
    /// Starts `command` with standard output and error going to `log` (appended).
    #[must_use]
    pub fn start(name: &str, mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("open the log");
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("share the log")).stderr(file);
        let child = spawn(command).unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let (name, log, started) = (name.to_owned(), log.to_owned(), Instant::now());
        Self(Arc::new(Inner { name, log, started, child: Mutex::new(child) }))
    }

    /// As given at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How long ago it was started.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.child.lock().unwrap().id()
    }

    /// Sends a signal by its name (`TERM`, `KILL`, `STOP`, `CONT`, `INT`).
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([format!("-{name}"), self.pid().to_string()]).status().expect("run kill");
        assert!(done.success(), "cannot send SIG{name} to {}", self.name());
    }

    /// How it ended; `None` while it runs.
    #[must_use]
    pub fn exit(&self) -> Option<ExitStatus> {
        self.0.child.lock().unwrap().try_wait().expect("wait for a child")
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.exit().is_none()
    }

    /// Waits for the end, at most `seconds`.
    pub async fn wait_exit(&self, seconds: u64) -> ExitStatus {
        let what = format!("{} has ended", self.name());
        await_until(&what, seconds, || async { self.exit() }).await
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill9(&self) {
        if self.is_running() {
            self.signal("KILL");
        }
        let status = self.wait_exit(10).await;
        assert!(status.signal() == Some(9) || status.code().is_some(), "{} ended by {status}", self.name());
    }

    /// SIGTERM, and waits; the exit code, `None` when a signal ended it.
    pub async fn sigterm(&self, seconds: u64) -> Option<i32> {
        self.signal("TERM");
        self.wait_exit(seconds).await.code()
    }

    /// Everything that it printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.0.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Waits, so many seconds at most, until it has ended by itself with a failure; answers its log, which names all of `words`.
    pub async fn wait_failure(&self, seconds: u64, words: &[&str]) -> String {
        let status = self.wait_exit(seconds).await;
        let log = self.log();
        assert!(status.code().is_some_and(|code| code != 0), "ended by {status}:\n{log}");
        for word in words {
            assert!(log.contains(word), "nothing about {word:?} in:\n{log}");
        }
        log
    }

    /// The first warnings and errors, and the last lines, for the report of a failed scenario.
    #[must_use]
    pub fn log_digest(&self) -> String {
        const ALARMS_MAX: usize = 12;
        const TAIL: usize = 8;
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.len().saturating_sub(TAIL);
        let is_alarm = |line: &str| ["WARN", "ERROR", "panicked"].iter().any(|word| line.contains(word));
        let mut alarms: Vec<&str> = Vec::new();
        let mut repeated = 0;
        for line in lines[..tail].iter().filter(|line| is_alarm(line)) {
            // Without the time, and as far as repetitions are alike.
            let gist = |line: &str| line.chars().skip(28).take(90).collect::<String>();
            if alarms.len() == ALARMS_MAX || alarms.iter().any(|known| gist(known) == gist(line)) {
                repeated += 1;
            } else {
                alarms.push(line);
            }
        }
        format!(
            "--- {} ({} lines, exit {:?})\n{}\n  … and {repeated} like these …\n{}\n",
            self.name(),
            lines.len(),
            self.exit(),
            alarms.join("\n"),
            lines[tail..].join("\n")
        )
    }
}
