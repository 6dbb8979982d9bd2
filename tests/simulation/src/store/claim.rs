//! INIT and RETRY rows → the queue of one node.

use super::ModelStore;
use super::history::Claim;
use super::rows::{LogRow, State};
use async_trait::async_trait;
use carillon::domain::silence::SILENCE_MS;
use carillon::domain::{LogId, NodeId, Run, Status, TaskId, Trigger};
use carillon::store::{ClaimStore, DueRange, LEFT_OUT_MAX, LeftOut, MissedQuestion, Result, Share, UnclaimedEnd};
use std::collections::HashSet;

#[async_trait]
impl ClaimStore for ModelStore {
    async fn claimable(&self, share: Option<Share>, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        self.call("read claimable", |state, _| {
            let mine =
                |row: &LogRow| share.is_none_or(|share| row.bucket % i64::from(share.total) == i64::from(share.index));
            Ok(state.earliest(limit, |row| row.run.status.is_claimable() && due.has(row.run.due_time) && mine(row)))
        })
        .await
    }

    async fn claimable_besides(&self, left_out: &LeftOut, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        self.call("read claimable besides", |state, _| {
            let tenants = &left_out.tenants[..left_out.tenants.len().min(LEFT_OUT_MAX)];
            let passed = |run: &Run| tenants.contains(&run.tenant_id) && run.priority <= left_out.priority;
            Ok(state
                .earliest(limit, |row| row.run.status.is_claimable() && due.has(row.run.due_time) && !passed(&row.run)))
        })
        .await
    }

    async fn claim(&self, node: NodeId, runs: Vec<Run>, now: i64) -> Result<Vec<Run>> {
        self.call("claim", |state, at| {
            let is_known = state.knows(node, at);
            let mine = |run: &Run| is_known && state.claim_one(node, run, now, at);
            let mut claimed = runs;
            claimed.retain(mine);
            Ok(claimed
                .into_iter()
                .map(|run| Run { version: run.version + 1, status: Status::Queued, queued_at: now, ..run })
                .collect())
        })
        .await
    }

    async fn missed_at(&self, questions: &[MissedQuestion], due_before: i64) -> Result<Vec<(TaskId, i64)>> {
        self.call("read missed fires", |state, _| {
            let answer = |asked: &MissedQuestion| {
                let wanted = |run: &&Run| {
                    let is_missed = (run.trigger == Trigger::Schedule && run.due_time < due_before)
                        || run.trigger == Trigger::Misfire;
                    run.task_id == asked.task
                        && (asked.from..asked.until).contains(&run.fire_time)
                        && is_missed
                        && run.parent_id == LogId::NONE
                        && !matches!(run.status, Status::Expired | Status::Cancelled)
                };
                let found = state.logs.values().map(|row| &row.run).filter(wanted);
                let mut found: Vec<i64> = found.map(|run| run.fire_time).collect();
                found.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
                let place = usize::try_from(asked.place - 1).ok()?;
                found.get(place).map(|at| (asked.task, *at))
            };
            Ok(questions.iter().filter_map(answer).collect())
        })
        .await
    }

    async fn expire_unclaimed(&self, node: NodeId, ends: &[UnclaimedEnd], now: i64) -> Result<HashSet<LogId>> {
        self.call("end unclaimed", |state, at| {
            let is_known = state.knows(node, at);
            let is_ended = |end: &&UnclaimedEnd| state.expire_one(is_known, end, now, at);
            Ok(ends.iter().filter(is_ended).map(|end| end.id).collect())
        })
        .await
    }

    async fn queued_before(&self, node: NodeId, at: i64, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        self.call("read a node's queue", |state, time| {
            let is_known = state.knows(node, time);
            let is_its = |row: &LogRow| {
                is_known
                    && row.run.status == Status::Queued
                    && row.node_id == node
                    && row.queued_at < at
                    && due.has(row.run.due_time)
            };
            Ok(state.earliest(limit, is_its))
        })
        .await
    }

    async fn queued_of_others(&self, live: &[NodeId], due: DueRange, limit: u64) -> Result<Vec<Run>> {
        self.call("read dead queues", |state, _| {
            let is_theirs = |row: &LogRow| {
                row.run.status == Status::Queued && !live.contains(&row.node_id) && due.has(row.run.due_time)
            };
            Ok(state.earliest(limit, is_theirs))
        })
        .await
    }

    async fn held_after(&self, from: i64, until: i64, rows: u64) -> Result<Option<i64>> {
        self.call("page what is held", |state, _| {
            let is_held = |row: &&LogRow| matches!(row.run.status, Status::Queued | Status::Dispatched);
            let due = state.logs.values().filter(is_held).map(|row| row.run.due_time);
            let mut due: Vec<i64> = due.filter(|due| (from..until).contains(due)).collect();
            due.sort_unstable();
            Ok(due.get(rows as usize).copied())
        })
        .await
    }
}

impl State {
    /// Whether it has heard of the node lately, if of any at all.
    pub(super) fn knows(&self, node: NodeId, at: i64) -> bool {
        let since = self.clock(at) - SILENCE_MS;
        self.nodes.is_empty() || self.nodes.get(&node).is_some_and(|row| row.state.heartbeat_at >= since)
    }

    fn earliest(&self, limit: u64, wanted: impl Fn(&LogRow) -> bool) -> Vec<Run> {
        let mut found: Vec<Run> = self.logs.values().filter(|row| wanted(row)).map(|row| row.run.clone()).collect();
        found.sort_by_key(|run| run.due_time);
        found.truncate(limit as usize);
        found
    }

    /// Ends the run, or finds that it was ended by the same call before.
    fn expire_one(&mut self, is_known: bool, end: &UnclaimedEnd, now: i64, at: i64) -> bool {
        let Some(row) = self.logs.get(&end.id) else { return false };
        if is_known && row.run.version == end.version && row.run.status == Status::Init {
            if let Some(row) = self.step(end.id, Status::Expired, end.reason, at) {
                row.message.clone_from(&end.message);
                row.queued_at = now;
                row.run.queued_at = now;
                row.finished_at = now;
            }
            return true;
        }
        row.run.version == end.version + 1
            && row.run.status == Status::Expired
            && row.queued_at == now
            && row.finished_at == now
    }

    /// Takes the run, or finds that it was taken for this node by the same call before.
    fn claim_one(&mut self, node: NodeId, run: &Run, now: i64, at: i64) -> bool {
        let Some(row) = self.logs.get(&run.id) else { return false };
        if row.run.version == run.version && row.run.status.is_claimable() {
            let (reason, due_time) = (row.run.reason, row.run.due_time);
            if row.run.attempt == 0 && row.run.failures == 0 {
                self.claims.insert(run.id, Claim { at: now, due_time, reason });
            }
            if let Some(row) = self.step(run.id, Status::Queued, reason, at) {
                row.node_id = node;
                row.queued_at = now;
                row.run.queued_at = now;
                self.stays.begin(run.id, node, run.tenant_id, at);
            }
            return true;
        }
        let done = row.run.version == run.version + 1 && row.run.status == Status::Queued && row.node_id == node;
        if done {
            self.events.push(format!("log {} claim by node number {node} counts as done", run.id));
        }
        done
    }
}
