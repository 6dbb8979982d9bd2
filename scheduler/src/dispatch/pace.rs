//! Which runs have their place in the tenant's rate, and what becomes of the others.
//!
//! This comes last before an executor is chosen, so that only what would go out takes a place. A
//! tenant without a quota of fires costs nothing here; with one, a batch costs one transaction.

use super::dispatcher::{Dispatcher, Failed};
use super::parcel::Parcel;
use crate::domain::rate::{Ask, DELAY_MS_MAX, Place};
use crate::domain::{Reason, Run, Status};
use crate::store::{Change, HandStore, OutcomeStore, PermitStore, PlanStore};
use std::cmp::Reverse;

impl<S: HandStore + PlanStore + PermitStore + OutcomeStore + ?Sized> Dispatcher<S> {
    /// Lets those through that have or get a place; the others are put back until theirs, or end
    /// when there is none in time.
    pub(super) async fn pace(&self, parcels: Vec<Parcel>) -> Result<Vec<Parcel>, Failed> {
        let rules = self.rules.now();
        let asks_for_one =
            |parcel: &Parcel| !parcel.run.has_place() && rules.fires_per_minute(parcel.run.tenant_id).is_some();
        let (mut asking, mut through): (Vec<Parcel>, Vec<Parcel>) = parcels.into_iter().partition(asks_for_one);
        if asking.is_empty() {
            return Ok(through);
        }
        asking.sort_by_key(|parcel| (Reverse(parcel.run.priority), parcel.run.due_time, parcel.run.id));
        let now = self.clock.now_ms();
        let asks: Vec<Ask> = asking.iter().map(|parcel| ask_of(parcel, now)).collect();
        let places = match self.store.pace(&asks, now).await {
            Ok(places) => places,
            Err(error) => return Err((asking.into_iter().chain(through).map(|parcel| parcel.run).collect(), error)),
        };
        let (mut steps, mut delayed) = (Vec::new(), 0);
        for (parcel, place) in asking.into_iter().zip(places) {
            match place {
                Place::Now => through.push(Parcel { run: Run { is_paced: true, ..parcel.run }, ..parcel }),
                // It is with all nodes again; a permit that it had counts no more.
                Place::Later(_) => delayed += 1,
                Place::Never => steps.push(refused(parcel, now)),
            }
        }
        if delayed + steps.len() > 0 {
            tracing::debug!(delayed, refused = steps.len(), "tenants have more fires than their quotas allow");
        }
        self.change(steps).await;
        Ok(through)
    }
}

fn ask_of(Parcel { run, task, .. }: &Parcel, now: i64) -> Ask {
    let wait = task.spec.wait_timeout_ms;
    let gives_up = if wait > 0 { run.due_time.saturating_add(wait) } else { i64::MAX };
    Ask {
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

/// The end of a run for which there is no place in time: of its wait, or of all patience.
fn refused(Parcel { run, task, .. }: Parcel, now: i64) -> (Run, Change) {
    let wait = task.spec.wait_timeout_ms;
    let change = if wait > 0 {
        let message = format!("the tenant's quota max_fires_per_minute has no room for it within {wait} ms");
        Change { message, ..Change::after_failure(&task, &run, Reason::WaitTimedOut, now) }
    } else {
        let days = DELAY_MS_MAX / 86_400_000;
        let message = format!("the tenant's quota max_fires_per_minute has no room for it within {days} days");
        Change { message, finished_at: now, ..Change::of(&run, Status::Expired, Reason::OverQuota) }
    };
    (run, change)
}
