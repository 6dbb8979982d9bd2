//! What follows the end of runs: children, the next fire of a fixed delay, failures in a row.

use crate::cluster::Clock;
use crate::domain::IdSource;
use crate::domain::audit::Actor;
use crate::store::{OutboxRound, OutboxStore, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ended runs in one transaction.
const BATCH: u64 = 100;

/// Transactions in one round at most; the next round goes on.
const ROUNDS_MAX: usize = 50;

/// Writes the consequences of ended runs.
pub struct OutboxWorker<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    ids: Arc<IdSource>,
    /// This node, as the audit names it.
    node: Actor,
    watching: AtomicBool,
}

impl<S: OutboxStore + ?Sized> OutboxWorker<S> {
    /// Over the node's parts.
    pub fn new(store: Arc<S>, clock: Arc<dyn Clock>, ids: Arc<IdSource>, node: Actor) -> Self {
        Self { store, clock, ids, node, watching: AtomicBool::new(false) }
    }

    /// Whether some run's end has consequences: only then are results worth a round.
    pub fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Relaxed)
    }

    /// One round; returns what it did.
    pub async fn tick(&self) -> Result<OutboxRound> {
        let mut done = OutboxRound::default();
        self.watching.store(self.store.has_outbox_entries().await?, Ordering::Relaxed);
        if !self.is_watching() {
            return Ok(done);
        }
        for _ in 0..ROUNDS_MAX {
            let ended = self.store.ended(BATCH).await?;
            if ended.is_empty() {
                break;
            }
            let now = self.clock.now_ms();
            let new_id = || self.ids.next(now);
            match self.store.process_outbox(&ended, &self.node, &new_id, now).await {
                Ok(Some(followed)) => done.add(followed),
                // Another node is at the same ones: take them one by one.
                Ok(None) => {
                    for run in &ended {
                        let one =
                            self.store.process_outbox(std::slice::from_ref(run), &self.node, &new_id, now).await?;
                        done.add(one.unwrap_or_default());
                    }
                }
                Err(error) if error.is_temporary() => return Err(error),
                // One of them is at fault, and stays; the others go on.
                Err(_) => {
                    for run in &ended {
                        match self.store.process_outbox(std::slice::from_ref(run), &self.node, &new_id, now).await {
                            Ok(one) => done.add(one.unwrap_or_default()),
                            Err(error) if error.is_temporary() => return Err(error),
                            Err(error) => tracing::error!(%error, log = run.log.0, "what follows a run waits"),
                        }
                    }
                    break;
                }
            }
        }
        Ok(done)
    }
}
