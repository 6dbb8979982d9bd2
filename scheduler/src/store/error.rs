//! One error for the room: what kind it is decides what a worker does next.

use crate::domain::refusal::Coded;
use crate::domain::{FieldError, Refusal};
use crate::metrics::{Family, family};
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
    /// Anything else: a fault of ours or of the schema.
    Other,
}

/// Statements that failed, by kind.
pub static STORE_ERRORS: Family<9> = family!(StoreErrorKind {
    Unavailable "unavailable",
    Contention "contention",
    Duplicate "duplicate",
    Conflict "conflict",
    Outdated "outdated",
    NotFound "not_found",
    Invalid "invalid",
    ReadOnly "read_only",
    Other "other",
});

/// What went wrong, where.
#[derive(Debug, thiserror::Error)]
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

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Contention)
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
            "; the database can be read but not written: give its user, or the file and its folder, write permission"
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
    let code = database.code().unwrap_or_default();
    let message = database.message();
    match code.as_ref() {
        // PostgreSQL and standard SQLSTATE; SQLite busy, locked, busy snapshot.
        "40001" | "40P01" | "5" | "6" | "261" | "262" | "517" => StoreErrorKind::Contention,
        // PostgreSQL has no NUL in text, neither plain nor out of JSON.
        "22021" | "22P05" => StoreErrorKind::Invalid,
        "8" | "776" | "1032" | "1544" | "25006" => StoreErrorKind::ReadOnly,
        "57P01" | "57P02" | "57P03" | "53300" | "08006" | "08003" | "10" | "14" | "778" | "4874" => {
            StoreErrorKind::Unavailable
        }
        // MariaDB gives its own numbers in the message's place: 1213 deadlock, 1205 lock wait,
        // 1047 not ready (Galera), 1053 shutdown, 1290/1836 read only, 1040 too many connections.
        _ if message.contains("Deadlock found") || message.contains("Lock wait timeout") => StoreErrorKind::Contention,
        _ if message.contains("read-only") || message.contains("readonly") => StoreErrorKind::ReadOnly,
        _ if ["WSREP has not yet", "shutdown in progress", "Too many connections", "is shutting down"]
            .iter()
            .any(|text| message.contains(text)) =>
        {
            StoreErrorKind::Unavailable
        }
        _ => StoreErrorKind::Other,
    }
}
