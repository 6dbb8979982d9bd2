//! The database server: a private one in a temporary folder, durable as in production.

use crate::database::Database;
use crate::install::{self, Purpose};
use crate::options::Kind;
use crate::proc::Target;
use crate::profile::{self, Profile};
use crate::work::Work;
use anyhow::{Context, Result, ensure};
use carillon_tests::process::Process;
use carillon_tests::{folder, port};
use sea_orm::QueryResult;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_mins(1);

/// A database server; of `SQLite`, a folder for files.
pub struct Server {
    /// Of this kind.
    pub kind: Kind,
    folder: PathBuf,
    port: u16,
    process: Option<Process>,
    admin: Option<Database>,
    /// `PostgreSQL` counts statements.
    counts_statements: bool,
    purpose: Purpose,
    databases: AtomicU32,
    /// How many of its statements were questions for these counters.
    asked: AtomicI64,
}

impl Server {
    /// Installs and starts one.
    pub async fn start(kind: Kind, purpose: Purpose) -> Result<Self> {
        let folder = folder::fresh("bench-database");
        let mut server = Self {
            kind,
            port: port::free(),
            process: None,
            admin: None,
            counts_statements: false,
            purpose,
            databases: AtomicU32::new(0),
            asked: AtomicI64::new(0),
            folder,
        };
        let data = server.folder.join("data");
        let command = match kind {
            Kind::Sqlite => return Ok(server),
            Kind::Mariadb => install::mariadb(&data, server.port, purpose)?,
            Kind::Postgres => install::postgres(&data, server.port, purpose, &mut server.counts_statements)?,
        };
        let process = Process::start("the database server", command, &server.folder.join("server.log"));
        server.process = Some(process.clone());
        let url = server.url(if kind == Kind::Mariadb { "mysql" } else { "postgres" });
        let deadline = Instant::now() + START_MAX;
        let admin = loop {
            match Database::connect(kind, &url).await {
                Ok(admin) => break admin,
                Err(error) => {
                    let alive = process.is_running() && Instant::now() < deadline;
                    ensure!(alive, "the database server does not start: {error:#}\n{}", process.log_digest());
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let counts = kind == Kind::Mariadb || server.counts_statements;
        ensure!(counts || purpose == Purpose::Rates, "PostgreSQL counts no statements without postgresql-contrib");
        if server.counts_statements {
            admin.execute("CREATE EXTENSION pg_stat_statements").await?;
        }
        server.admin = Some(admin);
        Ok(server)
    }

    fn url(&self, name: &str) -> String {
        let scheme = if self.kind == Kind::Mariadb { "mysql" } else { "postgres" };
        format!("{scheme}://carillon:carillon@127.0.0.1:{}/{name}", self.port)
    }

    /// An empty database.
    pub async fn create(&self) -> Result<Database> {
        let name = format!("bench_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let Some(admin) = &self.admin else {
            let file = self.folder.join(name);
            return Database::connect(self.kind, &format!("sqlite://{}?mode=rwc", file.display())).await;
        };
        admin.execute(&format!("CREATE DATABASE {name}")).await?;
        Database::connect(self.kind, &self.url(&name)).await
    }

    /// Makes room for the next one; no other client may be connected any more.
    pub async fn remove(&self, database: Database) -> Result<()> {
        let name = database.name().to_owned();
        database.close().await?;
        if let Some(admin) = &self.admin {
            return admin.execute(&format!("DROP DATABASE {name}")).await;
        }
        for suffix in ["", "-wal", "-shm"] {
            // The last connection to close has taken the latter two away.
            let _ = std::fs::remove_file(self.folder.join(format!("{name}{suffix}")));
        }
        Ok(())
    }

    /// The server's process; none of `SQLite`, which works inside the node.
    pub fn target(&self) -> Option<Target> {
        let pid = self.process.as_ref()?.pid();
        Some(Target { pid, family: self.kind == Kind::Postgres })
    }

    /// Statements that the server has executed for `database` (`MariaDB`: for all), these
    /// questions left out and transaction brackets included; `None` where they are not counted.
    pub async fn statements(&self, database: &Database) -> Result<Option<i64>> {
        let Some(admin) = &self.admin else { return Ok(None) };
        match self.kind {
            Kind::Mariadb => {
                let rows = admin.query("SHOW GLOBAL STATUS LIKE 'Questions'").await?;
                let row = rows.first().context("no Questions in the server's status")?;
                let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
                Ok(Some(row.try_get_by_index::<String>(1)?.parse::<i64>()? - asked))
            }
            Kind::Postgres if self.counts_statements => {
                let sql = format!(
                    "SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT) FROM pg_stat_statements s \
                     JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = '{}'",
                    database.name()
                );
                Ok(Some(admin.number(&sql).await? - self.asked.load(Ordering::Relaxed)))
            }
            _ => Ok(None),
        }
    }

    /// What the server has counted of its work for `database` (`MariaDB`: for all) by now.
    pub async fn work(&self, database: &Database) -> Result<Work> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Work::read(self.kind, database).await
    }

    /// What each statement for `database` (`MariaDB`: for all) has cost by now, where that is counted.
    pub async fn profile(&self, database: &Database) -> Result<Option<Profile>> {
        if self.purpose != Purpose::Profile || self.kind == Kind::Sqlite {
            return Ok(None);
        }
        if self.kind == Kind::Mariadb {
            // PostgreSQL is asked in another database.
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        Profile::of_rows(&self.ask(&profile::question(self.kind, database.name())).await?).map(Some)
    }

    /// Asks in a database that is not measured; none of `SQLite`.
    pub async fn ask(&self, sql: &str) -> Result<Vec<QueryResult>> {
        self.admin.as_ref().context("SQLite has no server")?.query(sql).await
    }

    /// `SQLite`'s log of this database.
    pub fn log_of(&self, database: &Database) -> PathBuf {
        self.folder.join(format!("{}-wal", database.name()))
    }

    /// Where [`Server::statements`] come from.
    pub fn statements_source(&self) -> &'static str {
        match self.kind {
            Kind::Mariadb => "MariaDB, status variable Questions",
            Kind::Postgres if self.counts_statements => "PostgreSQL, pg_stat_statements",
            _ => "the node's own counter",
        }
    }

    /// What the server itself says of its version and of how it keeps promises.
    pub async fn settings(&self) -> Result<Value> {
        let scratch = if self.admin.is_none() { Some(self.create().await?) } else { None };
        let database = self.admin.as_ref().or(scratch.as_ref()).context("a database")?;
        let names: &[(&str, &str)] = match self.kind {
            Kind::Mariadb => &[
                ("version", "SELECT VERSION()"),
                ("innodb_flush_log_at_trx_commit", "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)"),
                ("innodb_buffer_pool_size", "SELECT CAST(@@innodb_buffer_pool_size AS CHAR)"),
                ("innodb_log_file_size", "SELECT CAST(@@innodb_log_file_size AS CHAR)"),
                ("innodb_doublewrite", "SELECT CAST(@@innodb_doublewrite AS CHAR)"),
                ("log_bin", "SELECT CAST(@@log_bin AS CHAR)"),
            ],
            Kind::Postgres => &[
                ("version", "SHOW server_version"),
                ("fsync", "SHOW fsync"),
                ("synchronous_commit", "SHOW synchronous_commit"),
                ("full_page_writes", "SHOW full_page_writes"),
                ("shared_buffers", "SHOW shared_buffers"),
                ("max_wal_size", "SHOW max_wal_size"),
                ("shared_preload_libraries", "SHOW shared_preload_libraries"),
            ],
            // `synchronous` belongs to each connection: the node sets it to FULL.
            Kind::Sqlite => &[("version", "SELECT sqlite_version()")],
        };
        let mut settings = Map::new();
        for (name, sql) in names {
            let rows = database.query(sql).await?;
            let value = rows.first().map(|row| row.try_get_by_index::<String>(0)).transpose()?;
            settings.insert((*name).to_owned(), value.into());
        }
        Ok(Value::Object(settings))
    }
}
