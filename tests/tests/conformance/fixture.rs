//! A store of its own for each case, and the few steps that most cases begin with.

use crate::admin::{Admin, SqlAdmin};
use crate::plans::Plans;
use carillon::domain::audit::Actor;
use carillon::domain::plan::{Fire, Plan};
use carillon::domain::task::{NEVER, ScheduleKind, TaskSpec};
use carillon::domain::task_log::{PARENT_SHARD, PRIORITY_DEFAULT};
use carillon::domain::{ExecutorId, IdSource, LogId, NodeId, Owner, Reason, Run, Status, TaskId, Transition, Trigger};
use carillon::store::{
    Activity, DatabaseSettings, LogView, NewTask, NodeInfo, Result, RunDispatch, SqlStore, Store, TaskChange, TaskView,
    Unsent, Writer,
};
use carillon_protocol::{RunResult, RunStatus};
use carillon_simulation::store::admin::new_task;
use carillon_simulation::{ModelStore, SimTime, Trace};
use carillon_tests::proxy::Proxy;
use carillon_tests::{Database, Kind, now_ms};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The tenant and app of most cases.
pub const HOME: [&str; 2] = ["retail", "orders"];

/// An empty store with one app.
pub struct World {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same database over connections of its own, as another node has them.
    pub rival: Arc<dyn Store>,
    /// The management side.
    pub admin: Arc<dyn Admin>,
    /// The management side over the rival's connections.
    pub rival_admin: Arc<dyn Admin>,
    /// Of [`HOME`].
    pub owner: Owner,
    /// An instant that a case counts from, ms.
    pub now: i64,
    ids: IdSource,
    /// Of the statements that its stores send; none of the model.
    pub plans: Option<Plans>,
    /// What lies under the store; none under the model.
    pub database: Option<Database>,
}

impl World {
    /// Over the model.
    pub async fn model() -> Self {
        Self::model_with_store().await.0
    }

    /// Over the model, and the store itself.
    pub async fn model_with_store() -> (Self, ModelStore) {
        let time = SimTime::from(carillon_tests::now_us());
        let model = ModelStore::new(time.clone(), Trace::new(time));
        let store = Arc::new(model.clone());
        (Self::over([store.clone(), store.clone()], [store.clone(), store]).await, model)
    }

    /// Over a fresh database.
    pub async fn sql(kind: Kind) -> Self {
        Self::sql_with_store(kind).await.0
    }

    /// Over a fresh database, and the store itself.
    pub async fn sql_with_store(kind: Kind) -> (Self, SqlStore) {
        Self::on(&Database::fresh(kind).await).await
    }

    /// To be asked for after the case: whether the statements that it sent go in by an index.
    pub fn check_of_plans(&self) -> impl Future<Output = ()> + use<> {
        let (plans, home) = (self.plans.clone(), [self.owner.tenant_id.0, self.owner.app_id.0]);
        async move {
            if let Some(plans) = plans {
                plans.check(home).await;
            }
        }
    }

    /// Over a database that may have rows already.
    pub async fn over_database(database: &Database) -> Self {
        Self::on(database).await.0
    }

    /// Over a migrated database, and the store itself.
    pub async fn on(database: &Database) -> (Self, SqlStore) {
        let (store, plans) = connect_watched(database).await;
        let store = Arc::new(store);
        let rival = connect(&database.url).await.watched({
            let plans = plans.clone();
            move |statement, _| plans.see(statement)
        });
        let rival = Arc::new(rival);
        let admin = |store: &Arc<SqlStore>| SqlAdmin { store: SqlStore::clone(store), database: database.clone() };
        let admins = [Arc::new(admin(&store)) as Arc<dyn Admin>, Arc::new(admin(&rival))];
        let sql = SqlStore::clone(&store);
        (Self { plans: Some(plans), database: Some(database.clone()), ..Self::over([store, rival], admins).await }, sql)
    }

    async fn over([store, rival]: [Arc<dyn Store>; 2], [admin, rival_admin]: [Arc<dyn Admin>; 2]) -> Self {
        let ids = IdSource::new(NodeId(1));
        let now = now_ms();
        let owner = admin.make_app([ids.next(now), ids.next(now)], HOME[0], HOME[1]).await;
        Self { store, rival, admin, rival_admin, owner, now, ids, plans: None, database: None }
    }

    /// A new id.
    pub fn id<Id: From<i64>>(&self) -> Id {
        self.ids.next(self.now)
    }

    /// A number that there was not before.
    pub fn number(&self) -> i64 {
        self.id()
    }

    /// A definition that fires at these instants.
    pub fn cron(name: &str, cron: &str) -> TaskSpec {
        let (name, cron, handler) = (name.to_owned(), cron.to_owned(), "handler".to_owned());
        TaskSpec { name, handler, schedule: ScheduleKind::Cron, cron, ..TaskSpec::default() }
    }

    /// A definition that fires every second.
    pub fn every_second(name: &str) -> TaskSpec {
        Self::cron(name, "* * * * * ?")
    }

    /// A task of [`HOME`] to be.
    pub fn new_task(&self, spec: &TaskSpec, started: bool) -> NewTask {
        NewTask { activity: Activity::of(started), ..new_task(self.id(), self.owner, spec.clone()) }
    }

    /// A started task.
    pub async fn started(&self, spec: &TaskSpec) -> TaskView {
        self.created(spec, true).await
    }

    /// A task that was never started.
    pub async fn stopped(&self, spec: &TaskSpec) -> TaskView {
        self.created(spec, false).await
    }

    async fn created(&self, spec: &TaskSpec, started: bool) -> TaskView {
        let task = self.new_task(spec, started);
        self.admin.apply(std::slice::from_ref(&task), &[], self.now).await.unwrap();
        self.task(task.id).await
    }

    /// Edits, starts or stops a task; answers what executors hold of it.
    pub async fn change(&self, change: TaskChange, now: i64) -> Result<Unsent> {
        let held = self.admin.apply(&[], &[change], now).await?;
        Ok(held.into_iter().flatten().collect())
    }

    /// A task as it is now.
    pub async fn task(&self, id: TaskId) -> TaskView {
        self.admin.task(id).await.expect("the task exists")
    }

    /// A plan that writes these fires and leaves the watermark where it is.
    pub fn plan(&self, task: &TaskView, fire_times: impl IntoIterator<Item = i64>) -> Plan {
        let fire = |fire_time| Fire {
            id: self.id(),
            fire_time,
            due_time: fire_time,
            status: Status::Init,
            reason: Reason::None,
            trigger: Trigger::Schedule,
            seq: 0,
            message: String::new(),
        };
        Plan {
            task_id: task.id,
            revision: task.revision,
            from: task.next_fire_at,
            to: task.next_fire_at,
            instead: NEVER,
            sharded: false,
            takes_over: false,
            priority: PRIORITY_DEFAULT,
            outbox: false,
            together: false,
            fires: fire_times.into_iter().map(fire).collect(),
        }
    }

    /// Writes runs for these instants.
    pub async fn write(&self, task: &TaskView, fire_times: impl IntoIterator<Item = i64>) -> Vec<Run> {
        let plan = self.plan(task, fire_times);
        self.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&plan), self.now).await.unwrap();
        let ids: BTreeSet<LogId> = plan.fires.iter().map(|fire| fire.id).collect();
        let rows = self.rows(task.id).await.into_iter().map(|log| log.dispatched.run);
        rows.filter(|run| ids.contains(&run.id)).collect()
    }

    /// `count` runs, due a second apart from now on.
    pub async fn runs(&self, count: i64) -> Vec<Run> {
        let task = self.started(&Self::every_second(&format!("task-{}", self.number()))).await;
        self.write(&task, (0..count).map(|i| self.now + i * 1_000)).await
    }

    /// A parent of shards, queued for node 1.
    pub async fn queued_parent(&self) -> Run {
        let task = self.started(&Self::every_second(&format!("sharded-{}", self.number()))).await;
        let plan = Plan { sharded: true, ..self.plan(&task, [self.now]) };
        self.store.write_ahead(Writer::Node(NodeId(1)), &[plan], self.now).await.unwrap();
        let run = self.rows(task.id).await.remove(0).dispatched.run;
        assert_eq!((run.shard_index, run.shard_total), (PARENT_SHARD, 0));
        self.store.claim(NodeId(1), vec![run], self.now).await.unwrap().remove(0)
    }

    /// `total` shards of a parent, as the dispatcher makes them, for executors 100, 101 …
    pub fn shards_of(&self, parent: &Run, total: i32) -> Vec<Run> {
        (0..total).map(|index| parent.shard(self.id(), index, total, ExecutorId(100 + i64::from(index)))).collect()
    }

    /// Claims runs for a node and hands them to an executor.
    pub async fn dispatched(&self, node: i64, runs: Vec<Run>, executor_id: i64) -> Vec<Run> {
        let (node, executor_id) = (NodeId(node), ExecutorId(executor_id));
        let task = runs[0].task_id;
        let ids: BTreeSet<LogId> = runs.iter().map(|run| run.id).collect();
        let claimed = self.store.claim(node, runs, self.now).await.unwrap();
        let items: Vec<RunDispatch> = claimed.iter().map(|run| dispatch_of(run, executor_id, self.now)).collect();
        assert_eq!(self.store.dispatch(node, &items).await.unwrap().len(), ids.len());
        let rows = self.rows(task).await.into_iter().map(|log| log.dispatched.run);
        rows.filter(|run| ids.contains(&run.id)).collect()
    }

    /// Moves one run, which must succeed.
    pub async fn moved(&self, run: &Run, to: Status, reason: Reason) {
        let change = Transition::of(run, to, reason);
        assert_eq!(self.store.change(&[change]).await.unwrap().len(), 1, "{run:?} to {to:?}");
    }

    /// Every log of a task.
    pub async fn rows(&self, task: TaskId) -> Vec<LogView> {
        self.admin.logs(task).await
    }

    /// One log as it is now.
    pub async fn row(&self, run: &Run) -> LogView {
        let rows = self.rows(run.task_id).await;
        rows.into_iter().find(|row| row.dispatched.run.id == run.id).expect("the log exists")
    }

    /// The state of each log of a task.
    pub async fn states(&self, task: TaskId) -> Vec<(Status, Reason)> {
        self.rows(task).await.iter().map(|log| (log.dispatched.run.status, log.dispatched.run.reason)).collect()
    }
}

/// This node, as the audit names it.
pub fn node() -> Actor {
    NodeInfo { name: "n1".to_owned(), ..NodeInfo::default() }.actor()
}

/// What a node of that name says of itself.
pub fn node_info(name: &str) -> NodeInfo {
    NodeInfo {
        name: name.to_owned(),
        address: format!("http://{name}:1"),
        version: "1".to_owned(),
        ..NodeInfo::default()
    }
}

/// The same task again, under another revision.
pub fn edit(task: &TaskView) -> TaskChange {
    let (spec, activity) = (task.spec.clone(), task.activity.clone());
    TaskChange { before: task.clone(), spec, activity, reason: Reason::TaskEdited }
}

/// An edit of a task.
pub fn edit_to(task: &TaskView, edits: impl FnOnce(&mut TaskSpec)) -> TaskChange {
    let mut change = edit(task);
    edits(&mut change.spec);
    change
}

/// The stop of a task.
pub fn stop(task: &TaskView) -> TaskChange {
    TaskChange { activity: Activity::of(false), reason: Reason::TaskStopped, ..edit(task) }
}

/// The pause of a task.
pub fn pause(task: &TaskView, note: &str) -> TaskChange {
    let activity = Activity { started: false, pause_note: Some(note.to_owned()) };
    TaskChange { activity, reason: Reason::TaskPaused, ..edit(task) }
}

/// The start of a task.
pub fn start(task: &TaskView) -> TaskChange {
    TaskChange { activity: Activity::of(true), ..edit(task) }
}

/// A dispatch of a run, first tried at this instant.
pub fn dispatch_of(run: &Run, executor_id: ExecutorId, dispatched_at: i64) -> RunDispatch {
    RunDispatch { id: run.id, version: run.version, executor_id, dispatched_at, refused: None }
}

/// A success of that attempt of a run.
pub fn success(run: &Run, attempt: i32) -> RunResult {
    RunResult {
        log: run.id.0,
        attempt,
        status: RunStatus::Succeeded,
        message: String::new(),
        output: "done".to_owned(),
        started_at: run.due_time + 1,
        finished_at: run.due_time + 2,
        due_time: run.due_time,
    }
}

/// Ids of runs, in their order.
pub fn ids(runs: &[Run]) -> Vec<LogId> {
    runs.iter().map(|run| run.id).collect()
}

/// A store on a database with the schema, and what it sends.
pub async fn connect_watched(database: &Database) -> (SqlStore, Plans) {
    let store = connect(&database.url).await;
    store.migrate().await.expect("migrate the fresh database");
    let plans = Plans::new(database.kind, &store);
    let seen = plans.clone();
    (store.watched(move |statement, _| seen.see(statement)), plans)
}

/// A store on that database.
pub async fn connect(url: &str) -> SqlStore {
    let settings = DatabaseSettings {
        url: url.to_owned(),
        max_connections: 4,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(20),
        migrate_at_start: false,
    };
    SqlStore::connect(&settings).await.expect("connect to the fresh database")
}

/// A store over the proxy, with a connection to spare for looking.
pub async fn over(proxy: &Proxy, statement_timeout: Duration) -> SqlStore {
    let settings = DatabaseSettings {
        url: proxy.url.clone(),
        max_connections: 2,
        connect_timeout: Duration::from_secs(30),
        statement_timeout,
        migrate_at_start: false,
    };
    SqlStore::connect(&settings).await.unwrap()
}
