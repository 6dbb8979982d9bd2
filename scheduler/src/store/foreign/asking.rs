//! A statement and its answer, within a bounded time.

use super::address::Address;
use super::failure::{ANSWER_MAX, failed, unanswered};
use crate::store::error::Result;
use sea_orm::SqlxError;
use sea_orm::sqlx::mysql::{MySql, MySqlArguments, MySqlConnection, MySqlRow};
use sea_orm::sqlx::{self, Arguments as _, AssertSqlSafe, Executor as _};

/// The rows that answer a statement with these numbers in place of its `?`.
pub async fn ask(
    connection: &mut MySqlConnection,
    address: &Address,
    action: &'static str,
    text: String,
    numbers: &[i64],
) -> Result<Vec<MySqlRow>> {
    let mut arguments = MySqlArguments::default();
    for number in numbers {
        arguments.add(*number).map_err(|error| failed(action, address, SqlxError::Encode(error)))?;
    }
    let asked = sqlx::query_with::<MySql, _>(AssertSqlSafe(text), arguments).persistent(false).fetch_all(connection);
    match tokio::time::timeout(ANSWER_MAX, asked).await {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => Err(failed(action, address, error)),
        Err(_) => Err(unanswered(action, address)),
    }
}

/// Runs a statement without an answer.
pub async fn run(
    connection: &mut MySqlConnection,
    address: &Address,
    action: &'static str,
    text: String,
) -> Result<()> {
    let ran = connection.execute(sqlx::raw_sql(AssertSqlSafe(text)));
    match tokio::time::timeout(ANSWER_MAX, ran).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed(action, address, error)),
        Err(_) => Err(unanswered(action, address)),
    }
}
