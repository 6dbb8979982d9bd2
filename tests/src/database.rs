//! One scenario's own database, read directly by the checks.

use crate::folder;
use crate::server::galera::Galera;
use crate::server::standby::Replicated;
use crate::server::{Kind, Server};
use crate::template;
use crate::wait::{await_until, when};
use sea_orm::{ConnectOptions, ConnectionTrait, DatabaseBackend, DatabaseConnection, DbErr, QueryResult, Statement};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Within this time a server that runs gives a connection.
const CONNECT: Duration = Duration::from_secs(10);

static NEXT: AtomicU32 = AtomicU32::new(1);

/// One connection, without the upkeep of sqlx that can spin for ever:
/// <https://github.com/launchbadge/sqlx/issues/3645>.
///
/// # Errors
/// It cannot be had `within` this time.
pub async fn connect(url: &str, within: Duration) -> Result<DatabaseConnection, DbErr> {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).connect_timeout(within).sqlx_logging(false);
    options.idle_timeout(None::<Duration>).max_lifetime(None::<Duration>);
    sea_orm::Database::connect(options).await
}

/// A database that nothing else uses.
#[derive(Debug, Clone)]
pub struct Database {
    /// Of this kind.
    pub kind: Kind,
    /// As `database.url` takes it.
    pub url: String,
    server: Option<Arc<Server>>,
    /// The file, of SQLite.
    file: Option<PathBuf>,
    /// What the checks read over. It looks whether its connection still lives before it uses it, so it outlives a
    /// stop of the server.
    reader: Arc<OnceCell<DatabaseConnection>>,
}

impl Database {
    /// A database with the schema of this version, on the server that scenarios share.
    pub async fn fresh(kind: Kind) -> Self {
        template::copy(kind).await
    }

    /// A database without any table, on the server that scenarios share.
    pub async fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::file(),
            _ => Self::on(Server::shared(kind).await, |name| format!("CREATE DATABASE {name}")).await,
        }
    }

    /// A database without any table, on a server of its own, which may be stopped.
    pub async fn private(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::file(),
            _ => Self::on(Server::private(kind).await, |name| format!("CREATE DATABASE {name}")).await,
        }
    }

    /// A file that is not there yet.
    pub(crate) fn file() -> Self {
        let file = folder::fresh("sqlite").join("carillon.db");
        let url = format!("sqlite://{}?mode=rwc", file.display());
        Self { kind: Kind::Sqlite, url, server: None, file: Some(file), reader: Arc::default() }
    }

    /// A database that these statements make, given its name.
    pub(crate) async fn on(server: Arc<Server>, make: impl FnOnce(&str) -> String) -> Self {
        let name = format!("scenario_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&server.admin_url(), CONNECT).await.expect("connect as administrator");
        let created = admin.execute_unprepared(&make(&name)).await;
        created.expect("create the scenario's database");
        admin.close().await.expect("close the administrator's connection");
        let url = server.url(&name);
        Self { kind: server.kind, url, server: Some(server), file: None, reader: Arc::default() }
    }

    /// A new database without any table on a member, when every member of the cluster has it.
    pub async fn of_galera(cluster: &Galera) -> Self {
        let database = Self::on(Arc::clone(&cluster.members[0]), |name| format!("CREATE DATABASE {name}")).await;
        let name = database.url.rsplit('/').next().expect("a URL has a path");
        let find = format!("SELECT 1, schema_name FROM information_schema.schemata WHERE schema_name = '{name}'");
        for member in &cluster.members {
            await_until("the member has the database", 10, || async { when(member.ask(&find).await.is_some()) }).await;
        }
        database
    }

    /// A new database without any table, at the address that follows the primary.
    pub async fn of_replicated(servers: &Replicated) -> Self {
        let database = Self::on(Arc::clone(&servers.first), |name| format!("CREATE DATABASE {name}")).await;
        database.at_port(servers.relay.port)
    }

    /// The same database as seen through another member.
    #[must_use]
    pub fn on_member(&self, member: &Arc<Server>) -> Self {
        Self { server: Some(Arc::clone(member)), ..self.at_port(member.port) }
    }

    /// The same database as another user sees it.
    #[must_use]
    pub fn as_user(&self, name: &str, password: &str) -> Self {
        let url = self.url.replacen("carillon:carillon@", &format!("{name}:{password}@"), 1);
        Self { url, reader: Arc::default(), ..self.clone() }
    }

    /// The same, read over a new connection: the one that was used leads to a server that hangs.
    #[must_use]
    pub fn read_anew(&self) -> Self {
        Self { reader: Arc::default(), ..self.clone() }
    }

    /// The same database by another way.
    #[must_use]
    pub fn by(&self, url: &str) -> Self {
        Self { url: url.to_owned(), reader: Arc::default(), ..self.clone() }
    }

    /// The same database at another port of this machine.
    fn at_port(&self, port: u16) -> Self {
        let name = self.url.rsplit('/').next().expect("a URL has a path");
        let (address, _) = self.url.rsplit_once(':').expect("a port in the address");
        Self { url: format!("{address}:{port}/{name}"), reader: Arc::default(), ..self.clone() }
    }

    /// The server, unless this is a file.
    #[must_use]
    pub fn server(&self) -> &Server {
        self.server.as_deref().expect("SQLite has no server")
    }

    /// The file of an SQLite database.
    #[must_use]
    pub fn path(&self) -> &PathBuf {
        self.file.as_ref().expect("only SQLite is a file")
    }

    /// A connection of the caller's own.
    pub async fn connect(&self) -> DatabaseConnection {
        connect(&self.url, CONNECT).await.expect("connect to the scenario's database")
    }

    async fn reader(&self) -> &DatabaseConnection {
        self.reader.get_or_init(|| self.connect()).await
    }

    /// Runs a query and reads each row.
    pub async fn query<T>(&self, sql: &str, read: impl Fn(&QueryResult) -> Result<T, DbErr>) -> Vec<T> {
        let rows = self
            .reader()
            .await
            .query_all_raw(Statement::from_string(self.backend(), sql))
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let values = rows.iter().map(read).collect::<Result<_, _>>();
        values.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// One number, such as a count.
    pub async fn number(&self, sql: &str) -> i64 {
        let values = self.query(sql, |row| row.try_get_by_index::<i64>(0)).await;
        *values.first().unwrap_or_else(|| panic!("{sql}: no row"))
    }

    /// Runs a statement; the rows affected.
    pub async fn execute(&self, sql: &str) -> u64 {
        let done = self.reader().await.execute_unprepared(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        done.rows_affected()
    }

    pub(crate) fn backend(&self) -> DatabaseBackend {
        match self.kind {
            Kind::Sqlite => DatabaseBackend::Sqlite,
            Kind::MariaDb => DatabaseBackend::MySql,
            Kind::Postgres => DatabaseBackend::Postgres,
        }
    }
}
