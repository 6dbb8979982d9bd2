//! The database as a model in memory: sorted maps behind a mutex, one obvious function per
//! statement. It checks every step of a run against the state machine, and it remembers what the
//! rows themselves forget (who was handed what, how each attempt ended).

pub mod admin;
mod backfill;
mod claim;
mod cluster;
mod definitions;
mod dispatching;
mod executors;
mod history;
mod housekeeping;
mod links;
mod outbox;
mod outcome;
mod permits;
mod plan;
mod revoked_runs;
mod rows;
mod rules;
mod skips;
mod statistics;
mod unscheduled_runs;

pub use history::{Bounded, Claim, DispatchMark, End, Follow, Grant, Grants, Move, Rebound, Redefinition, Stay, Stays};
pub use rows::{Link, LogRow, State, TaskRow};
pub use statistics::FiguresRow;

use super::gate::{LateCommit, writes};
use super::{Gate, SimTime, Trace};
use carillon::store::{Result, StoreError, StoreErrorKind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a statement waits for a lock at most, ms, as nodes set it for their sessions.
const LOCK_WAIT_MAX_MS: u64 = 3_000;

/// One process's connection to the model. Everything behind it is shared.
#[derive(Debug, Clone)]
pub struct ModelStore {
    shared: Arc<Shared>,
    gate: Option<Arc<Gate>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// What it will be once a commit that was given up is carried out; its locks hold until then.
    committing: Mutex<Option<State>>,
    /// Told when it was.
    committed: tokio::sync::Notify,
    time: Arc<SimTime>,
    trace: Arc<Trace>,
}

impl ModelStore {
    /// An empty database.
    #[must_use]
    pub fn new(time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        Self { shared: Arc::new(Shared::new(time, trace)), gate: None }
    }

    /// The same database seen through a node's gate.
    #[must_use]
    pub fn through(&self, gate: Arc<Gate>) -> Self {
        Self { shared: self.shared.clone(), gate: Some(gate) }
    }

    /// Looks at the rows, past every gate.
    pub fn inspect<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.lock().unwrap())
    }

    /// Takes back what was committed since `before`, as the takeover of a standby does that lacks it.
    pub fn lose_commits_since(&self, before: State) {
        *self.shared.state.lock().unwrap() = before;
    }

    /// A transaction that is reported as failed, and carried out after that.
    async fn commit_late<T>(
        &self,
        late: LateCommit,
        action: &'static str,
        work: impl FnOnce(&mut State, i64) -> Result<T> + Send,
    ) -> Result<T> {
        let mut later = self.shared.state.lock().unwrap().clone();
        later.ahead_ms = self.shared.time.ahead_ms();
        work(&mut later, self.shared.time.now_ms())?;
        *self.shared.committing.lock().unwrap() = Some(later);
        let shared = self.shared.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(late.comes_after)).await;
            shared.commit(action);
        });
        tokio::time::sleep(Duration::from_millis(late.fails_after)).await;
        refuse(StoreErrorKind::Unavailable, action, "no answer in time; it may still be carried out")
    }

    /// One statement or transaction: there, carried out at one instant, and back.
    async fn call<T>(&self, action: &'static str, work: impl FnOnce(&mut State, i64) -> Result<T> + Send) -> Result<T> {
        if let Some(gate) = &self.gate {
            gate.there(action).await?;
            if writes(action) {
                self.shared.unlocked(action).await?;
            }
            if let Some(late) = gate.late_commit(action) {
                return self.commit_late(late, action, work).await;
            }
        }
        let done = {
            let mut state = self.shared.state.lock().unwrap();
            state.ahead_ms = self.shared.time.ahead_ms();
            let done = work(&mut state, self.shared.time.now_ms());
            self.shared.tell(&mut state);
            done
        };
        if let Some(gate) = &self.gate {
            gate.back(action).await?;
        }
        done
    }
}

impl Shared {
    fn new(time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        let (state, committing, committed) = (Mutex::default(), Mutex::default(), tokio::sync::Notify::new());
        Self { state, committing, committed, time, trace }
    }

    fn tell(&self, state: &mut State) {
        for event in state.events.drain(..) {
            self.trace.add(event);
        }
    }

    fn commit(&self, action: &str) {
        let Some(mut later) = self.committing.lock().unwrap().take() else { return };
        self.trace.add(format!("the database carries out now: {action}"));
        self.tell(&mut later);
        *self.state.lock().unwrap() = later;
        self.committed.notify_waiters();
    }

    /// Waits for the locks of a commit that is on its way; no longer than the database lets it.
    async fn unlocked(&self, action: &'static str) -> Result<()> {
        let free = async {
            loop {
                let committed = self.committed.notified();
                if self.committing.lock().unwrap().is_none() {
                    return;
                }
                committed.await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_millis(LOCK_WAIT_MAX_MS), free).await;
        waited.or_else(|_| refuse(StoreErrorKind::Contention, action, "a lock was not free in time"))
    }
}

fn refuse<T>(kind: StoreErrorKind, action: &'static str, detail: impl Into<String>) -> Result<T> {
    Err(StoreError::new(kind, action, detail))
}
