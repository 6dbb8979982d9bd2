//! A connection to another scheduler's database.

use super::address::Address;
use super::asking::run;
use super::failure::failed;
use super::schema::Schema;
use crate::domain::import::ForeignKind;
use crate::store::error::{Result, StoreError, StoreErrorKind};
use sea_orm::sqlx::Connection as _;
use sea_orm::sqlx::mysql::MySqlConnection;
use std::fmt;
use std::time::Duration;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long the server works at a statement.
const STATEMENT_MAX: Duration = Duration::from_secs(30);

/// How long a lock is waited for. The other scheduler holds its own for about a second at a time.
const LOCK_MAX: Duration = Duration::from_secs(10);

/// Another scheduler's database, over one connection.
pub struct ForeignDatabase {
    pub(super) connection: MySqlConnection,
    pub(super) address: Address,
    pub(super) schema: Schema,
}

impl fmt::Debug for ForeignDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection: _, address, schema } = self;
        f.debug_struct("ForeignDatabase")
            .field("place", &address.place())
            .field("schema", schema)
            .finish_non_exhaustive()
    }
}

impl ForeignDatabase {
    /// Connects to `mysql://user:password@host:port/database`, and looks what is there. `mariadb:` is another word for `mysql:`.
    ///
    /// # Errors
    /// The address cannot be read, the server does not answer or refuses the login, or the database is that of no scheduler
    /// that is known. The text says where, and how to mend it.
    pub async fn connect(url: &str) -> Result<Self> {
        const ACTION: &str = "connect to the other scheduler's database";
        let wrong = |kind, detail: String| StoreError::new(kind, ACTION, detail);
        let address = Address::parse(url).map_err(|detail| wrong(StoreErrorKind::Invalid, detail))?;
        let opened = tokio::time::timeout(CONNECT_MAX, MySqlConnection::connect_with(&address.options));
        let mut connection = match opened.await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(failed(ACTION, &address, error)),
            Err(_) => {
                let remedy = "start the database there, or mend the address";
                let detail = format!("{} does not answer within {CONNECT_MAX:?}; {remedy}", address.place());
                return Err(wrong(StoreErrorKind::Unavailable, detail));
            }
        };
        let (seconds, millis, lock) = (STATEMENT_MAX.as_secs(), STATEMENT_MAX.as_millis(), LOCK_MAX.as_secs());
        // MariaDB alone reads the text in `/*M!`, MySQL alone that in `/*!80000`.
        let limits = format!(
            "SET SESSION innodb_lock_wait_timeout = {lock} /*M!100300 , max_statement_time = {seconds} */ \
             /*!80000 , max_execution_time = {millis} */"
        );
        run(&mut connection, &address, ACTION, limits).await?;
        let schema = Schema::read(&mut connection, &address).await?;
        Ok(Self { connection, address, schema })
    }

    /// Which scheduler's it is.
    #[must_use]
    pub fn kind(&self) -> ForeignKind {
        self.schema.kind()
    }

    /// Where it is, without the password: `root@10.0.0.5:3306/xxl_job`.
    #[must_use]
    pub fn place(&self) -> &str {
        self.address.place()
    }

    /// Says goodbye to the server. One that is dropped just hangs up.
    pub async fn close(self) {
        // It is not needed any more, whatever the server says.
        let _ = tokio::time::timeout(CONNECT_MAX, self.connection.close()).await;
    }
}
