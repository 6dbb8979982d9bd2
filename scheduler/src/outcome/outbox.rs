//! What follows the end of runs: children, the next fire of a fixed delay, failures in a row.

use crate::cluster::Clock;
use crate::dispatch::EndedRuns;
use crate::domain::audit::Actor;
use crate::domain::{IdSource, LogId};
use crate::store::{BATCH_MAX, EndedRun, OutboxRound, OutboxStore, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Ended runs in one transaction.
const BATCH: usize = 100;

/// Transactions in one round at most; the next round goes on.
const ROUNDS_MAX: usize = 50;

/// Rows of the outbox that one look goes through: most of them are of runs that are still to come.
const LOOK_ROWS: u64 = 10_000;

/// An outbox that is looked through to its end with so few rows is looked through in each round.
const FEW_ROWS: u64 = 500;

/// A longer one is looked through page by page, at this distance, ms: for ends of which no node that lives has known.
const LOOK_INTERVAL_MS: i64 = 1_000;

/// How far the outbox has been looked through.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Up to this row; it goes on behind it.
    after: LogId,
    /// When, ms.
    at: i64,
    /// Whether the next round looks again, however soon it comes: there were few rows, or it was cut short.
    is_open: bool,
}

/// Writes the consequences of ended runs: of those that this node knows to have ended at once, of others when a look
/// through the outbox finds them.
pub struct OutboxWorker<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    ids: Arc<IdSource>,
    ended: Arc<EndedRuns>,
    /// This node, as the audit names it.
    node: Actor,
    watching: AtomicBool,
    look: Mutex<Look>,
}

impl<S: OutboxStore + ?Sized> OutboxWorker<S> {
    /// Over the node's parts.
    pub fn new(store: Arc<S>, clock: Arc<dyn Clock>, ids: Arc<IdSource>, ended: Arc<EndedRuns>, node: Actor) -> Self {
        let look = Mutex::new(Look { after: LogId::NONE, at: i64::MIN, is_open: true });
        Self { store, clock, ids, ended, node, watching: AtomicBool::new(false), look }
    }

    /// Whether some run's end has consequences: only then are results worth a round.
    pub fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Relaxed)
    }

    /// One round; returns what it did.
    pub async fn tick(&self) -> Result<OutboxRound> {
        let mut done = OutboxRound::default();
        // Before the question: what has ended by then has its row by then.
        let known = self.ended.take();
        self.watching.store(self.store.has_outbox_entries().await?, Ordering::Relaxed);
        if !self.is_watching() {
            return Ok(done);
        }
        let mut rounds = ROUNDS_MAX;
        for (at, ids) in known.chunks(BATCH_MAX).enumerate() {
            let followed = async {
                let ended = self.store.ended_among(ids).await?;
                self.follow(&ended, &mut rounds, &mut done).await
            };
            match followed.await {
                Ok(true) => {}
                Ok(false) => self.ended.note(known.iter().skip(at * BATCH_MAX).copied()),
                Err(error) => {
                    self.ended.note(known.iter().skip(at * BATCH_MAX).copied());
                    return Err(error);
                }
            }
            if rounds == 0 {
                return Ok(done);
            }
        }
        self.look(&mut rounds, &mut done).await?;
        Ok(done)
    }

    /// Looks through the next part of the outbox, if it is time to.
    async fn look(&self, rounds: &mut usize, done: &mut OutboxRound) -> Result<()> {
        let now = self.clock.now_ms();
        let look = *self.look.lock().unwrap_or_else(PoisonError::into_inner);
        if !look.is_open && (look.at..look.at.saturating_add(LOOK_INTERVAL_MS)).contains(&now) {
            return Ok(());
        }
        let mut after = look.after;
        let mut rows_left = LOOK_ROWS;
        let mut rows_met = 0;
        let mut is_open = false;
        while rows_left > 0 && *rounds > 0 {
            let page = self.store.ended(after, rows_left.min(BATCH_MAX as u64)).await?;
            // What waits, because it is at fault, holds up no others: they lie behind it.
            if !self.follow(&page.ended, rounds, done).await? {
                // The next round goes on here.
                is_open = true;
                break;
            }
            rows_left = rows_left.saturating_sub(page.rows);
            rows_met += page.rows;
            let Some(next) = page.next else {
                is_open = look.after.is_none() && rows_met <= FEW_ROWS;
                after = LogId::NONE;
                break;
            };
            after = next;
        }
        *self.look.lock().unwrap_or_else(PoisonError::into_inner) = Look { after, at: now, is_open };
        Ok(())
    }

    /// Writes what follows these, as far as the round allows; answers whether it did all.
    async fn follow(&self, ended: &[EndedRun], rounds: &mut usize, done: &mut OutboxRound) -> Result<bool> {
        for batch in ended.chunks(BATCH) {
            if *rounds == 0 {
                return Ok(false);
            }
            *rounds -= 1;
            self.follow_batch(batch, done).await?;
        }
        Ok(true)
    }

    async fn follow_batch(&self, ended: &[EndedRun], done: &mut OutboxRound) -> Result<()> {
        let now = self.clock.now_ms();
        let new_id = || self.ids.next(now);
        match self.store.process_outbox(ended, &self.node, &new_id, now).await {
            Ok(Some(followed)) => done.add(followed),
            // Another node is at the same ones: take them one by one.
            Ok(None) => {
                for run in ended {
                    let one = self.store.process_outbox(std::slice::from_ref(run), &self.node, &new_id, now).await?;
                    done.add(one.unwrap_or_default());
                }
            }
            Err(error) if error.is_temporary() => return Err(error),
            // One of them is at fault, and stays; the others go on.
            Err(_) => {
                for run in ended {
                    match self.store.process_outbox(std::slice::from_ref(run), &self.node, &new_id, now).await {
                        Ok(one) => done.add(one.unwrap_or_default()),
                        Err(error) if error.is_temporary() => return Err(error),
                        Err(error) => tracing::error!(%error, log = run.log.0, "what follows a run waits"),
                    }
                }
            }
        }
        Ok(())
    }
}
