//! Times for which the database has no heartbeat of any node, who lived through them, and what was decided.

use super::row::{Read, column, from_row};
use super::sql_store::{Transaction, retrying};
use super::values::{clean, to_word};
use super::{Result, SqlStore, StoreError};
use crate::domain::Refusal;
use crate::domain::silence::{PastDecision, Silence};
use sea_orm::QueryResult;

/// Silences are remembered for so long, ms: a witness that comes later is not believed.
const REMEMBERED_MS: i64 = 30 * 86_400_000;

/// Silences that a node reads at most, the newest first.
const READ_MAX: i64 = 1_000;

impl SqlStore {
    /// Notes in the transaction of the first heartbeat after a silence that there was one.
    pub(super) async fn note_silence(&self, tx: &Transaction<'_>, silence: &Silence) -> Result<()> {
        let old = sql!("DELETE FROM silence WHERE until_at < {1} AND (lived_until = 0 OR decision <> '')");
        tx.execute(&old, [(silence.until - REMEMBERED_MS).into()]).await?;
        self.insert_silence(tx, silence).await?;
        self.bump_rules(tx).await
    }

    /// What there is, newest first.
    pub async fn silences(&self) -> Result<Vec<Silence>> {
        let sql = sql!(
            "SELECT from_at, until_at, lived_until, found_by, decision FROM silence ORDER BY from_at DESC LIMIT {1}"
        );
        self.query("read silences", &sql, [READ_MAX.into()]).await
    }

    /// Decides what becomes of what may have run during every silence that waits for it. Skipping cancels the backfills that
    /// were open, too: how far they came is not known.
    ///
    /// # Errors
    /// Nothing waits for a decision.
    pub async fn decide_past(&self, decision: PastDecision, now: i64) -> Result<()> {
        const ACTION: &str = "decide about the past";
        let word = to_word(ACTION, &decision)?;
        let tx = self.begin(ACTION).await?;
        if decision == PastDecision::Skip {
            let backfills = sql!(
                "UPDATE backfill SET status = 'cancelled', finished_at = {1} WHERE status = 'open' AND created_at <= \
                 (SELECT MAX(s.lived_until) FROM silence s WHERE s.lived_until > 0 AND s.decision = '')"
            );
            tx.execute(&backfills, [now.into()]).await?;
        }
        let decide = sql!("UPDATE silence SET decision = {1} WHERE lived_until > 0 AND decision = ''");
        if tx.execute(&decide, [word.into()]).await? == 0 {
            return Err(StoreError::of(ACTION, Refusal::NothingHeld));
        }
        self.bump_rules(&tx).await?;
        tx.commit().await
    }

    /// An operator says that the database was restored: what was due before now (epoch ms) is held.
    pub async fn note_restored(&self, now: i64) -> Result<()> {
        let sql = sql!("SELECT CASE WHEN heartbeat_at > left_at THEN heartbeat_at ELSE left_at END FROM node");
        let heard: Vec<i64> = self.query("read when a node was last heard of", &sql, []).await?;
        let from = heard.into_iter().max().unwrap_or(0).min(now);
        let told = Silence { from, until: now, lived_until: now, found_by: "operator".to_owned(), decision: None };
        self.note_witness(&told).await.map(drop)
    }

    /// Notes that somebody lived through a silence, and when that is news takes back what was decided before.
    pub(super) async fn note_witness(&self, told: &Silence) -> Result<bool> {
        retrying(|| self.note_witness_once(told)).await
    }

    async fn note_witness_once(&self, told: &Silence) -> Result<bool> {
        let tx = self.begin("note who lived through a silence").await?;
        let find = sql!("SELECT lived_until FROM silence WHERE from_at = {1}");
        let known: Vec<i64> = tx.query(&find, [told.from.into()]).await?;
        if known.first().is_some_and(|lived_until| *lived_until >= told.lived_until) {
            return Ok(false);
        }
        self.insert_silence(&tx, told).await?;
        // Another may have noted it meanwhile.
        let extend = sql!(
            "UPDATE silence SET lived_until = {2}, found_by = {3}, decision = '' WHERE from_at = {1} AND lived_until < {2}"
        );
        let values = [told.from.into(), told.lived_until.into(), clean(&told.found_by).into()];
        tx.execute(&extend, values).await?;
        self.bump_rules(&tx).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn insert_silence(&self, tx: &Transaction<'_>, silence: &Silence) -> Result<()> {
        let sql = sql!(|d| format!(
            "INSERT INTO silence (from_at, until_at, lived_until, found_by, decision) VALUES ({{1}}, {{2}}, {{3}}, {{4}}, '') \
             {}",
            d.or_ignore("silence", "from_at")
        ));
        let Silence { from, until, lived_until, found_by, .. } = silence;
        let values = [(*from).into(), (*until).into(), (*lived_until).into(), clean(found_by).into()];
        tx.execute(&sql, values).await.map(drop)
    }
}

from_row!(Silence {
    from: "from_at",
    until: "until_at",
    lived_until,
    found_by,
    decision = decision,
});

/// An unknown word, of a later release, is no decision.
fn decision(row: &QueryResult) -> Read<Option<PastDecision>> {
    let word: String = column(row, "decision")?;
    Ok(serde_json::from_value(word.into()).ok())
}
