//! What follows the end of runs.

use super::ModelStore;
use super::history::Follow;
use super::rows::State;
use async_trait::async_trait;
use carillon::domain::audit::Actor;
use carillon::domain::consequences::{End, failures_in_row, input_of};
use carillon::domain::task::{NEVER, ParentRule, ScheduleKind};
use carillon::domain::{LogId, Reason, TaskId, Trigger};
use carillon::store::{
    Activity, EndedPage, EndedRun, NewRun, OutboxRound, OutboxStore, PausedTask, Result, TaskChange, TaskView,
};
use carillon_protocol::TEXT_BYTES_MAX;
use std::collections::BTreeSet;
use std::ops::Bound;

#[async_trait]
impl OutboxStore for ModelStore {
    async fn has_outbox_entries(&self) -> Result<bool> {
        self.call("look for follow-ups", |state, _| Ok(!state.outbox_entries.is_empty())).await
    }

    async fn ended(&self, after: LogId, rows: u64) -> Result<EndedPage> {
        self.call("read ended runs", |state, _| {
            let behind = (Bound::Excluded(after), Bound::Unbounded);
            let page: Vec<LogId> = state.outbox_entries.range(behind).map(|(id, _)| *id).take(rows as usize).collect();
            let next = page.last().copied().filter(|_| page.len() as u64 >= rows);
            Ok(EndedPage { ended: state.ended_of(&page), rows: page.len() as u64, next })
        })
        .await
    }

    async fn ended_among(&self, ids: &[LogId]) -> Result<Vec<EndedRun>> {
        self.call("read which runs have ended", |state, _| {
            let owed = ids.iter().filter(|id| state.outbox_entries.contains_key(id)).copied();
            Ok(state.ended_of(&owed.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()))
        })
        .await
    }

    async fn process_outbox(
        &self,
        ended: &[EndedRun],
        _: &Actor,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<Option<OutboxRound>> {
        self.call("follow up", |state, at| {
            let is_owed = |log: &LogId| {
                let has_ended = state.logs.get(log).is_some_and(|row| row.run.status.is_terminal());
                has_ended && state.outbox_entries.contains_key(log)
            };
            if !ended.iter().all(|run| is_owed(&run.log)) {
                return Ok(None);
            }
            let mut followed = OutboxRound::default();
            for run in ended {
                state.outbox_entries.remove(&run.log);
                state.follows.insert(run.log, Follow { at, changes: state.changes.len() });
                state.follow_task(run, &mut followed);
                state.follow_children(run, new_id, now, &mut followed)?;
            }
            for task in ended.iter().map(|run| run.task_id).collect::<BTreeSet<_>>() {
                followed.paused.extend(state.pause_failing(task, now, at)?);
            }
            Ok(Some(followed))
        })
        .await
    }
}

/// Whether parents make it run: it is started and within its validity.
fn takes_children(child: &TaskView, now: i64) -> bool {
    let spec = &child.spec;
    child.activity.started && now >= spec.valid_from && (spec.valid_until == 0 || now < spec.valid_until)
}

impl State {
    fn ended_of(&self, ids: &[LogId]) -> Vec<EndedRun> {
        let rows = ids.iter().filter_map(|id| self.logs.get(id));
        let ended = rows.filter(|row| row.run.status.is_terminal()).map(|row| EndedRun {
            log: row.run.id,
            task_id: row.run.task_id,
            status: row.run.status,
            reason: row.run.reason,
            trigger: row.run.trigger,
            revision: row.run.revision,
            fire_time: row.run.fire_time,
            finished_at: row.finished_at,
            output: row.output.clone(),
            attempt: row.run.attempt,
        });
        ended.collect()
    }

    fn follow_task(&mut self, run: &EndedRun, followed: &mut OutboxRound) {
        let Some(row) = self.tasks.get(&run.task_id).cloned() else { return };
        let task = self.task(&row);
        let Some(row) = self.tasks.get_mut(&run.task_id) else { return };
        let chained = task.spec.schedule == ScheduleKind::FixedDelay
            && run.trigger.is_scheduled()
            && run.revision == task.revision
            && task.fires_left() > 0;
        let next = task.schedule.next_link(run.fire_time, run.finished_at);
        if chained && next != NEVER && row.view.activity.started && row.view.next_fire_at == NEVER {
            row.view.next_fire_at = next;
            followed.moved.push(task.id);
        }
        if task.spec.pause_after_failures > 0 {
            let count = failures_in_row(row.view.failures_in_row, run.status, run.reason);
            row.view.failures_in_row = count;
        }
    }

    fn pause_failing(&mut self, id: TaskId, now: i64, at: i64) -> Result<Option<PausedTask>> {
        let Some(before) = self.tasks.get(&id).map(|row| self.task_view(row)) else { return Ok(None) };
        let (most, failures) = (before.spec.pause_after_failures, before.failures_in_row);
        if !before.activity.started || most == 0 || failures < most {
            return Ok(None);
        }
        let activity = Activity {
            started: false,
            pause_note: Some(format!("paused by itself after {failures} failed runs in a row")),
        };
        let (name, spec) = (before.spec.name.clone(), before.spec.clone());
        let change = TaskChange { before, spec, activity, reason: Reason::TaskPaused };
        let held = self.update_task(&change, now, at)?;
        Ok(Some(PausedTask { id, name, failures, held }))
    }

    fn follow_children(
        &mut self,
        run: &EndedRun,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
        followed: &mut OutboxRound,
    ) -> Result<()> {
        let end = End::of(run.status, run.reason, run.attempt);
        let links: Vec<_> = self.links.iter().filter(|link| link.parent == run.task_id).copied().collect();
        for link in links {
            let Some(child) = self.tasks.get(&link.child).map(|row| row.view.clone()) else { continue };
            if !end.meets(link.on) || !takes_children(&child, now) {
                continue;
            }
            let outputs = match child.spec.parent_rule {
                ParentRule::Any => vec![(self.name_of(run.task_id), Some(run.output.clone()))],
                ParentRule::All => match self.meet(run, link.child) {
                    Some(outputs) => outputs,
                    None => continue,
                },
            };
            let params = if child.spec.parent_output { input_of(&outputs, TEXT_BYTES_MAX) } else { None };
            let after: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("after {} (last of them: run {})", after.join(", "), run.log);
            let new = NewRun { params, trigger: Trigger::Parent, message, ..NewRun::manual(new_id(), now) };
            self.insert_run(&child, &new)?;
            followed.started += 1;
        }
        Ok(())
    }

    fn meet(&mut self, run: &EndedRun, child: TaskId) -> Option<Vec<(String, Option<String>)>> {
        self.met.insert((child, run.task_id), run.log);
        let parents: Vec<TaskId> =
            self.links.iter().filter(|link| link.child == child).map(|link| link.parent).collect();
        if !parents.iter().all(|parent| self.met.contains_key(&(child, *parent))) {
            return None;
        }
        let output = |parent: &TaskId| {
            let log = self.met[&(child, *parent)];
            (self.name_for(child, *parent), self.logs.get(&log).map(|row| row.output.clone()))
        };
        let outputs = parents.iter().map(output).collect();
        for parent in parents {
            self.met.remove(&(child, parent));
        }
        Some(outputs)
    }

    /// As the child names it.
    fn name_for(&self, child: TaskId, parent: TaskId) -> String {
        let row = self
            .tasks
            .get(&parent)
            .filter(|row| Some(row.view.owner) != self.tasks.get(&child).map(|row| row.view.owner));
        row.map_or_else(|| self.name_of(parent), |row| format!("{}/{}", row.view.app, row.view.spec.name))
    }

    fn name_of(&self, task: TaskId) -> String {
        self.tasks.get(&task).map_or_else(|| task.to_string(), |row| row.view.spec.name.clone())
    }
}
