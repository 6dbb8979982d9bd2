//! What a database counts of its own work: of a fire it is nearly the same on any machine, in any mood.

use crate::database::Database;
use crate::options::Kind;
use crate::report::rounded;
use anyhow::Result;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Counters that only grow, by their names in `docs/benchmarks.md`. `SQLite` keeps none.
#[derive(Debug, Clone, Default)]
pub struct Work(BTreeMap<String, f64>);

impl Work {
    /// Asks by one query.
    pub async fn read(kind: Kind, database: &Database) -> Result<Self> {
        let counters = match kind {
            Kind::Sqlite => return Ok(Self::default()),
            Kind::Mariadb => MARIADB,
            Kind::Postgres => POSTGRES,
        };
        let row = |row: &sea_orm::QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
        let rows = database.query(counters).await?;
        rows.iter().map(row).collect::<Result<_>>().map(Self)
    }

    /// One counter; 0 where it does not exist.
    pub fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// What has been counted since `start`, by fire.
    pub fn by_fire_since(&self, start: &Self, fires: f64) -> Value {
        let by_fire = |name: &String| rounded((self.of(name) - start.of(name)) / fires, 3);
        self.0.keys().map(|name| (name.clone(), by_fire(name).into())).collect::<Map<_, _>>().into()
    }
}

const MARIADB: &str = "SELECT CASE WHEN VARIABLE_NAME LIKE 'HANDLER_READ%' THEN 'rows_read' ELSE CASE VARIABLE_NAME \
     WHEN 'HANDLER_WRITE' THEN 'rows_inserted' WHEN 'HANDLER_UPDATE' THEN 'rows_updated' \
     WHEN 'HANDLER_DELETE' THEN 'rows_deleted' WHEN 'HANDLER_COMMIT' THEN 'commits' \
     WHEN 'INNODB_BUFFER_POOL_READ_REQUESTS' THEN 'pages_touched' \
     WHEN 'INNODB_BUFFER_POOL_WRITE_REQUESTS' THEN 'pages_changed' \
     WHEN 'INNODB_LSN_CURRENT' THEN 'log_bytes' WHEN 'INNODB_DATA_FSYNCS' THEN 'fsyncs' \
     WHEN 'BYTES_RECEIVED' THEN 'bytes_received' WHEN 'BYTES_SENT' THEN 'bytes_sent' END END AS name, \
     CAST(SUM(VARIABLE_VALUE) AS DOUBLE) FROM information_schema.GLOBAL_STATUS GROUP BY name HAVING name IS NOT NULL";

const POSTGRES: &str = "SELECT c.name, CAST(c.value AS DOUBLE PRECISION) FROM pg_stat_database d, pg_stat_wal w, \
     LATERAL (VALUES ('rows_inserted', d.tup_inserted), ('rows_updated', d.tup_updated), ('rows_deleted', d.tup_deleted), \
     ('rows_read', d.tup_returned), ('commits', d.xact_commit), ('pages_touched', d.blks_hit + d.blks_read), \
     ('log_bytes', CAST(w.wal_bytes AS BIGINT)), ('fsyncs', w.wal_sync)) c(name, value) \
     WHERE d.datname = current_database() \
     UNION ALL SELECT 'rows_updated_in_place', CAST(SUM(n_tup_hot_upd) AS DOUBLE PRECISION) FROM pg_stat_user_tables";
