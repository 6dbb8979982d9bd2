//! What went wrong with another scheduler's database, where, and how to mend it.

use super::address::Address;
use crate::store::error::{StoreError, StoreErrorKind};
use sea_orm::sqlx::mysql::MySqlDatabaseError;
use sea_orm::{DbErr, RuntimeErr, SqlxError};
use std::sync::Arc;
use std::time::Duration;

/// How long the answer to a statement is waited for: longer than the server may work at it, so that it tells why.
pub const ANSWER_MAX: Duration = Duration::from_secs(40);

/// An error of the driver.
pub fn failed(action: &'static str, address: &Address, error: SqlxError) -> StoreError {
    let database = error.as_database_error().and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    let number = database.map(MySqlDatabaseError::number);
    let (is_wrong, remedy) = match number {
        Some(1045) => (true, "mend the user or the password in the address".to_owned()),
        Some(1044 | 1142 | 1143) => {
            (true, format!("give the user the right: GRANT SELECT ON `{}`.* TO …", address.database))
        }
        Some(1049) => (true, "mend the name of the database in the address".to_owned()),
        Some(1040 | 1203 | 1205 | 1226 | 1969 | 3024) => (false, "the database is busy: try again".to_owned()),
        Some(_) => (
            false,
            "report this, if the database is that of a release that docs/migrating-from-xxl-job.md names".to_owned(),
        ),
        None => (false, "start the database there, or mend the address".to_owned()),
    };
    let detail = format!("{}: {error}; {remedy}", address.place());
    let kind = StoreError::from_db(action, &DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))).kind();
    StoreError::new(if is_wrong { StoreErrorKind::Invalid } else { kind }, action, detail)
}

/// The server keeps silent.
pub fn unanswered(action: &'static str, address: &Address) -> StoreError {
    let detail = format!("{} gives no answer within {ANSWER_MAX:?}; try again", address.place());
    StoreError::new(StoreErrorKind::Unavailable, action, detail)
}

/// What is there is not what it should be.
pub fn unfit(action: &'static str, address: &Address, why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, action, format!("{}: {why}", address.place()))
}
