//! What a database counts of its own work: of a fire it is nearly the same on any machine, in any mood.

use crate::database::Database;
use crate::options::Kind;
use crate::rounding::rounded;
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

/// Of the tables and their indexes, without the catalogue: what sessions tell when they end, or once a second. `commits` are of
/// transactions that wrote.
const POSTGRES: &str = "SELECT c.name, CAST(c.value AS DOUBLE PRECISION) FROM \
     (SELECT SUM(seq_tup_read) + SUM(idx_tup_fetch) AS read, SUM(n_tup_ins) AS inserted, SUM(n_tup_upd) AS updated, \
     SUM(n_tup_hot_upd) AS in_place, SUM(n_tup_del) AS deleted FROM pg_stat_user_tables) t, \
     (SELECT SUM(idx_tup_read) AS read FROM pg_stat_user_indexes) i, \
     (SELECT SUM(COALESCE(heap_blks_read, 0) + COALESCE(heap_blks_hit, 0) + COALESCE(idx_blks_read, 0) + \
     COALESCE(idx_blks_hit, 0) + COALESCE(toast_blks_read, 0) + COALESCE(toast_blks_hit, 0) + \
     COALESCE(tidx_blks_read, 0) + COALESCE(tidx_blks_hit, 0)) AS touched FROM pg_statio_user_tables) p, pg_stat_wal w, \
     LATERAL (VALUES ('rows_read', t.read), ('index_entries_read', i.read), ('rows_inserted', t.inserted), \
     ('rows_updated', t.updated), ('rows_updated_in_place', t.in_place), ('rows_deleted', t.deleted), \
     ('pages_touched', p.touched), ('log_bytes', pg_current_wal_insert_lsn() - '0/0'::pg_lsn), ('fsyncs', w.wal_sync), \
     ('commits', CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS NUMERIC))) c(name, value)";
