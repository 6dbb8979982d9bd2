//! Definitions of tasks, as the management API changes them. Each change is one transaction that
//! also revokes what was written ahead for the old definition.

use super::calendar_changes::calendar_version;
use super::error::{Result, StoreError};
use super::planning::fires_before;
use super::revoking::Revocation;
use super::scripts::forget_scripts;
use super::sql_store::{SqlStore, Transaction, retrying};
use super::statement::Sql;
use super::task_columns::{SPEC_COLUMNS, markers, spec_list, spec_set, spec_values};
use super::template::Text as _;
use super::xxljob_words::forget_words;
use super::{NewTask, TaskChange, TaskView, Unsent};
use crate::domain::task::{NEVER, Routing, ScheduleKind, TaskSpec};
use crate::domain::{Owner, Reason, Refusal, TaskId, TenantId};
use sea_orm::Value;
use std::collections::BTreeMap;

/// What to do about a task of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfThere {
    /// An error.
    Refuse,
    /// Nothing.
    Leave,
}

impl SqlStore {
    /// Creates and changes tasks, all or none; answers what executors hold of each changed one,
    /// in their order.
    pub async fn apply_tasks(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        retrying(|| self.apply_tasks_once(new, changes, now)).await
    }

    async fn apply_tasks_once(&self, new: &[NewTask], changes: &[TaskChange], now: i64) -> Result<Vec<Unsent>> {
        let tx = self.begin("change tasks").await?;
        // By tenant, in one order for all callers.
        let mut by_tenant: BTreeMap<TenantId, usize> = BTreeMap::new();
        for task in new {
            *by_tenant.entry(task.owner.tenant_id).or_default() += 1;
        }
        for (tenant_id, count) in by_tenant {
            self.refuse_too_many_tasks(&tx, tenant_id, count).await?;
        }
        self.hold_calendars(&tx, new, changes).await?;
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
            task.spec.calendar.as_str().into(),
        ];
        values.extend(spec_values(ACTION, &task.spec)?);
        let sql = Sql::new(
            self.backend,
            &format!(
                "INSERT INTO task (id, tenant_id, app_id, created_at, updated_at, anchor_at, started, next_fire_at, \
                 paused_at, pause_note, calendar_version, revision, written_until, fires, turn, children, failures_in_row, {}) \
                 VALUES ({{1}}, {{2}}, {{3}}, {{4}}, {{4}}, {{4}}, {{5}}, {{6}}, {{7}}, {{8}}, {}, 1, 0, 0, 0, 0, 0, {}) {}",
                spec_list(""),
                calendar_version(2, 9),
                markers(10, SPEC_COLUMNS.len()),
                match if_there {
                    IfThere::Refuse => String::new(),
                    IfThere::Leave => self.backend.or_ignore("task", "tenant_id, app_id, name"),
                }
            ),
        );
        let written = tx.execute_raw(sql.bind_all(values)).await;
        written.map(drop).map_err(|error| match if_there {
            IfThere::Refuse => error.naming("task", &task.spec.name),
            // Not its name is taken, but its id.
            IfThere::Leave => error,
        })
    }

    /// Writes a change, and revokes what was written ahead; answers what executors hold.
    pub(super) async fn update_task(&self, tx: &Transaction<'_>, change: &TaskChange, now: i64) -> Result<Unsent> {
        const ACTION: &str = "change a task";
        let TaskChange { before, spec, activity, reason } = change;
        // What PostgreSQL counts in a statement is what was there when that began, although it then waits for the row. So the
        // row is held first: fires that are being written ahead are there, or will be refused.
        tx.execute(&sql!("UPDATE task SET turn = turn WHERE id = {1}"), [before.id.into()]).await?;
        self.hold_open_runs(tx, before.id).await?;
        let restarts = activity.started && !before.activity.started;
        let anchor = if restarts || resets_anchor(&before.spec, spec) { now } else { before.anchor_at };
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
            spec.calendar.as_str().into(),
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
                 calendar_version = {}, revision = revision + 1, updated_at = {{3}}, {} WHERE id = {{1}} AND revision = {{2}} AND tenant_id = {{11}}",
            fires_before("{5}"),
            calendar_version(11, 12),
            spec_set(13)
        ));
        if tx.execute_raw(sql.on(self.backend).bind_all(values)).await? == 0 {
            return Err(changed_meanwhile(ACTION, before));
        }
        self.fit_skips(tx, before, spec, now).await?;
        let changes_shape = (spec.routing == Routing::Sharding) != (before.spec.routing == Routing::Sharding);
        let taken = Revocation {
            task_id: before.id,
            reason: *reason,
            // Runs without a schedule continue under the new definition, unless that has no place
            // for it.
            keeps_unscheduled: *reason == Reason::TaskEdited && !changes_shape,
            changes_shape,
            next,
            now,
        };
        if !activity.started && *reason != Reason::TaskEdited {
            self.end_backfills(tx, before.id, now).await?;
        }
        let held = self.revoke(tx, &taken).await?;
        if spec.max_fires > 0 && activity.started {
            // What counts is known only now.
            let ends = sql!(format!("UPDATE task SET next_fire_at = {NEVER} WHERE id = {{1}} AND fires >= max_fires"));
            tx.execute(&ends, [before.id.into()]).await?;
        }
        if spec.schedule == ScheduleKind::FixedDelay && activity.started {
            self.adopt(tx, before.id, &held).await?;
        }
        Ok(held)
    }

    /// Deletes a task; its logs stay until retention takes them.
    pub async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        retrying(|| self.delete_task_once(before, now)).await
    }

    async fn delete_task_once(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        const ACTION: &str = "delete a task";
        let tx = self.begin(ACTION).await?;
        self.drop_links(&tx, before.id).await?;
        forget_words(&tx, before.owner.tenant_id, before.id).await?;
        forget_scripts(&tx, before.owner.tenant_id, before.id).await?;
        self.end_backfills(&tx, before.id, now).await?;
        let sql = sql!("DELETE FROM task WHERE id = {1} AND revision = {2} AND tenant_id = {3}");
        if tx.execute(&sql, [before.id.into(), before.revision.into(), before.owner.tenant_id.into()]).await? == 0 {
            return Err(changed_meanwhile(ACTION, before));
        }
        self.hold_open_runs(&tx, before.id).await?;
        let (task_id, reason) = (before.id, Reason::TaskDeleted);
        let taken = Revocation { task_id, reason, keeps_unscheduled: false, changes_shape: false, next: NEVER, now };
        let held = self.revoke(&tx, &taken).await?;
        tx.commit().await?;
        Ok(held)
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

/// Whether an edit makes a fixed rate or delay count from now.
fn resets_anchor(before: &TaskSpec, after: &TaskSpec) -> bool {
    after.schedule == ScheduleKind::FixedDelay
        || (before.schedule, before.interval_ms, before.valid_from)
            != (after.schedule, after.interval_ms, after.valid_from)
}

fn changed_meanwhile(action: &'static str, before: &TaskView) -> StoreError {
    StoreError::of(action, Refusal::changed("task", &before.spec.name))
}
