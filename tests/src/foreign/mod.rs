//! Databases of other schedulers, for imports: their tables, written anew from the documented columns, and what is in them.

mod horace;
mod jobs;
mod tables;

pub use horace::{HORACE_TABLES, insert_horace};
pub use jobs::{CRONS, Dice, GROUPS, glue_of, groups, jobs, users};
pub use tables::{Release, XxlJob};

use crate::database::Database;
use chrono::DateTime;
use chrono_tz::Tz;
use sea_orm::{ConnectionTrait as _, Statement, Value};

/// A row to insert: columns and their values.
pub(crate) type Row = Vec<(&'static str, Value)>;

/// Inserts rows over one connection.
pub(crate) async fn insert(database: &Database, table: &str, rows: impl IntoIterator<Item = Row>) {
    let connection = database.connect().await;
    for row in rows {
        let columns: Vec<String> = row.iter().map(|(name, _)| format!("`{name}`")).collect();
        let places = vec!["?"; columns.len()].join(", ");
        let text = format!("INSERT INTO `{table}` ({}) VALUES ({places})", columns.join(", "));
        let values: Vec<Value> = row.into_iter().map(|(_, value)| value).collect();
        let statement = Statement::from_sql_and_values(connection.get_database_backend(), &text, values);
        connection.execute_raw(statement).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    connection.close().await.expect("close the connection");
}

/// A text, of which the empty one is null: other schedulers write either.
pub(crate) fn text_or_null(text: &str) -> Value {
    (!text.is_empty()).then(|| text.to_owned()).into()
}

/// A time as its column has it.
pub(crate) fn local(at: Option<i64>, zone: Tz) -> Value {
    let local = at.and_then(DateTime::from_timestamp_millis).map(|at| at.with_timezone(&zone));
    local.map(|local| local.format("%Y-%m-%d %H:%M:%S%.3f").to_string()).into()
}
