//! The database servers: one, or a cluster of which each node has a member of its own.

use crate::options::Engine;
use crate::signals;
use carillon_tests::Database;
use carillon_tests::server::Server;
use carillon_tests::server::galera::{Galera, MEMBERS};
use rustix::process::Signal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// Between two looks whether a killed server is gone.
const LOOK: Duration = Duration::from_millis(20);

/// What keeps the nodes' data.
pub struct Servers {
    /// The database through each server.
    databases: Vec<Database>,
    cluster: Option<Galera>,
    /// One fault of a server at a time.
    turns: Vec<Mutex<()>>,
}

impl Servers {
    /// Starts them, with an empty database.
    pub async fn start(engine: Engine) -> Self {
        if engine != Engine::Galera {
            return Self::over(vec![Database::private(engine.kind()).await], None);
        }
        let cluster = Galera::start().await;
        let first = Database::of_galera(&cluster).await;
        let through = |member: &Arc<Server>| first.on_member(member);
        Self::over(cluster.members.iter().map(through).collect(), Some(cluster))
    }

    fn over(databases: Vec<Database>, cluster: Option<Galera>) -> Self {
        let turns = databases.iter().map(|_| Mutex::default()).collect();
        Self { databases, cluster, turns }
    }

    /// Waits until the fault before is mended.
    pub async fn turn(&self, number: usize) -> MutexGuard<'_, ()> {
        self.turns[number].lock().await
    }

    /// The database as that node has it.
    pub fn of_node(&self, number: usize) -> &Database {
        &self.databases[number % self.databases.len()]
    }

    /// As the checker reads it.
    pub fn reader(&self) -> &Database {
        &self.databases[0]
    }

    /// What each server printed, with the name of a file.
    pub fn logs(&self) -> Vec<(String, String)> {
        let log = |(number, database): (usize, &Database)| {
            (format!("database-{number}.log"), database.server().process().log())
        };
        self.databases.iter().enumerate().map(log).collect()
    }

    /// `kill -9` of a server and all that it has started; returns when they are gone.
    pub async fn kill(&self, number: usize) {
        let process = self.databases[number].server().process();
        // Stopped first: what is listed cannot start anything more.
        signals::send(&[process.pid()], Signal::STOP);
        let all = signals::family(process.pid());
        signals::send(&all, Signal::KILL);
        while process.is_running() || signals::any_lives(&all) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Starts a killed server again; returns when it answers, and has what the others have.
    pub async fn start_again(&self, number: usize) {
        match &self.cluster {
            Some(cluster) => cluster.rejoin(number, false).await,
            None => self.databases[number].server().start().await,
        }
    }

    /// SIGSTOP of a server and all that it has started.
    pub fn pause(&self, number: usize) {
        let pid = self.databases[number].server().process().pid();
        // First the one that starts others.
        signals::send(&[pid], Signal::STOP);
        signals::send(&signals::family(pid), Signal::STOP);
    }

    /// SIGCONT; returns when it has what the others have.
    pub async fn go_on(&self, number: usize) {
        let pid = self.databases[number].server().process().pid();
        signals::send(&signals::family(pid), Signal::CONT);
        if let Some(cluster) = &self.cluster {
            cluster.await_synced(number).await;
            cluster.await_size(number, MEMBERS).await;
        }
    }
}
