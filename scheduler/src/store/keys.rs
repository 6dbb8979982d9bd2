//! Keys of executors: made, rotated, revoked, and when they were last used. Each belongs to one
//! (tenant, app), which stands in every statement.

use super::conditions::Conditions;
use super::connect::{Transaction, retrying};
use super::dialect::{Kind, Sql};
use super::rows::{clean, to_json};
use super::{Result, Scope, SqlStore, StoreError, StoreErrorKind};
use crate::domain::Reach;
use carillon_protocol::sign::{Key, SignMethod};
use sea_orm::{DbErr, QueryResult};
use std::cmp::Reverse;

/// Valid keys of an app at most.
pub const KEYS_MAX: i64 = 10;

/// Valid keys that a list looks at: more than there can be of one app.
const VALID_LOOKED_AT_MAX: u64 = 100;

/// A key with whose it is, for checking and making signatures.
#[derive(Debug, Clone)]
pub struct SigningKey {
    /// Id and secret.
    pub key: Key,
    /// Owner.
    pub scope: Scope,
    /// Tenant's name, as it stands in the signature.
    pub tenant: String,
    /// App's name, as it stands in the signature.
    pub app: String,
    /// When it ends, cluster ms; 0 is never.
    pub expires_at: i64,
    /// How the app demands that everything is signed; `None` leaves it to the executor.
    pub demanded: Option<SignMethod>,
}

impl SigningKey {
    /// Whether it has not ended at `now` (cluster ms).
    #[must_use]
    pub fn is_valid(&self, now: i64) -> bool {
        self.expires_at == 0 || self.expires_at > now
    }
}

/// A key as people see it: without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyView {
    /// Public id.
    pub id: String,
    /// What it is for.
    pub note: String,
    /// Who made it.
    pub created_by: String,
    /// When it was made, ms.
    pub created_at: i64,
    /// When it ends, ms; 0 is never.
    pub expires_at: i64,
    /// When it was revoked, ms; 0 when it was not.
    pub revoked_at: i64,
    /// When it last signed something, to a minute or so, ms; 0 is never.
    pub last_used_at: i64,
}

impl KeyView {
    /// Whether it is neither revoked nor has ended at `now` (cluster ms).
    #[must_use]
    pub fn is_valid(&self, now: i64) -> bool {
        self.revoked_at == 0 && (self.expires_at == 0 || self.expires_at > now)
    }

    /// Where it stands in its app's list at `now` (cluster ms).
    #[must_use]
    pub fn place(&self, now: i64) -> KeyPlace {
        KeyPlace { is_valid: self.is_valid(now), created_at: self.created_at, id: self.id.clone() }
    }
}

/// A place in an app's list of keys; a later one is less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPlace {
    /// Valid ones come first.
    pub is_valid: bool,
    /// Then the newest, ms.
    pub created_at: i64,
    /// Id.
    pub id: String,
}

/// What people say about a key that they make.
#[derive(Debug, Clone, Copy)]
pub struct KeyWords<'a> {
    /// What it is for.
    pub note: &'a str,
    /// Who makes it.
    pub created_by: &'a str,
}

/// That a key was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// The key.
    pub id: String,
    /// Its owner.
    pub scope: Scope,
    /// When, cluster ms.
    pub at: i64,
}

const LIST: &str = "list keys";

/// A key that is valid at `{3}`.
const VALID: &str = "revoked_at = 0 AND (expires_at = 0 OR expires_at > {3})";

impl SqlStore {
    /// Every valid key of every app.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKey>> {
        self.query("read signing keys", &self.sql.signing_keys, [], signing_key).await
    }

    /// Keys of an app after a place: those that are valid at `now` (cluster ms), then the others, the
    /// newest first.
    pub async fn keys(&self, scope: Scope, now: i64, after: Option<&KeyPlace>, limit: u64) -> Result<Vec<KeyView>> {
        let mut found = Vec::new();
        if after.is_none_or(|place| place.is_valid) {
            // So few that they are put in order here: a database could go by the age of all keys.
            let valid = Self::keys_that(VALID, scope, now).finish(self, "", VALID_LOOKED_AT_MAX);
            found = self.query_raw(LIST, valid, key_view).await?;
            found.retain(|key| after.is_none_or(|after| key.place(now) < *after));
            found.sort_by_key(|key| Reverse(key.place(now)));
            found.truncate(limit as usize);
        }
        let rest = limit - found.len() as u64;
        if rest > 0 {
            let mut ended = Self::keys_that(&format!("NOT ({VALID})"), scope, now);
            if let Some(KeyPlace { created_at, id, .. }) = after.filter(|place| !place.is_valid) {
                let (at, id) = (ended.push(*created_at), ended.push(id.as_str()));
                // The first for the index: databases do not see it in what follows.
                ended.text =
                    format!("{} AND created_at <= {{{at}}} AND (created_at < {{{at}}} OR id < {{{id}}})", ended.text);
            }
            let ended = ended.finish(self, "ORDER BY created_at DESC, id DESC", rest);
            found.extend(self.query_raw(LIST, ended, key_view).await?);
        }
        Ok(found)
    }

    fn keys_that(hold: &str, scope: Scope, now: i64) -> Conditions {
        let text = format!(
            "SELECT id, note, created_by, created_at, expires_at, revoked_at, last_used_at FROM app_key \
             WHERE tenant_id = {{1}} AND app_id = {{2}} AND {hold}"
        );
        Conditions::new(text, vec![scope.tenant_id.into(), scope.app_id.into(), now.into()])
    }

    /// The key of that id, if its app lies within reach, with the app.
    pub async fn key(&self, reach: &Reach, id: &str) -> Result<(Scope, KeyView)> {
        const ACTION: &str = "find a key";
        let head = "SELECT id, note, created_by, created_at, expires_at, revoked_at, last_used_at, tenant_id, app_id \
             FROM app_key WHERE id = {1}";
        let mut wanted = Conditions::new(head.to_owned(), vec![id.into()]);
        wanted.within(reach, "tenant_id", Some("app_id"));
        let found = self.query_raw(ACTION, wanted.finish(self, "", 1), |row| {
            Ok((Scope { tenant_id: row.try_get_by_index(7)?, app_id: row.try_get_by_index(8)? }, key_view(row)?))
        });
        found.await?.pop().ok_or_else(|| not_found(ACTION, id))
    }

    /// Adds a key to an app.
    pub async fn create_key(&self, scope: Scope, key: &Key, words: KeyWords<'_>, now: i64) -> Result<()> {
        retrying(|| async {
            let tx = self.begin("create a key").await?;
            self.make_room(&tx, scope, now).await?;
            self.insert_key(&tx, scope, key, words, now).await?;
            tx.commit().await
        })
        .await
    }

    /// Adds a key to an app; every key before it ends `overlap_ms` from now at the latest.
    pub async fn rotate_key(
        &self,
        scope: Scope,
        key: &Key,
        words: KeyWords<'_>,
        overlap_ms: i64,
        now: i64,
    ) -> Result<()> {
        let end = Sql::new(
            self.backend,
            &format!("UPDATE app_key SET expires_at = {{3}} WHERE tenant_id = {{1}} AND app_id = {{2}} AND {VALID}"),
        );
        retrying(|| async {
            let tx = self.begin("rotate a key").await?;
            self.make_room(&tx, scope, now).await?;
            tx.execute(&end, [scope.tenant_id.into(), scope.app_id.into(), (now + overlap_ms).into()]).await?;
            self.insert_key(&tx, scope, key, words, now).await?;
            tx.commit().await
        })
        .await
    }

    /// Ends a key of an app at once; one that has been revoked before stays so.
    pub async fn revoke_key(&self, scope: Scope, id: &str, now: i64) -> Result<()> {
        const ACTION: &str = "revoke a key";
        let sql = Sql::new(
            self.backend,
            "UPDATE app_key SET revoked_at = CASE WHEN revoked_at = 0 THEN {4} ELSE revoked_at END \
             WHERE id = {1} AND tenant_id = {2} AND app_id = {3}",
        );
        let values = [id.into(), scope.tenant_id.into(), scope.app_id.into(), now.into()];
        if self.execute(ACTION, &sql, values).await? == 0 {
            return Err(not_found(ACTION, id));
        }
        Ok(())
    }

    /// Writes down when keys were last used; an older use changes nothing.
    pub async fn note_key_uses(&self, uses: &[KeyUse]) -> Result<()> {
        const ACTION: &str = "note the last use of keys";
        const USE: &[(&str, Kind)] =
            &[("id", Kind::Text), ("tenant_id", Kind::Big), ("app_id", Kind::Big), ("at", Kind::Big)];
        let sql = Sql::new(
            self.backend,
            &self.backend.update_from(
                "app_key",
                "last_used_at = v.n_at",
                &self.backend.rows(1, USE),
                "l.id = v.n_id AND l.tenant_id = v.n_tenant_id AND l.app_id = v.n_app_id AND l.last_used_at < v.n_at",
            ),
        );
        for batch in uses.chunks(super::BATCH_MAX) {
            let rows: Vec<_> =
                batch.iter().map(|used| (&used.id, used.scope.tenant_id, used.scope.app_id, used.at)).collect();
            self.execute(ACTION, &sql, [to_json(ACTION, &rows)?.into()]).await?;
        }
        Ok(())
    }

    /// Locks the app, so that keys are made one after another, and counts.
    async fn make_room(&self, tx: &Transaction<'_>, scope: Scope, now: i64) -> Result<()> {
        const ACTION: &str = "make a key";
        let lock =
            Sql::new(self.backend, "UPDATE app SET sign_method = sign_method WHERE id = {1} AND tenant_id = {2}");
        if tx.execute(&lock, [scope.app_id.into(), scope.tenant_id.into()]).await? == 0 {
            return Err(no_app(ACTION));
        }
        let count = Sql::new(
            self.backend,
            &format!("SELECT COUNT(*) FROM app_key WHERE tenant_id = {{1}} AND app_id = {{2}} AND {VALID}"),
        );
        let values = [scope.tenant_id.into(), scope.app_id.into(), now.into()];
        let counted = tx.query(&count, values, |row| row.try_get_by_index::<i64>(0)).await?;
        if counted.first().is_some_and(|valid| *valid >= KEYS_MAX) {
            let detail = format!("the app has {KEYS_MAX} valid keys; revoke those that nobody uses any more");
            return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
        }
        Ok(())
    }

    pub(super) async fn insert_key(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        key: &Key,
        words: KeyWords<'_>,
        now: i64,
    ) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            "INSERT INTO app_key (id, tenant_id, app_id, secret, created_at, revoked_at, note, expires_at, last_used_at, \
             created_by) VALUES ({1}, {2}, {3}, {4}, {5}, 0, {6}, 0, 0, {7})",
        );
        let values = [
            key.id.clone().into(),
            scope.tenant_id.into(),
            scope.app_id.into(),
            key.secret.clone().into(),
            now.into(),
            clean(words.note).into(),
            clean(words.created_by).into(),
        ];
        tx.execute(&sql, values).await.map(drop)
    }
}

fn signing_key(row: &QueryResult) -> std::result::Result<SigningKey, DbErr> {
    Ok(SigningKey {
        key: Key { id: row.try_get_by_index(0)?, secret: row.try_get_by_index(1)? },
        scope: Scope { tenant_id: row.try_get_by_index(2)?, app_id: row.try_get_by_index(3)? },
        tenant: row.try_get_by_index(4)?,
        app: row.try_get_by_index(5)?,
        expires_at: row.try_get_by_index(6)?,
        demanded: SignMethod::parse(&row.try_get_by_index::<String>(7)?),
    })
}

fn key_view(row: &QueryResult) -> std::result::Result<KeyView, DbErr> {
    Ok(KeyView {
        id: row.try_get_by_index(0)?,
        note: row.try_get_by_index(1)?,
        created_by: row.try_get_by_index(2)?,
        created_at: row.try_get_by_index(3)?,
        expires_at: row.try_get_by_index(4)?,
        revoked_at: row.try_get_by_index(5)?,
        last_used_at: row.try_get_by_index(6)?,
    })
}

fn not_found(action: &'static str, id: &str) -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, action, format!("there is no key `{id}`"))
}

fn no_app(action: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, action, "there is no such app")
}
