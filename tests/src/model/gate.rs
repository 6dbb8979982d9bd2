//! What stands between one node and everything outside it: the way to the database, and whether
//! the process is running at all.

use super::{Dice, SimTime};
use carillon::store::{Result, StoreError, StoreErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// One node's gate. Its faults end by themselves at their instants (epoch ms).
#[derive(Debug)]
pub struct Gate {
    name: String,
    time: Arc<SimTime>,
    dice: Arc<Dice>,
    frozen_until: AtomicI64,
    away_until: AtomicI64,
    doubt_per_mille: AtomicU64,
}

impl Gate {
    /// An open gate.
    #[must_use]
    pub fn new(name: impl Into<String>, time: Arc<SimTime>, dice: Arc<Dice>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            time,
            dice,
            frozen_until: AtomicI64::new(0),
            away_until: AtomicI64::new(0),
            doubt_per_mille: AtomicU64::new(0),
        })
    }

    /// Stops the process until then: whatever it waits for, it notices afterwards.
    pub fn freeze(&self, until_ms: i64) {
        self.frozen_until.store(until_ms, Ordering::Relaxed);
    }

    /// Whether the process stands still.
    pub fn is_frozen(&self) -> bool {
        self.time.now_ms() < self.frozen_until.load(Ordering::Relaxed)
    }

    /// Takes the database away until then.
    pub fn take_store_away(&self, until_ms: i64) {
        self.away_until.store(until_ms, Ordering::Relaxed);
    }

    /// How often (per mille) a statement is carried out and reported as failed.
    pub fn doubt(&self, per_mille: u64) {
        self.doubt_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Returns once the process runs.
    pub async fn thawed(&self) {
        while self.is_frozen() {
            self.time.until_ms(self.frozen_until.load(Ordering::Relaxed)).await;
        }
    }

    /// The way to the database: takes a moment, and may be cut.
    pub(super) async fn there(&self, action: &'static str) -> Result<()> {
        self.thawed().await;
        self.take_a_moment("to the store", action).await;
        self.answered(action).await
    }

    /// The way back: what was carried out may still look like a failure.
    pub(super) async fn back(&self, action: &'static str) -> Result<()> {
        self.take_a_moment("from the store", action).await;
        self.thawed().await;
        self.answered(action).await?;
        let doubt = self.doubt_per_mille.load(Ordering::Relaxed);
        if doubt > 0 && self.dice.happens(&format!("{} doubts {action}", self.name), doubt) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, action, "the connection broke after the commit"));
        }
        Ok(())
    }

    async fn answered(&self, action: &'static str) -> Result<()> {
        if self.time.now_ms() >= self.away_until.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Sometimes refused at once, sometimes only after a while.
        let wait = if self.dice.happens(&format!("{} waits for {action}", self.name), 300) { 900 } else { 5 };
        tokio::time::sleep(Duration::from_millis(wait)).await;
        Err(StoreError::new(StoreErrorKind::Unavailable, action, "the database is away"))
    }

    async fn take_a_moment(&self, way: &str, action: &str) {
        let us = self.dice.between(&format!("{} {way} {action}", self.name), 0, 4_000);
        tokio::time::sleep(Duration::from_micros(us as u64)).await;
    }
}
