//! Migration, safe when several nodes start at once: a row in a small table is the lock, taken
//! and given up by guarded statements (no advisory locks, see the design).

use super::galera::Galera;
use super::pool::{Limits, Trust, open};
use super::sql_store::retrying;
use super::{Result, SqlStore, StoreError, StoreErrorKind};

use carillon_migrations::{Migrator, MigratorTrait, SchemaManager};
use carillon_protocol::sign::random_hex;
use sea_orm::{ConnectionTrait, Statement, Value};
use std::time::{Duration, Instant};

/// After this long without a renewal the lock counts as left behind by a crash.
const LOCK_STALE_S: i64 = 120;

/// How long a node waits for another one's migration.
const WAIT_MAX: Duration = Duration::from_mins(3);

impl SqlStore {
    /// Brings the schema up to this version; answers how many steps were applied.
    pub async fn migrate(&self) -> Result<usize> {
        const ACTION: &str = "migrate the database";
        let wrap = |error| StoreError::from_db(ACTION, &error);
        if self.pending().await? == 0 {
            return Ok(0);
        }
        self.writer
            .execute_unprepared(
                "CREATE TABLE IF NOT EXISTS migration_lock (id BIGINT PRIMARY KEY, holder VARCHAR(64) NOT NULL, \
                 taken_at BIGINT NOT NULL)",
            )
            .await
            .map(drop)
            .or_else(tolerate_race)
            .map_err(wrap)?;
        let me =
            random_hex::<16>().map_err(|error| StoreError::new(StoreErrorKind::Other, ACTION, error.to_string()))?;
        let deadline = Instant::now() + WAIT_MAX;
        while !self.take_migration_lock(&me).await? {
            if Instant::now() > deadline {
                return Err(StoreError::new(
                    StoreErrorKind::Conflict,
                    ACTION,
                    format!(
                        "another node has been migrating for {WAIT_MAX:?}; if none is, delete the row of table migration_lock"
                    ),
                ));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let steps = self.pending().await?;
        let outcome = self.up().await.map_err(wrap);
        self.statement("DELETE FROM migration_lock WHERE holder = {1}", [me.into()]).await?;
        outcome.map(|()| steps)
    }

    /// On a server, over a connection without limits: building an index may take long.
    async fn up(&self) -> std::result::Result<(), sea_orm::DbErr> {
        if self.backend.has_one_writer() {
            return Migrator::up(&self.writer, None).await;
        }
        let (url, trust, galera) = (self.settings.for_driver(), Trust::default(), Galera::default());
        let unlimited = open(&url, &self.settings, 1, Limits::None, &trust, &galera).await?;
        let outcome = Migrator::up(&unlimited, None).await;
        if let Err(error) = unlimited.close().await {
            tracing::debug!(%error, "closing the connection for the migration");
        }
        outcome
    }

    /// Steps that this release has and the database has not. Those that only the database has are of a later release:
    /// [`SqlStore::refuse_later_schema`] asks whether this one can work with them.
    pub async fn pending(&self) -> Result<usize> {
        const ACTION: &str = "read the schema's version";
        let manager = SchemaManager::new(&self.writer);
        let is_there = manager.has_table("seaql_migrations").await;
        let applied: Vec<String> = if is_there.map_err(|error| StoreError::from_db(ACTION, &error))? {
            self.query(ACTION, &sql!("SELECT version FROM seaql_migrations"), []).await?
        } else {
            Vec::new()
        };
        Ok(Migrator::migrations().iter().filter(|step| !applied.iter().any(|name| name == step.name())).count())
    }

    /// Whether nodes of this release can work with the database's schema, which a later one may have brought up to date.
    ///
    /// # Errors
    /// They cannot; upgrade the node.
    pub async fn refuse_later_schema(&self) -> Result<()> {
        const ACTION: &str = "compare the schema with this release";
        let oldest = self.oldest_schema().await?;
        let known = Migrator::number();
        if oldest <= known {
            return Ok(());
        }
        let detail = format!(
            "the database belongs to a later release: it needs nodes that know schema {oldest}, and this one knows {known}; \
             upgrade this node"
        );
        Err(StoreError::new(StoreErrorKind::Invalid, ACTION, detail))
    }

    /// The oldest schema whose nodes can work with the database.
    pub(super) async fn oldest_schema(&self) -> Result<i32> {
        let sql = sql!("SELECT oldest FROM schema_support WHERE id = 1");
        let found: Vec<i32> = self.query("read which releases the schema supports", &sql, []).await?;
        Ok(found.first().copied().unwrap_or(0))
    }

    async fn take_migration_lock(&self, me: &str) -> Result<bool> {
        let now = super::ClusterStore::now_us(self).await? / 1_000_000;
        self.statement("DELETE FROM migration_lock WHERE taken_at < {1}", [(now - LOCK_STALE_S).into()]).await?;
        let taken = self
            .statement(
                "INSERT INTO migration_lock (id, holder, taken_at) VALUES (1, {1}, {2})",
                [me.into(), now.into()],
            )
            .await;
        match taken {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == StoreErrorKind::Duplicate => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn statement<const N: usize>(&self, template: &str, values: [Value; N]) -> Result<u64> {
        let statement: Statement = super::statement::Sql::new(self.backend, template).bind(values);
        // On Galera, the loser of a race for the lock hears of a deadlock, and finds the winner's row when it tries again.
        retrying(|| async {
            let done = self.writer.execute_raw(statement.clone()).await;
            let wrap = |error| StoreError::from_db("take the migration lock", &error);
            done.map(|done| done.rows_affected()).map_err(wrap)
        })
        .await
    }
}

/// Two `CREATE TABLE IF NOT EXISTS` at once: PostgreSQL lets one fail on its own catalogue.
#[allow(clippy::result_large_err)] // the driver's own error, passed on once at start
fn tolerate_race(error: sea_orm::DbErr) -> std::result::Result<(), sea_orm::DbErr> {
    let text = error.to_string();
    if text.contains("already exists") || text.contains("duplicate key") { Ok(()) } else { Err(error) }
}
