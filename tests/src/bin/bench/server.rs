//! The database server: a private one in a temporary folder, durable as in production.

use crate::database::Database;
use crate::install;
use crate::options::Kind;
use crate::proc::Target;
use anyhow::{Context, Result, ensure};
use carillon_tests::process::Process;
use carillon_tests::{folder, port};
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
    databases: AtomicU32,
    /// How often [`Server::statements`] asked: `MariaDB` counts the question.
    asked: AtomicI64,
}

impl Server {
    /// Installs and starts one.
    pub async fn start(kind: Kind) -> Result<Self> {
        let folder = folder::fresh("bench-database");
        let mut server = Self {
            kind,
            port: port::free(),
            process: None,
            admin: None,
            counts_statements: false,
            databases: AtomicU32::new(0),
            asked: AtomicI64::new(0),
            folder,
        };
        let data = server.folder.join("data");
        let command = match kind {
            Kind::Sqlite => return Ok(server),
            Kind::Mariadb => install::mariadb(&data, server.port)?,
            Kind::Postgres => install::postgres(&data, server.port, &mut server.counts_statements)?,
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
                admin.number(&sql).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Rows that the storage engine has read and bytes that clients were sent since the server started, by `MariaDB`'s
    /// counters; of the others nothing.
    pub async fn work_done(&self) -> Result<(f64, f64)> {
        let Some(admin) = self.admin.as_ref().filter(|_| self.kind == Kind::Mariadb) else { return Ok((0.0, 0.0)) };
        let read = "SELECT CAST(SUM(VARIABLE_VALUE) AS DOUBLE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME \
                    LIKE 'HANDLER_READ%'";
        let sent = "SELECT CAST(VARIABLE_VALUE AS DOUBLE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = \
                    'BYTES_SENT'";
        let mut answers = [0.0, 0.0];
        for (answer, sql) in answers.iter_mut().zip([read, sent]) {
            let rows = admin.query(sql).await?;
            *answer = rows.first().context("no such counter")?.try_get_by_index(0)?;
        }
        Ok(answers.into())
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
