//! What becomes of runs that a change of their task revoked before they started.

use super::rows::{LogRow, State};
use carillon::domain::revocation::{Revoked, is_sharded};
use carillon::domain::task::Routing;
use carillon::domain::{LogId, Reason, Run, Status, Task, TaskId, Transition};
use std::collections::{BTreeMap, BTreeSet, HashSet};

impl State {
    pub(super) fn settle_revoked(&mut self, runs: &[Run], now: i64, at: i64) -> HashSet<LogId> {
        let fates: Vec<(Run, Reason, Revoked)> = runs.iter().filter_map(|run| self.fate_of(run)).collect();
        let (mut moved, mut ended, mut stopped) = (HashSet::new(), Vec::new(), BTreeSet::new());
        for (parent, of) in &self.begun_again(&fates) {
            for shard in fates.iter().map(|(run, ..)| run).filter(|run| run.parent_id == *parent) {
                self.end(shard, Reason::TaskEdited, now, at);
                moved.insert(shard.id);
            }
            let run = self.logs[parent].run.clone();
            self.go_on(&run, *of, at);
            moved.insert(*parent);
        }
        // A parent that ends has no part in how its shards go on.
        let (on, over): (Vec<_>, Vec<_>) = fates.iter().partition(|(.., fate)| matches!(fate, Revoked::GoesOn(_)));
        for (run, stopping, fate) in over.into_iter().chain(on) {
            if !moved.insert(run.id) {
                continue;
            }
            match *fate {
                Revoked::GoesOn(due_time) => self.go_on(run, due_time, at),
                Revoked::Ends(reason) => {
                    self.end(run, reason, now, at);
                    if !reason.is_revocation() {
                        stopped.insert(run.parent_id);
                        continue;
                    }
                    let by = if stopping.is_revocation() { *stopping } else { Reason::TaskEdited };
                    ended.push((run.clone(), by));
                }
            }
        }
        let mut fires: Vec<Run> = Vec::new();
        for (run, by) in ended {
            if run.parent_id.is_none() {
                fires.push(run);
            } else if let Some(parent) = self.unused_parent(run.parent_id) {
                self.end(&parent, by, now, at);
                moved.insert(parent.id);
                fires.push(parent);
            }
        }
        moved.extend(stopped.into_iter().filter(|parent| self.settle_one(*parent, now, at)));
        for run in fires.iter().filter(|run| run.trigger.is_scheduled()) {
            self.after_revoked_fire(run, now);
        }
        moved
    }

    fn task_now(&self, id: TaskId) -> Option<Task> {
        self.tasks.get(&id).map(|row| self.task(row))
    }

    fn fate_of(&self, asked: &Run) -> Option<(Run, Reason, Revoked)> {
        let row = self.logs.get(&asked.id).filter(|row| row.run.version == asked.version)?;
        let task = self.task_now(row.run.task_id);
        let is_outdated = task.as_ref().is_none_or(|task| task.revision != row.run.revision);
        let is_revoked = match row.run.status {
            Status::Queued => is_outdated,
            Status::Dispatched => is_outdated || row.stopping.is_revocation(),
            _ => false,
        };
        let parent = self.logs.get(&row.run.parent_id).filter(|row| row.run.status == Status::Dispatched);
        let stopped_with = parent.map(|row| row.stopping).filter(|why| *why != Reason::None && !why.is_revocation());
        let stopping = stopped_with.unwrap_or(row.stopping);
        is_revoked.then(|| (row.run.clone(), row.stopping, Revoked::of(&row.run, stopping, task.as_ref())))
    }

    /// Parents all of whose shards go on: they begin again as a whole. When they are due.
    fn begun_again(&self, fates: &[(Run, Reason, Revoked)]) -> BTreeMap<LogId, i64> {
        let mut going_on: BTreeMap<LogId, (i32, i64)> = BTreeMap::new();
        for (run, _, fate) in fates {
            if let Revoked::GoesOn(due_time) = fate {
                let (count, due) = going_on.entry(run.parent_id).or_insert((0, *due_time));
                (*count, *due) = (*count + 1, *due_time);
            }
        }
        let whole = |parent: &LogId, count: i32| {
            let parent = self.logs.get(parent).map(|row| &row.run);
            parent.is_some_and(|run| run.status == Status::Dispatched && run.shard_total == count)
        };
        let going_on = going_on.into_iter().filter(|(parent, (count, _))| whole(parent, *count));
        going_on.map(|(parent, (_, due_time))| (parent, due_time)).collect()
    }

    /// A parent none of whose shards is, or was, under way.
    fn unused_parent(&self, id: LogId) -> Option<Run> {
        let parent = self.logs.get(&id).filter(|row| row.run.status == Status::Dispatched)?;
        let is_over = |row: &LogRow| row.run.status == Status::Cancelled && row.run.reason.is_revocation();
        let mut shards = self.logs.values().filter(|row| row.run.parent_id == id);
        shards.all(is_over).then(|| parent.run.clone())
    }

    fn end(&mut self, run: &Run, reason: Reason, now: i64, at: i64) {
        let change = Transition { finished_at: now, ..Transition::of(run, Status::Cancelled, reason) };
        assert!(self.change_one(&change, at), "nothing moves it within one statement");
    }

    fn go_on(&mut self, run: &Run, due_time: i64, at: i64) {
        let (to, reason) =
            if run.attempt > 0 { (Status::Retry, Reason::GivenBack) } else { (Status::Init, Reason::None) };
        let failures = if run.trigger.is_scheduled() { 0 } else { run.failures };
        let change = Transition { due_time, failures, ..Transition::of(run, to, reason) };
        assert!(self.change_one(&change, at), "nothing moves it within one statement");
        let task = &self.tasks[&run.task_id].view;
        let (revision, priority) = (task.revision, task.spec.priority);
        let both: BTreeSet<LogId> = [run.id, run.parent_id].into();
        for id in both {
            // The parent of shards that go on, as long as it waits for them.
            let is_open = |row: &&mut LogRow| id == run.id || row.run.status == Status::Dispatched;
            let Some(row) = self.logs.get_mut(&id).filter(is_open) else { continue };
            (row.run.revision, row.run.priority) = (revision, priority);
            if row.stopping.is_revocation() {
                row.stopping = Reason::None;
            }
            if row.run.parent_id.is_none() {
                self.watch(id);
            }
        }
        self.events.push(format!("log {} goes on under revision {revision}", run.id));
    }

    /// What it means for its task that a fire was revoked.
    fn after_revoked_fire(&mut self, run: &Run, now: i64) {
        let Some(task) = self.task_now(run.task_id) else { return };
        if !task.is_started {
            if run.failures == 0
                && let Some(row) = self.tasks.get_mut(&run.task_id)
            {
                row.view.fires = (row.view.fires - 1).max(0);
            }
            return;
        }
        if is_sharded(run) == (task.spec.routing == Routing::Sharding) {
            return;
        }
        let gone = self.logs.values().map(|row| &row.run).filter(|row| row.id == run.id || row.parent_id == run.id);
        let gone: Vec<Run> = gone.cloned().collect();
        for run in gone {
            self.forget_log(&run);
        }
        if run.fire_time >= self.tasks[&run.task_id].view.updated_at {
            self.move_back(task.id, task.revision, task.schedule.next_after(run.fire_time - 1), now);
        }
    }
}
