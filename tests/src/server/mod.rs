//! Database servers, real ones, each in a folder of its own on a free port.
//!
//! One server per kind is shared by the scenarios of a test process (each has its own database
//! on it); it is never stopped, so it writes nothing through to the disk. A scenario that stops
//! the database starts a private one, which is as durable as in production.

mod mariadb;
pub(crate) mod postgres;

use crate::database::connect;
use crate::folder;
use crate::port;
use crate::process::{Process, bound, is_root};
use crate::wait::{await_until, when};
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
        let data = folder::fresh(&format!("{kind:?}")).join("data");
        // Making a system database takes seconds; copying one does not.
        let copied = Command::new("cp").arg("-a").args([template(kind).await, &data]).status().expect("run cp");
        assert!(copied.success(), "cannot copy the data folder of {kind:?}");
        let server = Arc::new(Self { kind, is_durable, folder: data, port: port::free(), process: Mutex::new(None) });
        server.start().await;
        server
    }

    /// Starts it (again) and waits until it answers.
    pub async fn start(&self) {
        let command = match self.kind {
            Kind::MariaDb => mariadb::serve(&self.folder, self.port, self.is_durable),
            _ => postgres::serve(&self.folder, self.port, self.is_durable),
        };
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

    fn process(&self) -> Process {
        self.process.lock().unwrap().clone().expect("the server was started")
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
