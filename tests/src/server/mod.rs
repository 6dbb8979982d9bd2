//! Database servers, real ones, each in a folder of its own on a free port.
//!
//! One server per kind is shared by the scenarios of a test process (each has its own database
//! on it); it is never stopped, so it writes nothing through to the disk. A scenario that stops
//! the database starts a private one, which is as durable as in production.

pub mod galera;
mod mariadb;
pub(crate) mod postgres;
pub mod standby;

use crate::database::connect;
use crate::folder;
use crate::port;
use crate::process::{Process, bound, is_root};
use crate::wait::{await_until, when};
use sea_orm::{ConnectionTrait as _, Statement};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The databases that carillon runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// `MariaDB`, standing for `MySQL` too.
    MariaDb,
    /// `PostgreSQL`.
    Postgres,
}

/// Within this time a server that runs gives an administrator's connection.
const CONNECT: Duration = Duration::from_secs(10);

static MARIADB: OnceCell<Arc<Server>> = OnceCell::const_new();
static POSTGRES: OnceCell<Arc<Server>> = OnceCell::const_new();
static MARIADB_TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();
static POSTGRES_TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();

/// A database server. Not for [`Kind::Sqlite`].
#[derive(Debug)]
pub struct Server {
    /// Of this kind.
    pub kind: Kind,
    is_durable: bool,
    folder: PathBuf,
    /// What it is started with besides the usual.
    arguments: Vec<String>,
    /// Of MariaDB only.
    environment: Vec<(String, String)>,
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    process: Mutex<Option<Process>>,
}

impl Server {
    /// The server of this kind that scenarios share.
    pub async fn shared(kind: Kind) -> Arc<Self> {
        let cell = match kind {
            Kind::MariaDb => &MARIADB,
            Kind::Postgres => &POSTGRES,
            Kind::Sqlite => panic!("SQLite has no server"),
        };
        cell.get_or_init(|| Self::begin(kind, false)).await.clone()
    }

    /// A server of one scenario's own.
    pub async fn private(kind: Kind) -> Arc<Self> {
        Self::begin(kind, true).await
    }

    async fn begin(kind: Kind, is_durable: bool) -> Arc<Self> {
        let server = Self::copied(kind, template(kind).await, is_durable, Vec::new(), port::free());
        server.start().await;
        Arc::new(server)
    }

    /// One that is not started yet, whose data begin as those in `from`. Making a system database takes seconds; copying one
    /// does not.
    fn copied(kind: Kind, from: &Path, is_durable: bool, arguments: Vec<String>, port: u16) -> Self {
        let folder = folder::fresh(&format!("{kind:?}")).join("data");
        let copied = Command::new("cp").arg("-a").args([from, &folder]).status().expect("run cp");
        assert!(copied.success(), "cannot copy the data folder of {kind:?}");
        Self { kind, is_durable, folder, arguments, environment: Vec::new(), port, process: Mutex::new(None) }
    }

    /// Starts it (again) and waits until it answers.
    pub async fn start(&self) {
        self.start_with(&[]).await;
    }

    fn command(&self) -> Command {
        let mut command = match self.kind {
            Kind::MariaDb => mariadb::serve(&self.folder, self.port, self.is_durable, &self.environment),
            _ => postgres::serve(&self.folder, self.port, self.is_durable),
        };
        command.args(&self.arguments);
        command
    }

    /// The same with arguments for this once.
    async fn start_with(&self, once: &[String]) {
        let mut command = self.command();
        command.args(once);
        let log = self.folder.with_extension("log");
        let process = Process::start(&format!("{:?}", self.kind), command, &log);
        *self.process.lock().unwrap() = Some(process.clone());
        await_until(&format!("{:?} answers", self.kind), 60, || async {
            assert!(process.is_running(), "{}", process.log_digest());
            when(self.answers().await)
        })
        .await;
    }

    async fn answers(&self) -> bool {
        match connect(&self.admin_url(), Duration::from_secs(3)).await {
            Ok(connection) => connection.close().await.is_ok(),
            Err(_) => false,
        }
    }

    /// The server's process, for signals.
    #[must_use]
    pub fn process(&self) -> Process {
        self.process.lock().unwrap().clone().expect("the server was started")
    }

    /// Sends a signal to all of its processes: PostgreSQL has one for each session.
    pub fn signal_all(&self, name: &str) {
        let first = self.process();
        first.signal(name);
        let pid = first.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("list the processes");
        for child in children.split_whitespace() {
            // One that has ended meanwhile needs no signal.
            let _ = Command::new("kill").args([&format!("-{name}"), child]).status();
        }
    }

    /// Runs a statement as administrator.
    pub async fn execute(&self, sql: &str) {
        let admin = connect(&self.admin_url(), CONNECT).await.expect("connect as administrator");
        admin.execute_unprepared(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        admin.close().await.expect("close the administrator's connection");
    }

    /// The first column of the first row that this answers, as text, read as administrator; `None` without a row, and while
    /// it does not answer.
    pub async fn ask(&self, sql: &str) -> Option<String> {
        let admin = connect(&self.admin_url(), CONNECT).await.ok()?;
        let row = admin.query_one_raw(Statement::from_string(admin.get_database_backend(), sql)).await;
        // What is broken by now is closed by being dropped.
        let _ = admin.close().await;
        row.ok()??.try_get_by_index(self.column_of_answers()).ok()
    }

    /// `SHOW` answers a name and a value.
    fn column_of_answers(&self) -> usize {
        usize::from(self.kind == Kind::MariaDb)
    }

    /// Stops it in good order, ending its connections, and waits until it is down.
    pub async fn stop(&self) {
        let process = self.process();
        // PostgreSQL's SIGTERM waits for clients; its fast shutdown is SIGINT.
        process.signal(if self.kind == Kind::Postgres { "INT" } else { "TERM" });
        process.wait_exit(60).await;
    }

    /// Where the administrator connects.
    #[must_use]
    pub fn admin_url(&self) -> String {
        match self.kind {
            Kind::MariaDb => self.url("mysql"),
            _ => self.url("postgres"),
        }
    }

    /// Where `database` is.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let scheme = match self.kind {
            Kind::MariaDb => "mysql",
            _ => "postgres",
        };
        format!("{scheme}://carillon:carillon@127.0.0.1:{}/{database}", self.port)
    }
}

async fn template(kind: Kind) -> &'static Path {
    let (cell, install): (_, fn(&Path)) = match kind {
        Kind::MariaDb => (&MARIADB_TEMPLATE, mariadb::install),
        _ => (&POSTGRES_TEMPLATE, postgres::install),
    };
    cell.get_or_init(|| async move {
        let data = folder::fresh("template").join("data");
        let target = data.clone();
        tokio::task::spawn_blocking(move || install(&target)).await.expect("install the system database");
        data
    })
    .await
}

/// Makes `folder`, owned by the server's own user when this process is root.
fn make_folder_of(user: &str, folder: &Path) {
    fs::create_dir_all(folder).expect("create the data folder");
    if is_root() {
        let done = Command::new("chown").arg(user).arg(folder).status();
        assert!(done.is_ok_and(|s| s.success()), "cannot give {} to {user}", folder.display());
    }
}

/// Runs an installer to its end.
fn run_installer(program: &Path, user: &str, arguments: &[String]) {
    let done = bound(program, Some(user))
        .args(arguments)
        .current_dir("/")
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}; see scripts/test", program.display()));
    assert!(
        done.status.success(),
        "{} failed:\n{}\n{}",
        program.display(),
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

/// The first of `candidates` that exists.
fn find_program(name: &str, candidates: &[&str]) -> PathBuf {
    candidates
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("{name} is not installed (looked at {candidates:?}); ./scripts/test installs it"))
}
