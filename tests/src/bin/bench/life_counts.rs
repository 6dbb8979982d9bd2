//! What databases count of their work for a life (`--life`), and what keeps other work out of it.

use crate::database::Database;
use crate::options::Kind;
use crate::server::Server;
use crate::wal;
use crate::work::Work;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a connection that was closed may be there still.
const GONE_MAX: Duration = Duration::from_secs(20);

/// Tables that change in a life.
const TABLES: &str = "task, task_log, lease";

/// Counters, by their names in `docs/benchmarks.md`.
#[derive(Debug, Clone, Default)]
pub struct Counts(pub BTreeMap<&'static str, f64>);

impl Counts {
    /// What has been counted since `start`.
    pub fn less(&self, start: &Self) -> Self {
        let before = |name| start.0.get(name).copied().unwrap_or_default();
        Self(self.0.iter().map(|(name, count)| (*name, count - before(name))).collect())
    }
}

/// Counts for one database on a server that does nothing else.
pub struct Counter<'a> {
    /// The server.
    pub server: &'a Server,
    /// The driver's own connection to it.
    pub database: &'a Database,
}

impl Counter<'_> {
    /// Statistics of the tables are as they are after a while, and stay so: nothing else plans statements anew.
    pub async fn know_the_tables(&self) -> Result<()> {
        match self.server.kind {
            Kind::Mariadb => {
                self.settle().await?;
                self.database.execute(&format!("ANALYZE TABLE {TABLES}")).await
            }
            Kind::Postgres => self.database.execute(&format!("VACUUM ANALYZE {TABLES}")).await,
            // A node keeps none either.
            Kind::Sqlite => Ok(()),
        }
    }

    /// Nothing is left to do of what was before, and nothing begins by itself.
    pub async fn prepare(&self) -> Result<()> {
        match self.server.kind {
            Kind::Mariadb => self.settle().await,
            Kind::Postgres => {
                self.settle().await?;
                self.database.execute(&format!("VACUUM {TABLES}")).await?;
                // What is changed then counts as changed.
                self.database.execute("CHECKPOINT").await?;
                self.database.execute("SELECT pg_stat_force_next_flush()").await
            }
            Kind::Sqlite => {
                self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").await?;
                // Who reads what is in the database alone lets nothing be moved there out of the log, which then only grows.
                self.database.execute("BEGIN").await?;
                self.database.query("SELECT name FROM lease").await.map(drop)
            }
        }
    }

    /// What is counted late is counted, and what follows from the work is done.
    pub async fn settle(&self) -> Result<()> {
        match self.server.kind {
            // It waits until what was deleted, and old entries of indexes, are gone.
            Kind::Mariadb => self.database.execute("SET GLOBAL innodb_max_purge_lag_wait = 0").await,
            Kind::Postgres => {
                let others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                              pid <> pg_backend_pid()";
                let since = Instant::now();
                while self.database.number(others).await? > 0 {
                    ensure!(since.elapsed() < GONE_MAX, "a connection does not end");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Ok(())
            }
            Kind::Sqlite => Ok(()),
        }
    }

    /// After the last reading.
    pub async fn release(&self) -> Result<()> {
        match self.server.kind {
            Kind::Sqlite => self.database.execute("ROLLBACK").await,
            Kind::Mariadb | Kind::Postgres => Ok(()),
        }
    }

    /// What is counted by now.
    pub async fn read(&self) -> Result<Counts> {
        match self.server.kind {
            Kind::Mariadb => Ok(of(&Work::read(Kind::Mariadb, self.database).await?, &OF_MARIADB)),
            Kind::Postgres => {
                let mut counts = of(&Work::read(Kind::Postgres, self.database).await?, &OF_POSTGRES);
                let asked = self.server.ask(&postgres_statements(self.database.name())).await?;
                let row = asked.first().context("no statements")?;
                counts.0.insert("pages_changed", row.try_get_by_index(0)?);
                counts.0.insert("log_records", row.try_get_by_index(1)?);
                Ok(counts)
            }
            Kind::Sqlite => {
                let log = wal::read(&self.server.log_of(self.database))?;
                Ok(Counts([("pages_changed", log.pages), ("commits", log.commits), ("log_bytes", log.bytes)].into()))
            }
        }
    }
}

/// Of [`Work`], what a life is counted in.
const OF_MARIADB: [&str; 8] = [
    "rows_read",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "commits",
    "pages_touched",
    "pages_changed",
    "log_bytes",
];

const OF_POSTGRES: [&str; 9] = [
    "rows_read",
    "index_entries_read",
    "rows_inserted",
    "rows_updated",
    "rows_updated_in_place",
    "rows_deleted",
    "commits",
    "pages_touched",
    "log_bytes",
];

fn of(work: &Work, names: &[&'static str]) -> Counts {
    Counts(names.iter().map(|name| (*name, work.of(name))).collect())
}

/// What is counted by statement: pages that were clean and are not any more, and records of the log.
fn postgres_statements(database: &str) -> String {
    format!(
        "SELECT CAST(SUM(shared_blks_dirtied) AS DOUBLE PRECISION), CAST(SUM(wal_records) AS DOUBLE PRECISION) \
         FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = '{database}'"
    )
}
