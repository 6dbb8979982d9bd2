//! The audit: who did what to what, from where, and how it was before and after. The entries of a
//! tenant form a chain: each carries the hash of the one before it, so that none can be changed,
//! left out or put in later without breaking it.

use super::action::{Action, AuditAction};
use super::{TaskId, TenantId};
use crate::domain::UserId;
use carillon_protocol::sign::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `user`, `token`, `setting` (the configured token), `oidc` (the provider of single sign-on), `node` (what the
    /// engine does by itself), or `executor` (what its registration brings about).
    pub kind: &'static str,
    /// The user's id; 0 when there is none.
    pub id: UserId,
    /// Name, as it was then; of an executor the id of the key that it signed with.
    pub name: String,
    /// Address that it came from; of a node or an executor the one that it listens at.
    pub address: String,
}

/// What it is done to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// Kind of thing: `task`, `user` …
    pub kind: &'static str,
    /// Id, or what stands for it.
    pub id: String,
    /// Name, as it was then.
    pub name: String,
}

impl Target {
    /// A task.
    #[must_use]
    pub fn task(id: TaskId, name: &str) -> Self {
        Self { kind: "task", id: id.to_string(), name: name.to_owned() }
    }
}

/// A change, to be written in the transaction that makes it.
#[derive(Debug, Clone)]
pub struct AuditNote {
    /// Id of the entry.
    pub id: i64,
    /// Whose chain; 0 is the platform's.
    pub tenant_id: TenantId,
    /// When, ms.
    pub at: i64,
    /// Who.
    pub actor: Actor,
    /// Operation, as the API calls it.
    pub action: Action,
    /// To what.
    pub target: Target,
    /// What it was, as JSON, without secrets.
    pub before: Option<String>,
    /// What it is now.
    pub after: Option<String>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Id.
    #[serde(with = "id")]
    #[schema(value_type = String)]
    pub id: i64,
    /// Tenant's id; null is the platform.
    #[serde(with = "id_or_null")]
    #[schema(value_type = Option<String>)]
    pub tenant_id: TenantId,
    /// Position in its chain, from 1.
    pub seq: i64,
    /// When, epoch ms.
    pub at: i64,
    /// `user`, `token`, `setting` (`api.token`), `oidc`, `node` (by itself), `executor` (by its registration) or
    /// `command` (on the database itself).
    pub actor_kind: String,
    /// The user's id.
    #[serde(with = "id_or_null")]
    #[schema(value_type = Option<String>)]
    pub actor_id: UserId,
    /// Name of the actor; for an executor, the id of its key.
    pub actor: String,
    /// Address of the actor; for a node or an executor, the one it listens on.
    pub address: String,
    /// The action: an operation of this API, or an effect of a registration.
    #[schema(value_type = AuditAction)]
    pub action: String,
    /// Kind of thing.
    pub target_kind: String,
    /// Its id.
    pub target_id: String,
    /// Its name.
    pub target: String,
    /// State before, as JSON.
    pub before: Option<String>,
    /// State after, as JSON.
    pub after: Option<String>,
    /// Hash of the entry before it.
    pub previous: String,
    /// Its own hash.
    pub hash: String,
}

/// A page of a chain, and where the chain ends.
#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct ChainPage {
    pub(crate) items: Vec<AuditEntry>,
    /// Whose chain (id); null is the platform's.
    #[serde(with = "id_or_null")]
    #[schema(value_type = Option<String>)]
    pub(crate) tenant_id: TenantId,
    /// Place of its last entry.
    pub(crate) last_seq: i64,
    /// Hash of its last entry.
    pub(crate) last_hash: String,
}

/// An id is text in JSON: numbers of 64 bits lose digits in browsers.
mod id {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for it
    pub fn serialize<S: Serializer>(id: &i64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// An id that is null in JSON when it is 0: no owner, or the platform.
mod id_or_null {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for it
    pub fn serialize<Id: Copy + Into<i64>, S: Serializer>(id: &Id, to: S) -> Result<S::Ok, S::Error> {
        let id: i64 = (*id).into();
        if id == 0 { to.serialize_none() } else { to.collect_str(&id) }
    }

    pub fn deserialize<'de, Id: From<i64>, D: Deserializer<'de>>(from: D) -> Result<Id, D::Error> {
        let id = Option::<String>::deserialize(from)?.map_or(Ok(0), |id| id.parse().map_err(D::Error::custom));
        id.map(Id::from)
    }
}

impl AuditEntry {
    /// The next entry of a chain whose last one is (`seq`, `previous`).
    #[must_use]
    pub fn follow(note: &AuditNote, seq: i64, previous: &str) -> Self {
        let mut entry = Self {
            id: note.id,
            tenant_id: note.tenant_id,
            seq: seq + 1,
            at: note.at,
            actor_kind: note.actor.kind.to_owned(),
            actor_id: note.actor.id,
            actor: note.actor.name.clone(),
            address: note.actor.address.clone(),
            action: note.action.as_str().to_owned(),
            target_kind: note.target.kind.to_owned(),
            target_id: note.target.id.clone(),
            target: note.target.name.clone(),
            before: note.before.clone(),
            after: note.after.clone(),
            previous: previous.to_owned(),
            hash: String::new(),
        };
        entry.hash = entry.digest();
        entry
    }

    /// What its hash must be: lower-case hex SHA-256 over its fields in their order, each as
    /// length, colon and text, so that nothing can move from one field to the next.
    #[must_use]
    pub fn digest(&self) -> String {
        let numbers = [self.id, self.tenant_id.0, self.seq, self.at, self.actor_id.0].map(|number| number.to_string());
        let mut sha = Sha256::new();
        let texts = [
            &self.actor_kind,
            &self.actor,
            &self.address,
            &self.action,
            &self.target_kind,
            &self.target_id,
            &self.target,
            &self.previous,
        ];
        for text in numbers.iter().chain(texts) {
            sha.update(format!("{}:{text}", text.len()));
        }
        for text in [&self.before, &self.after] {
            match text {
                Some(text) => sha.update(format!("{}:{text}", text.len())),
                None => sha.update("-"),
            }
        }
        hex(&sha.finalize())
    }
}

/// Follows a chain entry by entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// Place of the last entry seen.
    pub seq: i64,
    /// Its hash.
    pub hash: String,
}

impl Chain {
    /// Takes the next entry.
    ///
    /// # Errors
    /// Where and how the chain is broken.
    pub fn take(&mut self, entry: &AuditEntry) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("entry {} ({}): {what}", entry.seq, entry.id));
        if entry.seq != self.seq + 1 {
            return wrong(&format!("entry {} was expected; entries are missing or were inserted", self.seq + 1));
        }
        if entry.previous != self.hash {
            return wrong("it does not follow the entry before it; one of the two was changed");
        }
        if entry.digest() != entry.hash {
            return wrong("its content has been changed");
        }
        (self.seq, self.hash) = (entry.seq, entry.hash.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Vec<AuditEntry> {
        let mut last = Chain::default();
        let mut entries = Vec::new();
        for id in 1..=3 {
            let actor = Actor { kind: "user", id: UserId(9), name: "ann".to_owned(), address: "10.0.0.1".to_owned() };
            let target = Target { kind: "task", id: id.to_string(), name: "pay".to_owned() };
            let (before, after) = (None, Some("{}".to_owned()));
            let note = AuditNote {
                id,
                tenant_id: TenantId(7),
                at: id * 10,
                actor,
                action: Action::EditTask,
                target,
                before,
                after,
            };
            let entry = AuditEntry::follow(&note, last.seq, &last.hash);
            last.take(&entry).unwrap();
            entries.push(entry);
        }
        entries
    }

    fn verify(entries: &[AuditEntry]) -> Result<(), String> {
        let mut chain = Chain::default();
        entries.iter().try_for_each(|entry| chain.take(entry))
    }

    #[test]
    fn whatever_is_changed_breaks_the_chain() {
        assert_eq!(verify(&chain()), Ok(()));
        let changes: [fn(&mut Vec<AuditEntry>); 7] = [
            |entries| entries[1].actor = "bob".to_owned(),
            |entries| entries[1].before = Some(String::new()),
            |entries| entries[1].at += 1,
            |entries| drop(entries.remove(1)),
            |entries| entries.swap(0, 1),
            |entries| {
                // Rehashed, it is no longer the entry that the next one follows.
                entries[1].after = Some("{\"x\":1}".to_owned());
                entries[1].hash = entries[1].digest();
            },
            |entries| {
                // Text moved from one field to the next.
                entries[0].target_id = "1p".to_owned();
                entries[0].target = "ay".to_owned();
            },
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut entries = chain();
            change(&mut entries);
            assert!(verify(&entries).is_err(), "change {at}");
        }
    }
}
