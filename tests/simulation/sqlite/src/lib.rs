//! SQLite databases in memory whose clock is set by the caller, whose statements fail where the caller says so, and which
//! can be put back to what they were.
//!
//! What ships connects to such a database by its address and does not know the difference: SQLite asks its virtual file
//! system (VFS) for the time, and each database here has one of its own.

mod clock;
mod connection;
mod interruption;

use clock::Clock;
use connection::Connection;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// A database in memory, which all connections of this process to its address share.
#[derive(Debug)]
pub struct SimulatedSqlite {
    clock: Clock,
    /// Stands in the address. Nothing but an empty file of the name is ever there.
    folder: TempDir,
    /// The database is there as long as a connection to it is.
    connection: Mutex<Connection>,
}

/// What a database held at some time.
#[derive(Debug)]
pub struct Image(Mutex<Connection>);

impl SimulatedSqlite {
    /// An empty database, at the beginning of the epoch.
    ///
    /// # Panics
    /// Where there is no folder for temporary files.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        interruption::watch();
        let clock = Clock::new();
        let path = folder.path().join(NAME);
        let connection = Mutex::new(Connection::open(path.to_str().expect("a path in UTF-8"), Some(clock.vfs())));
        Self { clock, folder, connection }
    }

    /// Its address.
    pub fn url(&self) -> String {
        let (folder, vfs) = (self.folder.path().display(), self.clock.vfs().to_str().unwrap_or_default());
        format!("sqlite://{folder}/{NAME}?mode=rwc&vfs={vfs}")
    }

    /// Sets its clock, epoch ms.
    pub fn set_time(&self, now_ms: i64) {
        self.clock.set(now_ms);
    }

    /// Interrupts a statement of those that come: 1 is the next one; 0: none.
    pub fn interrupt(&self, number: i64) {
        self.clock.interrupt(number);
    }

    /// What it holds now. No transaction may be open.
    pub fn image(&self) -> Image {
        let mut image = Connection::open(":memory:", None);
        image.copy_from(&mut locked(&self.connection));
        Image(Mutex::new(image))
    }

    /// Puts it back to what it held then. No transaction may be open.
    pub fn put_back(&self, image: &Image) {
        locked(&self.connection).copy_from(&mut locked(&image.0));
    }
}

impl Default for SimulatedSqlite {
    fn default() -> Self {
        Self::new()
    }
}

/// Whoever panicked with it has not changed it.
fn locked(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

const NAME: &str = "carillon.db";
