//! The audit: entries are written in the transaction that makes the change, whatever that is.
//!
//! [`SqlStore::noting`] answers a store whose next commit writes notes, too. So no function that
//! changes something need know of the audit, and none can forget it.

use super::conditions::Conditions;
use super::dialect::Kind;
use super::notes::Notes;
use super::row::{FromRow, from_row};
use super::scripts::write_scripts;
use super::sql_store::Transaction;
use super::statement::Sql;
use super::values::to_json;
use super::xxljob_words::write_words;
use super::{Beside, Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::audit::{AuditEntry, AuditNote, Chain};
use crate::domain::{AccessScope, TenantId};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a commit that got no answer is looked for: longer than a session that is left alone, or waits for a lock, keeps
/// what it has changed.
const LOOK_MAX: Duration = Duration::from_secs(15);

/// Between two looks at it.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A chain, and where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainView {
    /// Whose; 0 is the platform's.
    pub tenant_id: TenantId,
    /// Name of the tenant, while it is there.
    pub tenant: Option<String>,
    /// Its end.
    pub end: Chain,
}

/// Columns of an entry `e`.
pub(super) const COLUMNS: &str = "e.id, e.tenant_id, e.seq, e.at, e.actor_kind, e.actor_id, e.actor, e.address, e.action, \
     e.target_kind, e.target_id, e.target, e.before_json, e.after_json, e.previous, e.hash";

/// Columns of a batch of entries, in the order of [`COLUMNS`].
const BATCH: [(&str, Kind); 16] = [
    ("id", Kind::Big),
    ("tenant_id", Kind::Big),
    ("seq", Kind::Big),
    ("at", Kind::Big),
    ("actor_kind", Kind::Text),
    ("actor_id", Kind::Big),
    ("actor", Kind::Text),
    ("address", Kind::Text),
    ("action", Kind::Text),
    ("target_kind", Kind::Text),
    ("target_id", Kind::Text),
    ("target", Kind::Text),
    ("before_json", Kind::Text),
    ("after_json", Kind::Text),
    ("previous", Kind::Text),
    ("hash", Kind::Text),
];

impl Transaction<'_> {
    /// Writes what is noted, and commits. What is noted also shows whether a commit has happened that got no answer.
    pub(super) async fn commit(self) -> Result<()> {
        let (store, action) = (self.store, self.action());
        let Some(notes) = store.notes.open() else { return self.end().await };
        if let Some(beside) = store.notes.open_beside() {
            write_words(&self, &beside.words).await?;
            write_scripts(&self, &beside.scripts).await?;
        }
        let Some(entry) = store.append_notes(&self, notes).await? else { return self.end().await };
        match self.end().await {
            Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                store.look_for_commit(action, &entry).await.unwrap_or(Err(error))
            }
            done => done,
        }
    }
}

impl SqlStore {
    /// A store whose next commit writes these notes.
    #[must_use]
    pub fn noting(&self, notes: Vec<AuditNote>) -> Self {
        self.noting_beside(notes, Beside::default())
    }

    /// The same, and what is kept of tasks beside their definitions.
    #[must_use]
    pub fn noting_beside(&self, notes: Vec<AuditNote>, beside: Beside) -> Self {
        let mut store = self.clone();
        store.notes = Notes::new(notes, beside);
        store
    }

    /// Appends to the chains of the notes' tenants. Their ends are held until the commit, in one
    /// order, so that no two writers wait for each other. Answers the last entry that it wrote.
    pub(super) async fn append_notes(&self, tx: &Transaction<'_>, notes: &[AuditNote]) -> Result<Option<AuditEntry>> {
        let mut last = None;
        let tenants: BTreeSet<TenantId> = notes.iter().map(|note| note.tenant_id).collect();
        for tenant in tenants {
            let mut chain = self.hold_chain(tx, tenant).await?;
            let mut entries = Vec::new();
            for note in notes.iter().filter(|note| note.tenant_id == tenant) {
                let entry = AuditEntry::follow(note, chain.seq, &chain.hash);
                chain = Chain { seq: entry.seq, hash: entry.hash.clone() };
                entries.push(entry);
            }
            self.insert_entries(tx, &entries).await?;
            let end = sql!("UPDATE audit_head SET seq = {2}, hash = {3} WHERE id = {1}");
            tx.execute(&end, [tenant.into(), chain.seq.into(), chain.hash.into()]).await?;
            last = entries.pop().or(last);
        }
        Ok(last)
    }

    /// Whether a commit that got no answer has happened, by an entry that it was to write: done, or an error after which the
    /// same may be tried again at once. Nothing if the database does not tell within [`LOOK_MAX`].
    async fn look_for_commit(&self, action: &'static str, entry: &AuditEntry) -> Option<Result<()>> {
        let until = Instant::now() + LOOK_MAX;
        loop {
            match self.has_entry(entry).await {
                Ok(true) => {
                    tracing::info!(action, "a commit that got no answer has happened");
                    self.notes.close();
                    return Some(Ok(()));
                }
                Ok(false) => {
                    let detail = "the commit got no answer, and has not happened";
                    return Some(Err(StoreError::new(StoreErrorKind::Contention, action, detail)));
                }
                Err(error) if Instant::now() >= until => {
                    tracing::warn!(action, %error, "whether a commit has happened that got no answer is not known");
                    return None;
                }
                Err(_) => tokio::time::sleep(LOOK_INTERVAL).await,
            }
        }
    }

    /// Whether an entry is committed. The end of its chain is held for the look: whoever was to write it has come to an end.
    async fn has_entry(&self, entry: &AuditEntry) -> Result<bool> {
        let tx = self.begin_at_any_time("look for a commit").await?;
        self.hold_chain(&tx, entry.tenant_id).await?;
        let read = sql!("SELECT hash FROM audit_entry WHERE tenant_id = {1} AND seq = {2}");
        let found: Vec<String> = tx.query(&read, [entry.tenant_id.into(), entry.seq.into()]).await?;
        tx.rollback().await?;
        Ok(found.contains(&entry.hash))
    }

    /// The end of a chain, which no one else moves until the commit.
    async fn hold_chain(&self, tx: &Transaction<'_>, tenant: TenantId) -> Result<Chain> {
        let hold = sql!("UPDATE audit_head SET seq = seq + 1 WHERE id = {1}");
        if tx.execute(&hold, [tenant.into()]).await? == 0 {
            let insert = sql!(|d| format!(
                "INSERT INTO audit_head (id, seq, hash) VALUES ({{1}}, 0, '') {}",
                d.or_ignore("audit_head", "id")
            ));
            tx.execute(&insert, [tenant.into()]).await?;
            tx.execute(&hold, [tenant.into()]).await?;
        }
        let read = sql!("SELECT seq - 1 AS seq, hash FROM audit_head WHERE id = {1}");
        let found = tx.query(&read, [tenant.into()]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    async fn insert_entries(&self, tx: &Transaction<'_>, entries: &[AuditEntry]) -> Result<()> {
        let names = BATCH.map(|(name, _)| name);
        let sql = Sql::new(
            self.backend,
            &format!(
                "INSERT INTO audit_entry ({}) SELECT n_{} FROM {}",
                names.join(", "),
                names.join(", n_"),
                self.backend.rows(1, &BATCH)
            ),
        );
        let values: Vec<_> = entries
            .iter()
            .map(|e| {
                json!([
                    e.id,
                    e.tenant_id,
                    e.seq,
                    e.at,
                    e.actor_kind,
                    e.actor_id,
                    e.actor,
                    e.address,
                    e.action,
                    e.target_kind,
                    e.target_id,
                    e.target,
                    e.before,
                    e.after,
                    e.previous,
                    e.hash,
                ])
            })
            .collect();
        tx.execute(&sql, [to_json("write the audit", &values)?.into()]).await.map(drop)
    }

    /// Where the chains within reach end, by tenant, after that of a tenant: the platform's, those
    /// of all tenants, and those that tenants have left behind which are no more.
    pub async fn audit_chains(
        &self,
        access_scope: &AccessScope,
        after: TenantId,
        limit: u64,
    ) -> Result<Vec<ChainView>> {
        let head = "SELECT c.id, n.name, COALESCE(h.seq, 0) AS seq, COALESCE(h.hash, '') AS hash FROM (SELECT id FROM audit_head \
             WHERE id > {1} UNION SELECT id FROM tenant WHERE id > {1} UNION SELECT 0) c LEFT JOIN tenant n ON n.id = c.id \
             LEFT JOIN audit_head h ON h.id = c.id WHERE c.id > {1}";
        let mut wanted = Conditions::new(head.to_owned(), vec![after.into()]);
        wanted.within(access_scope, "c.id", None);
        let statement = wanted.finish(self, "ORDER BY c.id", limit);
        self.query_raw("list the chains of the audit", statement).await
    }

    /// Entries of one chain in its order, after a place.
    pub async fn audit_chain(&self, tenant_id: TenantId, after: i64, limit: u64) -> Result<Vec<AuditEntry>> {
        let sql = sql!(format!(
            "SELECT {COLUMNS} FROM audit_entry e WHERE e.tenant_id = {{1}} AND e.seq > {{2}} ORDER BY e.seq LIMIT {{3}}"
        ));
        self.query("read the audit", &sql, [tenant_id.into(), after.into(), limit.into()]).await
    }

    /// Where the chain of a tenant ends.
    pub async fn audit_end(&self, tenant_id: TenantId) -> Result<Chain> {
        let sql = sql!("SELECT seq, hash FROM audit_head WHERE id = {1}");
        let found = self.query("read the audit", &sql, [tenant_id.into()]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }
}

from_row!(Chain { seq, hash });

from_row!(AuditEntry {
    id,
    tenant_id,
    seq,
    at,
    actor_kind,
    actor_id,
    actor,
    address,
    action,
    target_kind,
    target_id,
    target,
    before: "before_json",
    after: "after_json",
    previous,
    hash,
});

from_row!(ChainView { tenant_id: "id", tenant: "name", end = FromRow::from_row });
