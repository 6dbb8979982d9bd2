//! How a node comes to its database: the settings, the address, the pools (SQLite: one for writing, one for reading).

use super::ClusterStore;
use super::database_settings::DatabaseSettings;
use super::dialect::Dialect;
use super::error::{Result, StoreError, StoreErrorKind};
use super::galera::Galera;
use super::pool::{Limits, Trust, open};
use super::sql_store::SqlStore;
use sea_orm::{DbErr, RuntimeErr, SqlxError};
use std::time::{Duration, Instant};

/// How long a node waits at its start until it can open a SQLite file. Connections to a server wait for
/// `database.connect_timeout`: whether it is there is known before.
const OPEN_FILE_MAX: Duration = Duration::from_secs(30);

impl SqlStore {
    /// Connects, and proves the connection with a first statement.
    ///
    /// # Errors
    /// The address cannot be parsed, the server does not answer or refuses the login.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self> {
        const ACTION: &str = "connect";
        let url = settings.for_driver();
        make_sqlite_file(&url)?;
        reach_server(settings).await?;
        let is_file = settings.url.starts_with("sqlite:");
        let writers = if is_file { 1 } else { settings.max_connections };
        let (trust, galera) = (Trust::default(), Galera::default());
        let began = Instant::now();
        let pool = async |connections| loop {
            match open(&url, settings, connections, Limits::Bounded, &trust, &galera).await {
                // The file waits for a disk that has much to write, or for another process that holds it.
                Err(error) if is_file && has_timed_out(&error) && began.elapsed() < OPEN_FILE_MAX => {}
                opened => break opened.map_err(|error| StoreError::from_db(ACTION, &error)),
            }
        };
        let writer = pool(writers).await?;
        let backend = Dialect::of(writer.get_database_backend()).ok_or_else(|| {
            let detail = "carillon keeps its data in SQLite, MariaDB, MySQL or PostgreSQL; mend database.url";
            StoreError::new(StoreErrorKind::Invalid, ACTION, detail)
        })?;
        let reader = if backend.has_one_writer() { pool(settings.max_connections).await? } else { writer.clone() };
        let store = Self::on(writer, reader, backend, settings, trust, galera);
        ClusterStore::now_us(&store).await?;
        Ok(store)
    }
}

fn has_timed_out(error: &DbErr) -> bool {
    matches!(error, DbErr::Conn(RuntimeErr::SqlxError(why)) if matches!(**why, SqlxError::PoolTimedOut))
}

/// The pool hides why it cannot connect behind its own time-out; a plain connection tells.
async fn reach_server(settings: &DatabaseSettings) -> Result<()> {
    if settings.url.starts_with("sqlite:") {
        return Ok(());
    }
    let Ok(url) = url::Url::parse(&settings.url) else { return Ok(()) };
    let default_port = if url.scheme().starts_with("postgres") { 5432 } else { 3306 };
    let Some(host) = url.host_str().filter(|host| !host.is_empty()) else { return Ok(()) };
    let port = url.port().unwrap_or(default_port);
    let host = host.trim_matches(['[', ']']);
    let attempt = tokio::time::timeout(settings.connect_timeout, tokio::net::TcpStream::connect((host, port)));
    let why = match attempt.await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {:?}", settings.connect_timeout),
    };
    let detail = format!("cannot reach {host}:{port}: {why}; start the database there, or mend database.url");
    Err(StoreError::new(StoreErrorKind::Unavailable, "connect", detail))
}

/// A fresh machine has no folder and no file yet. The keys of executors are in the file: others must not read it.
fn make_sqlite_file(url: &str) -> Result<()> {
    let Some(path) = url.strip_prefix("sqlite:") else { return Ok(()) };
    let path = path.trim_start_matches("//").split('?').next().unwrap_or_default();
    if path.is_empty() || path.starts_with(':') || path.starts_with("file:") {
        return Ok(());
    }
    let path = std::path::Path::new(path);
    let wrong = |what: &std::path::Path, error: std::io::Error| {
        let detail = format!("cannot make {}: {error}", what.display());
        StoreError::new(StoreErrorKind::Invalid, "connect", detail)
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        private_folder().create(folder).map_err(|error| wrong(folder, error))?;
    }
    match private_file().open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => warn_of_readers(path),
        // What makes an existing file unusable is told when it is opened as a database.
        Err(error) if !path.exists() => return Err(wrong(path, error)),
        Ok(_) | Err(_) => {}
    }
    Ok(())
}

#[cfg(unix)]
fn private_folder() -> std::fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true).mode(0o700);
    folder
}

#[cfg(unix)]
fn private_file() -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new();
    file.write(true).create_new(true).mode(0o600);
    file
}

#[cfg(unix)]
fn warn_of_readers(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).map_or(0, |file| file.permissions().mode());
    if mode & 0o077 != 0 {
        tracing::warn!(
            file = %path.display(),
            mode = format!("{:o}", mode & 0o777),
            "other users of this machine can open the database file, which holds the keys of executors: chmod 600 it"
        );
    }
}

#[cfg(not(unix))]
fn private_folder() -> std::fs::DirBuilder {
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    folder
}

#[cfg(not(unix))]
fn private_file() -> std::fs::OpenOptions {
    let mut file = std::fs::OpenOptions::new();
    file.write(true).create_new(true);
    file
}

#[cfg(not(unix))]
fn warn_of_readers(_: &std::path::Path) {}

#[cfg(test)]
mod tests {
    use super::*;
    use sea_orm::{ConnectOptions, ConnectionTrait as _, Database};

    #[tokio::test]
    async fn a_file_that_is_busy_at_the_start_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/new.db?mode=rwc", folder.path().display());
        let one = ConnectOptions::new(url.clone()).max_connections(1).to_owned();
        let other = Database::connect(one).await.unwrap();
        other.execute_unprepared("BEGIN EXCLUSIVE").await.unwrap();
        let settings = DatabaseSettings {
            url,
            max_connections: 2,
            connect_timeout: Duration::from_millis(200),
            statement_timeout: Duration::from_secs(5),
            migrate_at_start: false,
        };
        let connecting = tokio::spawn(async move { SqlStore::connect(&settings).await });
        // Longer than a connection may take: what is shown is that this does not end it.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!connecting.is_finished(), "{:?}", connecting.await);
        other.execute_unprepared("COMMIT").await.unwrap();
        connecting.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn no_pool_keeps_itself_up() {
        let settings = DatabaseSettings {
            url: "sqlite::memory:".to_owned(),
            max_connections: 2,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
            migrate_at_start: false,
        };
        let store = SqlStore::connect(&settings).await.unwrap();
        for pool in [&store.writer, &store.reader] {
            let options = pool.get_sqlite_connection_pool().options();
            assert_eq!((options.get_idle_timeout(), options.get_max_lifetime()), (None, None));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn no_other_user_reads_the_files_that_a_node_makes() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/carillon.db");
        let settings = DatabaseSettings {
            url: format!("sqlite://{}?mode=rwc", path.display()),
            max_connections: 2,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
            migrate_at_start: false,
        };
        let store = SqlStore::connect(&settings).await.unwrap();
        store.migrate().await.unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let files: Vec<_> =
            std::fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() > 1, "the log beside the file, too: {files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}
