//! Definitions of tasks, as the management API changes them. Each change is one transaction that
//! also revokes what was written ahead for the old definition.

use super::attempts::delete_logs;
use super::conditions::Conditions;
use super::connect::{Transaction, retrying};
use super::dialect::Sql;
use super::planning::fires_before;
use super::rows;
use super::sql::ID;
use super::task_columns::{SPEC_COLUMNS, markers, read_spec, spec_list, spec_set, spec_values};
use super::template::Text as _;
use super::{DispatchedRun, Owner, Result, SqlStore, StoreError};
use crate::domain::task::{NEVER, Routing, ScheduleKind, TaskSpec};
use crate::domain::{AccessScope, LogId, Reason, Refusal, Status, TaskId, TenantId};
use sea_orm::{DbErr, QueryResult, Value};
use std::collections::BTreeMap;

statements!(
    // The task's revision, not one that the caller knows: this is part of the edit.
    ADOPT = |d| d.update_rows(
        "task_log",
        "revision = (SELECT t.revision FROM task t WHERE t.id = l.task_id)",
        ID,
        "l.id = v.n_id",
    ),
    WATCH_RUNS = |d| format!(
        "INSERT INTO outbox (id, task_id) SELECT l.id, l.task_id FROM {} task_log l ON l.id = v.n_id \
         WHERE l.parent_id = 0 {}",
        d.batch(1, ID),
        d.or_ignore("outbox", "id")
    ),
    UNCOUNT = |_| "UPDATE task SET fires = CASE WHEN fires > {2} THEN fires - {2} ELSE 0 END WHERE id = {1}".into(),
);

/// Whether a task fires by itself, and why not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// It fires.
    pub started: bool,
    /// It is paused (and not started), and this is why.
    pub pause_note: Option<String>,
}

impl Activity {
    /// Started or stopped.
    #[must_use]
    pub fn of(started: bool) -> Self {
        Self { started, pause_note: None }
    }

    /// In a word.
    #[must_use]
    pub fn state(&self) -> TaskState {
        match (self.started, &self.pause_note) {
            (true, _) => TaskState::Started,
            (false, Some(_)) => TaskState::Paused,
            (false, None) => TaskState::Stopped,
        }
    }
}

/// What a task's activity is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// It fires by itself.
    Started,
    /// It does not.
    Stopped,
    /// It does not, and somebody said why.
    Paused,
}

/// Every state with its word in the API.
pub const TASK_STATES: [(TaskState, &str); 3] =
    [(TaskState::Started, "started"), (TaskState::Stopped, "stopped"), (TaskState::Paused, "paused")];

impl TaskState {
    /// The word in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        TASK_STATES[self as usize].1
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        TASK_STATES.iter().find(|(_, known)| *known == word).map(|(state, _)| *state)
    }
}

/// A task as the API shows it.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Id.
    pub id: TaskId,
    /// Whose it is.
    pub owner: Owner,
    /// Tenant's name.
    pub tenant: String,
    /// App's name.
    pub app: String,
    /// The definition.
    pub spec: TaskSpec,
    /// Whether it fires by itself.
    pub activity: Activity,
    /// Grows with every edit, start and stop.
    pub revision: i64,
    /// Watermark, epoch ms, or [`NEVER`].
    pub next_fire_at: i64,
    /// Where a fixed rate counts from, ms.
    pub anchor_at: i64,
    /// Fires of the schedule written since it was started.
    pub fires: i64,
    /// Runs that failed since the last success.
    pub failures_in_row: i32,
    /// When it was paused, ms, or 0.
    pub paused_at: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub updated_at: i64,
}

/// What the audit keeps of a task: what people define, not what the engine counts.
#[must_use]
pub fn audited_task(spec: &TaskSpec, activity: &Activity) -> Option<String> {
    let Ok(serde_json::Value::Object(mut fields)) = serde_json::to_value(spec) else { return None };
    fields.insert("started".to_owned(), activity.started.into());
    fields.insert("pause_note".to_owned(), activity.pause_note.clone().into());
    Some(serde_json::Value::Object(fields).to_string())
}

impl TaskView {
    /// After which instant (ms) the fires of another definition count from an edit at `now` on: an
    /// edit that leaves the schedule alone also owes what nobody had written yet.
    #[must_use]
    pub fn fires_after(&self, spec: &TaskSpec, activity: &Activity, now: i64) -> i64 {
        let goes_on = self.activity.started && activity.started && self.spec.fires_like(spec);
        if goes_on { now.min(self.next_fire_at.saturating_sub(1)) } else { now }
    }
}

/// A task to be.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Id.
    pub id: TaskId,
    /// Whose it is.
    pub owner: Owner,
    /// The definition, checked.
    pub spec: TaskSpec,
    /// Whether it fires at once.
    pub activity: Activity,
}

/// Another definition or state for a task.
#[derive(Debug, Clone)]
pub struct TaskChange {
    /// As the caller saw it; its revision must still be current.
    pub before: TaskView,
    /// The definition, checked.
    pub spec: TaskSpec,
    /// Whether it fires.
    pub activity: Activity,
    /// Why what was written ahead is cancelled.
    pub reason: Reason,
}

/// What to do about a task of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfThere {
    /// An error.
    Refuse,
    /// Nothing.
    Leave,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only this tenant.
    pub tenant: Option<String>,
    /// Only of the tenant of this id.
    pub tenant_id: Option<TenantId>,
    /// Only this app.
    pub app: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only those that have this in their name, or in that of their handler.
    pub search: Option<String>,
    /// Only those that name this calendar.
    pub calendar: Option<String>,
    /// Only those that run this handler.
    pub handler: Option<String>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those that follow this task.
    pub parent_id: Option<TaskId>,
    /// Only this task.
    pub id: Option<TaskId>,
    /// After this id.
    pub after: TaskId,
    /// At most so many.
    pub limit: u64,
}

/// What a stop or an edit found with executors.
pub type Unsent = Vec<DispatchedRun>;

const VIEW_COLUMNS: &str = "t.id, t.tenant_id, t.app_id, n.name, a.name, t.started, t.revision, t.next_fire_at, \
     t.anchor_at, t.fires, t.failures_in_row, t.paused_at, t.pause_note, t.created_at, t.updated_at";

/// How many those are.
const VIEW_COUNT: usize = 15;

/// Tasks that are counted at most.
const COUNTED_MAX: u32 = 100_000;

/// Names that one statement looks for.
const NAMES_AT_ONCE: usize = 100;

impl SqlStore {
    /// Creates and changes tasks, all or none; answers what executors hold of each changed one,
    /// in their order.
    pub async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        retrying(|| self.apply_tasks_once(new, changes, now)).await
    }

    async fn apply_tasks_once(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        let tx = self.begin("change tasks").await?;
        // By tenant, in one order for everybody.
        let mut by_tenant: BTreeMap<TenantId, usize> = BTreeMap::new();
        for task in new {
            *by_tenant.entry(task.owner.tenant_id).or_default() += 1;
        }
        for (tenant_id, count) in by_tenant {
            self.refuse_too_many_tasks(&tx, tenant_id, count).await?;
        }
        for task in new {
            self.insert_task(&tx, task, now, IfThere::Refuse).await?;
        }
        let mut held = Vec::with_capacity(changes.len());
        for change in changes {
            held.push(self.update_task(&tx, change, now).await?);
        }
        // Parents last: a file may name one before it defines it. Cycles after all of them: two
        // tasks may change places.
        let created = new.iter().map(|task| (task.id, task.owner, &task.spec));
        let created = created.filter(|(_, _, spec)| !spec.parents.is_empty());
        let relinked = changes.iter().filter(|change| change.spec.parents != change.before.spec.parents);
        let relinked = relinked.map(|TaskChange { before, spec, .. }| (before.id, before.owner, spec));
        let linked: Vec<(TaskId, Owner, &TaskSpec)> = created.chain(relinked).collect();
        for (id, owner, spec) in &linked {
            self.set_parents(&tx, *owner, *id, spec).await?;
        }
        let children = linked.iter().map(|(id, owner, _)| (owner.tenant_id, *id)).collect();
        self.refuse_cycles(&tx, &children).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// Creates one task.
    pub async fn create_task(&self, task: &NewTask, now: i64) -> Result<()> {
        self.apply_tasks(std::slice::from_ref(task), &[], now).await.map(drop)
    }

    /// Changes one task; answers what executors hold of it.
    pub async fn change_task(&self, change: &TaskChange, now: i64) -> Result<Unsent> {
        let held = self.apply_tasks(&[], std::slice::from_ref(change), now).await?;
        Ok(held.into_iter().flatten().collect())
    }

    /// Writes a new task.
    pub(super) async fn insert_task(
        &self,
        tx: &Transaction<'_>,
        task: &NewTask,
        now: i64,
        if_there: IfThere,
    ) -> Result<()> {
        const ACTION: &str = "create a task";
        let owner = task.owner;
        // Also of a task that rests; but no executor is kept out for what a handler asks for.
        if if_there == IfThere::Refuse {
            self.know_calendar(tx, owner.tenant_id, &task.spec).await?;
        }
        let next = self.first_fire(tx, task.id, owner.tenant_id, &task.spec, task.activity.started, now, now).await?;
        let paused_at = if task.activity.pause_note.is_some() { now } else { 0 };
        let mut values: Vec<Value> = vec![
            task.id.into(),
            owner.tenant_id.into(),
            owner.app_id.into(),
            now.into(),
            i32::from(task.activity.started).into(),
            next.into(),
            paused_at.into(),
            task.activity.pause_note.clone().into(),
        ];
        values.extend(spec_values(ACTION, &task.spec)?);
        let sql = Sql::new(
            self.backend,
            &format!(
                "INSERT INTO task (id, tenant_id, app_id, created_at, updated_at, anchor_at, started, next_fire_at, \
                 paused_at, pause_note, revision, written_until, fires, turn, children, failures_in_row, {}) VALUES \
                 ({{1}}, {{2}}, {{3}}, {{4}}, {{4}}, {{4}}, {{5}}, {{6}}, {{7}}, {{8}}, 1, 0, 0, 0, 0, 0, {}) {}",
                spec_list(""),
                markers(9, SPEC_COLUMNS.len()),
                match if_there {
                    IfThere::Refuse => String::new(),
                    IfThere::Leave => self.backend.or_ignore("task", "tenant_id, app_id, name"),
                }
            ),
        );
        let written = tx.execute_raw(sql.bind_all(values)).await;
        written.map(drop).map_err(|error| error.naming("task", &task.spec.name))
    }

    async fn update_task(&self, tx: &Transaction<'_>, change: &TaskChange, now: i64) -> Result<Unsent> {
        const ACTION: &str = "change a task";
        let TaskChange { before, spec, activity, reason } = change;
        let restarts = activity.started && !before.activity.started;
        let anchor = if restarts || counts_anew(&before.spec, spec) { now } else { before.anchor_at };
        // A task that was stopped begins to count again; a paused one goes on.
        let forgets = restarts && before.activity.pause_note.is_none();
        // Not when it stays: a stop is never refused.
        if spec.calendar != before.spec.calendar {
            self.know_calendar(tx, before.owner.tenant_id, spec).await?;
        }
        let since = before.fires_after(spec, activity, now);
        let next =
            self.first_fire(tx, before.id, before.owner.tenant_id, spec, activity.started, anchor, since).await?;
        let paused_at = match (&activity.pause_note, &before.activity.pause_note) {
            (None, _) => 0,
            (Some(_), Some(_)) => before.paused_at,
            (Some(_), None) => now,
        };
        let mut values: Vec<Value> = vec![
            before.id.into(),
            before.revision.into(),
            now.into(),
            i32::from(activity.started).into(),
            next.into(),
            anchor.into(),
            paused_at.into(),
            activity.pause_note.clone().into(),
            i32::from(forgets).into(),
            i32::from(restarts).into(),
            before.owner.tenant_id.into(),
        ];
        values.extend(spec_values(ACTION, spec)?);
        // `written_until` and `fires` go by the watermark before that itself is set: MySQL assigns
        // from left to right. An exhausted schedule wrote at most the days ahead.
        let sql = sql!(format!(
            "UPDATE task SET written_until = CASE WHEN next_fire_at = {NEVER} THEN CASE WHEN started = 1 THEN \
                 {{3}} + 86400000 ELSE written_until END WHEN next_fire_at > written_until THEN next_fire_at \
                 ELSE written_until END, fires = CASE WHEN {{9}} = 1 THEN 0 ELSE {} END, started = {{4}}, \
                 next_fire_at = {{5}}, anchor_at = {{6}}, paused_at = {{7}}, pause_note = {{8}}, \
                 failures_in_row = CASE WHEN {{10}} = 1 THEN 0 ELSE failures_in_row END, \
                 revision = revision + 1, updated_at = {{3}}, {} WHERE id = {{1}} AND revision = {{2}} AND tenant_id = {{11}}",
            fires_before("{5}"),
            spec_set(12)
        ));
        if tx.execute_raw(sql.on(self.backend).bind_all(values)).await? == 0 {
            return Err(changed_meanwhile(ACTION, before));
        }
        self.fit_skips(tx, before, spec, now).await?;
        let taken = Taken {
            task_id: before.id,
            reason: *reason,
            // What nobody scheduled goes on under the new definition, unless that has no place
            // for it.
            keeps_unscheduled: *reason == Reason::TaskEdited
                && (spec.routing == Routing::Sharding) == (before.spec.routing == Routing::Sharding),
            next,
            now,
        };
        if !activity.started && *reason != Reason::TaskEdited {
            self.end_backfills(tx, before.id, now).await?;
        }
        let held = self.revoke(tx, &taken).await?;
        if spec.schedule == ScheduleKind::FixedDelay && activity.started {
            self.adopt(tx, before.id, &held).await?;
        }
        Ok(held)
    }

    /// What executors have of a fixed delay goes on as a link of its chain: the next run comes
    /// after its end, not beside it.
    async fn adopt(&self, tx: &Transaction<'_>, id: TaskId, held: &[DispatchedRun]) -> Result<()> {
        let links = held.iter().map(|dispatched| &dispatched.run).filter(|run| run.trigger.is_scheduled());
        let ids: Vec<[LogId; 1]> = links.map(|run| [run.id]).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let ids = rows::to_json("change a task", &ids)?;
        tx.execute(&ADOPT, [ids.clone().into()]).await?;
        tx.execute(&WATCH_RUNS, [ids.into()]).await?;
        let wait = sql!(format!("UPDATE task SET next_fire_at = {NEVER} WHERE id = {{1}}"));
        tx.execute(&wait, [id.into()]).await.map(drop)
    }

    /// Begins the chain of a fixed delay anew when executors gave up the run that it waited for.
    pub async fn begin_anew(&self, id: TaskId, revision: i64) -> Result<()> {
        retrying(|| self.begin_anew_once(id, revision)).await
    }

    async fn begin_anew_once(&self, id: TaskId, revision: i64) -> Result<()> {
        let tasks = super::PlanStore::tasks(self, &[id]).await?;
        let Some(task) = tasks.first() else { return Ok(()) };
        let first = task.schedule.next_after(task.schedule.anchor);
        let tx = self.begin("begin a chain anew").await?;
        // Sets nothing yet: it holds the row, so that the chain goes on in one way only.
        let is_waiting = sql!(format!(
            "UPDATE task SET turn = turn + 1 WHERE id = {{1}} AND revision = {{2}} AND started = 1 AND \
                 next_fire_at = {NEVER}"
        ));
        if tx.execute(&is_waiting, [id.into(), revision.into()]).await? == 0 {
            return tx.rollback().await;
        }
        let given_up = format!(
            "l.status = {} AND l.reason IN ('task_edited', 'task_stopped', 'task_paused')",
            Status::Cancelled as i16
        );
        let forget = Sql::new(
            self.backend,
            &format!(
                "DELETE FROM outbox WHERE task_id = {{1}} AND EXISTS (SELECT 1 FROM task_log l WHERE \
                 l.id = outbox.id AND {given_up})"
            ),
        );
        tx.execute(&forget, [id.into()]).await?;
        let others = sql!(
            "SELECT f.id FROM outbox f JOIN task_log l ON l.id = f.id WHERE f.task_id = {1} AND l.revision = {2} AND \
             l.trigger_kind IN ('schedule', 'misfire') LIMIT 1"
        );
        let others: Vec<i64> = tx.query(&others, [id.into(), revision.into()], |row| row.try_get_by_index(0)).await?;
        if others.is_empty() {
            let set = sql!("UPDATE task SET next_fire_at = {2} WHERE id = {1}");
            tx.execute(&set, [id.into(), first.into()]).await?;
        }
        tx.commit().await
    }

    /// Moves a started task's watermark back to its first fire at or after `from` (ms), if its
    /// revision is still `revision`: an instant whose run an executor gave up belongs to the
    /// definition that is valid now. Moving back is always safe; what is written already is left
    /// alone.
    pub async fn rewind(&self, id: TaskId, revision: i64, from: i64, now: i64) -> Result<()> {
        let tasks = super::PlanStore::tasks(self, &[id]).await?;
        match tasks.first() {
            Some(task) => self.move_back(id, revision, task.schedule.next_owed(from), now).await,
            None => Ok(()),
        }
    }

    /// Clears cancelled fires of a task that nobody ran, from `from` (ms) on: shards and single runs
    /// of one instant stand in each other's way when the routing changes. Runs that somebody asked
    /// for stay, so that he can see what became of them.
    pub async fn clear_cancelled(&self, id: TaskId, from: i64) -> Result<()> {
        let which = format!(
            "task_id = {{1}} AND fire_time >= {{2}} AND status = {} AND reason IN ('task_edited', 'task_stopped', \
             'task_paused') AND trigger_kind IN ('schedule', 'misfire')",
            Status::Cancelled as i16
        );
        retrying(|| async {
            let tx = self.begin("clear cancelled runs").await?;
            for sql in delete_logs(self.backend, &which) {
                tx.execute(&sql, [id.into(), from.into()]).await?;
            }
            tx.commit().await
        })
        .await
    }

    /// Deletes a task; its logs stay until retention takes them.
    pub async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        retrying(|| self.delete_task_once(before, now)).await
    }

    async fn delete_task_once(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        const ACTION: &str = "delete a task";
        let tx = self.begin(ACTION).await?;
        self.drop_links(&tx, before.id).await?;
        self.end_backfills(&tx, before.id, now).await?;
        let sql = sql!("DELETE FROM task WHERE id = {1} AND revision = {2} AND tenant_id = {3}");
        if tx.execute(&sql, [before.id.into(), before.revision.into(), before.owner.tenant_id.into()]).await? == 0 {
            return Err(changed_meanwhile(ACTION, before));
        }
        let (task_id, reason) = (before.id, Reason::TaskDeleted);
        let taken = Taken { task_id, reason, keeps_unscheduled: false, next: NEVER, now };
        let held = self.revoke(&tx, &taken).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// Cancels what nobody has, in the task's own transaction; reads what executors have.
    async fn revoke(&self, tx: &Transaction<'_>, taken: &Taken) -> Result<Unsent> {
        const SCHEDULED: &str = " AND trigger_kind IN ('schedule', 'misfire')";
        let Taken { task_id, reason, keeps_unscheduled, next, now } = *taken;
        let cancel = |which: &str| {
            Sql::new(
                self.backend,
                &format!(
                    "UPDATE task_log SET status = {}, reason = {{2}}, finished_at = {{3}}, version = version + 1 \
                     WHERE task_id = {{1}} AND status IN ({}, {}, {}){which}",
                    Status::Cancelled as i16,
                    Status::Init as i16,
                    Status::Queued as i16,
                    Status::Retry as i16
                ),
            )
        };
        // Fires that nobody ran and nobody will plan again do not count for `max_fires`.
        let untried = cancel(&format!("{SCHEDULED} AND parent_id = 0 AND failures = 0 AND fire_time < {{4}}"));
        let values = [task_id.into(), reason.as_str().into(), now.into(), next.into()];
        let untried = tx.execute(&untried, values).await?;
        if untried > 0 {
            tx.execute(&UNCOUNT, [task_id.into(), (untried as i64).into()]).await?;
        }
        let cancel = cancel(if keeps_unscheduled { SCHEDULED } else { "" });
        let values: [Value; 3] = [task_id.into(), reason.as_str().into(), now.into()];
        tx.execute(&cancel, values.clone()).await?;
        let held = sql!(format!(
            "SELECT {} FROM task_log l WHERE l.task_id = {{1}} AND l.status = {} ORDER BY l.id",
            rows::DISPATCHED_COLUMNS,
            Status::Dispatched as i16
        ));
        let held = tx.query(&held, [task_id.into()], rows::dispatched_run).await?;
        // Once more: a run may have come back from its executor between the two.
        tx.execute(&cancel, values).await?;
        // Copies in queues lose at the version.
        let keep = sql!(format!(
            "UPDATE task_log SET status = CASE WHEN attempt > 0 THEN {} ELSE {} END, version = version + 1, \
                 revision = (SELECT revision FROM task WHERE id = {{1}}) WHERE task_id = {{1}} AND status IN ({}, {}, {})",
            Status::Retry as i16,
            Status::Init as i16,
            Status::Init as i16,
            Status::Queued as i16,
            Status::Retry as i16
        ));
        if keeps_unscheduled {
            tx.execute(&keep, [task_id.into()]).await?;
        }
        Ok(held)
    }

    /// Takes fires that executors gave up for a stop or a pause out of what `max_fires` counts.
    pub async fn uncount(&self, id: TaskId, fires: usize) -> Result<()> {
        let values = [id.into(), (fires as i64).into()];
        self.execute("uncount fires", &UNCOUNT, values).await.map(drop)
    }

    /// Lists tasks within reach, by id.
    pub async fn list_tasks(&self, access_scope: &AccessScope, filter: &TaskFilter) -> Result<Vec<TaskView>> {
        let statement = listed(&views(), access_scope, filter).finish(self, "ORDER BY t.id", filter.limit);
        let mut tasks = self.query_raw("list tasks", statement, task_view).await?;
        self.fill_parents(&mut tasks).await?;
        Ok(tasks)
    }

    /// How many tasks such a list has, whatever its limit; counted up to [`COUNTED_MAX`].
    pub async fn number_of_tasks(&self, access_scope: &AccessScope, filter: &TaskFilter) -> Result<u64> {
        const HEAD: &str = "SELECT COUNT(*) FROM (SELECT t.id FROM task t JOIN tenant n ON n.id = t.tenant_id JOIN app a \
             ON a.id = t.app_id";
        let statement = listed(HEAD, access_scope, filter).finish_as(self, &format!("LIMIT {COUNTED_MAX}) s"));
        let found = self.query_raw("count tasks", statement, |row| row.try_get_by_index::<i64>(0)).await?;
        Ok(found.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// The tasks of an app that have one of these names.
    pub async fn tasks_named(&self, owner: Owner, names: &[String]) -> Result<Vec<TaskView>> {
        let sql = sql!(format!(
            "{} WHERE t.tenant_id = {{1}} AND t.app_id = {{2}} AND t.name IN ({})",
            views(),
            markers(3, NAMES_AT_ONCE)
        ));
        let mut tasks = Vec::new();
        for chunk in names.chunks(NAMES_AT_ONCE) {
            // The last name fills the row up: the text of the statement stays the same.
            let filled = (0..NAMES_AT_ONCE).filter_map(|at| chunk.get(at).or_else(|| chunk.last()));
            let mut values: Vec<Value> = vec![owner.tenant_id.into(), owner.app_id.into()];
            values.extend(filled.map(|name| Value::from(name.as_str())));
            tasks.extend(self.query_raw("find tasks by name", sql.on(self.backend).bind_all(values), task_view).await?);
        }
        self.fill_parents(&mut tasks).await?;
        Ok(tasks)
    }

    /// Where the watermark of a task starts: its first fire after `now`.
    #[allow(clippy::too_many_arguments)] // one thought: a definition and its two instants
    async fn first_fire(
        &self,
        tx: &Transaction<'_>,
        id: TaskId,
        tenant_id: TenantId,
        spec: &TaskSpec,
        started: bool,
        anchor: i64,
        now: i64,
    ) -> Result<i64> {
        if !started {
            return Ok(NEVER);
        }
        let mut schedule = spec.to_schedule(anchor, id).map_err(|error| StoreError::refused("start a task", error))?;
        self.add_calendar(tx, tenant_id, spec, &mut schedule).await?;
        Ok(schedule.next_after(now))
    }
}

/// The conditions of a list, after the `head` of its statement.
fn listed(head: &str, access_scope: &AccessScope, filter: &TaskFilter) -> Conditions {
    let mut wanted = Conditions::new(format!("{head} WHERE t.id > {{1}}"), vec![filter.after.into()]);
    wanted.within(access_scope, "t.tenant_id", Some("t.app_id"));
    wanted.and("t.tenant_id = ", filter.tenant_id);
    wanted.and("n.name = ", filter.tenant.clone());
    wanted.and("a.name = ", filter.app.clone());
    wanted.and("t.name = ", filter.name.clone());
    wanted.and_holds(&["t.name", "t.handler"], filter.search.as_deref());
    wanted.and("t.calendar = ", filter.calendar.clone());
    wanted.and("t.handler = ", filter.handler.clone());
    wanted.and("t.id = ", filter.id);
    if let Some(state) = filter.state {
        wanted.and("t.started = ", Some(i32::from(state == TaskState::Started)));
        wanted.text.push_str(match state {
            TaskState::Started => "",
            TaskState::Stopped => " AND t.pause_note IS NULL",
            TaskState::Paused => " AND t.pause_note IS NOT NULL",
        });
    }
    if let Some(parent) = filter.parent_id {
        let at = wanted.push(parent);
        let follows = format!(" AND t.id IN (SELECT p.child_id FROM task_parent p WHERE p.parent_id = {{{at}}})");
        wanted.text.push_str(&follows);
    }
    wanted
}

/// The head of a statement that reads [`TaskView`]s.
fn views() -> String {
    format!(
        "SELECT {VIEW_COLUMNS}, {} FROM task t JOIN tenant n ON n.id = t.tenant_id JOIN app a ON a.id = t.app_id",
        spec_list("t.")
    )
}

/// What a change of a task revokes.
struct Taken {
    task_id: TaskId,
    reason: Reason,
    keeps_unscheduled: bool,
    /// The watermark now: what fires from there on is planned, and counted, again.
    next: i64,
    now: i64,
}

/// Whether an edit makes a fixed rate or delay count from now.
fn counts_anew(before: &TaskSpec, after: &TaskSpec) -> bool {
    after.schedule == ScheduleKind::FixedDelay
        || (before.schedule, before.interval_ms, before.valid_from)
            != (after.schedule, after.interval_ms, after.valid_from)
}

fn changed_meanwhile(action: &'static str, before: &TaskView) -> StoreError {
    StoreError::of(action, Refusal::changed("task", &before.spec.name))
}

fn task_view(row: &QueryResult) -> std::result::Result<TaskView, DbErr> {
    let started: i32 = row.try_get_by_index(5)?;
    let started = started != 0;
    let pause_note: Option<String> = row.try_get_by_index(12)?;
    Ok(TaskView {
        id: row.try_get_by_index(0)?,
        owner: Owner { tenant_id: row.try_get_by_index(1)?, app_id: row.try_get_by_index(2)? },
        tenant: row.try_get_by_index(3)?,
        app: row.try_get_by_index(4)?,
        activity: Activity { started, pause_note: pause_note.filter(|_| !started) },
        revision: row.try_get_by_index(6)?,
        next_fire_at: row.try_get_by_index(7)?,
        anchor_at: row.try_get_by_index(8)?,
        fires: row.try_get_by_index(9)?,
        failures_in_row: row.try_get_by_index(10)?,
        paused_at: row.try_get_by_index(11)?,
        created_at: row.try_get_by_index(13)?,
        updated_at: row.try_get_by_index(14)?,
        spec: read_spec(row, VIEW_COUNT)?,
    })
}
