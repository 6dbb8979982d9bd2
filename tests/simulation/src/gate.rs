//! What stands between one node and everything outside it: the way to the database, and whether
//! the process is running at all.

use super::{Dice, SimTime};
use carillon::store::{Result, StoreError, StoreErrorKind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// One node's gate. Its faults end by themselves at their instants (epoch ms).
#[derive(Debug)]
pub struct Gate {
    name: String,
    time: Arc<SimTime>,
    dice: Arc<Dice>,
    frozen_until: AtomicI64,
    away_until: AtomicI64,
    /// Whether it hangs until then, instead of refusing.
    hangs: AtomicBool,
    read_only_until: AtomicI64,
    slow_up_to_ms: AtomicI64,
    behind_ms: AtomicI64,
    doubt_per_mille: AtomicU64,
    late_per_mille: AtomicU64,
    given_up_per_mille: AtomicU64,
    deadlocks_per_mille: AtomicU64,
    last_commit: Mutex<Option<LastCommit>>,
    /// It is dead, though nobody has cleared it away yet.
    is_dead: AtomicBool,
    died: Notify,
}

/// Which commit is the last of its process.
#[derive(Debug)]
struct LastCommit {
    /// The first one of a kind when there have been so many kinds.
    kinds: usize,
    /// Kinds that there have been.
    seen: BTreeSet<&'static str>,
}

/// How long a node waits for a statement at most, ms: the default of `database.statement_timeout`.
pub const STATEMENT_MAX_MS: i64 = 8_000;

/// Few calls have more statements.
const STATEMENTS_MAX: i64 = 16;

/// Calls that may read what was a moment ago: the rows of results, which are judged again, and guarded by their versions.
const BORNE_BEHIND: [&str; 1] = ["read runs"];

/// A commit that is reported as failed and carried out later.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateCommit {
    /// After this long it is reported as failed, ms.
    pub(super) fails_after: u64,
    /// And after this long it is there, ms.
    pub(super) comes_after: u64,
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
            hangs: AtomicBool::new(false),
            read_only_until: AtomicI64::new(0),
            slow_up_to_ms: AtomicI64::new(0),
            behind_ms: AtomicI64::new(0),
            doubt_per_mille: AtomicU64::new(0),
            late_per_mille: AtomicU64::new(0),
            given_up_per_mille: AtomicU64::new(0),
            deadlocks_per_mille: AtomicU64::new(0),
            last_commit: Mutex::default(),
            is_dead: AtomicBool::new(false),
            died: Notify::new(),
        })
    }

    /// Stops the process until then: whatever it waits for, it notices afterwards.
    pub fn freeze(&self, until_ms: i64) {
        self.frozen_until.store(until_ms, Ordering::Relaxed);
    }

    /// Whether the process stands still.
    pub fn is_frozen(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed) || self.time.now_ms() < self.frozen_until.load(Ordering::Relaxed)
    }

    /// Returns when the process dies by a commit of its own: right after the first of the `kinds`-th kind of call from now on,
    /// before it hears of it. What is rare comes as often as what is not. Nothing of the process goes on then, until another
    /// [lives](Self::live).
    pub async fn dies_at_commit(&self, kinds: usize) {
        *self.last_commit.lock().unwrap() = Some(LastCommit { kinds, seen: BTreeSet::new() });
        self.died.notified().await;
    }

    /// A process that no commit kills.
    pub fn live(&self) {
        self.last_commit.lock().unwrap().take();
        self.is_dead.store(false, Ordering::Relaxed);
    }

    /// A commit is there. Whether the process dies of it.
    pub(super) fn dies_of(&self, action: &'static str) -> bool {
        let mut last = self.last_commit.lock().unwrap();
        let dies = last.as_mut().is_some_and(|last| last.seen.insert(action) && last.seen.len() >= last.kinds);
        if dies {
            last.take();
            self.is_dead.store(true, Ordering::Relaxed);
            self.died.notify_one();
        }
        dies
    }

    /// Takes the database away until then.
    pub fn take_store_away(&self, until_ms: i64) {
        self.hangs.store(self.dice.happens(&format!("{} finds it hanging", self.name), 300), Ordering::Relaxed);
        self.away_until.store(until_ms, Ordering::Relaxed);
    }

    /// How often (per mille) a statement is carried out and reported as failed.
    pub fn doubt(&self, per_mille: u64) {
        self.doubt_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Refuses what writes, until then.
    pub fn make_read_only(&self, until_ms: i64) {
        self.read_only_until.store(until_ms, Ordering::Relaxed);
    }

    /// How long each statement takes at most, ms.
    pub fn slow_down(&self, up_to_ms: i64) {
        self.slow_up_to_ms.store(up_to_ms, Ordering::Relaxed);
    }

    /// How old what is read may be, ms, where that is borne.
    pub fn fall_behind(&self, up_to_ms: i64) {
        self.behind_ms.store(up_to_ms, Ordering::Relaxed);
    }

    /// How old what this call reads may be, ms.
    pub(super) fn behind_ms(&self, action: &str) -> i64 {
        if BORNE_BEHIND.contains(&action) { self.behind_ms.load(Ordering::Relaxed) } else { 0 }
    }

    /// How often (per mille) a commit is reported as failed and carried out later.
    pub fn commit_late(&self, per_mille: u64) {
        self.late_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// How often (per mille) a statement is given up before anything was done.
    pub fn give_up(&self, per_mille: u64) {
        self.given_up_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// How often (per mille) a statement that writes is refused as a deadlock's victim.
    pub fn deadlock(&self, per_mille: u64) {
        self.deadlocks_per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Ends every fault.
    pub fn mend(&self) {
        for until in [&self.frozen_until, &self.away_until, &self.read_only_until, &self.slow_up_to_ms, &self.behind_ms]
        {
            until.store(0, Ordering::Relaxed);
        }
        let chances =
            [&self.doubt_per_mille, &self.late_per_mille, &self.given_up_per_mille, &self.deadlocks_per_mille];
        for per_mille in chances {
            per_mille.store(0, Ordering::Relaxed);
        }
    }

    /// Returns once the process runs.
    pub async fn thawed(&self) {
        while self.is_frozen() {
            if self.is_dead.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            self.time.until_ms(self.frozen_until.load(Ordering::Relaxed)).await;
        }
    }

    /// The way to the database: takes a moment, and may be cut.
    pub(super) async fn there(&self, action: &'static str) -> Result<()> {
        self.thawed().await;
        self.take_a_moment("to the store", action).await;
        let slow = self.slow_up_to_ms.load(Ordering::Relaxed);
        if slow > 0 {
            let ms = self.dice.between(&format!("{} waits for a slow {action}", self.name), 0, slow);
            tokio::time::sleep(Duration::from_millis(ms as u64)).await;
        }
        self.answered(action).await
    }

    /// Whether it takes this statement.
    pub(super) fn takes(&self, action: &'static str) -> Result<()> {
        if !writes(action) {
            return Ok(());
        }
        if self.time.now_ms() < self.read_only_until.load(Ordering::Relaxed) {
            return Err(StoreError::new(StoreErrorKind::ReadOnly, action, "a standby takes no writes"));
        }
        if self.happens(&self.deadlocks_per_mille, "deadlocks", action) {
            return Err(StoreError::new(StoreErrorKind::Contention, action, "chosen as a deadlock's victim"));
        }
        Ok(())
    }

    /// The statement of this call that is given up, if any is: 1 is its first.
    pub(super) fn given_up(&self, action: &'static str) -> Option<i64> {
        if !self.happens(&self.given_up_per_mille, "gives up", action) {
            return None;
        }
        // Most calls have few.
        let last = self.dice.between(&format!("{} gives up at most", self.name), 1, STATEMENTS_MAX);
        Some(self.dice.between(&format!("{} gives up at", self.name), 1, last))
    }

    /// What has been given up ends so.
    pub(super) async fn not_answered(&self, action: &'static str) -> StoreError {
        tokio::time::sleep(Duration::from_millis(STATEMENT_MAX_MS as u64)).await;
        StoreError::new(StoreErrorKind::Unavailable, action, "no answer in time, and nothing done")
    }

    /// Whether this commit is carried out after it was reported as failed.
    pub(super) fn late_commit(&self, action: &'static str) -> Option<LateCommit> {
        if !writes(action) || !self.happens(&self.late_per_mille, "commits late", action) {
            return None;
        }
        let ms = |what: &str, low, high| self.dice.between(&format!("{} {what} {action}", self.name), low, high) as u64;
        let fails_after = ms("loses", 5, 900);
        Some(LateCommit { fails_after, comes_after: fails_after + ms("sees late", 5, 2_500) })
    }

    /// The way back: what was carried out may still look like a failure.
    pub(super) async fn back(&self, action: &'static str) -> Result<()> {
        self.take_a_moment("from the store", action).await;
        self.thawed().await;
        self.answered(action).await?;
        if self.happens(&self.doubt_per_mille, "doubts", action) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, action, "the connection broke after the commit"));
        }
        Ok(())
    }

    fn happens(&self, per_mille: &AtomicU64, what: &str, action: &str) -> bool {
        let per_mille = per_mille.load(Ordering::Relaxed);
        per_mille > 0 && self.dice.happens(&format!("{} {what} {action}", self.name), per_mille)
    }

    async fn answered(&self, action: &'static str) -> Result<()> {
        if self.time.now_ms() >= self.away_until.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.hangs.load(Ordering::Relaxed) {
            return Err(self.not_answered(action).await);
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

/// Whether it is more than a question.
pub(super) fn writes(action: &str) -> bool {
    !["read ", "show ", "list ", "find ", "look for "].iter().any(|question| action.starts_with(question))
}
