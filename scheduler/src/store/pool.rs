//! Pools of connections: what each session is limited to, and when a connection is replaced.
//!
//! The limits hold on the server's side. A node that is frozen, or whose machine is gone, gives up its locks by them,
//! before it counts as dead.

use super::database_settings::DatabaseSettings;
use super::galera::Galera;
use sea_orm::sqlx::mysql::MySqlConnection;
use sea_orm::sqlx::sqlite::SqliteConnection;
use sea_orm::sqlx::{self, Connection as _};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A server's connection is replaced at this age: behind a proxy the next may lead to a new primary.
const CONNECTION_MAX_AGE: Duration = Duration::from_mins(30);

/// A connection that was idle for longer is tried before it is used.
const IDLE_UNTRIED_MAX: Duration = Duration::from_secs(30);

/// The server ends a session that leaves a transaction alone for longer.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(5);

/// A statement that waits longer for a lock fails.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(3);

/// The server ends a session whose client has not acknowledged anything for about so long (PostgreSQL).
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

/// The server ends a session that is idle for longer (MariaDB, MySQL): those of vanished nodes must not use up its
/// connections. MySQL has no other limit for idle transactions. Longer than [`IDLE_UNTRIED_MAX`], so that a connection that
/// was closed is noticed before it is used.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(45);

/// What a session may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limits {
    /// Statements have a time-out, and so have locks and idle transactions.
    Bounded,
    /// None: for migrations, which may take long.
    None,
}

/// Since when connections are trusted: older ones are closed instead of used again. The server may have become a
/// standby, or be gone without a word, or their state is unknown because a statement was given up midway.
#[derive(Debug, Clone)]
pub(super) struct Trust(Arc<Since>);

#[derive(Debug)]
struct Since {
    start: Instant,
    /// Milliseconds after `start`.
    trusted: AtomicU64,
}

impl Default for Trust {
    fn default() -> Self {
        Self(Arc::new(Since { start: Instant::now(), trusted: AtomicU64::new(0) }))
    }
}

impl Trust {
    /// From now on, connections that were opened before are not used again.
    pub fn renew(&self) {
        let now = u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.trusted.fetch_max(now, Ordering::Relaxed);
    }

    /// Whether a connection of this age may be used again.
    fn holds_for(&self, age: Duration) -> bool {
        let trusted_for =
            self.0.start.elapsed().saturating_sub(Duration::from_millis(self.0.trusted.load(Ordering::Relaxed)));
        self.0.trusted.load(Ordering::Relaxed) == 0 || age < trusted_for
    }
}

/// Opens a pool.
pub(super) async fn open(
    url: &str,
    settings: &DatabaseSettings,
    connections: u32,
    limits: Limits,
    trust: &Trust,
    galera: &Galera,
) -> Result<DatabaseConnection, DbErr> {
    let statement_max = settings.statement_timeout;
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
        .map_sqlx_sqlite_pool_opts(|pool| {
            pool.after_release(|connection, _| Box::pin(is_out_of_transactions(connection)))
        });
    let (of_mysql, of_postgres, galera) = (trust.clone(), trust.clone(), galera.clone());
    options
        .map_sqlx_mysql_pool_opts(move |pool| {
            let galera = galera.clone();
            replacing(pool, of_mysql.clone()).after_connect(move |connection, _| {
                let galera = galera.clone();
                Box::pin(async move { limit_mysql(connection, limits, statement_max, &galera).await })
            })
        })
        .map_sqlx_postgres_pool_opts(move |pool| replacing(pool, of_postgres.clone()))
        .map_sqlx_postgres_opts(move |postgres| {
            let bounds = match limits {
                Limits::Bounded => postgres_limits(statement_max),
                Limits::None => Vec::new(),
            };
            // A batch's size is bound, not known when the statement is prepared: a plan made for
            // an empty table must not be kept. Compiling a plan takes longer than any of ours runs.
            postgres.options([("plan_cache_mode", "force_custom_plan"), ("jit", "off")]).options(bounds)
        });
    Database::connect(options).await
}

/// Where the disk is full, or fails, SQLite ends the transaction itself, which the driver (sqlx 0.9) does not notice: later ones
/// become savepoints, the first of which that is rolled back leaves a transaction that nothing ends any more, and nothing after it
/// is ever committed. So such a connection is not used again.
async fn is_out_of_transactions(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // One that was dropped has been rolled back by then.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

fn postgres_limits(statement_max: Duration) -> Vec<(&'static str, String)> {
    let ms = |limit: Duration| limit.as_millis().to_string();
    vec![
        ("statement_timeout", ms(statement_max)),
        ("lock_timeout", ms(LOCK_WAIT_MAX)),
        ("idle_in_transaction_session_timeout", ms(IDLE_IN_TRANSACTION_MAX)),
        ("tcp_user_timeout", ms(UNACKNOWLEDGED_MAX)),
        ("tcp_keepalives_idle", "5".to_owned()),
        ("tcp_keepalives_interval", "2".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
    ]
}

/// MariaDB alone reads the text in `/*M!`, MySQL alone that in `/*!80000`.
async fn limit_mysql(
    connection: &mut MySqlConnection,
    limits: Limits,
    statement_max: Duration,
    galera: &Galera,
) -> Result<(), sqlx::Error> {
    // Without gap locks, batches of different nodes do not wait for each other.
    run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".to_owned()).await?;
    if limits == Limits::Bounded {
        let (lock, idle) = (LOCK_WAIT_MAX.as_secs(), IDLE_IN_TRANSACTION_MAX.as_secs());
        let (seconds, millis) = (statement_max.as_secs_f64(), statement_max.as_millis());
        let session_idle = SESSION_IDLE_MAX.as_secs();
        run(
            connection,
            format!(
                "SET SESSION innodb_lock_wait_timeout = {lock}, wait_timeout = {session_idle} \
                 /*M!100300 , idle_transaction_timeout = {idle}, max_statement_time = {seconds} */ \
                 /*!80000 , max_execution_time = {millis} */"
            ),
        )
        .await?;
    }
    // A member of a Galera cluster applies what others have committed a little later. What a node reads must not be
    // older than what it, or another node, was told to be committed.
    if galera.recognise(&mut *connection).await? {
        run(connection, "SET SESSION wsrep_sync_wait = 7".to_owned()).await?;
    }
    Ok(())
}

async fn run(connection: &mut MySqlConnection, text: String) -> Result<(), sqlx::Error> {
    sqlx::Executor::execute(connection, sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await.map(drop)
}

/// A pool that closes connections which are too old, or no longer trusted, instead of using them again.
fn replacing<DB: sqlx::Database>(pool: sqlx::pool::PoolOptions<DB>, trust: Trust) -> sqlx::pool::PoolOptions<DB> {
    let before = trust.clone();
    pool.before_acquire(move |connection, of| {
        let is_trusted = before.holds_for(of.age);
        Box::pin(async move {
            if is_trusted && of.idle_for > IDLE_UNTRIED_MAX {
                connection.ping().await?;
            }
            if is_trusted { Ok(true) } else { Err(untrusted()) }
        })
    })
    .after_release(move |_, of| {
        let is_trusted = trust.holds_for(of.age);
        Box::pin(async move { if is_trusted { Ok(of.age < CONNECTION_MAX_AGE) } else { Err(untrusted()) } })
    })
}

/// As an error, the connection is closed without a last word to the server, which may be gone.
fn untrusted() -> sqlx::Error {
    sqlx::Error::Protocol("the database did not answer in time or was read-only: the connection is replaced".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::error::StoreError;
    use super::*;
    use sea_orm::{
        ConnectionTrait as _, DbBackend, SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
    };

    async fn is_reused(trust: &Trust, between: impl FnOnce()) -> bool {
        let pool = replacing(sqlx::sqlite::SqlitePoolOptions::new().max_connections(1), trust.clone());
        let pool = pool.idle_timeout(None).max_lifetime(None).connect("sqlite::memory:").await.unwrap();
        // A table that only this connection knows.
        sqlx::raw_sql("CREATE TEMP TABLE mine (id INTEGER)").execute(&pool).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        between();
        sqlx::raw_sql("SELECT id FROM mine").execute(&pool).await.is_ok()
    }

    #[tokio::test]
    async fn a_connection_is_reused_until_it_is_no_longer_trusted() {
        let trust = Trust::default();
        assert!(is_reused(&trust, || {}).await);
        assert!(!is_reused(&trust, || trust.renew()).await, "it is from before");
        assert!(is_reused(&trust, || {}).await, "a later one is trusted");
    }

    /// SQLite ends the transaction itself, which the driver does not notice.
    #[tokio::test]
    async fn what_is_written_after_a_disk_was_full_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/full.db?mode=rwc", folder.path().display());
        let settings = crate::settings::Settings::load(None).unwrap().database;
        let connect = || async {
            open(&url, &settings, 1, Limits::Bounded, &Trust::default(), &Galera::default()).await.unwrap()
        };
        let (writer, reader) = (connect().await, connect().await);
        writer.execute_unprepared("CREATE TABLE filled (with_what BLOB); PRAGMA max_page_count = 10").await.unwrap();
        let begin = || {
            let mode = Some(SqliteTransactionMode::Immediate);
            writer.begin_with_options(TransactionOptions { sqlite_transaction_mode: mode, ..Default::default() })
        };
        let tx = begin().await.unwrap();
        let full = tx.execute_unprepared("INSERT INTO filled VALUES (zeroblob(1000000))").await.unwrap_err();
        assert!(StoreError::from_db("fill the disk", &full).is_temporary(), "{full}");
        drop(tx);
        // Another one that comes to nothing.
        drop(begin().await.unwrap());
        let tx = begin().await.unwrap();
        tx.execute_unprepared("INSERT INTO filled VALUES (1)").await.unwrap();
        tx.commit().await.unwrap();
        let statement = Statement::from_string(DbBackend::Sqlite, "SELECT with_what FROM filled");
        assert_eq!(reader.query_all_raw(statement).await.unwrap().len(), 1, "what was committed is there");
    }

    #[test]
    fn all_limits_end_before_a_node_counts_as_dead() {
        let settings = crate::settings::Settings::load(None).unwrap();
        for limit in [IDLE_IN_TRANSACTION_MAX, LOCK_WAIT_MAX, settings.database.statement_timeout] {
            assert!(limit < settings.schedulers.offline_after, "{limit:?}");
        }
    }
}
