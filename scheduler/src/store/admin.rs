//! What the management API asks: tasks and their logs. Each change of a task is one transaction
//! that also takes back what was written ahead for its old definition.

use super::connect::retrying;
use super::dialect::Sql;
use super::planning::bucket;
use super::rows::{self, clean, to_json};
use super::{HandedRun, Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::task::{Delivery, ExpiredStrategy, FailureStrategy, MisfireStrategy, NEVER, Routing, Schedule};
use crate::domain::task_log::PARENT_SHARD;
use crate::domain::{Reason, Status};
use sea_orm::{DbErr, QueryResult, Statement, Value};
use serde::{Deserialize, Serialize};

/// What an admin enters for a task; checked by the API before it comes here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDraft {
    /// Name, unique within (tenant, app).
    pub name: String,
    /// Handler name.
    pub handler: String,
    /// For people.
    pub description: String,
    /// Quartz cron, empty for none.
    pub cron: String,
    /// IANA zone.
    pub time_zone: String,
    /// Parameters of every run.
    pub params: String,
    /// How executors are chosen.
    pub routing: Routing,
    /// Tags that an executor must all have.
    pub tags: Vec<String>,
    /// What follows a failure.
    pub failure_strategy: FailureStrategy,
    /// Retries at most.
    pub max_retries: i32,
    /// Between a failure and the next attempt, ms.
    pub retry_interval_ms: i64,
    /// What happens to a late run.
    pub expired_strategy: ExpiredStrategy,
    /// Later than this counts as expired, ms; 0 is never.
    pub expire_after_ms: i64,
    /// What happens to missed fires.
    pub misfire_strategy: MisfireStrategy,
    /// Time-out of a run, ms; 0 is none.
    pub timeout_ms: i64,
    /// What an unknown outcome means.
    pub delivery: Delivery,
}

/// A task as the API shows it.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Id.
    pub id: i64,
    /// Tenant's name.
    pub tenant: String,
    /// App's name.
    pub app: String,
    /// The definition.
    pub draft: TaskDraft,
    /// Whether it fires by itself.
    pub started: bool,
    /// Grows with every edit, start and stop.
    pub revision: i64,
    /// Watermark, epoch ms, or [`NEVER`].
    pub next_fire_at: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub updated_at: i64,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only this tenant.
    pub tenant: Option<String>,
    /// Only this app.
    pub app: Option<String>,
    /// Only this task.
    pub id: Option<i64>,
    /// After this id.
    pub after: i64,
    /// At most so many.
    pub limit: u64,
}

/// A task log as the API shows it.
#[derive(Debug, Clone)]
pub struct LogView {
    /// The run.
    pub handed: HandedRun,
    /// Tenant's name.
    pub tenant: String,
    /// When the handler was entered, ms, or 0.
    pub started_at: i64,
    /// When it was claimed last, ms, or 0.
    pub queued_at: i64,
    /// For people.
    pub message: String,
    /// What the handler returned.
    pub output: String,
}

/// Which logs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Only this tenant.
    pub tenant: Option<String>,
    /// Only of this task.
    pub task_id: Option<i64>,
    /// Only in this state.
    pub status: Option<Status>,
    /// Only shards of this parent.
    pub parent_id: Option<i64>,
    /// Only this log.
    pub id: Option<i64>,
    /// Fired before this instant and, at it, with a smaller id.
    pub before: Option<(i64, i64)>,
    /// At most so many.
    pub limit: u64,
}

/// What a stop or an edit found with executors.
pub type Unsent = Vec<HandedRun>;

const TASK_VIEW: &str = "SELECT t.id, n.name, a.name, t.name, t.handler, t.description, t.cron, t.time_zone, t.params, \
     t.routing, t.tags, t.failure_strategy, t.max_retries, t.retry_interval_ms, t.expired_strategy, \
     t.expire_after_ms, t.misfire_strategy, t.timeout_ms, t.delivery, t.started, t.revision, t.next_fire_at, \
     t.created_at, t.updated_at FROM task t JOIN tenant n ON n.id = t.tenant_id JOIN app a ON a.id = t.app_id";

impl SqlStore {
    /// Creates a task, stopped or started; answers nothing but success.
    pub async fn create_task(
        &self,
        id: i64,
        tenant: &str,
        app: &str,
        draft: &TaskDraft,
        started: bool,
        now: i64,
    ) -> Result<()> {
        const ACTION: &str = "create a task";
        let scope = self.scope(tenant, app).await?;
        let mut values: Vec<Value> = vec![id.into(), scope.tenant_id.into(), scope.app_id.into()];
        values.extend(draft_values(ACTION, draft)?);
        values.extend([
            Value::from(i32::from(started)),
            1i64.into(),
            first_fire(draft, started, now)?.into(),
            now.into(),
        ]);
        let values: [Value; 23] = exactly(ACTION, values)?;
        let sql = Sql::new(
            self.backend,
            "INSERT INTO task (id, tenant_id, app_id, name, handler, description, cron, time_zone, params, routing, tags, \
             failure_strategy, max_retries, retry_interval_ms, expired_strategy, expire_after_ms, misfire_strategy, \
             timeout_ms, delivery, started, revision, next_fire_at, written_until, created_at, updated_at) VALUES \
             ({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16}, {17}, {18}, {19}, \
             {20}, {21}, {22}, 0, {23}, {23})",
        );
        self.execute(ACTION, &sql, values).await.map(drop)
    }

    /// Changes a task's definition and whether it is started, if its revision is still
    /// `revision`; runs of the old definition that nobody has yet are cancelled for `reason`.
    /// Answers what executors hold of them.
    pub async fn change_task(
        &self,
        before: &TaskView,
        draft: &TaskDraft,
        started: bool,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent> {
        retrying(|| self.change_task_once(before, draft, started, reason, now)).await
    }

    async fn change_task_once(
        &self,
        before: &TaskView,
        draft: &TaskDraft,
        started: bool,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent> {
        const ACTION: &str = "change a task";
        let mut values: Vec<Value> = vec![before.id.into(), before.revision.into(), now.into()];
        values.extend(draft_values(ACTION, draft)?);
        values.extend([Value::from(i32::from(started)), first_fire(draft, started, now)?.into()]);
        let values: [Value; 21] = exactly(ACTION, values)?;
        // `written_until` is taken from the watermark before the watermark itself is set: MySQL
        // assigns from left to right. An exhausted schedule wrote at most the days ahead.
        let sql = Sql::new(
            self.backend,
            &format!(
                "UPDATE task SET written_until = CASE WHEN next_fire_at = {NEVER} THEN CASE WHEN started = 1 THEN \
                 {{3}} + 86400000 ELSE written_until END WHEN next_fire_at > written_until THEN next_fire_at \
                 ELSE written_until END, name = {{4}}, handler = {{5}}, description = {{6}}, cron = {{7}}, \
                 time_zone = {{8}}, params = {{9}}, routing = {{10}}, tags = {{11}}, failure_strategy = {{12}}, \
                 max_retries = {{13}}, retry_interval_ms = {{14}}, expired_strategy = {{15}}, expire_after_ms = {{16}}, \
                 misfire_strategy = {{17}}, timeout_ms = {{18}}, delivery = {{19}}, started = {{20}}, \
                 next_fire_at = {{21}}, revision = revision + 1, updated_at = {{3}} WHERE id = {{1}} AND revision = {{2}}"
            ),
        );
        let tx = self.begin(ACTION).await?;
        if tx.execute(&sql, values).await? == 0 {
            tx.rollback().await?;
            return Err(StoreError::new(
                StoreErrorKind::Conflict,
                ACTION,
                format!("task {} was changed meanwhile (revision {} is not current)", before.id, before.revision),
            ));
        }
        let held = self.take_back(&tx, before.id, reason, now).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// Moves a started task's watermark back to its first fire at or after `from` (ms), if its
    /// revision is still `revision`: an instant whose run an executor gave up belongs to the
    /// definition that is valid now. Moving back is always safe; what is written already is left
    /// alone.
    pub async fn rewind(&self, id: i64, draft: &TaskDraft, revision: i64, from: i64, now: i64) -> Result<()> {
        self.move_back(id, revision, first_fire(draft, true, from - 1)?, now).await
    }

    /// Clears cancelled logs of a task that nobody ran, from `from` (ms) on: shards and single runs
    /// of one instant stand in each other's way when the routing changes.
    pub async fn clear_cancelled(&self, id: i64, from: i64) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            &format!(
                "DELETE FROM task_log WHERE task_id = {{1}} AND fire_time >= {{2}} AND status = {} AND reason IN \
                 ('task_edited', 'task_stopped')",
                Status::Cancelled as i16
            ),
        );
        self.execute("clear cancelled runs", &sql, [id.into(), from.into()]).await.map(drop)
    }

    /// Deletes a task; its logs stay until retention takes them.
    pub async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        retrying(|| self.delete_task_once(before, now)).await
    }

    async fn delete_task_once(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        const ACTION: &str = "delete a task";
        let tx = self.begin(ACTION).await?;
        let sql = Sql::new(self.backend, "DELETE FROM task WHERE id = {1} AND revision = {2}");
        if tx.execute(&sql, [before.id.into(), before.revision.into()]).await? == 0 {
            tx.rollback().await?;
            return Err(StoreError::new(
                StoreErrorKind::Conflict,
                ACTION,
                format!("task {} was changed meanwhile (revision {} is not current)", before.id, before.revision),
            ));
        }
        let held = self.take_back(&tx, before.id, Reason::TaskDeleted, now).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// Cancels what nobody has, in the task's own transaction; reads what executors have.
    async fn take_back(
        &self,
        tx: &super::connect::Transaction<'_>,
        task_id: i64,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent> {
        let cancel = Sql::new(
            self.backend,
            &format!(
                "UPDATE task_log SET status = {}, reason = {{2}}, finished_at = {{3}}, version = version + 1 \
                 WHERE task_id = {{1}} AND status IN ({}, {}, {})",
                Status::Cancelled as i16,
                Status::Init as i16,
                Status::Queued as i16,
                Status::Retry as i16
            ),
        );
        let values: [Value; 3] = [task_id.into(), reason.as_str().into(), now.into()];
        tx.execute(&cancel, values.clone()).await?;
        let held = Sql::new(
            self.backend,
            &format!(
                "SELECT {} FROM task_log l WHERE l.task_id = {{1}} AND l.status = {} ORDER BY l.id",
                rows::HANDED_COLUMNS,
                Status::Dispatched as i16
            ),
        );
        let held = tx.query(&held, [task_id.into()], rows::handed_run).await?;
        // Once more: a run may have come back from its executor between the two.
        tx.execute(&cancel, values).await?;
        Ok(held)
    }

    /// Writes a run to start at once. Answers its fire time (a millisecond later than asked when
    /// the task already has a log for that instant).
    pub async fn run_now(&self, id: i64, task: &TaskView, params: Option<&str>, now: i64) -> Result<i64> {
        const ACTION: &str = "start a run by hand";
        let shard = if task.draft.routing == Routing::Sharding { PARENT_SHARD } else { 0 };
        let sql = Sql::new(
            self.backend,
            &format!(
                "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
                 fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
                 started_at, finished_at, reason, params) SELECT {{1}}, tenant_id, app_id, id, revision, 0, {{3}}, {{4}}, {{5}}, \
                 {{6}}, {{6}}, {}, 1, 0, 0, 0, 0, 0, 0, 0, 0, '{}', {{7}} FROM task WHERE id = {{2}}",
                Status::Init as i16,
                Reason::ByHand.as_str()
            ),
        );
        for fire_time in now..now + 1_000 {
            let values = [
                id.into(),
                task.id.into(),
                shard.into(),
                i32::from(shard == 0).into(),
                (bucket(id) as i32).into(),
                fire_time.into(),
                params.map(clean).into(),
            ];
            match self.execute(ACTION, &sql, values).await {
                Ok(1) => return Ok(fire_time),
                Ok(_) => break,
                Err(error) if error.kind() == StoreErrorKind::Duplicate => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::new(StoreErrorKind::NotFound, ACTION, format!("there is no task {} (any more)", task.id)))
    }

    /// Lists tasks by id.
    pub async fn list_tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskView>> {
        let mut wanted = Conditions::new(format!("{TASK_VIEW} WHERE t.id > {{1}}"), vec![filter.after.into()]);
        wanted.and("n.name = ", filter.tenant.clone());
        wanted.and("a.name = ", filter.app.clone());
        wanted.and("t.id = ", filter.id);
        let statement = wanted.finish(self, "ORDER BY t.id", filter.limit);
        self.query_raw("list tasks", statement, task_view).await
    }

    /// Lists logs, newest fire first.
    pub async fn list_logs(&self, filter: &LogFilter) -> Result<Vec<LogView>> {
        let head = format!(
            "SELECT {}, n.name, l.started_at, l.queued_at, l.message, l.output FROM task_log l \
             JOIN tenant n ON n.id = l.tenant_id WHERE l.id > {{1}}",
            rows::HANDED_COLUMNS
        );
        let mut wanted = Conditions::new(head, vec![0i64.into()]);
        wanted.and("n.name = ", filter.tenant.clone());
        wanted.and("l.task_id = ", filter.task_id);
        wanted.and("l.status = ", filter.status.map(|status| status as i32));
        wanted.and("l.parent_id = ", filter.parent_id);
        wanted.and("l.id = ", filter.id);
        if let Some((fire_time, id)) = filter.before {
            wanted.and("l.fire_time <= ", Some(fire_time));
            let at = wanted.push(fire_time);
            let id = wanted.push(id);
            wanted.text = format!("{} AND (l.fire_time < {{{at}}} OR l.id < {{{id}}})", wanted.text);
        }
        let statement = wanted.finish(self, "ORDER BY l.fire_time DESC, l.id DESC", filter.limit);
        self.query_raw("list task logs", statement, log_view).await
    }
}

/// A query put together from the filters that are set.
struct Conditions {
    text: String,
    values: Vec<Value>,
}

impl Conditions {
    fn new(text: String, values: Vec<Value>) -> Self {
        Self { text, values }
    }

    fn push(&mut self, value: impl Into<Value>) -> usize {
        self.values.push(value.into());
        self.values.len()
    }

    fn and<V: Into<Value>>(&mut self, condition: &str, value: Option<V>) {
        if let Some(value) = value {
            let at = self.push(value);
            self.text = format!("{} AND {condition}{{{at}}}", self.text);
        }
    }

    fn finish(mut self, store: &SqlStore, order: &str, limit: u64) -> Statement {
        let at = self.push(limit);
        Sql::new(store.backend, &format!("{} {order} LIMIT {{{at}}}", self.text)).bind_all(self.values)
    }
}

fn task_view(row: &QueryResult) -> std::result::Result<TaskView, DbErr> {
    let started: i32 = row.try_get_by_index(19)?;
    Ok(TaskView {
        id: row.try_get_by_index(0)?,
        tenant: row.try_get_by_index(1)?,
        app: row.try_get_by_index(2)?,
        draft: TaskDraft {
            name: row.try_get_by_index(3)?,
            handler: row.try_get_by_index(4)?,
            description: row.try_get_by_index(5)?,
            cron: row.try_get_by_index(6)?,
            time_zone: row.try_get_by_index(7)?,
            params: row.try_get_by_index(8)?,
            routing: rows::word(row, 9)?,
            tags: rows::json(row, 10)?,
            failure_strategy: rows::word(row, 11)?,
            max_retries: row.try_get_by_index(12)?,
            retry_interval_ms: row.try_get_by_index(13)?,
            expired_strategy: rows::word(row, 14)?,
            expire_after_ms: row.try_get_by_index(15)?,
            misfire_strategy: rows::word(row, 16)?,
            timeout_ms: row.try_get_by_index(17)?,
            delivery: rows::word(row, 18)?,
        },
        started: started != 0,
        revision: row.try_get_by_index(20)?,
        next_fire_at: row.try_get_by_index(21)?,
        created_at: row.try_get_by_index(22)?,
        updated_at: row.try_get_by_index(23)?,
    })
}

fn log_view(row: &QueryResult) -> std::result::Result<LogView, DbErr> {
    let text = |at| row.try_get_by_index::<Option<String>>(at).map(Option::unwrap_or_default);
    Ok(LogView {
        handed: rows::handed_run(row)?,
        tenant: row.try_get_by_index(20)?,
        started_at: row.try_get_by_index(21)?,
        queued_at: row.try_get_by_index(22)?,
        message: text(23)?,
        output: text(24)?,
    })
}

/// The draft's columns from `name` to `delivery`, in the schema's order.
fn draft_values(action: &'static str, draft: &TaskDraft) -> Result<[Value; 16]> {
    Ok([
        draft.name.clone().into(),
        draft.handler.clone().into(),
        clean(&draft.description).into(),
        draft.cron.clone().into(),
        draft.time_zone.clone().into(),
        clean(&draft.params).into(),
        rows::to_word(action, &draft.routing)?.into(),
        to_json(action, &draft.tags)?.into(),
        rows::to_word(action, &draft.failure_strategy)?.into(),
        draft.max_retries.into(),
        draft.retry_interval_ms.into(),
        rows::to_word(action, &draft.expired_strategy)?.into(),
        draft.expire_after_ms.into(),
        rows::to_word(action, &draft.misfire_strategy)?.into(),
        draft.timeout_ms.into(),
        rows::to_word(action, &draft.delivery)?.into(),
    ])
}

fn exactly<const N: usize>(action: &'static str, values: Vec<Value>) -> Result<[Value; N]> {
    <[Value; N]>::try_from(values).map_err(|values| {
        StoreError::new(StoreErrorKind::Other, action, format!("{} values for {N} columns", values.len()))
    })
}

/// Where the watermark of a task starts: its first fire after `now`.
fn first_fire(draft: &TaskDraft, started: bool, now: i64) -> Result<i64> {
    if !started {
        return Ok(NEVER);
    }
    let schedule: Schedule = rows::schedule(&draft.cron, &draft.time_zone)
        .map_err(|error| StoreError::new(StoreErrorKind::Invalid, "start a task", error))?;
    Ok(schedule.next_after(now))
}
