//! A database as a text of SQL, and back: what releases left behind is kept so.

use crate::database::Database;
use crate::server::{Kind, postgres};
use sea_orm::ConnectionTrait as _;
use std::process::Command;

impl Database {
    /// Everything in it, as statements that make it again in an empty database of the same kind.
    pub async fn dump(&self) -> String {
        match self.kind {
            Kind::Sqlite => self.dump_sqlite().await,
            Kind::MariaDb => {
                let (address, name) = self.url.rsplit_once('/').expect("a database in the address");
                let port = address.rsplit_once(':').expect("a port in the address").1;
                let mut dump = Command::new("mariadb-dump");
                dump.args(["--no-defaults", "--host=127.0.0.1", "--user=carillon", "--password=carillon"]);
                dump.args([
                    &format!("--port={port}"),
                    "--skip-comments",
                    "--skip-add-locks",
                    "--order-by-primary",
                    name,
                ]);
                printed(dump)
            }
            Kind::Postgres => {
                let mut dump = Command::new(postgres::program("pg_dump"));
                dump.args(["--inserts", "--rows-per-insert=100", "--no-owner", "--no-privileges", "--no-comments"]);
                dump.arg(format!("--dbname={}", self.url));
                printed(dump)
            }
        }
    }

    /// Makes what `dump` says.
    pub async fn load(&self, dump: &str) {
        let connection = self.connect().await;
        connection.execute_unprepared(dump).await.unwrap_or_else(|error| panic!("load a dump: {error}"));
        connection.close().await.expect("close the connection");
    }

    async fn dump_sqlite(&self) -> String {
        let text = |row: &sea_orm::QueryResult| row.try_get_by_index::<String>(0);
        let made = "SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name";
        let mut lines = self.query(made, text).await;
        for table in self.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", text).await {
            let columns = self.query(&format!("SELECT name FROM pragma_table_info('{table}')"), text).await;
            let values: Vec<String> = columns.iter().map(|column| format!("quote(\"{column}\")")).collect();
            let rows = format!(
                "SELECT 'INSERT INTO \"{table}\" VALUES (' || {} || ');' FROM \"{table}\"",
                values.join(" || ', ' || ")
            );
            lines.extend(self.query(&rows, text).await);
        }
        lines.join("\n")
    }
}

/// What it prints, without what is a remark or a word to the command line's client.
fn printed(mut command: Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("a dump is UTF-8");
    let is_sql = |line: &&str| !line.is_empty() && !["--", "\\", "/*M!"].iter().any(|begin| line.starts_with(begin));
    text.lines().filter(is_sql).collect::<Vec<_>>().join("\n")
}
