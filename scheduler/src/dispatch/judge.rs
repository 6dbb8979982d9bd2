//! Which runs of a batch must no longer run, and why.

use super::dispatcher::{Dispatcher, Failed};
use super::outgoing::OutgoingRun;
use super::tasks::Definitions;
use crate::domain::instant::local_words;
use crate::domain::missed;
use crate::domain::rules::WindowAction;
use crate::domain::task::Maintenance;
use crate::domain::{Reason, Run, Status, Task, TaskId, Transition, Trigger};
use crate::queue::returned_to_all;
use crate::store::{ClusterStore, DispatchStore, OutcomeStore, PermitStore, PlanStore, RuleStore};
use std::collections::HashMap;
use std::sync::Arc;

/// Overdue fires looked at for the misfire strategy at most.
const OVERDUE_MAX: u64 = 20_000;

/// Tasks whose overdue fires are looked at in one statement: after a long outage each may have a thousand rows to be read, and a
/// statement that is given up has cost its time for nothing.
const OVERDUE_TASKS: usize = 50;

/// Runs whose task cannot be read are looked at again after this long, ms.
const UNREADABLE_PAUSE_MS: i64 = 10_000;

/// Fire times of overdue runs by task, latest first.
type Overdue = HashMap<TaskId, Vec<i64>>;

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore> Dispatcher<S> {
    /// Sorts out what is no longer to run.
    pub(super) async fn judge(&self, runs: Vec<Run>) -> Result<Vec<OutgoingRun>, Failed> {
        if let Err(error) = self.clock.refresh(&*self.store).await {
            return Err((runs, error));
        }
        let tasks = match self.tasks.of(&runs).await {
            Ok(tasks) => tasks,
            Err(error) => return Err((runs, error)),
        };
        if let Err(error) = self.look_for_scripts(&runs, &tasks).await {
            return Err((runs, error));
        }
        let overdue = match self.overdue(&runs).await {
            Ok(overdue) => overdue,
            Err(error) => return Err((runs, error)),
        };
        let now = self.clock.now_ms();
        let (unreadable, runs): (Vec<Run>, Vec<Run>) =
            runs.into_iter().partition(|run| tasks.is_unreadable(run.task_id));
        if !unreadable.is_empty() {
            tracing::error!(runs = unreadable.len(), "runs wait: their tasks cannot be read");
            let at = now + self.settings.lead_ms + UNREADABLE_PAUSE_MS;
            self.queue.push_at(unreadable.into_iter().map(|run| (at, run)));
        }
        let held_until = self.rules.held_until(now).unwrap_or(i64::MIN);
        let (mut outgoing_runs, mut steps, mut outdated) = (Vec::with_capacity(runs.len()), Vec::new(), Vec::new());
        for run in runs {
            if run.due_time <= held_until {
                // It may have run; it was claimed before that was known.
                self.queue.blocked.leave(&run);
                let back = returned_to_all(&run);
                steps.push((run, back));
                continue;
            }
            let task = tasks.get(run.task_id);
            if task.is_some_and(|task| is_of_old_definition(task, &run)) {
                self.queue.blocked.leave(&run);
                outdated.push(run);
                continue;
            }
            match self.step_of(&run, task, &overdue, now) {
                Some(change) => {
                    self.queue.blocked.leave(&run);
                    steps.push((run, change));
                }
                None => outgoing_runs.extend(task.map(|task| OutgoingRun::new(run, Arc::clone(task)))),
            }
        }
        self.change(steps).await;
        self.settle_outdated(outdated).await;
        Ok(outgoing_runs)
    }

    /// Scripts may have been allowed a moment ago: none fails by rules that have changed since.
    async fn look_for_scripts(&self, runs: &[Run], tasks: &Definitions) -> crate::store::Result<()> {
        let rules = self.rules.now();
        let is_refused = |run: &Run| {
            tasks.get(run.task_id).is_some_and(|task| task.script != 0 && !rules.allows_scripts(task.app_id))
        };
        if runs.iter().any(is_refused) {
            self.rules.refresh(&*self.store, self.clock.now_ms()).await?;
        }
        Ok(())
    }

    /// Changed since: the change has cancelled the row and this is a copy, which loses at the version; or an attempt of the
    /// old definition came back after the change, whose fire may be the new one's.
    pub(super) async fn settle_outdated(&self, runs: Vec<Run>) {
        if let Err(error) = self.store.settle_revoked(&runs, self.clock.now_ms()).await {
            self.postpone(runs, &error);
        }
    }

    /// The step of a run that is not to run now; `None` for one that is.
    fn step_of(&self, run: &Run, task: Option<&Arc<Task>>, overdue: &Overdue, now: i64) -> Option<Transition> {
        let end = |to, reason, message: String| {
            Some(Transition { message, finished_at: now, ..Transition::of(run, to, reason) })
        };
        let Some(task) = task else { return end(Status::Cancelled, Reason::TaskDeleted, String::new()) };
        if self.rules.now().skips(run.due_time) {
            return end(Status::Cancelled, Reason::Restored, String::new());
        }
        if is_released(run) {
            // By now it may be too late to be made up for.
            if let Some(message) = missed::why_left_out(task, run.queued_at - run.due_time, 0) {
                return end(Status::Expired, Reason::MisfireSkipped, message);
            }
            return Some(Transition { due_time: now, ..Transition::of(run, Status::Init, Reason::None) });
        }
        if task.is_expired(run, now) {
            return end(Status::Expired, Reason::Expired, format!("{} ms after it was due", now - run.due_time));
        }
        if let Some(message) = self.missed(run, task, overdue) {
            return end(Status::Expired, Reason::MisfireSkipped, message);
        }
        if let Some(change) = self.rests(run, task, now) {
            return Some(change);
        }
        if task.script != 0 && !self.rules.now().allows_scripts(task.app_id) {
            let message = "the task is a script, and its app does not allow scripts".to_owned();
            return Some(Transition {
                message,
                ..Transition::after_failure(task, run, Reason::ScriptsNotAllowed, now)
            });
        }
        let wait = task.spec.wait_timeout_ms;
        if wait > 0 && run.status == Status::Queued && now > run.due_time.saturating_add(wait) {
            let message = format!("it could not start within {wait} ms");
            return Some(Transition { message, ..Transition::after_failure(task, run, Reason::WaitTimedOut, now) });
        }
        None
    }

    fn is_overdue(&self, run: &Run) -> bool {
        missed::is_missed(run, run.queued_at, self.settings.misfire_after_ms)
    }

    /// Fires that wait for as long as the overdue ones of this batch, or longer.
    async fn overdue(&self, runs: &[Run]) -> crate::store::Result<Overdue> {
        let mut since: HashMap<TaskId, i64> = HashMap::new();
        let mut due_before = i64::MIN;
        for run in runs.iter().filter(|run| self.is_overdue(run)) {
            since.entry(run.task_id).and_modify(|at| *at = run.fire_time.min(*at)).or_insert(run.fire_time);
            due_before = due_before.max(run.queued_at - self.settings.misfire_after_ms);
        }
        let mut overdue = Overdue::new();
        if !since.is_empty() {
            let since: Vec<(TaskId, i64)> = since.into_iter().collect();
            let ids: Vec<TaskId> = since.iter().map(|(task, _)| *task).collect();
            // Fires that were not written when we looked come after all that were.
            let mut written_until: HashMap<TaskId, i64> = HashMap::new();
            let tasks = self.store.tasks(&ids).await?;
            let skipped = self.store.skipped_of(&tasks, due_before).await?;
            for task in tasks {
                let cancelled = skipped.get(&task.id).map_or(&[][..], Vec::as_slice);
                written_until.insert(task.id, task.next_fire_at);
                overdue.insert(task.id, missed::unwritten(&task, due_before, cancelled));
            }
            for some in since.chunks(OVERDUE_TASKS) {
                for (task, fire_time) in self.store.overdue(some, due_before, OVERDUE_MAX).await? {
                    if written_until.get(&task).is_none_or(|until| fire_time < *until) {
                        overdue.entry(task).or_default().push(fire_time);
                    }
                }
            }
        }
        Ok(overdue)
    }

    /// Why a run that was missed does not run.
    fn missed(&self, run: &Run, task: &Task, overdue: &Overdue) -> Option<String> {
        if !self.is_overdue(run) {
            return None;
        }
        let later = overdue.get(&task.id).map_or(&[][..], Vec::as_slice);
        let later = later.iter().take_while(|fire_time| **fire_time > run.fire_time).count();
        missed::why_left_out(task, run.queued_at - run.due_time, later)
    }

    /// The step of a run whose time lies in a maintenance window. What a person starts runs all
    /// the same.
    fn rests(&self, run: &Run, task: &Task, now: i64) -> Option<Transition> {
        if task.spec.maintenance == Maintenance::Ignore || run.trigger == Trigger::Manual || !run.parent_id.is_none() {
            return None;
        }
        let rules = self.rules.now();
        let window = rules.window_at(run.tenant_id, run.due_time.max(now))?;
        let zone = task.schedule.zone;
        let (from, until) = (local_words(window.starts_at, zone), local_words(window.ends_at, zone));
        let note = format!("maintenance window {from} to {until}: {}", window.note);
        Some(match window.action {
            WindowAction::Skip => Transition {
                message: note,
                finished_at: now,
                ..Transition::of(run, Status::Expired, Reason::Maintenance)
            },
            WindowAction::Postpone => {
                let to = if run.attempt > 0 || run.failures > 0 { Status::Retry } else { Status::Init };
                Transition { message: note, due_time: window.ends_at, ..Transition::of(run, to, Reason::Maintenance) }
            }
        })
    }
}

/// Made up for a missed fire while the past was held, which it no longer is: it is due now, as it would have been without that.
fn is_released(run: &Run) -> bool {
    run.trigger == Trigger::Misfire && run.due_time == run.fire_time && run.attempt == 0 && run.failures == 0
}

/// A run belongs to the definition that it was written for, or that has adopted it since.
fn is_of_old_definition(task: &Task, run: &Run) -> bool {
    task.revision != run.revision
}
