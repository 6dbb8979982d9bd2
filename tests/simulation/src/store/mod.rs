//! The database as a model in memory: sorted maps behind a mutex, one obvious function per
//! statement. It checks every step of a run against the state machine, and it remembers what the
//! rows themselves forget (who was handed what, how each attempt ended).

pub mod admin;
mod backfill;
mod calendars;
mod claim;
mod cluster;
mod definitions;
mod dispatching;
mod executors;
mod history;
mod housekeeping;
mod job_numbers;
mod links;
mod outbox;
mod outcome;
mod permits;
mod plain_executors;
mod plan;
mod revoked_runs;
mod rows;
mod rules;
mod scripts;
mod seen;
mod sim_admin;
mod sim_store;
mod skips;
mod sqlite;
mod statistics;
mod unscheduled_runs;

pub use history::{Bounded, Claim, DispatchMark, End, Follow, Grant, Grants, Move, Rebound, Redefinition, Stay, Stays};
pub use rows::{Link, LogRow, State, TaskRow};
pub use sim_store::SimStore;
pub use statistics::FiguresRow;

use super::gate::{LateCommit, writes};
use super::{Gate, SimTime, Trace};
use carillon::store::{Result, StoreError, StoreErrorKind};
use carillon_simulated_sqlite::{Image, SimulatedSqlite};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a statement waits for a lock at most, ms, as nodes set it for their sessions.
const LOCK_WAIT_MAX_MS: u64 = 3_000;

/// One process's connection to the model. Everything behind it is shared.
#[derive(Debug, Clone)]
pub struct ModelStore {
    shared: Arc<Shared>,
    gate: Option<Arc<Gate>>,
    /// What it reads while it is behind, and of when that is (true time, ms).
    behind: Arc<Mutex<Option<(i64, State)>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Where the rows really are, if `state` is only what was seen of them.
    sqlite: Option<Arc<SimulatedSqlite>>,
    /// What it will be once a commit that was given up is carried out; its locks hold until then.
    committing: Mutex<Option<Saved>>,
    /// Told when it was.
    committed: tokio::sync::Notify,
    time: Arc<SimTime>,
    trace: Arc<Trace>,
}

/// What a database held at some time.
#[derive(Debug)]
pub struct Saved {
    state: State,
    image: Option<Image>,
}

impl ModelStore {
    /// An empty database.
    #[must_use]
    pub fn new(time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        Self::over(None, time, trace)
    }

    fn over(sqlite: Option<Arc<SimulatedSqlite>>, time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        Self { shared: Arc::new(Shared::new(sqlite, time, trace)), gate: None, behind: Arc::default() }
    }

    /// The same database seen through a node's gate.
    #[must_use]
    pub fn through(&self, gate: Arc<Gate>) -> Self {
        Self { shared: self.shared.clone(), gate: Some(gate), behind: Arc::default() }
    }

    /// Looks at the rows, past every gate.
    pub fn inspect<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.lock().unwrap())
    }

    /// A transaction that is reported as failed, and carried out after that.
    async fn commit_late<T>(
        &self,
        late: LateCommit,
        action: &'static str,
        work: impl FnOnce(&mut State, i64) -> Result<T> + Send,
    ) -> Result<T> {
        let before = self.shared.save();
        let done = {
            let mut state = self.shared.state.lock().unwrap();
            state.ahead_ms = self.shared.time.ahead_ms();
            work(&mut state, self.shared.time.now_ms())
        };
        let later = self.shared.save();
        self.shared.put_back(before);
        done?;
        *self.shared.committing.lock().unwrap() = Some(later);
        let shared = self.shared.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(late.comes_after)).await;
            shared.commit(action);
        });
        tokio::time::sleep(Duration::from_millis(late.fails_after)).await;
        refuse(StoreErrorKind::Unavailable, action, "no answer in time; it may still be carried out")
    }

    /// Reads what was, so many ms ago at most.
    fn look_back<T>(&self, behind_ms: i64, work: impl FnOnce(&mut State, i64) -> Result<T>) -> Result<T> {
        let now = self.shared.time.now_ms();
        let mut behind = self.behind.lock().unwrap();
        let (_, state) = match behind.take() {
            Some(seen) if now - seen.0 < behind_ms => behind.insert(seen),
            _ => behind.insert((now, self.shared.state.lock().unwrap().clone())),
        };
        work(state, now)
    }

    /// One statement or transaction: there, carried out at one instant, and back.
    async fn call<T>(&self, action: &'static str, work: impl FnOnce(&mut State, i64) -> Result<T> + Send) -> Result<T> {
        let mut given_up = None;
        if let Some(gate) = &self.gate {
            gate.there(action).await?;
            given_up = gate.given_up(action);
            if given_up.is_some() && self.shared.sqlite.is_none() {
                return Err(gate.not_answered(action).await);
            }
            gate.takes(action)?;
            if writes(action) {
                self.shared.unlocked(action).await?;
            }
            if let Some(late) = gate.late_commit(action).filter(|_| given_up.is_none()) {
                return self.commit_late(late, action, work).await;
            }
            let behind_ms = gate.behind_ms(action);
            if behind_ms > 0 && self.shared.sqlite.is_none() {
                let done = self.look_back(behind_ms, work);
                gate.back(action).await?;
                return done;
            }
        }
        let done = {
            let mut state = self.shared.state.lock().unwrap();
            state.ahead_ms = self.shared.time.ahead_ms();
            if let (Some(sqlite), Some(statement)) = (&self.shared.sqlite, given_up) {
                sqlite.interrupt(statement);
            }
            let done = work(&mut state, self.shared.time.now_ms());
            self.shared.tell(&mut state);
            done
        };
        if let Some(gate) = &self.gate {
            let fails = done.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Unavailable);
            if let Some(statement) = given_up.filter(|_| fails) {
                self.shared.trace.add(format!("a node gives up statement {statement} of {action}"));
                return Err(gate.not_answered(action).await);
            }
            if done.is_ok() && writes(action) && gate.dies_of(action) {
                self.shared.trace.add(format!("a node dies of its commit: {action}"));
            }
            gate.back(action).await?;
        }
        done
    }
}

impl Shared {
    fn new(sqlite: Option<Arc<SimulatedSqlite>>, time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        let (state, committing, committed) = (Mutex::default(), Mutex::default(), tokio::sync::Notify::new());
        Self { state, sqlite, committing, committed, time, trace }
    }

    fn save(&self) -> Saved {
        let image = self.sqlite.as_ref().map(|sqlite| sqlite.image());
        Saved { state: self.state.lock().unwrap().clone(), image }
    }

    fn put_back(&self, saved: Saved) {
        if let (Some(sqlite), Some(image)) = (&self.sqlite, &saved.image) {
            sqlite.put_back(image);
        }
        *self.state.lock().unwrap() = saved.state;
    }

    fn tell(&self, state: &mut State) {
        for event in state.events.drain(..) {
            self.trace.add(event);
        }
    }

    fn commit(&self, action: &str) {
        let Some(mut later) = self.committing.lock().unwrap().take() else { return };
        self.trace.add(format!("the database carries out now: {action}"));
        self.tell(&mut later.state);
        self.put_back(later);
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
