//! A database that takes its time, on any machine.

use crate::database::Database;
use crate::proxy::Proxy;
use crate::server::Kind;
use sea_orm::ConnectionTrait;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Each piece that passes takes so much longer: several round trips are a second.
const DELAY: Duration = Duration::from_millis(30);

/// Another process has the file's write lock for so long …
const LOCKED: Duration = Duration::from_millis(800);
/// … and leaves it to others for so long.
const UNLOCKED: Duration = Duration::from_millis(200);

/// A way to a database that can be made slow.
#[derive(Debug)]
pub struct SlowDatabase {
    /// The same database by this way.
    pub database: Database,
    proxy: Option<Proxy>,
    lock: Option<AbortHandle>,
}

impl SlowDatabase {
    /// A way that is as quick as the database.
    pub async fn of(database: &Database) -> Self {
        let proxy = match database.kind {
            Kind::Sqlite => None,
            _ => Some(Proxy::to(&database.url).await),
        };
        let url = proxy.as_ref().map_or(&database.url, |proxy| &proxy.url);
        Self { database: database.by(url), proxy, lock: None }
    }

    /// From now on it takes its time.
    pub fn slow(&mut self) {
        match &self.proxy {
            Some(proxy) => proxy.slow(DELAY),
            None => self.lock = Some(tokio::spawn(lock_again_and_again(self.database.clone())).abort_handle()),
        }
    }

    /// It is as quick as before.
    pub fn quick(&mut self) {
        if let Some(proxy) = &self.proxy {
            proxy.slow(Duration::ZERO);
        }
        if let Some(lock) = self.lock.take() {
            lock.abort();
        }
    }
}

async fn lock_again_and_again(database: Database) {
    let connection = database.connect().await;
    loop {
        // One that does not get the lock in time tries again.
        if connection.execute_unprepared("BEGIN IMMEDIATE").await.is_ok() {
            tokio::time::sleep(LOCKED).await;
            connection.execute_unprepared("ROLLBACK").await.expect("give the write lock back");
        }
        tokio::time::sleep(UNLOCKED).await;
    }
}
