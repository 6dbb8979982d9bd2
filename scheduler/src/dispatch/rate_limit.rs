//! Which runs have their slot in the tenant's rate limit, and what becomes of the others.
//!
//! This comes last before an executor is chosen, so that only what would go out takes a slot. A
//! tenant without a quota of fires costs nothing here; with one, a batch costs one transaction.

use super::dispatcher::{Dispatcher, Failed};
use super::outgoing::OutgoingRun;
use crate::domain::rate_limit::{DELAY_MS_MAX, Slot, SlotRequest};
use crate::domain::{Reason, Run, Status, Transition};
use crate::store::{ClusterStore, DispatchStore, OutcomeStore, PermitStore, PlanStore, RuleStore};
use std::cmp::Reverse;

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore> Dispatcher<S> {
    /// Lets those through that have or get a slot; the others are put back until theirs, or end
    /// when there is none in time.
    pub(super) async fn take_rate_slots(&self, outgoing_runs: Vec<OutgoingRun>) -> Result<Vec<OutgoingRun>, Failed> {
        let rules = self.rules.now();
        let asks_for_one = |outgoing: &OutgoingRun| {
            !outgoing.run.has_slot() && rules.fires_per_minute(outgoing.run.tenant_id).is_some()
        };
        let (mut asking, mut through): (Vec<OutgoingRun>, Vec<OutgoingRun>) =
            outgoing_runs.into_iter().partition(asks_for_one);
        if asking.is_empty() {
            return Ok(through);
        }
        asking.sort_by_key(|outgoing| (Reverse(outgoing.run.priority), outgoing.run.due_time, outgoing.run.id));
        let now = self.clock.now_ms();
        let requests: Vec<SlotRequest> = asking.iter().map(|outgoing| ask_of(outgoing, now)).collect();
        let slots = match self.store.take_rate_slots(&requests, now).await {
            Ok(slots) => slots,
            Err(error) => {
                return Err((asking.into_iter().chain(through).map(|outgoing| outgoing.run).collect(), error));
            }
        };
        let (mut steps, mut delayed) = (Vec::new(), 0);
        for (outgoing, slot) in asking.into_iter().zip(slots) {
            match slot {
                Slot::Now => through.push(OutgoingRun { run: Run { has_rate_slot: true, ..outgoing.run }, ..outgoing }),
                // It is with all nodes again; a permit that it had counts no more.
                Slot::Later(_) => delayed += 1,
                Slot::Never => steps.push(refused(outgoing, now)),
            }
        }
        if delayed + steps.len() > 0 {
            tracing::debug!(delayed, refused = steps.len(), "tenants have more fires than their quotas allow");
        }
        self.change(steps).await;
        Ok(through)
    }
}

fn ask_of(OutgoingRun { run, task, .. }: &OutgoingRun, now: i64) -> SlotRequest {
    let wait = task.spec.wait_timeout_ms;
    let gives_up = if wait > 0 { run.due_time.saturating_add(wait) } else { i64::MAX };
    SlotRequest {
        id: run.id,
        version: run.version,
        failures: run.failures,
        tenant_id: run.tenant_id,
        priority: run.priority,
        at: run.due_time.max(now),
        latest: gives_up.min(now.saturating_add(DELAY_MS_MAX)),
        back_to: if run.failures > 0 { Status::Retry } else { Status::Init },
    }
}

/// The end of a run for which there is no slot in time: of its wait, or of all patience.
fn refused(OutgoingRun { run, task, .. }: OutgoingRun, now: i64) -> (Run, Transition) {
    let wait = task.spec.wait_timeout_ms;
    let change = if wait > 0 {
        let message = format!("the tenant's quota max_fires_per_minute has no room for it within {wait} ms");
        Transition { message, ..Transition::after_failure(&task, &run, Reason::WaitTimedOut, now) }
    } else {
        let days = DELAY_MS_MAX / 86_400_000;
        let message = format!("the tenant's quota max_fires_per_minute has no room for it within {days} days");
        Transition { message, finished_at: now, ..Transition::of(&run, Status::Expired, Reason::OverQuota) }
    };
    (run, change)
}
