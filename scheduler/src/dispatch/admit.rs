//! Which runs may go out now, where only so many may run at once, and what becomes of the others.

use super::dispatcher::{DispatchSettings, Dispatcher, Failed};
use super::outgoing::{Admitted, OutgoingRun};
use crate::domain::permit::{Bounds, IN_LINE_AFTER_MS, Limit, PermitRequest};
use crate::domain::task::BlockStrategy;
use crate::domain::{LogId, Reason, Run, Status, Task, TaskId, Transition};
use crate::metrics::METRICS;
use crate::queue::UnderWay;
use crate::store::{
    ClusterStore, DispatchStore, DispatchedRun, OutcomeStore, PermitStore, PlanStore, RuleStore, StoreError,
};
use std::collections::{BTreeSet, HashMap};

/// How long a request for permits may take, so that a run that gets one starts on time, ms.
const ASK_MS: i64 = 100;

impl DispatchSettings {
    /// What is due later than this from now asks for a permit early, and gets at most half of them, ms: long enough that a
    /// run that waits is looked at again between then and its due time, wherever it is between two looks; and no more than
    /// half of the lead, else nothing would be early.
    fn early_ms(&self) -> i64 {
        (2 * self.waiting_ms + ASK_MS).min(self.lead_ms / 2)
    }
}

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore> Dispatcher<S> {
    /// Those that may only go with a permit, and those that need none.
    pub(super) fn split_bounded(&self, outgoing_runs: Vec<OutgoingRun>) -> (Vec<OutgoingRun>, Vec<OutgoingRun>) {
        let rules = self.rules.now();
        let needs = |outgoing: &OutgoingRun| {
            // A shard goes by its parent's permit.
            outgoing.run.parent_id.is_none()
                && (outgoing.task.needs_permit() || rules.bounds(outgoing.task.tenant_id, outgoing.task.app_id))
        };
        let (bounded, free): (Vec<OutgoingRun>, Vec<OutgoingRun>) = outgoing_runs.into_iter().partition(needs);
        if !self.queue.blocked.is_empty() {
            // What held them up may have been lifted since they began to wait.
            for outgoing in &free {
                self.queue.blocked.leave(&outgoing.run);
            }
        }
        (bounded, free)
    }

    /// Lets those through that get a permit.
    pub(super) async fn admit(&self, mut bounded: Vec<OutgoingRun>) -> Result<Admitted, Failed> {
        let (rules, now) = (self.rules.now(), self.clock.now_ms());
        let early_ms = self.settings.early_ms();
        // Alone, a node knows the order of all that wait.
        let others = self.membership.view().live.len() > 1;
        bounded.sort_by_key(|outgoing| outgoing.run.urgency());
        let asks: Vec<PermitRequest> = bounded
            .iter()
            .map(|OutgoingRun { run, task, .. }| PermitRequest {
                id: run.id,
                version: run.version,
                tenant_id: run.tenant_id,
                app_id: run.app_id,
                task_id: run.task_id,
                bounds: Bounds {
                    task: bound_of(task),
                    app: rules.apps.get(&run.app_id).copied(),
                    tenant: rules.concurrent(run.tenant_id),
                },
                priority: run.priority,
                due_time: run.due_time,
                stands_in_line: others && run.due_time < now - IN_LINE_AFTER_MS,
                // Whichever node it waits with: none of the task slips past an earlier one.
                in_order: task.blocks_app(),
                is_early: run.due_time > now + early_ms,
            })
            .collect();
        let granted = match self.store.acquire(&asks).await {
            Ok(granted) => granted,
            Err(error) => {
                return Err((bounded.into_iter().map(|outgoing| outgoing.run).collect(), error));
            }
        };
        bounded.retain(|outgoing| {
            let is_outdated = granted.outdated.contains(&outgoing.run.id);
            if is_outdated {
                self.queue.blocked.leave(&outgoing.run);
            }
            !is_outdated
        });
        METRICS.dispatch_conflicts.add(granted.outdated.len() as u64);
        let (admitted, held_up): (Vec<OutgoingRun>, Vec<OutgoingRun>) =
            bounded.into_iter().partition(|outgoing| !granted.held_up.contains_key(&outgoing.run.id));
        for outgoing in &admitted {
            self.queue.blocked.leave(&outgoing.run);
        }
        let ready = admitted.into_iter().map(|outgoing| OutgoingRun { has_permit: true, ..outgoing }).collect();
        Ok(Admitted { ready, held_up, limits: granted.held_up })
    }

    /// Takes what may have a chance now out of waiting; what a later run covers ends.
    pub async fn look_at_waiting(&self) {
        // Asked in any case: what came before a run began to wait is of no use to it.
        let come = self.registry.take_come();
        if self.queue.blocked.is_empty() {
            return;
        }
        let now = self.clock.now_ms();
        // Since the clock was set back it may be due much later than it was when it began to wait.
        let at = |run: Run| (run.due_time.max(now), run);
        if !come.is_empty() {
            self.queue.push_at(self.queue.blocked.leave_for(&come).into_iter().map(at));
        }
        let looked = self.queue.blocked.look(now, self.settings.early_ms(), &self.queue.under_way());
        if !looked.to_note.is_empty()
            && let Err(error) = self.store.note_waits(&looked.to_note).await
        {
            tracing::warn!(%error, runs = looked.to_note.len(), "rows do not say what their runs wait for");
        }
        self.change(looked.covered.into_iter().map(|(run, by)| covered(run, by, now)).collect()).await;
        self.queue.push_at(looked.again.into_iter().map(at));
    }

    /// What did not get a permit waits, is discarded, or has earlier runs stopped for it. It counts as under way until it
    /// waits; what has others stopped, until their executors have answered, or are found to be out of reach.
    pub(super) async fn hold_up(
        &self,
        outgoing_runs: Vec<OutgoingRun>,
        limits: &HashMap<LogId, Limit>,
        mut under_way: UnderWay,
    ) {
        let (covering, covered_runs) = self.let_wait(outgoing_runs, limits).await;
        let _asking = under_way.part(covering);
        drop(under_way);
        if !covered_runs.is_empty()
            && let Err(error) = self.canceller.stop(covered_runs, Reason::Covered).await
        {
            tracing::warn!(%error, "earlier runs not stopped; the next try does");
        }
    }

    /// Lets them wait, or ends them; answers which of them have others stopped, and which others.
    async fn let_wait(
        &self,
        outgoing_runs: Vec<OutgoingRun>,
        limits: &HashMap<LogId, Limit>,
    ) -> (Vec<LogId>, Vec<DispatchedRun>) {
        let now = self.clock.now_ms();
        let asks_about = |outgoing: &&OutgoingRun| {
            outgoing.task.blocks_app()
                && outgoing.task.spec.block_strategy != BlockStrategy::Serial
                && outgoing.run.due_time <= now
        };
        let tasks: BTreeSet<TaskId> =
            outgoing_runs.iter().filter(asks_about).map(|outgoing| outgoing.task.id).collect();
        let found = self.earlier_runs(tasks).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "earlier runs not looked at; the next try does");
            HashMap::new()
        });
        let (mut steps, mut covering, mut covered_runs) = (Vec::new(), Vec::new(), Vec::new());
        for OutgoingRun { run, task, .. } in outgoing_runs {
            let before = |holder: &&DispatchedRun| holder.run.id != run.id && holder.run.due_time <= run.due_time;
            let holders: Vec<&DispatchedRun> = found.get(&task.id).into_iter().flatten().filter(before).collect();
            match (task.spec.block_strategy, holders.first()) {
                (BlockStrategy::DiscardLater, Some(holder)) if run.due_time <= now => {
                    let message = format!("run {} of the task was still running", holder.run.id);
                    let change = Transition::of(&run, Status::Discarded, Reason::Blocked);
                    self.queue.blocked.leave(&run);
                    steps.push((run, Transition { message, finished_at: now, ..change }));
                    continue;
                }
                (BlockStrategy::CoverEarly, Some(_)) if run.due_time <= now => {
                    covering.push(run.id);
                    covered_runs.extend(holders.into_iter().filter(|holder| !holder.is_stopping()).cloned());
                }
                _ => {}
            }
            let limit = limits.get(&run.id).copied().unwrap_or(Limit::Task);
            self.queue.blocked.block(run, &task, limit, now);
        }
        self.change(steps).await;
        (covering, covered_runs)
    }

    async fn earlier_runs(&self, tasks: BTreeSet<TaskId>) -> Result<HashMap<TaskId, Vec<DispatchedRun>>, StoreError> {
        let mut found: HashMap<TaskId, Vec<DispatchedRun>> = HashMap::new();
        if !tasks.is_empty() {
            for holder in self.store.holders(&tasks.into_iter().collect::<Vec<_>>()).await? {
                found.entry(holder.run.task_id).or_default().push(holder);
            }
        }
        Ok(found)
    }
}

/// Runs of the task at once at most.
fn bound_of(task: &Task) -> Option<i32> {
    let most = (task.spec.max_concurrent > 0).then_some(task.spec.max_concurrent);
    if task.blocks_app() { Some(1) } else { most }
}

fn covered(run: Run, by: LogId, now: i64) -> (Run, Transition) {
    let change = Transition {
        message: format!("run {by} of the task replaced it"),
        finished_at: now,
        ..Transition::of(&run, Status::Cancelled, Reason::Covered)
    };
    (run, change)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early_ms(lead_ms: i64, waiting_ms: i64) -> i64 {
        DispatchSettings { lead_ms, waiting_ms, accept_window_ms: 3_000, misfire_after_ms: 30_000 }.early_ms()
    }

    #[test]
    fn what_waits_is_looked_at_between_being_early_and_being_due() {
        assert_eq!(early_ms(3_500, 200), 500, "by default");
        for waiting_ms in [50, 200, 1_000, 5_000] {
            // Long leads: all intervals that are allowed leave room for a look.
            let early_ms = early_ms(60_000, waiting_ms);
            assert!(early_ms >= waiting_ms + ASK_MS, "{early_ms} ms with a look each {waiting_ms} ms");
        }
    }

    #[test]
    fn what_is_asked_for_a_whole_lead_ahead_is_early() {
        for (lead_ms, waiting_ms) in [(3_500, 5_000), (3_500, 1_700), (500, 200)] {
            assert!(early_ms(lead_ms, waiting_ms) < lead_ms, "lead {lead_ms} ms, a look each {waiting_ms} ms");
        }
    }
}
