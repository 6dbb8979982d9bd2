//! Tables of realistic size, made within the database: 200,000 runs of 4,000 tasks of 8 tenants.

use crate::fixture::World;
use carillon::domain::NodeId;
use carillon::domain::plan::Plan;
use carillon::store::{BATCH_MAX, NewTask, Writer};
use carillon_tests::tenants::make_app;
use carillon_tests::{Database, Kind};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement, Value};
use tokio::sync::Mutex;

/// Tables that grow with the installation.
pub const TABLES: &[&str] = &["task_log", "task_log_attempt", "task", "outbox"];

const TENANTS: usize = 8;
const TASKS_PER_TENANT: usize = 500;
const RUNS_PER_TASK: i64 = 50;

/// One database of each kind, for all cases of this process.
static MADE: [Mutex<Option<Tables>>; 3] = [const { Mutex::const_new(None) }; 3];

/// The large tables of one kind of database.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Where they are.
    pub database: Database,
    /// A tenant and an app that have an eighth of everything.
    home: [i64; 2],
}

impl Tables {
    /// Of this kind; the first case that asks makes them.
    pub async fn of(kind: Kind) -> Self {
        let mut made = MADE[kind as usize].lock().await;
        if made.is_none() {
            *made = Some(Self::make(kind).await);
        }
        made.clone().expect("just made")
    }

    /// The statement with the ids of these tables in place of a case's own.
    pub fn in_place_of(&self, theirs: [i64; 2], statement: &Statement) -> Statement {
        let mut statement = statement.clone();
        for value in statement.values.iter_mut().flat_map(|values| values.0.iter_mut()) {
            if let Value::BigInt(Some(id)) = value
                && let Some(place) = theirs.iter().position(|their| their == id)
            {
                *id = self.home[place];
            }
        }
        statement
    }

    /// What the database explains of a statement.
    pub async fn explain<T>(
        &self,
        how: &str,
        statement: &Statement,
        read: impl Fn(&QueryResult) -> Result<T, DbErr>,
    ) -> Vec<T> {
        let mut explain = statement.clone();
        explain.sql.insert_str(0, how);
        let connection = self.database.connect().await;
        let rows = connection.query_all_raw(explain).await.unwrap_or_else(|error| panic!("{}: {error}", statement.sql));
        let read = rows.iter().map(read).collect::<Result<_, _>>();
        connection.close().await.unwrap();
        read.unwrap_or_else(|error| panic!("{}: {error}", statement.sql))
    }

    async fn make(kind: Kind) -> Self {
        let database = Database::fresh(kind).await;
        let (world, store) = World::on(&database).await;
        let mut plans = Vec::new();
        for tenant in 0..TENANTS {
            let mut owner = world.owner;
            if tenant > 0 {
                owner = make_app(&store, [world.id(), world.id()], &format!("tenant-{tenant}"), "app").await;
            }
            let task = |at| NewTask { owner, ..world.new_task(&World::every_second(&format!("task-{at}")), true) };
            let tasks: Vec<NewTask> = (0..TASKS_PER_TENANT).map(task).collect();
            world.admin.apply(&tasks, &[], world.now).await.unwrap();
            // A plan is of any of them, but for its id.
            let like = world.task(tasks[0].id).await;
            plans.extend(tasks.iter().map(|task| Plan { task_id: task.id, ..world.plan(&like, [world.now]) }));
        }
        for plans in plans.chunks(BATCH_MAX) {
            world.store.write_ahead(Writer::Node(NodeId(1)), plans, world.now).await.unwrap();
        }
        multiply_runs(&database).await;
        Self { database, home: [world.owner.tenant_id.0, world.owner.app_id.0] }
    }
}

/// Each task's one run becomes [`RUNS_PER_TASK`], a minute apart, of which the last are open; with attempts, permits
/// and consequences of some.
async fn multiply_runs(database: &Database) {
    let columns = columns(database, "task_log").await;
    let of = |column: &String| match column.as_str() {
        // Ids grow with time, and those of the first runs lie closer together than this.
        "id" => "s.id + n.i * 10000000000".to_owned(),
        "fire_time" | "due_time" => format!("s.{column} + n.i * 60000"),
        "status" => format!(
            // Three of eight that are open are to be claimed.
            "CASE WHEN n.i > {open} THEN CASE (n.i + s.task_id) % 8 WHEN 0 THEN 3 WHEN 1 THEN 0 WHEN 2 THEN 0 WHEN 3 THEN 1 \
             WHEN 4 THEN 1 ELSE 2 END WHEN n.i % 10 = 1 THEN 11 ELSE 10 END",
            open = RUNS_PER_TASK - 2
        ),
        "finished_at" => "s.fire_time + n.i * 60000 + 100".to_owned(),
        "node_id" => "1 + n.i % 3".to_owned(),
        "version" | "attempt" => "2".to_owned(),
        _ => format!("s.{column}"),
    };
    let values: Vec<String> = columns.iter().map(of).collect();
    let runs = format!(
        "INSERT INTO task_log ({}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {RUNS_PER_TASK}) \
         SELECT {} FROM task_log s CROSS JOIN n",
        columns.join(", "),
        values.join(", ")
    );
    let beside = [
        "INSERT INTO task_log_attempt (log_id, attempt, executor_id, address, node_id, due_time, dispatched_at, \
         started_at, finished_at, status, reason, message) SELECT id, 1, 1, '', 1, due_time, due_time, due_time, \
         due_time, 3, 'handler_failed', '' FROM task_log WHERE status = 11",
        "INSERT INTO outbox (id, task_id) SELECT id, task_id FROM task_log WHERE status < 4 OR task_id % 4 = 0",
        "INSERT INTO permit (id, tenant_id, app_id, task_id, version) SELECT id, tenant_id, app_id, task_id, version \
         FROM task_log WHERE status < 4",
    ];
    let before: &[&str] =
        if database.kind == Kind::MariaDb { &["SET SESSION max_recursive_iterations = 100000"] } else { &[] };
    // SQLite is never analysed in production either.
    let after: &[&str] = match database.kind {
        Kind::Sqlite => &[],
        Kind::MariaDb => &["ANALYZE TABLE task_log, task_log_attempt, task, outbox, permit"],
        Kind::Postgres => &["ANALYZE"],
    };
    let runs = [runs.as_str()];
    let all = before.iter().chain(&runs).chain(&beside).chain(after);
    database.execute(&all.copied().collect::<Vec<_>>().join(";\n")).await;
}

/// Columns of a table that are stored.
async fn columns(database: &Database, table: &str) -> Vec<String> {
    let sql = match database.kind {
        Kind::Sqlite => format!("SELECT name FROM pragma_table_xinfo('{table}') WHERE hidden = 0"),
        Kind::MariaDb => format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND \
             table_name = '{table}' AND is_generated = 'NEVER'"
        ),
        Kind::Postgres => format!(
            "SELECT column_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND \
             table_name = '{table}' AND is_generated = 'NEVER'"
        ),
    };
    database.query(&sql, |row| row.try_get_by_index::<String>(0)).await
}
