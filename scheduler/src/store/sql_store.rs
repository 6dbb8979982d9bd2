//! The store on a real database: the small helpers through which every statement goes, counted, bounded in time,
//! errors classified once.

use super::database_settings::DatabaseSettings;
use super::dialect::Dialect;
use super::encryption::EncryptionKeys;
use super::error::{Result, STORE_ERRORS, StoreError, StoreErrorKind};
use super::finishing::finishing;
use super::galera::Galera;
use super::notes::Notes;
use super::pool::Trust;
use super::ready_calendars::ReadyCalendars;
use super::row::{FromRow, Read};
use super::template::Text;
use crate::metrics::METRICS;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, QueryResult, SqliteTransactionMode,
    Statement, TransactionOptions, TransactionTrait, Value,
};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a pool may take to close: connections to a server that hangs answer no farewell.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// How long an answer may take to come when the server has given up, or finished, a statement.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// Tries of a transaction that the database gave up for another's sake (deadlock, certification).
const CONTENTION_TRIES: u32 = 5;

/// The store on a real database. Cloning shares the pools.
#[derive(Clone)]
pub struct SqlStore {
    pub(super) writer: DatabaseConnection,
    pub(super) reader: DatabaseConnection,
    pub(super) backend: Dialect,
    pub(super) settings: Arc<DatabaseSettings>,
    statements: Arc<AtomicU64>,
    trust: Trust,
    galera: Galera,
    pub(super) calendars: ReadyCalendars,
    pub(super) encryption: Arc<EncryptionKeys>,
    /// What the next commit writes into the audit.
    pub(super) notes: Notes,
}

impl std::fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlStore").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl SqlStore {
    pub(super) fn on(
        writer: DatabaseConnection,
        reader: DatabaseConnection,
        backend: Dialect,
        settings: &DatabaseSettings,
        trust: Trust,
        galera: Galera,
    ) -> Self {
        let (calendars, notes, settings) = (ReadyCalendars::default(), Notes::default(), Arc::new(settings.clone()));
        Self {
            writer,
            reader,
            backend,
            settings,
            statements: Arc::default(),
            trust,
            galera,
            calendars,
            encryption: Arc::default(),
            notes,
        }
    }

    /// The same store, which tells `seen` of every statement and of the time it took: for explaining and profiling
    /// them. Clones tell it, too.
    #[must_use]
    pub fn watched(mut self, seen: impl Fn(&Statement, Duration) + Clone + Send + Sync + 'static) -> Self {
        for connection in [&mut self.writer, &mut self.reader] {
            let seen = seen.clone();
            connection.set_metric_callback(move |info| seen(info.statement, info.elapsed));
        }
        self
    }

    /// Which kind of database this is: `sqlite`, `mysql` or `postgres`.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        self.backend.backend().as_str()
    }

    /// Statements sent so far, transaction brackets included.
    #[must_use]
    pub fn statements_sent(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Closes the pools; what still runs ends with an error.
    pub async fn close(&self) {
        for connection in [&self.writer, &self.reader] {
            match tokio::time::timeout(CLOSE_MAX, connection.close_by_ref()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "closing the database pool"),
                // The process ends, and its sockets with it.
                Err(_) => tracing::warn!("the database does not answer; its connections are dropped"),
            }
        }
    }

    /// How long a statement is waited for: the server gives up first, where it can.
    fn patience(&self) -> Duration {
        self.settings.statement_timeout + ANSWER_MAX
    }

    /// How long one outside of a transaction may take in all, if its caller has given it up meanwhile.
    fn patience_beyond_caller(&self) -> Duration {
        self.patience() * 2
    }

    /// Counts a statement and its time, and bounds it.
    async fn run<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = std::result::Result<T, DbErr>>,
    ) -> Result<T> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let sent = Instant::now();
        let patience = self.patience();
        let done = match tokio::time::timeout(patience, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(StoreError::from_db(action, &error)),
            Err(_) => {
                // Its server may be gone, and so may those of the others.
                self.trust.renew();
                let detail = format!("no answer from the database within {patience:?}");
                Err(StoreError::new(StoreErrorKind::Unavailable, action, detail))
            }
        };
        if done.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::ReadOnly) {
            // After a switch-over, the next connection may lead to the new primary.
            self.trust.renew();
        }
        METRICS.statements.record_us(sent.elapsed().as_micros() as i64);
        done.inspect_err(|error| STORE_ERRORS.add(error.kind() as usize, 1))
    }

    /// A statement outside a transaction; answers the rows affected.
    pub(super) async fn execute<const N: usize>(
        &self,
        action: &'static str,
        sql: &impl Text,
        values: [Value; N],
    ) -> Result<u64> {
        self.execute_raw(action, sql.on(self.backend).bind(values)).await
    }

    /// The same with a statement whose text is built by the caller.
    pub(super) async fn execute_raw(&self, action: &'static str, statement: Statement) -> Result<u64> {
        retrying(|| async {
            if self.notes.open().is_some() {
                return self.execute_noted(action, statement.clone()).await;
            }
            let (writer, statement) = (self.writer.clone(), statement.clone());
            let done = self
                .run(
                    action,
                    finishing(self.patience_beyond_caller(), async move { writer.execute_raw(statement).await }),
                )
                .await?;
            Ok(done.rows_affected())
        })
        .await
    }

    /// A statement in a transaction of its own, so that the audit is written with it; what changes
    /// nothing is not noted.
    async fn execute_noted(&self, action: &'static str, statement: Statement) -> Result<u64> {
        let tx = self.begin(action).await?;
        let affected = tx.execute_raw(statement).await?;
        if affected == 0 {
            tx.rollback().await?;
        } else {
            tx.commit().await?;
        }
        Ok(affected)
    }

    /// A query outside a transaction.
    pub(super) async fn query<T: FromRow, const N: usize>(
        &self,
        action: &'static str,
        sql: &impl Text,
        values: [Value; N],
    ) -> Result<Vec<T>> {
        self.query_raw(action, sql.on(self.backend).bind(values)).await
    }

    /// A query whose text is built by the caller.
    pub(super) async fn query_raw<T: FromRow>(&self, action: &'static str, statement: Statement) -> Result<Vec<T>> {
        read_all(action, &self.fetch(action, statement).await?, T::from_row)
    }

    /// Rows as the database answers them.
    pub(super) async fn fetch(&self, action: &'static str, statement: Statement) -> Result<Vec<QueryResult>> {
        let reader = self.reader.clone();
        self.run(action, finishing(self.patience_beyond_caller(), async move { reader.query_all_raw(statement).await }))
            .await
    }

    /// Begins a transaction in which each statement sees what is committed before it; that of a change that is noted only
    /// within [`CHANGE_BEGIN_MAX`](super::CHANGE_BEGIN_MAX).
    pub(super) async fn begin(&self, action: &'static str) -> Result<Transaction<'_>> {
        self.notes.refuse_too_late(action)?;
        let tx = self.begin_at_any_time(action).await?;
        // It may have waited for a connection, or for the file. What is dropped is rolled back.
        self.notes.refuse_too_late(action)?;
        Ok(tx)
    }

    /// The same, for what only looks.
    pub(super) async fn begin_at_any_time(&self, action: &'static str) -> Result<Transaction<'_>> {
        let options = TransactionOptions {
            isolation_level: self.backend.isolation(),
            access_mode: None::<AccessMode>,
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        };
        let writer = self.writer.clone();
        let begin = finishing(self.patience_beyond_caller(), async move { writer.begin_with_options(options).await });
        let inner = Arc::new(self.run(action, begin).await?);
        Ok(Transaction { store: self, inner, action })
    }
}

/// A transaction through the same helpers. Dropped without a commit it is rolled back.
pub(super) struct Transaction<'a> {
    pub(super) store: &'a SqlStore,
    /// A statement whose caller has gone has it until it has ended; it is rolled back then. One that took too long is given up
    /// at once: it holds locks, and its connection is closed.
    inner: Arc<DatabaseTransaction>,
    action: &'static str,
}

impl Transaction<'_> {
    pub(super) async fn execute<const N: usize>(&self, sql: &impl Text, values: [Value; N]) -> Result<u64> {
        self.execute_raw(sql.on(self.store.backend).bind(values)).await
    }

    pub(super) async fn execute_raw(&self, statement: Statement) -> Result<u64> {
        let (inner, statement) = (Arc::clone(&self.inner), self.store.galera.within_transaction(statement));
        let work = finishing(self.store.patience(), async move { inner.execute_raw(statement).await });
        Ok(self.store.run(self.action, work).await?.rows_affected())
    }

    pub(super) async fn query<T: FromRow, const N: usize>(
        &self,
        sql: &impl Text,
        values: [Value; N],
    ) -> Result<Vec<T>> {
        self.query_raw(sql.on(self.store.backend).bind(values)).await
    }

    pub(super) async fn query_raw<T: FromRow>(&self, statement: Statement) -> Result<Vec<T>> {
        read_all(self.action, &self.fetch(statement).await?, T::from_row)
    }

    pub(super) async fn fetch(&self, statement: Statement) -> Result<Vec<QueryResult>> {
        let (inner, statement) = (Arc::clone(&self.inner), self.store.galera.within_transaction(statement));
        let work = finishing(self.store.patience(), async move { inner.query_all_raw(statement).await });
        self.store.run(self.action, work).await
    }

    pub(super) fn action(&self) -> &'static str {
        self.action
    }

    /// Ends it well. What writes the audit before that is `commit`, in the audit's file.
    pub(super) async fn end(self) -> Result<()> {
        let Some(inner) = Arc::into_inner(self.inner) else {
            let detail = "a statement of the transaction was given up and has not ended";
            return Err(StoreError::new(StoreErrorKind::Unavailable, self.action, detail));
        };
        self.store.run(self.action, inner.commit()).await?;
        self.store.notes.close();
        Ok(())
    }

    pub(super) async fn rollback(self) -> Result<()> {
        match Arc::into_inner(self.inner) {
            Some(inner) => self.store.run(self.action, inner.rollback()).await,
            None => Ok(()),
        }
    }
}

/// Reads every row; the first that cannot be read is the error.
pub(super) fn read_all<T>(
    action: &'static str,
    rows: &[QueryResult],
    read: impl Fn(&QueryResult) -> Read<T>,
) -> Result<Vec<T>> {
    rows.iter().map(read).collect::<Read<_>>().map_err(|error| StoreError::from_db(action, &error))
}

/// Repeats `work` while the database reports contention: nothing happened, so nothing doubles.
pub(super) async fn retrying<T, F, W>(work: W) -> Result<T>
where
    W: Fn() -> F,
    F: Future<Output = Result<T>>,
{
    let mut tries = 1;
    loop {
        match work().await {
            Err(error) if error.kind() == StoreErrorKind::Contention && tries < CONTENTION_TRIES => {
                tracing::debug!(%error, tries, "contention; trying again");
                tokio::time::sleep(Duration::from_millis(u64::from(tries * tries) * 5)).await;
                tries += 1;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CHANGE_BEGIN_MAX;
    use super::*;
    use crate::domain::audit::{Actor, AuditNote, Target};
    use crate::domain::{Action, TenantId, UserId};
    use std::sync::atomic::AtomicUsize;

    const ACTION: &str = "describe a tenant";

    async fn store() -> SqlStore {
        let settings = DatabaseSettings {
            url: "sqlite::memory:".to_owned(),
            max_connections: 2,
            connect_timeout: Duration::from_mins(1),
            statement_timeout: Duration::from_mins(1),
            migrate_at_start: false,
        };
        let store = SqlStore::connect(&settings).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    fn note() -> AuditNote {
        AuditNote {
            id: 1,
            tenant_id: TenantId(1),
            at: 0,
            actor: Actor { kind: "user", id: UserId(7), name: "ann".to_owned(), address: String::new() },
            action: Action::EditTenant,
            target: Target { kind: "tenant", id: "1".to_owned(), name: "retail".to_owned() },
            before: None,
            after: None,
        }
    }

    async fn pass(time: Duration) {
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }

    /// A transaction that is given up each time, after so long; answers how often it began, and how it ended.
    async fn given_up_after(store: &SqlStore, time: Duration) -> (usize, StoreErrorKind) {
        let begun = AtomicUsize::new(0);
        let error = retrying(|| async {
            let tx = store.begin(ACTION).await?;
            begun.fetch_add(1, Ordering::Relaxed);
            tx.rollback().await?;
            pass(time).await;
            Err::<(), _>(StoreError::new(StoreErrorKind::Contention, ACTION, "deadlock"))
        })
        .await
        .unwrap_err();
        (begun.into_inner(), error.kind())
    }

    #[tokio::test]
    async fn a_change_does_not_begin_when_its_caller_may_have_given_up() {
        let store = store().await;
        let noting = || store.noting(vec![note()]);
        let half = CHANGE_BEGIN_MAX / 2 + Duration::from_millis(1);
        assert_eq!(given_up_after(&noting(), half).await, (2, StoreErrorKind::TooLate));
        // What the engine itself does is begun as often as it takes.
        assert_eq!(given_up_after(&store, half).await, (CONTENTION_TRIES as usize, StoreErrorKind::Contention));
        let tries = CONTENTION_TRIES as usize;
        assert_eq!(given_up_after(&noting(), Duration::ZERO).await, (tries, StoreErrorKind::Contention));

        let late = noting();
        pass(CHANGE_BEGIN_MAX + Duration::from_millis(1)).await;
        let change = sql!("UPDATE tenant SET description = {1}");
        let error = late.execute(ACTION, &change, ["".into()]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TooLate);
    }

    #[tokio::test]
    async fn what_has_begun_in_time_goes_on_and_what_is_done_holds_nothing_up() {
        let store = store().await.noting(vec![note()]);
        let tx = store.begin(ACTION).await.unwrap();
        pass(CHANGE_BEGIN_MAX * 2).await;
        tx.commit().await.unwrap();
        // Noted and done: what follows the change has no caller to wait for.
        store.begin(ACTION).await.unwrap().rollback().await.unwrap();
    }
}
