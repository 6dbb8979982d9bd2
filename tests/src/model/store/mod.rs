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

pub use rows::{DispatchMark, End, Link, LogRow, Redefinition, State, TaskRow};
pub use statistics::FiguresRow;

use super::{Gate, SimTime, Trace};
use carillon::store::{Result, StoreError, StoreErrorKind};
use std::sync::{Arc, Mutex};

/// One process's connection to the model. Everything behind it is shared.
#[derive(Debug, Clone)]
pub struct ModelStore {
    shared: Arc<Shared>,
    gate: Option<Arc<Gate>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    time: Arc<SimTime>,
    trace: Arc<Trace>,
}

impl ModelStore {
    /// An empty database.
    #[must_use]
    pub fn new(time: Arc<SimTime>, trace: Arc<Trace>) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::default(), time, trace }), gate: None }
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

    /// One statement or transaction: there, carried out at one instant, and back.
    async fn call<T>(&self, action: &'static str, work: impl FnOnce(&mut State, i64) -> Result<T> + Send) -> Result<T> {
        if let Some(gate) = &self.gate {
            gate.there(action).await?;
        }
        let done = {
            let mut state = self.shared.state.lock().unwrap();
            let done = work(&mut state, self.shared.time.now_ms());
            for event in state.events.drain(..) {
                self.shared.trace.add(event);
            }
            done
        };
        if let Some(gate) = &self.gate {
            gate.back(action).await?;
        }
        done
    }
}

fn refuse<T>(kind: StoreErrorKind, action: &'static str, detail: impl Into<String>) -> Result<T> {
    Err(StoreError::new(kind, action, detail))
}
