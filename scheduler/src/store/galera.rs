//! Transactions on Galera: a statement of one that the server has lost fails.
//!
//! A member ends a transaction when another member's comes first, and tells the client in its next answer. `MariaDB` (10.11 at
//! least) has already given that answer when this happens while it serves `COM_STMT_PREPARE`, and says nothing. What the
//! client sends next would be carried out outside of any transaction, each statement for itself, and `COMMIT` would succeed.
//!
//! sqlx prepares every statement that it meets for the first time on a connection, and executes it next. So each statement
//! of a transaction asks whether there still is one. Nothing is prepared between the last one and `COMMIT`.

use sea_orm::Statement;
use sea_orm::sqlx::mysql::MySqlConnection;
use sea_orm::sqlx::{self, Row as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `MariaDB`'s number for a value that a variable cannot have.
const WRONG_VALUE: u16 = 1231;

/// The value that no variable can have; it stands in the error.
macro_rules! lost {
    () => {
        "the transaction was ended by another member"
    };
}

/// Stands before a statement. For its time, a variable of the session is set to what it is; outside of a transaction to what
/// it cannot be, so that the statement fails. The condition is evaluated at each execution. It is a comment to MySQL, which
/// has no such statement.
const WITHIN_TRANSACTION: &str =
    concat!("/*M! SET STATEMENT completion_type = IF(@@in_transaction, @@completion_type, '", lost!(), "') FOR */ ");

/// Whether the database is a Galera cluster. Each new connection finds out, before its first transaction begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Galera(Arc<AtomicBool>);

impl Galera {
    /// Whether this connection leads to a member.
    pub async fn recognise(&self, connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
        let wsrep = sqlx::query("SHOW VARIABLES LIKE 'wsrep_on'").fetch_optional(connection).await?;
        let is_member = wsrep.is_some_and(|row| row.try_get::<String, _>(1).is_ok_and(|value| value == "ON"));
        if is_member {
            self.0.store(true, Ordering::Release);
        }
        Ok(is_member)
    }

    /// A statement of a transaction, as it is sent.
    pub fn within_transaction(&self, statement: Statement) -> Statement {
        if self.0.load(Ordering::Acquire) {
            Statement { sql: format!("{WITHIN_TRANSACTION}{}", statement.sql), ..statement }
        } else {
            statement
        }
    }
}

/// Whether a statement failed because its transaction is no more.
pub(super) fn is_lost(number: u16, message: &str) -> bool {
    number == WRONG_VALUE && message.contains(lost!())
}
