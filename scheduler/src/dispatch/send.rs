//! Messages to executors, and what they answer.

use super::SendError;
use super::dispatcher::{AVOID_MS, Dispatcher};
use super::parcel::{Addressed, Parcel, item, refused};
use crate::domain::{Executor, Reason, Status};
use crate::metrics::{METRICS, UNCONFIRMED, UNREACHABLE};
use crate::store::{Change, HandStore, OutcomeStore, PermitStore, PlanStore};
use carillon_protocol::{Dispatch, DispatchAck, DispatchOutcome};
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a message whose fate is unknown is repeated to the same executor.
const RESEND_PAUSE: Duration = Duration::from_millis(200);

impl<S: HandStore + PlanStore + PermitStore + OutcomeStore + ?Sized> Dispatcher<S> {
    /// Sends to all executors at once; answers what nobody has taken yet.
    pub(super) async fn send_all(&self, marked: Vec<Addressed>) -> Vec<Parcel> {
        let mut by_executor: HashMap<i64, (Arc<Executor>, Vec<Parcel>)> = HashMap::new();
        for Addressed { parcel, executor } in marked {
            by_executor.entry(executor.id).or_insert_with(|| (executor, Vec::new())).1.push(parcel);
        }
        let mut messages = Vec::new();
        for (executor, mut parcels) in by_executor.into_values() {
            while !parcels.is_empty() {
                let rest = parcels.split_off(parcels.len().min(carillon_protocol::DISPATCH_ITEMS_MAX));
                messages.push(self.send(Arc::clone(&executor), parcels));
                parcels = rest;
            }
        }
        join_all(messages).await.into_iter().flatten().collect()
    }

    /// Sends one message; answers what must go to another executor.
    async fn send(&self, executor: Arc<Executor>, mut parcels: Vec<Parcel>) -> Vec<Parcel> {
        let window = self.settings.accept_window_ms;
        let accept_until = |parcel: &Parcel| parcel.marked_at.unwrap_or(0) + window;
        let mut may_have_arrived = false;
        loop {
            let now = self.clock.now_ms();
            let before = parcels.len();
            parcels.retain(|parcel| now < accept_until(parcel));
            if parcels.len() < before {
                // This process was paused, or the executor never answered: others may act on
                // these rows by now.
                let runs = before - parcels.len();
                METRICS.handovers.add(UNCONFIRMED, runs as u64);
                tracing::warn!(executor = executor.id, runs, "hand-over not confirmed in time; the reaper decides");
            }
            if parcels.is_empty() {
                return parcels;
            }
            let message = Dispatch {
                executor_id: executor.id,
                cluster_time_us: self.clock.now_us(),
                items: parcels.iter().map(|parcel| item(parcel, accept_until(parcel))).collect(),
            };
            match self.transport.dispatch(&executor, &message).await {
                Ok(ack) => return self.sort_out(&executor, parcels, &ack).await,
                // Once it may have arrived, a later refusal says nothing about the first message.
                Err(error) if may_have_arrived || matches!(error, SendError::Unknown(_)) => {
                    may_have_arrived = true;
                    tracing::warn!(executor = executor.id, %error, "hand-over unconfirmed; repeating it");
                    self.registry.avoid(executor.id, self.clock.now_ms() + AVOID_MS);
                    tokio::time::sleep(RESEND_PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(executor = executor.id, address = executor.address, %error, "executor takes nothing; trying another");
                    METRICS.handovers.add(UNREACHABLE, parcels.len() as u64);
                    self.registry.avoid(executor.id, self.clock.now_ms() + AVOID_MS);
                    return refused(parcels, executor.id);
                }
            }
        }
    }

    async fn sort_out(&self, executor: &Executor, parcels: Vec<Parcel>, ack: &DispatchAck) -> Vec<Parcel> {
        let mut others = Vec::new();
        let mut cancelled = Vec::new();
        for (parcel, outcome) in parcels.into_iter().zip(&ack.outcomes) {
            METRICS.handovers.add(*outcome as usize, 1);
            match outcome {
                DispatchOutcome::Accepted | DispatchOutcome::Duplicate => {}
                // What no schedule named goes on under the new definition: whoever cancelled says how.
                DispatchOutcome::Cancelled if !parcel.run.origin.is_scheduled() => {}
                DispatchOutcome::Cancelled => {
                    cancelled.push(Change::of(&parcel.run, Status::Cancelled, Reason::TaskEdited));
                }
                refusal => {
                    if *refusal == DispatchOutcome::ShuttingDown {
                        self.registry.avoid(executor.id, self.clock.now_ms() + AVOID_MS);
                    }
                    tracing::debug!(log = parcel.run.id, executor = executor.id, ?refusal, "run refused");
                    others.push(parcel);
                }
            }
        }
        // Whoever cancelled makes the same step; this one counts when that one died.
        if let Err(error) = self.store.change(&cancelled).await {
            tracing::warn!(%error, runs = cancelled.len(), "cancelled runs not marked here");
        }
        refused(others, executor.id)
    }
}
