//! Messages to executors, and what they answer.

use super::SendError;
use super::dispatcher::Dispatcher;
use super::outgoing::{OutgoingRun, RoutedRun, item, refused};
use crate::domain::{Executor, ExecutorId};
use crate::metrics::{METRICS, UNCONFIRMED, UNREACHABLE};
use crate::store::{ClusterStore, DispatchStore, OutcomeStore, PermitStore, PlanStore, RuleStore};
use carillon_protocol::{Dispatch, DispatchAck, DispatchOutcome};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a message whose fate is unknown is repeated to the same executor.
const RESEND_PAUSE: Duration = Duration::from_millis(200);

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore> Dispatcher<S> {
    /// Sends to all executors at once; returns the runs that no executor has accepted yet.
    pub(super) async fn send_all(&self, dispatched: Vec<RoutedRun>) -> Vec<OutgoingRun> {
        let mut by_executor: BTreeMap<ExecutorId, (Arc<Executor>, Vec<OutgoingRun>)> = BTreeMap::new();
        for RoutedRun { outgoing, executor } in dispatched {
            by_executor.entry(executor.id).or_insert_with(|| (executor, Vec::new())).1.push(outgoing);
        }
        let mut messages = Vec::new();
        for (executor, mut outgoing_runs) in by_executor.into_values() {
            // A plain executor gets each run by itself, and answers for it alone.
            let most = if executor.plain { 1 } else { carillon_protocol::DISPATCH_ITEMS_MAX };
            while !outgoing_runs.is_empty() {
                let rest = outgoing_runs.split_off(outgoing_runs.len().min(most));
                messages.push(self.send(Arc::clone(&executor), outgoing_runs));
                outgoing_runs = rest;
            }
        }
        join_all(messages).await.into_iter().flatten().collect()
    }

    /// Sends one message; returns what must go to another executor.
    async fn send(&self, executor: Arc<Executor>, mut outgoing_runs: Vec<OutgoingRun>) -> Vec<OutgoingRun> {
        let window = self.settings.accept_window_ms;
        let accept_until = |outgoing: &OutgoingRun| outgoing.dispatched_at.unwrap_or(0) + window;
        let mut may_have_arrived = false;
        // Not for longer where the cluster clock is set back meanwhile.
        let until_us = self.clock.local_us() + window * 1_000;
        loop {
            let now = self.clock.now_ms();
            let before = outgoing_runs.len();
            let is_over = self.clock.local_us() > until_us;
            outgoing_runs.retain(|outgoing| now < accept_until(outgoing) && !is_over);
            if outgoing_runs.len() < before {
                // This process was paused, or the executor never answered: others may act on
                // these rows by now.
                let runs = before - outgoing_runs.len();
                METRICS.dispatches.add(UNCONFIRMED, runs as u64);
                tracing::warn!(executor = executor.id.0, runs, "dispatch not confirmed in time; the reaper decides");
            }
            if outgoing_runs.is_empty() {
                return outgoing_runs;
            }
            let message = Dispatch {
                executor_id: executor.id.0,
                cluster_time_us: self.clock.now_us(),
                items: outgoing_runs.iter().map(|outgoing| item(outgoing, accept_until(outgoing))).collect(),
            };
            let scripts: Vec<i64> = outgoing_runs.iter().map(|outgoing| outgoing.task.script).collect();
            match self.transport.dispatch(&executor, &message, &scripts).await {
                Ok(ack) => return self.sort_out(&executor, outgoing_runs, &ack),
                // Once it may have arrived, a later refusal says nothing about the first message.
                Err(error) if may_have_arrived || matches!(error, SendError::Unknown(_)) => {
                    may_have_arrived = true;
                    tracing::warn!(executor = executor.id.0, %error, "dispatch unconfirmed; repeating it");
                    self.registry.avoid(executor.id, self.clock.now_ms());
                    tokio::time::sleep(RESEND_PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(executor = executor.id.0, address = executor.address, %error, "executor accepts nothing; trying another");
                    METRICS.dispatches.add(UNREACHABLE, outgoing_runs.len() as u64);
                    self.registry.avoid(executor.id, self.clock.now_ms());
                    return refused(outgoing_runs, executor.id);
                }
            }
        }
    }

    fn sort_out(&self, executor: &Executor, outgoing_runs: Vec<OutgoingRun>, ack: &DispatchAck) -> Vec<OutgoingRun> {
        let mut others = Vec::new();
        for (outgoing, outcome) in outgoing_runs.into_iter().zip(&ack.outcomes) {
            METRICS.dispatches.add(*outcome as usize, 1);
            match outcome {
                // What was cancelled is marked in its row: it ends, or goes on, by that, should the canceller die.
                DispatchOutcome::Accepted | DispatchOutcome::Duplicate | DispatchOutcome::Cancelled => {}
                refusal => {
                    if *refusal == DispatchOutcome::ShuttingDown {
                        self.registry.avoid(executor.id, self.clock.now_ms());
                    }
                    tracing::debug!(log = outgoing.run.id.0, executor = executor.id.0, ?refusal, "run refused");
                    others.push(outgoing);
                }
            }
        }
        refused(others, executor.id)
    }
}
