//! The schema, made once in a process for each kind of database by the product's own migration, and copied for each
//! scenario: that takes a few milliseconds, the migration some hundred.

use crate::database::Database;
use crate::server::{Kind, Server};
use carillon::store::{DatabaseSettings, SqlStore};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

static SQLITE: OnceCell<PathBuf> = OnceCell::const_new();
static MARIADB: OnceCell<(String, Vec<String>)> = OnceCell::const_new();
static POSTGRES: OnceCell<String> = OnceCell::const_new();

/// A new database with the schema, on the server that scenarios share.
pub(crate) async fn copy(kind: Kind) -> Database {
    match kind {
        Kind::Sqlite => {
            let template = SQLITE.get_or_init(|| async { migrated(Database::file()).await.path().clone() }).await;
            let copy = Database::file();
            tokio::fs::copy(template, copy.path()).await.expect("copy the template's file");
            copy
        }
        Kind::MariaDb => {
            let server = Server::shared(kind).await;
            let (template, tables) = MARIADB.get_or_init(|| tables_of_template(server.clone())).await;
            Database::on(server, |name| tables_like(template, tables, name)).await
        }
        Kind::Postgres => {
            let server = Server::shared(kind).await;
            let template = POSTGRES.get_or_init(|| async { name_of(&migrated(empty(server.clone()).await).await) });
            let template = template.await;
            Database::on(server, |name| format!("CREATE DATABASE {name} TEMPLATE {template}")).await
        }
    }
}

async fn empty(server: Arc<Server>) -> Database {
    Database::on(server, |name| format!("CREATE DATABASE {name}")).await
}

/// Brings the schema into `database`, and leaves no connection behind.
async fn migrated(database: Database) -> Database {
    let settings = DatabaseSettings {
        url: database.url.clone(),
        max_connections: 2,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(20),
        migrate_at_start: false,
    };
    let store = SqlStore::connect(&settings).await.expect("connect to the template");
    store.migrate().await.expect("migrate the template");
    store.close().await;
    database
}

fn name_of(database: &Database) -> String {
    database.url.rsplit('/').next().expect("a URL has a path").to_owned()
}

async fn tables_of_template(server: Arc<Server>) -> (String, Vec<String>) {
    let template = migrated(empty(server).await).await;
    let tables = template.query("SHOW TABLES", |row| row.try_get_by_index::<String>(0)).await;
    (name_of(&template), tables)
}

/// `MariaDB` knows no templates: each table is made like the template's, with its rows.
fn tables_like(template: &str, tables: &[String], name: &str) -> String {
    let mut statements = format!("CREATE DATABASE {name}");
    for table in tables {
        write!(
            statements,
            "; CREATE TABLE {name}.{table} LIKE {template}.{table}; \
             INSERT INTO {name}.{table} SELECT * FROM {template}.{table}"
        )
        .expect("writing to a String cannot fail");
    }
    statements
}
