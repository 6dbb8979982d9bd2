//! What ships, on SQLite in memory. A call is carried out at one instant: the simulation's thread waits for it, and no virtual
//! time passes.

use super::rows::State;
use super::seen;
use carillon::domain::audit::AuditNote;
use carillon::domain::id_source::NODE_NUMBER_MAX;
use carillon::domain::{IdSource, LogId, NodeId, TaskId};
use carillon::store::{DatabaseSettings, Result, SqlStore};
use carillon_simulated_sqlite::{Image, SimulatedSqlite};
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, Statement};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Nothing takes as long on a machine that works.
const PATIENCE: Duration = Duration::from_mins(2);

/// What the drivers live on: pools and time-outs have real time.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime"));

/// A database with the schema, and with triggers that note what changes.
static EMPTY: LazyLock<Image> = LazyLock::new(|| {
    let database = SimulatedSqlite::new();
    block_on(async {
        connect(&database).await.migrate().await.expect("bring the schema up to date");
        let looker = look_at(&database).await;
        for statement in seen::TRIGGERS {
            looker.execute_unprepared(statement).await.expect("a trigger");
        }
    });
    database.image()
});

/// A connection of what ships to its database.
#[derive(Debug, Clone)]
pub(super) struct Sqlite {
    pub(super) sql: SqlStore,
    /// For looks past it.
    looker: DatabaseConnection,
    database: Arc<SimulatedSqlite>,
}

impl Sqlite {
    /// A database with the schema.
    pub(super) fn new() -> Self {
        let database = Arc::new(SimulatedSqlite::new());
        database.put_back(&EMPTY);
        let (sql, looker) = block_on(async { (connect(&database).await, look_at(&database).await) });
        Self { sql, looker, database }
    }

    /// The same database over connections of its own.
    pub(super) fn anew(&self) -> Self {
        Self { sql: block_on(connect(&self.database)), ..self.clone() }
    }

    pub(super) fn database(&self) -> Arc<SimulatedSqlite> {
        self.database.clone()
    }

    /// The same, whose next commit writes these notes into the audit.
    pub(super) fn noting(&self, notes: Vec<AuditNote>) -> Self {
        Self { sql: self.sql.noting(notes), ..self.clone() }
    }

    /// Does what is asked for, at `now` (true time, ms), and notes in `state` what it has changed.
    pub(super) fn carry_out<T>(
        &self,
        state: &mut State,
        now: i64,
        writes: bool,
        asked: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.database.set_time(state.clock(now));
        block_on(async {
            let answer = asked.await;
            self.database.interrupt(0);
            if writes {
                let seen = seen::take(&self.looker).await.expect("look at what has changed");
                seen::note(&self.sql, state, seen, now).await?;
            }
            answer
        })
    }

    /// Nothing that ships writes logs of long ago.
    pub(super) async fn write_history(&self, task: TaskId, logs: i64, at: i64) -> Result<()> {
        let ids = IdSource::new(NodeId(NODE_NUMBER_MAX));
        let rows: Vec<(LogId, i64)> =
            (0..logs).map(|number| at + number * 1_000).map(|at| (ids.next(at), at)).collect();
        let rows = serde_json::to_string(&rows.iter().map(|(id, at)| (id.0, at)).collect::<Vec<_>>()).expect("JSON");
        let insert = "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, \
            shard_total, bucket, fire_time, due_time, status, version, attempt, failures, node_id, executor_id, \
            queued_at, dispatched_at, started_at, finished_at, reason) \
            SELECT v.value->>0, t.tenant_id, t.app_id, t.id, 0, 0, 0, 1, 0, v.value->>1, v.value->>1, 10, 4, 1, 0, 0, 0, \
            0, 0, 0, v.value->>1, '' FROM task t, json_each(?2) v WHERE t.id = ?1";
        let values = [task.0.into(), rows.into()];
        let insert = Statement::from_sql_and_values(sea_orm::DatabaseBackend::Sqlite, insert, values);
        self.looker.execute_raw(insert).await.expect("there is nothing in its way");
        Ok(())
    }
}

async fn connect(database: &SimulatedSqlite) -> SqlStore {
    let settings = DatabaseSettings {
        url: database.url(),
        // With more it would be chance which of them reads.
        max_connections: 1,
        connect_timeout: PATIENCE,
        statement_timeout: PATIENCE,
        migrate_at_start: false,
    };
    SqlStore::connect(&settings).await.expect("connect to the database")
}

async fn look_at(database: &SimulatedSqlite) -> DatabaseConnection {
    let options = ConnectOptions::new(database.url()).max_connections(1).sqlx_logging(false).to_owned();
    Database::connect(options).await.expect("connect to the database")
}

/// Waits on this thread, whose own runtime stands still meanwhile.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let _drivers = RUNTIME.enter();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    // What it does is no part of the task that waits, whose share of time it must not use up.
    let mut work = pin!(tokio::task::unconstrained(work));
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
