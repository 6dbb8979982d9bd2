//! The audit: entries are written in the transaction that makes the change, whatever that is.
//!
//! [`SqlStore::noting`] answers a store whose next commit writes notes, too. So no function that
//! changes something need know of the audit, and none can forget it.

use super::conditions::Conditions;
use super::connect::Transaction;
use super::dialect::{Kind, Sql, or_ignore, rows};
use super::rows::to_json;
use super::{Result, SqlStore};
use crate::domain::Reach;
use crate::domain::audit::{AuditEntry, AuditNote, Chain};
use sea_orm::{DbErr, QueryResult};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes that the next commit writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Option<Arc<Pending>>);

#[derive(Debug)]
struct Pending {
    notes: Vec<AuditNote>,
    is_written: AtomicBool,
}

impl Notes {
    /// What is still to be written.
    pub fn open(&self) -> Option<&[AuditNote]> {
        self.0.as_ref().filter(|pending| !pending.is_written.load(Ordering::Acquire)).map(|pending| &pending.notes[..])
    }

    /// They are committed.
    pub fn close(&self) {
        if let Some(pending) = &self.0 {
            pending.is_written.store(true, Ordering::Release);
        }
    }
}

/// Which entries to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of this tenant; 0 is the platform.
    pub tenant_id: Option<i64>,
    /// Only about the thing of this id.
    pub target_id: Option<String>,
    /// Only about this kind of thing.
    pub target_kind: Option<String>,
    /// Only what this user did.
    pub actor_id: Option<i64>,
    /// Only this operation.
    pub action: Option<String>,
    /// From this instant on, ms.
    pub from: Option<i64>,
    /// Before this instant, ms.
    pub until: Option<i64>,
    /// With a smaller id.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u64,
}

const COLUMNS: &str = "e.id, e.tenant_id, e.seq, e.at, e.actor_kind, e.actor_id, e.actor, e.address, e.action, \
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

impl SqlStore {
    /// A store whose next commit writes these notes.
    #[must_use]
    pub fn noting(&self, notes: Vec<AuditNote>) -> Self {
        let pending = Pending { notes, is_written: AtomicBool::new(false) };
        let mut store = self.clone();
        store.notes = Notes(Some(Arc::new(pending)));
        store
    }

    /// Writes notes by themselves: about what is not a change of the database.
    pub async fn write_notes(&self, notes: Vec<AuditNote>) -> Result<()> {
        let store = self.noting(notes);
        super::connect::retrying(|| async { store.begin("write the audit").await?.commit().await }).await
    }

    /// Appends to the chains of the notes' tenants. Their ends are held until the commit, in one
    /// order, so that no two writers wait for each other.
    pub(super) async fn append_notes(&self, tx: &Transaction<'_>, notes: &[AuditNote]) -> Result<()> {
        let tenants: BTreeSet<i64> = notes.iter().map(|note| note.tenant_id).collect();
        for tenant in tenants {
            let mut chain = self.hold_chain(tx, tenant).await?;
            let mut entries = Vec::new();
            for note in notes.iter().filter(|note| note.tenant_id == tenant) {
                let entry = AuditEntry::follow(note, chain.seq, &chain.hash);
                chain = Chain { seq: entry.seq, hash: entry.hash.clone() };
                entries.push(entry);
            }
            self.insert_entries(tx, &entries).await?;
            let end = Sql::new(self.backend, "UPDATE audit_head SET seq = {2}, hash = {3} WHERE id = {1}");
            tx.execute(&end, [tenant.into(), chain.seq.into(), chain.hash.into()]).await?;
        }
        Ok(())
    }

    /// The end of a chain, which nobody else moves until the commit.
    async fn hold_chain(&self, tx: &Transaction<'_>, tenant: i64) -> Result<Chain> {
        let hold = Sql::new(self.backend, "UPDATE audit_head SET seq = seq + 1 WHERE id = {1}");
        if tx.execute(&hold, [tenant.into()]).await? == 0 {
            let insert = Sql::new(
                self.backend,
                &format!(
                    "INSERT INTO audit_head (id, seq, hash) VALUES ({{1}}, 0, '') {}",
                    or_ignore(self.backend, "id")
                ),
            );
            tx.execute(&insert, [tenant.into()]).await?;
            tx.execute(&hold, [tenant.into()]).await?;
        }
        let read = Sql::new(self.backend, "SELECT seq - 1, hash FROM audit_head WHERE id = {1}");
        let found = tx.query(&read, [tenant.into()], chain).await?;
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
                rows(self.backend, 1, &BATCH)
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

    /// Entries within reach, newest first.
    pub async fn list_audit(&self, reach: &Reach, filter: &AuditFilter) -> Result<Vec<AuditEntry>> {
        let head = format!("SELECT {COLUMNS} FROM audit_entry e WHERE e.id > {{1}}");
        let mut wanted = Conditions::new(head, vec![0i64.into()]);
        // The entries of a tenant are the tenant's, whatever app they are about.
        wanted.within(reach, "e.tenant_id", None);
        wanted.and("e.tenant_id = ", filter.tenant_id);
        wanted.and("e.target_id = ", filter.target_id.clone());
        wanted.and("e.target_kind = ", filter.target_kind.clone());
        wanted.and("e.actor_id = ", filter.actor_id);
        wanted.and("e.action = ", filter.action.clone());
        wanted.and("e.at >= ", filter.from);
        wanted.and("e.at < ", filter.until);
        wanted.and("e.id < ", filter.before);
        let statement = wanted.finish(self, "ORDER BY e.id DESC", filter.limit);
        self.query_raw("search the audit", statement, entry).await
    }

    /// Entries of one chain in its order, after a place.
    pub async fn audit_chain(&self, tenant_id: i64, after: i64, limit: u64) -> Result<Vec<AuditEntry>> {
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT {COLUMNS} FROM audit_entry e WHERE e.tenant_id = {{1}} AND e.seq > {{2}} ORDER BY e.seq LIMIT {{3}}"
            ),
        );
        self.query("read the audit", &sql, [tenant_id.into(), after.into(), limit.into()], entry).await
    }

    /// Where the chain of a tenant ends.
    pub async fn audit_end(&self, tenant_id: i64) -> Result<Chain> {
        let sql = Sql::new(self.backend, "SELECT seq, hash FROM audit_head WHERE id = {1}");
        let found = self.query("read the audit", &sql, [tenant_id.into()], chain).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }
}

fn chain(row: &QueryResult) -> std::result::Result<Chain, DbErr> {
    Ok(Chain { seq: row.try_get_by_index(0)?, hash: row.try_get_by_index(1)? })
}

fn entry(row: &QueryResult) -> std::result::Result<AuditEntry, DbErr> {
    Ok(AuditEntry {
        id: row.try_get_by_index(0)?,
        tenant_id: row.try_get_by_index(1)?,
        seq: row.try_get_by_index(2)?,
        at: row.try_get_by_index(3)?,
        actor_kind: row.try_get_by_index(4)?,
        actor_id: row.try_get_by_index(5)?,
        actor: row.try_get_by_index(6)?,
        address: row.try_get_by_index(7)?,
        action: row.try_get_by_index(8)?,
        target_kind: row.try_get_by_index(9)?,
        target_id: row.try_get_by_index(10)?,
        target: row.try_get_by_index(11)?,
        before: row.try_get_by_index(12)?,
        after: row.try_get_by_index(13)?,
        previous: row.try_get_by_index(14)?,
        hash: row.try_get_by_index(15)?,
    })
}
