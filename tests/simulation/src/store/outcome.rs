//! Results, and runs whose result does not come.

use super::ModelStore;
use super::rows::{LogRow, State};
use async_trait::async_trait;
use carillon::domain::{ExecutorId, LogId, NodeId, Owner, Reason, Run, Status, Trigger};
use carillon::store::{DispatchedRun, OutcomeStore, Place, Result, Suspect, Suspects};
use carillon_protocol::RunResult;
use std::collections::BTreeSet;

#[async_trait]
impl OutcomeStore for ModelStore {
    async fn succeed(&self, owner: Owner, results: &[&RunResult]) -> Result<u64> {
        self.call("succeed", |state, at| {
            Ok(results.iter().filter(|result| state.succeed_one(owner, result, at)).count() as u64)
        })
        .await
    }

    async fn succeed_whole(&self, owner: Owner, results: &[&RunResult]) -> Result<u64> {
        self.call("succeed whole runs", |state, at| {
            let is_whole = |state: &State, result: &RunResult| {
                state.logs.get(&LogId(result.log)).is_some_and(|row| row.run.parent_id.is_none())
            };
            let moves = |result: &&&RunResult| is_whole(state, result) && state.succeed_one(owner, result, at);
            Ok(results.iter().filter(moves).count() as u64)
        })
        .await
    }

    async fn runs(&self, owner: Option<Owner>, ids: &[LogId]) -> Result<Vec<DispatchedRun>> {
        self.call("read runs", |state, _| {
            let ids: BTreeSet<LogId> = ids.iter().copied().collect();
            let rows = ids.iter().filter_map(|id| state.logs.get(id));
            let mine = |tenant_id, app_id| owner.is_none_or(|owner| owner == Owner { tenant_id, app_id });
            Ok(rows.filter(|row| mine(row.run.tenant_id, row.run.app_id)).map(super::LogRow::dispatched).collect())
        })
        .await
    }

    async fn record_stale(
        &self,
        _executor_id: ExecutorId,
        results: &[&RunResult],
        ids: &[i64],
        _now: i64,
    ) -> Result<()> {
        self.call("record stale", |state, _| {
            for (result, id) in results.iter().zip(ids) {
                state.stale.push((LogId(*id), LogId(result.log), result.attempt));
                state
                    .events
                    .push(format!("log {} attempt {}: stale result {:?}", result.log, result.attempt, result.status));
            }
            Ok(())
        })
        .await
    }

    async fn parents_of(&self, ids: &[LogId]) -> Result<Vec<LogId>> {
        self.call("find parents", |state, _| {
            let parents = ids.iter().filter_map(|id| state.logs.get(id)).map(|row| row.run.parent_id);
            Ok(parents.filter(|parent| *parent > LogId::NONE).collect::<BTreeSet<_>>().into_iter().collect())
        })
        .await
    }

    async fn settle_parents(&self, parents: &[LogId], now: i64) -> Result<u64> {
        self.call("settle parents", |state, at| {
            let parents: BTreeSet<LogId> = parents.iter().copied().collect();
            Ok(parents.into_iter().filter(|&parent| state.settle_one(parent, now, at)).count() as u64)
        })
        .await
    }

    async fn open_parents(&self, before: i64, until: i64, after: Place, limit: u64) -> Result<Vec<Place>> {
        self.call("read open parents", |state, _| {
            let open = state.logs.values().filter(|row| {
                let is_open = row.run.status == Status::Dispatched && row.run.is_parent();
                is_open && row.dispatched_at < before && row.run.due_time < until
            });
            let mut open: Vec<Place> = open.map(|row| place(&row.run)).filter(|place| *place > after).collect();
            open.sort_unstable();
            open.truncate(limit as usize);
            Ok(open)
        })
        .await
    }

    async fn stopping(&self, until: i64, after: Place, limit: u64) -> Result<Vec<DispatchedRun>> {
        self.call("read stopping", |state, _| {
            let stopping = state.logs.values().filter(|row| {
                row.run.status == Status::Dispatched && row.stopping != Reason::None && !row.run.is_parent()
            });
            let behind = stopping.filter(|row| place(&row.run) > after && row.run.due_time < until);
            let mut found: Vec<DispatchedRun> = behind.map(super::LogRow::dispatched).collect();
            found.sort_by_key(|dispatched| place(&dispatched.run));
            found.truncate(limit as usize);
            Ok(found)
        })
        .await
    }

    async fn shards_to_stop(&self, limit: u64) -> Result<Vec<DispatchedRun>> {
        self.call("read shards to stop", |state, _| {
            let wanted = |parent: LogId| {
                let parent = state.logs.get(&parent).filter(|row| row.run.status == Status::Dispatched)?;
                (parent.stopping != Reason::None).then_some(parent.stopping)
            };
            let open =
                state.logs.values().filter(|row| row.run.parent_id > LogId::NONE && !row.run.status.is_terminal());
            let is_untold = |row: &&LogRow| row.stopping == Reason::None || row.stopping.is_revocation();
            let untold = open.filter(|row| is_untold(row) || row.run.status != Status::Dispatched);
            let found = untold.filter_map(|row| {
                wanted(row.run.parent_id).map(|stopping| DispatchedRun { stopping, ..LogRow::dispatched(row) })
            });
            Ok(found.take(limit as usize).collect())
        })
        .await
    }

    async fn suspects(&self, which: &Suspects) -> Result<Vec<Suspect>> {
        self.call("read suspects", |state, _| {
            let of_executor = |id: ExecutorId| {
                if which.executors.is_empty() { !which.except.contains(&id) } else { which.executors.contains(&id) }
            };
            let dead_node = |id: NodeId| !which.or_not_by.is_empty() && !which.or_not_by.contains(&id);
            let mut found: Vec<Suspect> = state
                .logs
                .values()
                .filter(|row| row.run.status == Status::Dispatched && !row.run.is_parent())
                .filter(|row| of_executor(row.run.executor_id))
                .filter(|row| row.run.due_time < which.due_before || dead_node(row.node_id))
                .map(|row| Suspect {
                    log: row.run.id,
                    version: row.run.version,
                    attempt: row.run.attempt,
                    due_time: row.run.due_time,
                    executor_id: row.run.executor_id,
                    dispatched_at: row.dispatched_at,
                })
                .collect();
            let place = |suspect: &Suspect| (suspect.due_time, suspect.log);
            found.retain(|suspect| place(suspect) > which.after && suspect.due_time < which.until);
            found.sort_by_key(place);
            found.truncate(which.limit as usize);
            Ok(found)
        })
        .await
    }
}

fn place(run: &Run) -> Place {
    (run.due_time, run.id)
}

impl State {
    fn succeed_one(&mut self, owner: Owner, result: &RunResult, at: i64) -> bool {
        let Some(row) = self.logs.get(&LogId(result.log)) else { return false };
        let run = &row.run;
        let mine = Owner { tenant_id: run.tenant_id, app_id: run.app_id } == owner;
        if !mine || run.status != Status::Dispatched || run.attempt != result.attempt {
            return false;
        }
        let Some(row) = self.step(LogId(result.log), Status::Succeeded, Reason::None, at) else { return false };
        // What a run is for, or why it is late, is told for good; a failure only until it is mended.
        if row.run.trigger == Trigger::Schedule || row.run.failures > 0 {
            row.message.clear();
        }
        row.stopping = Reason::None;
        row.started_at = result.started_at;
        row.finished_at = result.finished_at;
        row.output.clone_from(&result.output);
        true
    }

    pub(super) fn settle_one(&mut self, parent: LogId, now: i64, at: i64) -> bool {
        let Some(row) = self.logs.get(&parent).filter(|row| row.run.is_parent()) else { return false };
        if row.run.status != Status::Dispatched {
            return false;
        }
        let shards = self.logs.values().filter(|row| row.run.parent_id == parent);
        let shards: Vec<&LogRow> = shards.collect();
        if shards.iter().any(|shard| !shard.run.status.is_terminal()) {
            return false;
        }
        let good = shards.iter().filter(|shard| shard.run.status == Status::Succeeded).count();
        let good = good == row.run.shard_total as usize;
        let was_skipped = shards.iter().any(|shard| shard.run.reason == Reason::Restored);
        let started_at = shards.iter().map(|shard| shard.started_at).filter(|at| *at > 0).min().unwrap_or(0);
        let finished_at = shards.iter().map(|shard| shard.finished_at).max().filter(|at| *at > 0).unwrap_or(now);
        let (to, reason) = match row.stopping {
            _ if good => (Status::Succeeded, row.run.reason),
            _ if was_skipped => (Status::Cancelled, Reason::Restored),
            Reason::None => (Status::Failed, Reason::ShardFailed),
            stopping => (Status::Cancelled, stopping),
        };
        if let Some(row) = self.step(parent, to, reason, at) {
            row.started_at = started_at;
            row.finished_at = finished_at;
        }
        true
    }
}
