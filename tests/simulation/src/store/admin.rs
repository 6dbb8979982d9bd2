//! What the management API asks: the same functions that the product's store has beside the
//! traits.

use super::history::Redefinition;
use super::rows::{LogRow, State, TaskRow};
use super::{ModelStore, refuse};
use carillon::domain::task::{NEVER, Routing, ScheduleKind, TaskSpec};
use carillon::domain::{AppId, LogId, Owner, Reason, Run, Status, TaskId, TenantId};
use carillon::store::{
    Activity, LogView, NewTask, Result, ShardCounts, StoreError, StoreErrorKind, TaskChange, TaskView, Unsent,
};
use std::collections::BTreeSet;

/// An exhausted schedule wrote at most a day ahead, ms.
const DAY_MS: i64 = 86_400_000;

impl ModelStore {
    /// Creates a tenant.
    pub async fn create_tenant(&self, id: TenantId, name: &str, _now: i64) -> Result<()> {
        self.call("create tenant", |state, _| {
            if state.tenants.contains_key(name) {
                return refuse(StoreErrorKind::Duplicate, "create tenant", name);
            }
            state.tenants.insert(name.to_owned(), id);
            Ok(())
        })
        .await
    }

    /// Creates an app of a tenant.
    pub async fn create_app(&self, id: AppId, tenant: &str, name: &str) -> Result<Owner> {
        self.call("create app", |state, _| {
            let Some(tenant_id) = state.tenants.get(tenant).copied() else {
                return refuse(StoreErrorKind::NotFound, "create app", tenant);
            };
            let owner = Owner { tenant_id, app_id: id };
            state.apps.insert((tenant.to_owned(), name.to_owned()), owner);
            Ok(owner)
        })
        .await
    }

    /// Creates and changes tasks, all or none; returns what executors hold of each changed one,
    /// in their order.
    pub async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        self.call("change tasks", |state, at| {
            let before = state.clone();
            let applied = state.apply(new, changes, now, at);
            if applied.is_err() {
                *state = before;
            }
            applied
        })
        .await
    }

    /// Creates one task.
    pub async fn create_task(&self, task: &NewTask, now: i64) -> Result<()> {
        self.apply_tasks(std::slice::from_ref(task), &[], now).await.map(drop)
    }

    /// Changes one task; returns what executors hold of it.
    pub async fn change_task(&self, change: &TaskChange, now: i64) -> Result<Unsent> {
        let held = self.apply_tasks(&[], std::slice::from_ref(change), now).await?;
        Ok(held.into_iter().flatten().collect())
    }

    /// A task as the API shows it.
    pub async fn task(&self, id: TaskId) -> Result<Option<TaskView>> {
        self.call("show task", |state, _| Ok(state.tasks.get(&id).map(|row| state.task_view(row)))).await
    }

    /// Every log of a task, oldest fire first.
    pub async fn logs(&self, task_id: TaskId) -> Result<Vec<LogView>> {
        self.call("list logs", |state, _| {
            let ids = state.by_fire.range((task_id, i64::MIN, i32::MIN)..(TaskId(task_id.0 + 1), i64::MIN, i32::MIN));
            let tenant_of = |id: TenantId| {
                let tenant = state.tenants.iter().find(|(_, tenant)| **tenant == id);
                tenant.map(|(name, _)| name.clone()).unwrap_or_default()
            };
            let view = |row: &LogRow| LogView {
                shards: state.shard_counts(&row.run),
                ..row.view(&tenant_of(row.run.tenant_id))
            };
            Ok(ids.map(|(_, id)| view(&state.logs[id])).collect())
        })
        .await
    }

    /// Deletes a task; its logs stay.
    pub async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        self.call("delete task", |state, at| {
            state.current(before)?;
            state.end_backfills(before.id, now);
            state.tasks.remove(&before.id);
            state.links.retain(|link| link.child != before.id && link.parent != before.id);
            let (task, reason) = (before.id, Reason::TaskDeleted);
            let taken = Taken { task, reason, keeps_unscheduled: false, next: NEVER, now, at };
            Ok(state.revoke(&taken))
        })
        .await
    }
}

/// What a change of a task revokes.
struct Taken {
    task: TaskId,
    reason: Reason,
    keeps_unscheduled: bool,
    /// The watermark now: what fires from there on is planned, and counted, again.
    next: i64,
    now: i64,
    at: i64,
}

impl State {
    /// How far a sharded run has come; nothing when it has no shards yet.
    fn shard_counts(&self, parent: &Run) -> Option<ShardCounts> {
        let shards: Vec<&LogRow> = self.logs.values().filter(|row| row.run.parent_id == parent.id).collect();
        let count = |which: &dyn Fn(&LogRow) -> bool| shards.iter().filter(|row| which(row)).count() as i64;
        (parent.is_parent() && !shards.is_empty()).then(|| ShardCounts {
            started: count(&|row| row.started_at > 0),
            ended: count(&|row| row.run.status.is_terminal()),
            succeeded: count(&|row| row.run.status == Status::Succeeded),
        })
    }

    fn apply(&mut self, new: &[NewTask], changes: &[TaskChange], now: i64, at: i64) -> Result<Vec<Unsent>> {
        let tenants: BTreeSet<TenantId> = new.iter().map(|task| task.owner.tenant_id).collect();
        for tenant in tenants {
            let count = new.iter().filter(|task| task.owner.tenant_id == tenant).count();
            self.refuse_too_many_tasks(tenant, count)?;
        }
        for task in new {
            self.insert_task(task, now)?;
            self.note_change(task.id, now, at);
        }
        let held: Result<Vec<Unsent>> = changes.iter().map(|change| self.update_task(change, now, at)).collect();
        let held = held?;
        let relinked = changes.iter().filter(|change| change.spec.parents != change.before.spec.parents);
        let relinked = relinked.map(|change| (change.before.id, &change.spec));
        let created = new.iter().map(|task| (task.id, &task.spec)).filter(|(_, spec)| !spec.parents.is_empty());
        let linked: Vec<(TaskId, &TaskSpec)> = created.chain(relinked).collect();
        for (task, spec) in &linked {
            self.set_parents(*task, spec)?;
        }
        for (task, _) in linked {
            self.refuse_cycle(task)?;
        }
        Ok(held)
    }

    /// Writes a new task, without its parents.
    pub(super) fn insert_task(&mut self, task: &NewTask, now: i64) -> Result<()> {
        let NewTask { id, owner, spec, activity } = task.clone();
        let place = self.apps.iter().find(|(_, known)| **known == owner).map(|(names, _)| names.clone());
        let (tenant, app) = place.expect("the app exists");
        self.refuse_name_of_another(id, owner, &spec)?;
        self.know_calendar(owner.tenant_id, &spec)?;
        let next_fire_at = self.first_fire(owner.tenant_id, &spec, id, activity.started, now, now)?;
        let calendar_version = self.calendar_of(owner.tenant_id, &spec).map_or(0, |calendar| calendar.version);
        let view = TaskView {
            id,
            owner,
            tenant,
            app,
            spec: TaskSpec { parents: Vec::new(), ..spec },
            revision: 1,
            next_fire_at,
            anchor_at: now,
            fires: 0,
            failures_in_row: 0,
            script: 0,
            paused_at: if activity.pause_note.is_some() { now } else { 0 },
            activity,
            created_at: now,
            updated_at: now,
        };
        self.tasks.insert(id, TaskRow { view, written_until: 0, turn: 0, calendar_version });
        Ok(())
    }

    pub(super) fn update_task(&mut self, change: &TaskChange, now: i64, at: i64) -> Result<Unsent> {
        let TaskChange { before, spec, activity, reason } = change;
        self.refuse_name_of_another(before.id, before.owner, spec)?;
        let restarts = activity.started && !before.activity.started;
        let anchor_at = if restarts || resets_anchor(&before.spec, spec) { now } else { before.anchor_at };
        let (tenant_id, since) = (before.owner.tenant_id, before.fires_after(spec, activity, now));
        if spec.calendar != before.spec.calendar {
            self.know_calendar(tenant_id, spec)?;
        }
        let next_fire_at = self.first_fire(tenant_id, spec, before.id, activity.started, anchor_at, since)?;
        let calendar_version = self.calendar_of(tenant_id, spec).map_or(0, |calendar| calendar.version);
        self.current(before)?;
        self.uncount_from(before.id, next_fire_at);
        self.current(before)?;
        self.fit_skips(before, spec, now);
        let row = self.current(before)?;
        row.written_until = row.end_of_written(now);
        row.calendar_version = calendar_version;
        let view = &mut row.view;
        if restarts {
            view.failures_in_row = 0;
        }
        // A task that was stopped begins to count again; a paused one goes on.
        if restarts && before.activity.pause_note.is_none() {
            view.fires = 0;
        }
        view.paused_at = match (&activity.pause_note, &before.activity.pause_note) {
            (None, _) => 0,
            (Some(_), Some(_)) => before.paused_at,
            (Some(_), None) => now,
        };
        view.spec = TaskSpec { parents: Vec::new(), ..spec.clone() };
        view.activity = activity.clone();
        view.revision += 1;
        view.next_fire_at = next_fire_at;
        view.anchor_at = anchor_at;
        view.updated_at = now;
        self.note_change(before.id, now, at);
        let same_shape = (spec.routing == Routing::Sharding) == (before.spec.routing == Routing::Sharding);
        let keeps_unscheduled = *reason == Reason::TaskEdited && same_shape;
        let taken = Taken { task: before.id, reason: *reason, keeps_unscheduled, next: next_fire_at, now, at };
        if !activity.started && *reason != Reason::TaskEdited {
            self.end_backfills(before.id, now);
        }
        let held = self.revoke(&taken);
        let used_up = |row: &&mut TaskRow| activity.started && spec.max_fires > 0 && row.view.fires >= spec.max_fires;
        if let Some(row) = self.tasks.get_mut(&before.id).filter(used_up) {
            row.view.next_fire_at = NEVER;
        }
        if !same_shape {
            self.clear_given_up(before.id, next_fire_at.min(now));
        }
        if spec.schedule == ScheduleKind::FixedDelay && activity.started {
            self.adopt(before.id, &held);
        }
        Ok(held)
    }

    /// Shards and single runs of one instant exclude each other. A run that goes on counts all of its shards.
    fn clear_given_up(&mut self, task: TaskId, from: i64) {
        let of_task = self.logs.values().map(|row| &row.run).filter(|run| run.task_id == task && run.fire_time >= from);
        let given_up = of_task.filter(|run| run.status == Status::Cancelled && run.reason.is_given_up());
        let goes_on = |id: LogId| self.logs.get(&id).is_some_and(|parent| parent.run.status == Status::Dispatched);
        let gone = given_up.filter(|run| run.trigger.is_scheduled() && !goes_on(run.parent_id));
        let gone: Vec<Run> = gone.cloned().collect();
        for run in gone {
            self.forget_log(&run);
        }
    }

    /// Takes a log away, and its place.
    pub(super) fn forget_log(&mut self, run: &Run) {
        self.logs.remove(&run.id);
        self.by_fire.remove(&(run.task_id, run.fire_time, run.shard_index));
        self.backfill_runs.remove(&run.id);
        self.attempts.retain(|(log, _), _| *log != run.id);
    }

    /// Runs of a fixed delay that executors hold become links of its chain.
    fn adopt(&mut self, task: TaskId, held: &Unsent) {
        let revision = self.tasks[&task].view.revision;
        let links = held.iter().map(|dispatched| &dispatched.run).filter(|run| run.trigger.is_scheduled());
        let links: Vec<&Run> = links.collect();
        for run in &links {
            if let Some(row) = self.logs.get_mut(&run.id) {
                row.run.revision = revision;
            }
            if run.parent_id.is_none() {
                self.watch(run.id);
            }
        }
        if let Some(row) = self.tasks.get_mut(&task).filter(|_| !links.is_empty()) {
            row.view.next_fire_at = NEVER;
        }
    }

    /// Moves a watermark back to `first`, if it lies beyond.
    pub(super) fn move_back(&mut self, id: TaskId, revision: i64, first: i64, now: i64) {
        let moves = self.tasks.get(&id).is_some_and(|TaskRow { view, .. }| {
            view.revision == revision && view.activity.started && view.next_fire_at > first
        });
        if !moves {
            return;
        }
        self.uncount_from(id, first);
        if let Some(row) = self.tasks.get_mut(&id) {
            row.written_until = row.end_of_written(now);
            row.view.next_fire_at = first;
        }
    }

    /// The fires from `first` up to the watermark will be planned, and counted, again. Those that
    /// were given up untried count no more.
    fn uncount_from(&mut self, task: TaskId, first: i64) {
        let next = self.tasks[&task].view.next_fire_at;
        let counts = |LogRow { run, .. }: &&LogRow| {
            let is_fire =
                run.parent_id == LogId::NONE && run.trigger.is_scheduled() && run.reason != Reason::MisfireSkipped;
            let is_uncounted = run.status == Status::Cancelled
                && match run.reason {
                    Reason::TaskEdited => run.attempt == 0,
                    Reason::TaskStopped | Reason::TaskPaused => run.failures == 0,
                    _ => false,
                };
            is_fire && !is_uncounted
        };
        let logs = self.logs.values().filter(|row| row.run.task_id == task);
        let again = logs.filter(|row| (first..next).contains(&row.run.fire_time)).filter(counts).count() as i64;
        if let Some(row) = self.tasks.get_mut(&task) {
            row.view.fires = (row.view.fires - again).max(0);
        }
    }

    /// Where the watermark of a task starts.
    fn first_fire(
        &self,
        tenant_id: TenantId,
        spec: &TaskSpec,
        id: TaskId,
        started: bool,
        anchor: i64,
        now: i64,
    ) -> Result<i64> {
        if !started {
            return Ok(NEVER);
        }
        let schedule = spec.to_schedule(anchor, id);
        let mut schedule =
            schedule.map_err(|error| StoreError::new(StoreErrorKind::Invalid, "store a task", error.to_string()))?;
        schedule.calendar = self.calendar_of(tenant_id, spec);
        Ok(schedule.next_after(now))
    }

    fn know_calendar(&self, tenant_id: TenantId, spec: &TaskSpec) -> Result<()> {
        if spec.calendar.is_empty() || self.calendar_of(tenant_id, spec).is_some() {
            return Ok(());
        }
        refuse(StoreErrorKind::Invalid, "store a task", "there is no such calendar")
    }

    fn refuse_name_of_another(&self, id: TaskId, owner: Owner, spec: &TaskSpec) -> Result<()> {
        let mut others = self.tasks.values().map(|row| &row.view).filter(|task| task.id != id && task.owner == owner);
        if others.any(|task| task.spec.name == spec.name) {
            return refuse(StoreErrorKind::Duplicate, "store a task", &spec.name);
        }
        Ok(())
    }

    pub(super) fn note_change(&mut self, task: TaskId, from: i64, at: i64) {
        let TaskView { revision, activity, spec, .. } = &self.tasks[&task].view;
        let (revision, started, spec) = (*revision, activity.started, spec.clone());
        self.events.push(format!("task {task} has revision {revision}, started {started}, from {from}"));
        self.changes.push(Redefinition { task, revision, started, spec, from, at });
    }

    /// The task, if it is still as the caller saw it.
    fn current(&mut self, before: &TaskView) -> Result<&mut TaskRow> {
        match self.tasks.get_mut(&before.id) {
            Some(row) if row.view.revision == before.revision => Ok(row),
            _ => refuse(StoreErrorKind::Conflict, "change task", "the task was changed meanwhile"),
        }
    }

    /// Cancels runs that no executor has; returns those that executors have.
    fn revoke(&mut self, taken: &Taken) -> Unsent {
        let of_task = self.logs.values().filter(|row| row.run.task_id == taken.task);
        let of_task: Vec<Run> = of_task.map(|row| row.run.clone()).collect();
        let (mut held, mut untried) = (Unsent::new(), 0);
        for run in of_task {
            let (id, is_scheduled) = (run.id, run.trigger.is_scheduled());
            match run.status {
                Status::Init | Status::Queued | Status::Retry if taken.keeps_unscheduled && !is_scheduled => {
                    self.keep(id, taken);
                }
                Status::Init | Status::Queued | Status::Retry => {
                    let is_fire = is_scheduled && run.parent_id == LogId::NONE;
                    untried += i64::from(is_fire && run.failures == 0 && run.fire_time < taken.next);
                    if let Some(row) = self.step(id, Status::Cancelled, taken.reason, taken.at) {
                        row.finished_at = taken.now;
                    }
                }
                Status::Dispatched => {
                    self.mark_held(id, taken);
                    held.push(self.logs[&id].dispatched());
                }
                _ => {}
            }
        }
        // Fires that were not tried and will not be planned again do not count.
        if let Some(row) = self.tasks.get_mut(&taken.task) {
            row.view.fires = (row.view.fires - untried).max(0);
        }
        held
    }

    /// What an executor holds is asked for later. What a stop revoked stays so, save what a start fires anew.
    fn mark_held(&mut self, id: LogId, taken: &Taken) {
        let Some(row) = self.logs.get_mut(&id).filter(|row| !row.run.is_parent()) else { return };
        let is_stop = matches!(row.stopping, Reason::TaskStopped | Reason::TaskPaused);
        let stays = taken.reason == Reason::TaskEdited && is_stop && row.run.fire_time < taken.next;
        if (row.stopping == Reason::None || row.stopping.is_revocation()) && !stays {
            row.stopping = taken.reason;
        }
        if row.stopping.is_revocation() {
            row.run.version += 1;
        }
    }

    /// A run that goes on under the new definition; holders of a copy lose at the version.
    fn keep(&mut self, id: LogId, taken: &Taken) {
        let revision = self.tasks[&taken.task].view.revision;
        let Some(row) = self.logs.get_mut(&id) else { return };
        let run = &mut row.run;
        if run.status == Status::Queued {
            self.stays.end(id, taken.at);
            self.grants.end(id, taken.at);
        }
        run.status = if run.attempt > 0 { Status::Retry } else { Status::Init };
        run.revision = revision;
        run.version += 1;
        self.events.push(format!("log {id} goes on under revision {revision} as {:?}", run.status));
    }
}

impl TaskRow {
    /// Up to where logs may exist when the watermark leaves its place, ms.
    fn end_of_written(&self, now: i64) -> i64 {
        match self.view.next_fire_at {
            NEVER if self.view.activity.started => now + DAY_MS,
            NEVER => self.written_until,
            next => self.written_until.max(next),
        }
    }
}

/// Whether an edit makes a fixed rate or delay count from now.
fn resets_anchor(before: &TaskSpec, after: &TaskSpec) -> bool {
    after.schedule == ScheduleKind::FixedDelay
        || before.schedule != after.schedule
        || before.interval_ms != after.interval_ms
        || before.valid_from != after.valid_from
}

/// A task of that app, stopped.
#[must_use]
pub fn new_task(id: TaskId, owner: Owner, spec: TaskSpec) -> NewTask {
    NewTask { id, owner, spec, activity: Activity::default() }
}
