//! Shutting down without losing anything and without ever hanging, except for a serial run that nothing stops.
//!
//! 1. New runs are refused; held ones are dropped and given back.
//! 2. Running handlers may finish, while the heartbeat goes on.
//! 3. Those that do not finish in time are stopped, and in the end given up. An exclusive run is
//!    waited for: if it were given up, the next run of its task would start at once beside it.
//!    An operator who cannot wait for a handler that ignores the stop has to kill the process.
//! 4. Results are delivered. Those that no node accepts until the drain time-out stay in the journal: the next process
//!    that starts over it delivers them.
//! 5. The heartbeat ends and the executor unregisters, naming the runs whose results it could not deliver: they have not
//!    vanished with it. Held runs that no node has taken back by then are journalled as not started: the nodes could not tell
//!    them from runs that have begun.

use crate::member::Member;
use crate::sync::{lock, until};
use carillon_protocol::RunKey;
use std::time::Duration;
use tokio::time::Instant;

/// How long giving held runs back may take; after that the nodes find out by themselves.
const GIVE_BACK_LIMIT: Duration = Duration::from_secs(5);

/// How long stopped handlers may take to end; one that blocks its thread cannot.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// How long delivering the last results may take, even when the handlers have used up the drain time-out.
const DELIVER_LIMIT: Duration = Duration::from_secs(5);

/// How long the threads may take to end; a disk may hang.
const THREADS_LIMIT: Duration = Duration::from_secs(5);

/// Message of a run that could not be stopped.
const DOES_NOT_STOP: &str = "given up: the executor shut down, and the handler or a blocking part of it did not stop; \
                             it ends with the process at the latest";

/// Message of a held run that no node took back.
const NOT_TAKEN_BACK: &str = "not started: the executor shut down, and no node that it could reach took the run back";

/// Polling interval for runs that do not stop.
const LOOK_LONG: Duration = Duration::from_millis(100);

/// Steps 1 to 5; `heartbeat` is ended on the way.
pub(crate) async fn drain(member: &Member, heartbeat: &tokio::task::AbortHandle) {
    let runs = &member.runs;
    let held = runs.drain();
    lock(&member.giving_back).clone_from(&held);
    let counts = runs.counts();
    tracing::info!(given_back = held.len(), running = counts.running, "executor.draining");
    let deadline = Instant::now() + member.settings.drain_timeout;
    let give_back = async {
        // With nothing to give back and nothing running, the last call is enough.
        if !held.is_empty() || counts.running > 0 {
            let mut sets = runs.snapshot();
            // Results of runs that have ended follow as well.
            sets.running.append(&mut sets.unacknowledged);
            if sign_off(member, &held, &sets.running, GIVE_BACK_LIMIT).await {
                lock(&member.giving_back).clear();
            }
        }
    };
    let finish = until(deadline, || runs.counts().running == 0);
    let (finished, ()) = tokio::join!(finish, give_back);
    if !finished {
        let stopped = runs.abandon_running();
        tracing::warn!(runs = stopped, "executor.drain_timeout");
        if !until(Instant::now() + STOP_LIMIT, || runs.counts().running == 0).await {
            let given_up = runs.end_by_force(DOES_NOT_STOP);
            let waited_for = runs.counts().running;
            tracing::error!(given_up, waited_for, "executor.handlers_do_not_stop");
            while runs.counts().running > 0 {
                tokio::time::sleep(LOOK_LONG).await;
                runs.end_by_force(DOES_NOT_STOP);
            }
        }
    }
    // What stays behind may run again: worth all the time that there is.
    let deliver_until = deadline.max(Instant::now() + DELIVER_LIMIT);
    until(deliver_until, || runs.counts().unacknowledged == 0).await;
    let undelivered = runs.snapshot().unacknowledged;
    if !undelivered.is_empty() {
        tracing::warn!(results = undelivered.len(), "executor.results_left_in_journal");
    }
    heartbeat.abort();
    // With what no node has taken back so far.
    let held = lock(&member.giving_back).clone();
    if !sign_off(member, &held, &undelivered, GIVE_BACK_LIMIT / 2).await && !held.is_empty() {
        tracing::warn!(runs = held.len(), "executor.not_given_back: the journal keeps that they have not started");
        runs.end_dropped(&held, NOT_TAKEN_BACK);
    }
    tracing::info!("executor.drained");
}

/// Unregisters, retrying until a node accepts or `limit` has passed. Whether one did.
async fn sign_off(member: &Member, held: &[RunKey], running: &[RunKey], limit: Duration) -> bool {
    if member.executor_id().is_none() {
        return true;
    }
    let attempt = async {
        let mut pause = Duration::from_millis(100);
        loop {
            match member.unregister(held, running).await {
                Ok(returned) => {
                    tracing::info!(returned, "executor.unregistered");
                    return;
                }
                // Already forgotten: its held runs are back with the nodes.
                Err(crate::node::Failure::RegisterAgain) => return,
                Err(failure) => tracing::warn!(%failure, "executor.not_unregistered"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    };
    let is_known = tokio::time::timeout(limit, attempt).await.is_ok();
    if !is_known {
        tracing::warn!("executor.not_unregistered: the nodes will notice by its silence");
    }
    is_known
}

/// Stops the threads, which first write what is left.
pub(crate) async fn stop_threads(member: &Member, have_ended: impl Fn() -> bool) {
    tell_threads_to_stop(member);
    let ended = until(Instant::now() + THREADS_LIMIT, have_ended);
    if !ended.await {
        tracing::error!("executor.threads_do_not_end");
    }
}

pub(crate) fn tell_threads_to_stop(member: &Member) {
    member.runs.timer.stop();
    member.pending_results.stop();
    member.runs.record.set();
    member.runs.outputs.stop();
}
