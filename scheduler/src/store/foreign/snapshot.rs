//! What another scheduler's database held at one instant.

use super::asking::run;
use super::connection::ForeignDatabase;
use super::rows::FOREIGN_PAGE_MAX;
use super::{horace, xxljob};
use crate::domain::horace::ForeignHorace;
use crate::domain::xxljob::{ForeignLog, ForeignXxlJob};
use crate::store::error::Result;
use chrono_tz::Tz;

/// What the database held at one instant. One that is dropped ends with the next, or with the connection.
#[derive(Debug)]
pub struct Snapshot<'a> {
    database: &'a mut ForeignDatabase,
}

impl ForeignDatabase {
    /// Begins to read: everything that the snapshot reads was there at this instant.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn snapshot(&mut self) -> Result<Snapshot<'_>> {
        const ACTION: &str = "begin to read the other scheduler's database";
        // Whatever was begun before and not ended comes to nothing.
        for text in [
            "ROLLBACK",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ] {
            run(&mut self.connection, &self.address, ACTION, text.to_owned()).await?;
        }
        Ok(Snapshot { database: self })
    }
}

impl Snapshot<'_> {
    /// Everything that an import takes of an xxl-job. Its times are on the wall clock of `zone`.
    ///
    /// # Errors
    /// It is none, there are more than [`FOREIGN_ROWS_MAX`](super::FOREIGN_ROWS_MAX) rows of a kind, or the server does not
    /// answer.
    pub async fn xxl_job(&mut self, zone: Tz) -> Result<ForeignXxlJob> {
        xxljob::read(self.database, zone).await
    }

    /// The runs of an xxl-job after the one with the id `after` (0: from the first on), by id: up to `limit`, which is 1 to
    /// [`FOREIGN_PAGE_MAX`]. Long texts are cut to [`LOG_TEXT_CHARS_MAX`](super::LOG_TEXT_CHARS_MAX) characters.
    ///
    /// # Errors
    /// As above.
    pub async fn xxl_job_logs(&mut self, after: i64, limit: u32, zone: Tz) -> Result<Vec<ForeignLog>> {
        xxljob::read_logs(self.database, after, limit.clamp(1, FOREIGN_PAGE_MAX), zone).await
    }

    /// Everything that an import takes of a horace cron-job. Its times are on the wall clock of `zone`.
    ///
    /// # Errors
    /// As above.
    pub async fn horace(&mut self, zone: Tz) -> Result<ForeignHorace> {
        horace::read(self.database, zone).await
    }

    /// Ends it: the server need not keep old rows for it any longer.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn end(self) -> Result<()> {
        const ACTION: &str = "end reading the other scheduler's database";
        let ForeignDatabase { connection, address, .. } = self.database;
        run(connection, address, ACTION, "COMMIT".to_owned()).await
    }
}
