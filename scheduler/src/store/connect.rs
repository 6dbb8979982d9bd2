//! How a node comes to its database: the settings, the address, the pools (SQLite: one for writing, one for reading).

use super::ClusterStore;
use super::dialect::Dialect;
use super::error::{Result, StoreError, StoreErrorKind};
use super::sql_store::SqlStore;
use sea_orm::sqlx;
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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

    /// Whether the address can be parsed. A special character of the password that is not escaped ends the host too early.
    #[must_use]
    pub fn is_url(&self) -> bool {
        self.url.starts_with("sqlite:") || url::Url::parse(&self.url).is_ok_and(|url| url.has_host())
    }

    /// The address as the drivers know it; `mariadb:` is another word for `mysql:`.
    fn for_driver(&self) -> String {
        self.url.strip_prefix("mariadb:").map_or_else(|| self.url.clone(), |rest| format!("mysql:{rest}"))
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

impl SqlStore {
    /// Connects, and proves the connection with a first statement.
    ///
    /// # Errors
    /// The address cannot be parsed, the server does not answer or refuses the login.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self> {
        const ACTION: &str = "connect";
        let url = settings.for_driver();
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
        let store = Self::on(writer, reader, backend, settings.statement_timeout);
        ClusterStore::now_us(&store).await?;
        Ok(store)
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
    async fn a_connection_is_reused_until_it_is_too_old() {
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
