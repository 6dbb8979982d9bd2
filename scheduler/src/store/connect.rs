//! One connection pool (SQLite: one for writing, one for reading) and the small helpers through
//! which every statement goes: counted, bounded in time, errors classified once.

use super::audit::Notes;
use super::calendars::ReadyCalendars;
use super::dialect::Dialect;
use super::template::Text;
use super::{Result, STORE_ERRORS, StoreError, StoreErrorKind};
use crate::metrics::METRICS;
use sea_orm::sqlx;
use sea_orm::{
    AccessMode, ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbErr, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, Value,
};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tries of a transaction that the database gave up for another's sake (deadlock, certification).
const CONTENTION_TRIES: u32 = 5;

/// A server's connection is replaced at this age: behind a proxy the next may lead to a new primary.
const CONNECTION_MAX_AGE: Duration = Duration::from_mins(30);

/// `[database]` of the configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `sqlite://path?mode=rwc`, `mysql://user:password@host/name` (MariaDB too) or
    /// `postgres://user:password@host/name`.
    pub url: String,
    /// Connections at most.
    pub max_connections: u32,
    /// A connection that cannot be had for this long is an error.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// A statement that takes longer is an error.
    #[serde(with = "humantime_serde")]
    pub statement_timeout: Duration,
    /// Whether a node brings the schema up to date when it starts.
    pub migrate_at_start: bool,
}

impl DatabaseSettings {
    /// The address without its password, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        place(&self.url)
    }

    /// The address as the drivers know it; `mariadb:` is another word for `mysql:`.
    fn for_driver(&self) -> Result<String> {
        let url = self.url.strip_prefix("mariadb:").map_or_else(|| self.url.clone(), |rest| format!("mysql:{rest}"));
        if !url.starts_with("sqlite:") && url::Url::parse(&url).is_err() {
            let detail = "the address is no URL; write special characters of the password as %23 for # and so on";
            return Err(StoreError::new(StoreErrorKind::Invalid, "connect", detail));
        }
        Ok(url)
    }
}

/// The address of a database without its password, for messages.
#[must_use]
pub fn place(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    // What cannot be parsed is not shown: the password may be anywhere in it.
    let Ok(mut parsed) = url::Url::parse(url) else {
        return format!("{}://...", url.split(':').next().unwrap_or_default());
    };
    // A query may hold one, too.
    parsed.set_query(None);
    if parsed.set_password(None).is_err() {
        return format!("{}://...", parsed.scheme());
    }
    parsed.to_string()
}

/// The store on a real database. Cloning shares the pools.
#[derive(Clone)]
pub struct SqlStore {
    pub(super) writer: DatabaseConnection,
    reader: DatabaseConnection,
    pub(super) backend: Dialect,
    statements: Arc<AtomicU64>,
    timeout: Duration,
    pub(super) calendars: ReadyCalendars,
    /// What the next commit writes into the audit.
    pub(super) notes: Notes,
}

impl std::fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlStore").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl SqlStore {
    /// Connects, and proves the connection with a first statement.
    ///
    /// # Errors
    /// The address cannot be parsed, the server does not answer or refuses the login.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self> {
        const ACTION: &str = "connect";
        let url = settings.for_driver()?;
        make_sqlite_folder(&url)?;
        reach_server(settings).await?;
        let writers = if settings.url.starts_with("sqlite:") { 1 } else { settings.max_connections };
        let writer = open(&url, settings, writers).await.map_err(|error| StoreError::from_db(ACTION, &error))?;
        let backend = Dialect::of(writer.get_database_backend()).ok_or_else(|| {
            let detail = "carillon keeps its data in SQLite, MariaDB, MySQL or PostgreSQL; mend database.url";
            StoreError::new(StoreErrorKind::Invalid, ACTION, detail)
        })?;
        let reader = if backend.has_one_writer() {
            open(&url, settings, settings.max_connections).await.map_err(|error| StoreError::from_db(ACTION, &error))?
        } else {
            writer.clone()
        };
        let store = Self {
            writer,
            reader,
            backend,
            statements: Arc::default(),
            timeout: settings.statement_timeout,
            calendars: ReadyCalendars::default(),
            notes: Notes::default(),
        };
        super::ClusterStore::now_us(&store).await?;
        Ok(store)
    }

    /// The same store, which tells `seen` of every statement and of the time it took: for explaining and profiling
    /// them. Clones tell it, too.
    #[must_use]
    pub fn watched(mut self, seen: impl Fn(&Statement, Duration) + Clone + Send + Sync + 'static) -> Self {
        for connection in [&mut self.writer, &mut self.reader] {
            let seen = seen.clone();
            connection.set_metric_callback(move |info| seen(info.statement, info.elapsed));
        }
        self
    }

    /// Which kind of database this is: `sqlite`, `mysql` or `postgres`.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        self.backend.backend().as_str()
    }

    /// Statements sent so far, transaction brackets included.
    #[must_use]
    pub fn statements_sent(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Closes the pools; what still runs ends with an error.
    pub async fn close(&self) {
        for connection in [&self.writer, &self.reader] {
            if let Err(error) = connection.close_by_ref().await {
                tracing::debug!(%error, "closing the database pool");
            }
        }
    }

    /// Counts a statement and its time, and bounds it.
    async fn run<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = std::result::Result<T, DbErr>>,
    ) -> Result<T> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let sent = Instant::now();
        let done = match tokio::time::timeout(self.timeout, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(StoreError::from_db(action, &error)),
            Err(_) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                action,
                format!("no answer from the database within {:?}", self.timeout),
            )),
        };
        METRICS.statements.record_us(sent.elapsed().as_micros() as i64);
        done.inspect_err(|error| STORE_ERRORS.add(error.kind() as usize, 1))
    }

    /// A statement outside a transaction; answers the rows affected.
    pub(super) async fn execute<const N: usize>(
        &self,
        action: &'static str,
        sql: &impl Text,
        values: [Value; N],
    ) -> Result<u64> {
        self.execute_raw(action, sql.on(self.backend).bind(values)).await
    }

    /// The same with a statement whose text is built by the caller.
    pub(super) async fn execute_raw(&self, action: &'static str, statement: Statement) -> Result<u64> {
        retrying(|| async {
            if self.notes.open().is_some() {
                return self.execute_noted(action, statement.clone()).await;
            }
            let done = self.run(action, self.writer.execute_raw(statement.clone())).await?;
            Ok(done.rows_affected())
        })
        .await
    }

    /// A statement in a transaction of its own, so that the audit is written with it; what changes
    /// nothing is not noted.
    async fn execute_noted(&self, action: &'static str, statement: Statement) -> Result<u64> {
        let tx = self.begin(action).await?;
        let affected = tx.execute_raw(statement).await?;
        if affected == 0 {
            tx.rollback().await?;
        } else {
            tx.commit().await?;
        }
        Ok(affected)
    }

    /// A query outside a transaction.
    pub(super) async fn query<T, const N: usize>(
        &self,
        action: &'static str,
        sql: &impl Text,
        values: [Value; N],
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>> {
        self.query_raw(action, sql.on(self.backend).bind(values), read).await
    }

    /// A query whose text is built by the caller.
    pub(super) async fn query_raw<T>(
        &self,
        action: &'static str,
        statement: Statement,
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>> {
        let rows = self.run(action, self.reader.query_all_raw(statement)).await?;
        rows.iter()
            .map(read)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| StoreError::from_db(action, &error))
    }

    /// Begins a transaction in which each statement sees what is committed before it.
    pub(super) async fn begin(&self, action: &'static str) -> Result<Transaction<'_>> {
        let options = TransactionOptions {
            isolation_level: self.backend.isolation(),
            access_mode: None::<AccessMode>,
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        };
        let inner = self.run(action, self.writer.begin_with_options(options)).await?;
        Ok(Transaction { store: self, inner, action })
    }
}

/// A transaction through the same helpers. Dropped without a commit it is rolled back.
pub(super) struct Transaction<'a> {
    pub(super) store: &'a SqlStore,
    inner: DatabaseTransaction,
    action: &'static str,
}

impl Transaction<'_> {
    pub(super) async fn execute<const N: usize>(&self, sql: &impl Text, values: [Value; N]) -> Result<u64> {
        self.execute_raw(sql.on(self.store.backend).bind(values)).await
    }

    pub(super) async fn execute_raw(&self, statement: Statement) -> Result<u64> {
        let done = self.store.run(self.action, self.inner.execute_raw(statement)).await?;
        Ok(done.rows_affected())
    }

    pub(super) async fn query<T, const N: usize>(
        &self,
        sql: &impl Text,
        values: [Value; N],
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>> {
        self.query_raw(sql.on(self.store.backend).bind(values), read).await
    }

    pub(super) async fn query_raw<T>(
        &self,
        statement: Statement,
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>> {
        let rows = self.store.run(self.action, self.inner.query_all_raw(statement)).await?;
        rows.iter()
            .map(read)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| StoreError::from_db(self.action, &error))
    }

    pub(super) async fn commit(self) -> Result<()> {
        if let Some(notes) = self.store.notes.open() {
            self.store.append_notes(&self, notes).await?;
        }
        self.store.run(self.action, self.inner.commit()).await?;
        self.store.notes.close();
        Ok(())
    }

    pub(super) async fn rollback(self) -> Result<()> {
        self.store.run(self.action, self.inner.rollback()).await
    }
}

/// Repeats `work` while the database reports contention: nothing happened, so nothing doubles.
pub(super) async fn retrying<T, F, W>(work: W) -> Result<T>
where
    W: Fn() -> F,
    F: Future<Output = Result<T>>,
{
    let mut tries = 1;
    loop {
        match work().await {
            Err(error) if error.kind() == StoreErrorKind::Contention && tries < CONTENTION_TRIES => {
                tracing::debug!(%error, tries, "contention; trying again");
                tokio::time::sleep(Duration::from_millis(u64::from(tries * tries) * 5)).await;
                tries += 1;
            }
            done => return done,
        }
    }
}

/// The pool hides why it cannot connect behind its own time-out; a plain connection tells.
async fn reach_server(settings: &DatabaseSettings) -> Result<()> {
    if settings.url.starts_with("sqlite:") {
        return Ok(());
    }
    let Ok(url) = url::Url::parse(&settings.url) else { return Ok(()) };
    let default_port = if url.scheme().starts_with("postgres") { 5432 } else { 3306 };
    let Some(host) = url.host_str().filter(|host| !host.is_empty()) else { return Ok(()) };
    let port = url.port().unwrap_or(default_port);
    let host = host.trim_matches(['[', ']']);
    let attempt = tokio::time::timeout(settings.connect_timeout, tokio::net::TcpStream::connect((host, port)));
    let why = match attempt.await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {:?}", settings.connect_timeout),
    };
    let detail = format!("cannot reach {host}:{port}: {why}; start the database there, or mend database.url");
    Err(StoreError::new(StoreErrorKind::Unavailable, "connect", detail))
}

/// A fresh machine has no folder for the file yet.
fn make_sqlite_folder(url: &str) -> Result<()> {
    let Some(path) = url.strip_prefix("sqlite:") else { return Ok(()) };
    let path = path.trim_start_matches("//").split('?').next().unwrap_or_default();
    let folder = std::path::Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|error| {
        let detail = format!("cannot make the folder {}: {error}", folder.display());
        StoreError::new(StoreErrorKind::Invalid, "connect", detail)
    })
}

async fn open(
    url: &str,
    settings: &DatabaseSettings,
    connections: u32,
) -> std::result::Result<DatabaseConnection, DbErr> {
    let mut options = ConnectOptions::new(url.to_owned());
    options
        .max_connections(connections)
        .min_connections(1)
        .connect_timeout(settings.connect_timeout)
        .acquire_timeout(settings.connect_timeout)
        // Either of them starts sqlx's own upkeep of the pool, which can spin for ever on a thread
        // of the node: https://github.com/launchbadge/sqlx/issues/3645, in 0.9.0 still.
        .idle_timeout(None::<Duration>)
        .max_lifetime(None::<Duration>)
        .test_before_acquire(false)
        .test_before_acquire_if_idle_for(Duration::from_secs(30))
        .sqlx_logging(false)
        .map_sqlx_sqlite_opts(|sqlite| {
            sqlite
                .create_if_missing(true)
                .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
                // With WAL, NORMAL keeps the file whole and may lose the last commits when the
                // machine loses power; FULL keeps them, and an acknowledged result is a promise.
                .synchronous(sqlx::sqlite::SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(5))
                .pragma("wal_autocheckpoint", "4000")
        })
        .map_sqlx_mysql_pool_opts(|pool| {
            replacing(pool, CONNECTION_MAX_AGE).after_connect(|connection, _| {
                Box::pin(async move {
                    // Without gap locks, batches of different nodes do not wait for each other.
                    sqlx::Executor::execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                        .await?;
                    Ok(())
                })
            })
        })
        .map_sqlx_postgres_pool_opts(|pool| replacing(pool, CONNECTION_MAX_AGE))
        .map_sqlx_postgres_opts(|postgres| {
            // A batch's size is bound, not known when the statement is prepared: a plan made for
            // an empty table must not be kept. Compiling a plan takes longer than any of ours runs.
            postgres.options([("plan_cache_mode", "force_custom_plan"), ("jit", "off")])
        });
    Database::connect(options).await
}

/// A pool that closes connections of this age instead of taking them back.
fn replacing<DB: sqlx::Database>(pool: sqlx::pool::PoolOptions<DB>, age: Duration) -> sqlx::pool::PoolOptions<DB> {
    pool.after_release(move |_, of| Box::pin(async move { Ok(of.age < age) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_pool_keeps_itself_up() {
        let settings = DatabaseSettings {
            url: "sqlite::memory:".to_owned(),
            max_connections: 2,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
            migrate_at_start: false,
        };
        let store = SqlStore::connect(&settings).await.unwrap();
        for pool in [&store.writer, &store.reader] {
            let options = pool.get_sqlite_connection_pool().options();
            assert_eq!((options.get_idle_timeout(), options.get_max_lifetime()), (None, None));
        }
    }

    #[tokio::test]
    async fn a_connection_is_taken_back_until_it_is_too_old() {
        for (age, is_the_same) in [(Duration::MAX, true), (Duration::ZERO, false)] {
            let pool = replacing(sqlx::sqlite::SqlitePoolOptions::new().max_connections(1), age);
            let pool = pool.idle_timeout(None).max_lifetime(None).connect("sqlite::memory:").await.unwrap();
            // A table that only this connection knows.
            sqlx::raw_sql("CREATE TEMP TABLE mine (id INTEGER)").execute(&pool).await.unwrap();
            let again = sqlx::raw_sql("SELECT id FROM mine").execute(&pool).await;
            assert_eq!(again.is_ok(), is_the_same, "{age:?}: {again:?}");
        }
    }
}
