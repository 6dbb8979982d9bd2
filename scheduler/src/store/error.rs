//! One error for the room: what kind it is decides what a worker does next.

use super::galera::is_lost;
use crate::domain::refusal::Coded;
use crate::domain::{FieldError, Refusal};
use crate::metrics::{Family, family};
use sea_orm::sqlx::mysql::MySqlDatabaseError;
use sea_orm::{DbErr, RuntimeErr, SqlErr, SqlxError};

/// Result of everything that asks the database.
pub type Result<T> = std::result::Result<T, StoreError>;

/// What a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The database cannot be reached, or did not answer in time; the effect of the statement is
    /// unknown. Try again later.
    Unavailable,
    /// Deadlock, certification failure, busy: nothing happened; try again at once.
    Contention,
    /// A unique index says no.
    Duplicate,
    /// The row's state does not allow it (another edit came first).
    Conflict,
    /// A message that is not newer than what was heard before it.
    Outdated,
    /// No such row for this caller.
    NotFound,
    /// The input cannot be stored as asked.
    Invalid,
    /// The database can be read but not written.
    ReadOnly,
    /// A change that could not begin while its caller may still wait for it: nothing was done.
    TooLate,
    /// Anything else: a fault of ours or of the schema.
    Other,
}

/// Statements that failed, by kind.
pub static STORE_ERRORS: Family<10> = family!(StoreErrorKind {
    Unavailable "unavailable",
    Contention "contention",
    Duplicate "duplicate",
    Conflict "conflict",
    Outdated "outdated",
    NotFound "not_found",
    Invalid "invalid",
    ReadOnly "read_only",
    TooLate "too_late",
    Other "other",
});

/// What went wrong, where.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{action}: {detail}{}", hint(*kind))]
pub struct StoreError {
    kind: StoreErrorKind,
    action: &'static str,
    detail: String,
    /// The field of the input that is to blame.
    field: Option<Box<FieldError>>,
    /// Why what is there does not allow it.
    refusal: Option<Box<Refusal>>,
}

impl StoreError {
    /// An error without a database error behind it.
    pub fn new(kind: StoreErrorKind, action: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, action, detail: detail.into(), field: None, refusal: None }
    }

    /// What is there does not allow it.
    pub fn of(action: &'static str, refusal: Refusal) -> Self {
        let kind = match refusal.status() {
            404 => StoreErrorKind::NotFound,
            400 => StoreErrorKind::Invalid,
            _ => StoreErrorKind::Conflict,
        };
        Self { kind, action, detail: refusal.to_string(), field: None, refusal: Some(Box::new(refusal)) }
    }

    /// The same; of a name that is taken, with which name, of what.
    #[must_use]
    pub fn naming(self, kind: &str, name: &str) -> Self {
        if self.kind != StoreErrorKind::Duplicate {
            return self;
        }
        let refusal = Refusal::NameTaken { kind: kind.to_owned(), name: name.to_owned() };
        Self { detail: refusal.to_string(), refusal: Some(Box::new(refusal)), ..self }
    }

    /// A field of the input that what is stored does not allow.
    pub fn refused(action: &'static str, field: FieldError) -> Self {
        Self {
            kind: StoreErrorKind::Invalid,
            action,
            detail: field.to_string(),
            field: Some(Box::new(field)),
            refusal: None,
        }
    }

    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// What was being done.
    #[must_use]
    pub fn action(&self) -> &'static str {
        self.action
    }

    /// Whether the same call may succeed later: on a primary that has become a standby, too.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        use StoreErrorKind::{Contention, ReadOnly, TooLate, Unavailable};
        matches!(self.kind, Unavailable | Contention | ReadOnly | TooLate)
    }

    /// What went wrong, without where.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Why what is there does not allow it, where that is the reason.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_deref()
    }

    /// The field that is to blame, where that is known.
    #[must_use]
    pub fn field(&self) -> Option<&FieldError> {
        self.field.as_deref()
    }

    pub(super) fn from_db(action: &'static str, error: &DbErr) -> Self {
        let kind = classify(error);
        let detail = match kind {
            StoreErrorKind::Invalid => "text must not contain the character NUL".to_owned(),
            _ => error.to_string(),
        };
        Self { kind, action, detail, field: None, refusal: None }
    }
}

/// How to mend it, where that is known.
fn hint(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::ReadOnly => {
            "; the database can be read but not written: in a switch-over this passes; else give its user, or the file and \
             its folder, write permission"
        }
        _ => "",
    }
}

fn classify(error: &DbErr) -> StoreErrorKind {
    if let Some(SqlErr::UniqueConstraintViolation(_)) = error.sql_err() {
        return StoreErrorKind::Duplicate;
    }
    match error {
        DbErr::ConnectionAcquire(_) | DbErr::Conn(RuntimeErr::Internal(_)) => StoreErrorKind::Unavailable,
        DbErr::Conn(RuntimeErr::SqlxError(inner))
        | DbErr::Exec(RuntimeErr::SqlxError(inner))
        | DbErr::Query(RuntimeErr::SqlxError(inner)) => classify_sqlx(inner),
        _ => StoreErrorKind::Other,
    }
}

fn classify_sqlx(error: &SqlxError) -> StoreErrorKind {
    let Some(database) = error.as_database_error() else {
        return match error {
            SqlxError::ColumnDecode { .. } | SqlxError::ColumnNotFound(_) | SqlxError::TypeNotFound { .. } => {
                StoreErrorKind::Other
            }
            // Everything else without a server's answer is about the connection.
            _ => StoreErrorKind::Unavailable,
        };
    };
    if let Some(mysql) = database.try_downcast_ref::<MySqlDatabaseError>() {
        if is_lost(mysql.number(), database.message()) {
            return StoreErrorKind::Contention;
        }
        if says_id_is_taken(mysql.number(), database.message()) {
            return StoreErrorKind::Duplicate;
        }
        return classify_mysql(mysql.number());
    }
    let code = database.code().unwrap_or_default();
    match code.as_ref() {
        // PostgreSQL: serialization failure, deadlock. SQLite: busy, locked, busy snapshot.
        "40001" | "40P01" | "5" | "6" | "261" | "262" | "517" => StoreErrorKind::Contention,
        // PostgreSQL has no NUL in text, neither plain nor out of JSON.
        "22021" | "22P05" => StoreErrorKind::Invalid,
        "8" | "776" | "1032" | "1544" | "25006" => StoreErrorKind::ReadOnly,
        // PostgreSQL: completion unknown, a limit of the session (lock, statement, idle transaction), a transaction that such
        // a limit ended. SQLite: interrupted, I/O error, disk full, cannot open.
        "40003" | "55P03" | "57014" | "25P02" | "25P03" | "25P04" | "9" | "10" | "13" | "14" | "778" | "4874" => {
            StoreErrorKind::Unavailable
        }
        // PostgreSQL: connection, resources, intervention of an operator, system.
        _ if code.len() == 5 && ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => {
            StoreErrorKind::Unavailable
        }
        _ => StoreErrorKind::Other,
    }
}

/// Whether a number is out of range because of what [`Dialect::or_ignore`](super::dialect::Dialect::or_ignore) adds to it.
fn says_id_is_taken(number: u16, message: &str) -> bool {
    number == 1690 && message.contains(&i64::MAX.to_string())
}

/// By the numbers of MariaDB and MySQL.
fn classify_mysql(number: u16) -> StoreErrorKind {
    match number {
        // Deadlock, also of Galera's certification; a row has changed since the snapshot.
        1213 | 1020 => StoreErrorKind::Contention,
        // --read-only, read-only mode, read-only transaction.
        1290 | 1836 | 1792 => StoreErrorKind::ReadOnly,
        // Disk full, too many connections, Galera not ready, shutdown, server gone, network, aborted, commit failed, too many
        // connections of one user, lock wait, interrupted, killed, statement time, idle time.
        1021
        | 1040
        | 1047
        | 1053
        | 1077
        | 1079
        | 1152..=1161
        | 1180
        | 1184
        | 1203
        | 1205
        | 1226
        | 1317
        | 1927
        | 1969
        | 3024
        | 3169
        | 4031 => StoreErrorKind::Unavailable,
        _ => StoreErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_over_and_every_limit_of_a_session_are_temporary() {
        for number in [1040, 1047, 1053, 1180, 1203, 1205, 1213, 1226, 1290, 1836, 1927, 1969, 4031] {
            let error = StoreError::new(classify_mysql(number), "try", "");
            assert!(error.is_temporary(), "{number}");
        }
        assert_eq!(classify_mysql(1146), StoreErrorKind::Other, "a table that does not exist");
        assert_eq!(classify_mysql(1690), StoreErrorKind::Other, "a number out of range");
    }
}
