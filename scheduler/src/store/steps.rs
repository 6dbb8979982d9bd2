//! What SQLite does, counted by its virtual machine: it keeps no statistics of its own.

use super::{Result, SqlStore, StoreError};
use sea_orm::{DbErr, RuntimeErr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of steps is exact to so many for each statement.
const STEPS: u16 = 100;

impl SqlStore {
    /// Counts the steps that SQLite's virtual machine takes for this store from now on: for explaining what statements cost.
    /// Exact where each pool has one connection (`database.max_connections` of 1), as it counts in one of each. `None` on a
    /// server, which counts its work itself.
    pub async fn count_steps(&self) -> Result<Option<Arc<AtomicU64>>> {
        if !self.backend.has_one_writer() {
            return Ok(None);
        }
        let counted = Arc::new(AtomicU64::new(0));
        for pool in [&self.writer, &self.reader] {
            let steps = Arc::clone(&counted);
            let count = move || {
                steps.fetch_add(u64::from(STEPS), Ordering::Relaxed);
                true
            };
            let wrong = |error| {
                let error = DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)));
                StoreError::from_db("count the steps of statements", &error)
            };
            let mut connection = pool.get_sqlite_connection_pool().acquire().await.map_err(wrong)?;
            connection.lock_handle().await.map_err(wrong)?.set_progress_handler(i32::from(STEPS), count);
        }
        Ok(Some(counted))
    }
}
