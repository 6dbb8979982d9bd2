//! The driver's own look into the database that a node works on.

use crate::options::Kind;
use anyhow::{Context, Result};
use carillon_tests::connect;
use sea_orm::{ConnectionTrait, DatabaseBackend, DatabaseConnection, QueryResult, Statement};
use std::time::Duration;

/// A connection of the driver's own, apart from the node's.
pub struct Database {
    kind: Kind,
    /// As `database.url` takes it.
    pub url: String,
    connection: DatabaseConnection,
}

impl Database {
    /// One connection.
    pub async fn connect(kind: Kind, url: &str) -> Result<Self> {
        let connection = connect(url, Duration::from_secs(3)).await?;
        Ok(Self { kind, url: url.to_owned(), connection })
    }

    /// Its name on the server, or of the file.
    pub fn name(&self) -> &str {
        let path = self.url.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    /// The rows of a query.
    pub async fn query(&self, sql: &str) -> Result<Vec<QueryResult>> {
        let backend = match self.kind {
            Kind::Sqlite => DatabaseBackend::Sqlite,
            Kind::Mariadb => DatabaseBackend::MySql,
            Kind::Postgres => DatabaseBackend::Postgres,
        };
        self.connection.query_all_raw(Statement::from_string(backend, sql)).await.with_context(|| sql.to_owned())
    }

    /// The one number of a query; 0 for null.
    pub async fn number(&self, sql: &str) -> Result<i64> {
        let rows = self.query(sql).await?;
        let row = rows.first().with_context(|| format!("no row: {sql}"))?;
        Ok(row.try_get_by_index::<Option<i64>>(0)?.unwrap_or(0))
    }

    /// A statement without an answer.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        self.connection.execute_unprepared(sql).await.with_context(|| sql.to_owned())?;
        Ok(())
    }

    /// Ends the connection.
    pub async fn close(self) -> Result<()> {
        Ok(self.connection.close().await?)
    }
}
