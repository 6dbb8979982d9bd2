//! QUEUED rows → executors, and guarded steps out of the hot path.

use super::history::DispatchMark;
use super::rows::{LogRow, State};
use super::{ModelStore, refuse};
use async_trait::async_trait;
use carillon::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, Transition};
use carillon::store::{ATTEMPTS_KEPT_MAX, DispatchStore, KeptAttempt, Result, RunDispatch, StoreErrorKind, cut};
use std::collections::{BTreeSet, HashSet};

#[async_trait]
impl DispatchStore for ModelStore {
    async fn dispatch(&self, node: NodeId, items: &[RunDispatch]) -> Result<HashSet<LogId>> {
        self.call("dispatch", |state, at| {
            Ok(items.iter().filter(|item| state.dispatch_one(node, item, at)).map(|item| item.id).collect())
        })
        .await
    }

    async fn dispatch_shards(&self, node: NodeId, parent: &Run, shards: &[Run], now: i64) -> Result<bool> {
        self.call("dispatch shards", |state, at| {
            let current = state.logs.get(&parent.id).map(|row| (row.run.version, row.run.status));
            if current != Some((parent.version, Status::Queued)) {
                return Ok(false);
            }
            let gone = if parent.attempt > 0 { state.cancelled_shards(parent) } else { Vec::new() };
            if !state.is_free_for(shards, &gone) {
                return refuse(StoreErrorKind::Duplicate, "dispatch shards", "a shard of this fire exists");
            }
            for run in &gone {
                state.forget_log(run);
            }
            state.expand(parent.id.0, shards.len(), now, at);
            for run in shards {
                state.insert_shard(run, node, now, at);
            }
            Ok(true)
        })
        .await
    }

    async fn note_stop(&self, runs: &[(LogId, i64)], reason: Reason) -> Result<HashSet<LogId>> {
        self.call("note stop", |state, _| {
            Ok(runs.iter().filter(|run| state.note_stop_one(**run, reason)).map(|(id, _)| *id).collect())
        })
        .await
    }

    async fn settle_revoked(&self, runs: &[Run], now: i64) -> Result<HashSet<LogId>> {
        self.call("settle revoked runs", |state, at| Ok(state.settle_revoked(runs, now, at))).await
    }

    async fn leave_running(&self, runs: &[(LogId, i64)]) -> Result<()> {
        self.call("leave running", |state, _| {
            for (id, version) in runs {
                let row = state.logs.get_mut(id).filter(|row| row.run.version == *version);
                let marked = row.filter(|row| row.run.status == Status::Dispatched && row.stopping.is_revocation());
                let Some(row) = marked else { continue };
                if row.stopping == Reason::TaskEdited && !row.run.trigger.is_scheduled() {
                    row.run.revision = state.tasks[&row.run.task_id].view.revision;
                }
                row.stopping = Reason::None;
            }
            Ok(())
        })
        .await
    }

    async fn change(&self, changes: &[Transition]) -> Result<HashSet<LogId>> {
        self.call("change", |state, at| {
            Ok(changes.iter().filter(|change| state.change_one(change, at)).map(|change| change.id).collect())
        })
        .await
    }
}

impl State {
    fn note_stop_one(&mut self, (id, version): (LogId, i64), reason: Reason) -> bool {
        let Some(row) = self.logs.get_mut(&id).filter(|row| row.run.status == Status::Dispatched) else {
            return false;
        };
        let done = row.run.version == version + 1 && row.stopping == reason;
        if row.run.version == version {
            row.stopping = reason;
            row.run.version += 1;
            self.events.push(format!("log {id} must stop: {reason:?}"));
            return true;
        }
        done
    }

    fn dispatch_one(&mut self, node: NodeId, item: &RunDispatch, at: i64) -> bool {
        let Some(row) = self.logs.get(&item.id) else { return false };
        let movable = matches!(row.run.status, Status::Queued | Status::Dispatched);
        if row.run.version == item.version && movable {
            if let Some(refused) = item.refused {
                let before = self.last_attempt(item.id);
                let kept = KeptAttempt {
                    number: refused.number,
                    executor_id: refused.executor_id,
                    address: self.executor_address(refused.executor_id),
                    node_id: node,
                    dispatched_at: refused.dispatched_at,
                    started_at: 0,
                    finished_at: 0,
                    status: Status::Retry,
                    reason: Reason::NotAccepted,
                    message: String::new(),
                    ..before
                };
                self.keep_attempt(item.id, kept);
            }
            let Some(row) = self.step(item.id, Status::Dispatched, Reason::None, at) else { return false };
            row.node_id = node;
            row.stopping = Reason::None;
            row.run.executor_id = item.executor_id;
            row.dispatched_at = item.dispatched_at;
            row.started_at = 0;
            row.finished_at = 0;
            row.run.attempt += 1;
            let (key, revision) = ((item.id, row.run.attempt), row.run.revision);
            self.dispatch_marks.insert(key, DispatchMark { revision, executor_id: item.executor_id, at });
            self.events.push(format!("log {} is with executor {} by node number {node}", item.id, item.executor_id));
            return true;
        }
        let done = row.run.version == item.version + 1
            && row.run.status == Status::Dispatched
            && row.node_id == node
            && row.run.executor_id == item.executor_id
            && row.dispatched_at == item.dispatched_at;
        if done {
            self.events.push(format!("log {} dispatch by node number {node} counts as done", item.id));
        }
        done
    }

    /// Shards that an earlier definition gave up unstarted: they make room.
    fn cancelled_shards(&self, parent: &Run) -> Vec<Run> {
        let of_parent = self.logs.values().map(|row| &row.run).filter(|run| run.parent_id == parent.id);
        of_parent.filter(|run| run.status == Status::Cancelled).cloned().collect()
    }

    /// Whether the unique index has room for all of them once those are gone.
    fn is_free_for(&self, shards: &[Run], gone: &[Run]) -> bool {
        let key = |run: &Run| (run.task_id, run.fire_time, run.shard_index);
        let keys: BTreeSet<_> = shards.iter().map(key).collect();
        let freed: BTreeSet<_> = gone.iter().map(key).collect();
        keys.len() == shards.len() && keys.iter().all(|key| freed.contains(key) || !self.by_fire.contains_key(key))
    }

    fn expand(&mut self, parent: i64, shards: usize, now: i64, at: i64) {
        if let Some(row) = self.step(LogId(parent), Status::Dispatched, Reason::None, at) {
            row.run.shard_total = i32::try_from(shards).expect("few shards");
            row.run.attempt += 1;
            row.dispatched_at = now;
        }
    }

    fn insert_shard(&mut self, run: &Run, node: NodeId, now: i64, at: i64) {
        let mut row = LogRow::new(run.clone());
        row.node_id = node;
        row.queued_at = now;
        row.run.queued_at = now;
        row.dispatched_at = now;
        self.dispatch_marks
            .insert((run.id, run.attempt), DispatchMark { revision: run.revision, executor_id: run.executor_id, at });
        self.insert(row);
    }

    pub(super) fn change_one(&mut self, change: &Transition, at: i64) -> bool {
        let Some(row) = self.logs.get(&change.id) else { return false };
        if row.run.version != change.version {
            return row.run.version == change.version + 1
                && row.run.status == change.to
                && row.run.reason == change.reason;
        }
        let due_time = row.run.due_time;
        let Some(row) = self.step(change.id, change.to, change.reason, at) else { return false };
        row.run.due_time = change.due_time;
        row.run.failures = change.failures;
        if !change.message.is_empty() {
            row.message.clone_from(&change.message);
        }
        if change.started_at > 0 {
            row.started_at = change.started_at;
        }
        row.finished_at = change.finished_at;
        if change.ended.is_some() {
            let kept = KeptAttempt { due_time, message: cut(&change.message), ..self.last_attempt(change.id) };
            self.keep_attempt(change.id, kept);
        }
        true
    }

    /// The last attempt of a run, as its row tells of it.
    pub(super) fn last_attempt(&self, log: LogId) -> KeptAttempt {
        let row = &self.logs[&log];
        let run = &row.run;
        KeptAttempt {
            number: run.attempt,
            executor_id: run.executor_id,
            address: self.executor_address(run.executor_id),
            node_id: row.node_id,
            due_time: run.due_time,
            dispatched_at: row.dispatched_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            status: run.status,
            reason: run.reason,
            message: String::new(),
        }
    }

    /// Once, and the latest of each run.
    pub(super) fn keep_attempt(&mut self, log: LogId, kept: KeptAttempt) {
        let last = kept.number;
        self.attempts.entry((log, last)).or_insert(kept);
        self.attempts.retain(|(of, number), _| *of != log || *number > last - ATTEMPTS_KEPT_MAX);
    }

    /// Where an executor listens, or listened.
    #[must_use]
    pub fn executor_address(&self, executor: ExecutorId) -> String {
        let address = self.executors.get(&executor).map(|row| &row.executor.address);
        address.or_else(|| self.addresses.get(&executor)).cloned().unwrap_or_default()
    }
}
