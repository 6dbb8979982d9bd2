//! The database goes away for a while.

use crate::database::Database;
use crate::server::Kind;
use sea_orm::{ConnectionTrait, DatabaseConnection};

/// An outage that lasts until [`Outage::end`].
#[derive(Debug)]
pub struct Outage {
    database: Database,
    /// SQLite has no server to stop: another process's write lock keeps everybody from writing.
    lock: Option<DatabaseConnection>,
}

impl Outage {
    /// Stops the server, or locks the file.
    pub async fn begin(database: &Database) -> Self {
        let lock = if database.kind == Kind::Sqlite {
            let connection = database.connect().await;
            connection.execute_unprepared("BEGIN IMMEDIATE").await.expect("take the write lock");
            Some(connection)
        } else {
            database.server().stop().await;
            None
        };
        Self { database: database.clone(), lock }
    }

    /// Starts the server again, or frees the file.
    pub async fn end(self) {
        match self.lock {
            Some(connection) => {
                connection.execute_unprepared("ROLLBACK").await.expect("give the write lock back");
                connection.close().await.expect("close the connection");
            }
            None => self.database.server().start().await,
        }
    }
}
