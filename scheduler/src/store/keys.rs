//! Keys of executors: made, rotated, revoked, and when they were last used. Each belongs to one
//! (tenant, app), which stands in every statement.

use super::conditions::within;
use super::dialect::Kind;
use super::encrypted_secrets::{encrypt_secret, place_of_key};
use super::encryption::EncryptionError;
use super::entity::{app, app_key};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::row::{Read, column, from_row};
use super::rows;
use super::sql::ID;
use super::sql_store::{Transaction, retrying};
use super::statement::Sql;
use super::traits::{KeyStore, KeyUse, SigningKey};
use super::values::{clean, list, to_json};
use super::{Result, SqlStore, StoreError};
use crate::domain::{AccessScope, AppId, Owner, Refusal, TenantId};
use async_trait::async_trait;
use carillon_protocol::sign::{Key, SignMethod};
use sea_orm::QueryResult;
use std::cmp::Reverse;
use std::collections::HashMap;

statements!(
    SIGNING_KEYS = |_| {
        "SELECT k.id, k.secret, k.tenant_id, k.app_id, t.name AS tenant, a.name AS app, k.expires_at, a.sign_method, k.kind FROM app_key k \
         JOIN tenant t ON t.id = k.tenant_id JOIN app a ON a.id = k.app_id AND a.tenant_id = k.tenant_id \
         WHERE k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > {now})"
            .into()
    },
    SIGNING_KEYS_OF = |d| format!(
        "SELECT k.id, k.secret, k.tenant_id, k.app_id, t.name AS tenant, a.name AS app, k.expires_at, a.sign_method, k.kind FROM {} \
         tenant t ON t.id = v.n_id JOIN app a ON a.tenant_id = t.id JOIN app_key k ON k.app_id = a.id AND \
         k.tenant_id = a.tenant_id WHERE k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > {{now}})",
        d.batch(1, ID)
    ),
    // Chains only grow: with the count, the sum tells whether any has.
    CHAINS = |d| format!("SELECT {}, COALESCE({}, 0) FROM audit_head", d.big("COUNT(*)"), d.big("SUM(seq)")),
);

/// Valid keys of an app at most.
pub const KEYS_MAX: i64 = 10;

/// The kind of a key that is sent as it is, by plain executors.
pub const TOKEN: &str = "token";

/// Valid keys that a list looks at: more than there can be of one app.
const VALID_LOOKED_AT_MAX: u64 = 100;

/// A key as people see it: without its secret.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "app_key::Entity")]
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
    /// Empty for one that signs, or [`TOKEN`].
    pub kind: String,
}

impl KeyView {
    /// Whether it is neither revoked nor has ended at `now` (cluster ms).
    #[must_use]
    pub fn is_valid(&self, now: i64) -> bool {
        self.revoked_at == 0 && (self.expires_at == 0 || self.expires_at > now)
    }

    /// Where it stands in its app's list at `now` (cluster ms).
    #[must_use]
    pub fn cursor(&self, now: i64) -> KeyCursor {
        KeyCursor { is_valid: self.is_valid(now), created_at: self.created_at, id: self.id.clone() }
    }
}

/// A place in an app's list of keys; a later one is less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyCursor {
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
    /// It is a token, for plain executors, and not for signatures.
    pub is_token: bool,
    /// What it is for.
    pub note: &'a str,
    /// Who makes it.
    pub created_by: &'a str,
}

const LIST: &str = "list keys";

const READ: &str = "read signing keys";

/// A key and the app that it belongs to.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "app_key::Entity")]
struct KeyOfApp {
    tenant_id: TenantId,
    app_id: AppId,
    #[sea_orm(nested)]
    key: KeyView,
}

/// A key that is valid at `now` (cluster ms).
fn valid(now: i64) -> Condition {
    let (expires, revoked) = (app_key::Column::ExpiresAt, app_key::Column::RevokedAt);
    Condition::all().add(revoked.eq(0)).add(Condition::any().add(expires.eq(0)).add(expires.gt(now)))
}

/// The keys of an app.
fn of_app(owner: Owner) -> Condition {
    let (tenant, app) = (app_key::Column::TenantId, app_key::Column::AppId);
    Condition::all().add(tenant.eq(owner.tenant_id)).add(app.eq(owner.app_id))
}

#[async_trait]
impl KeyStore for SqlStore {
    async fn signing_keys(&self) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)> {
        let stored: Vec<SigningKey> = self.query(READ, &SIGNING_KEYS, []).await?;
        Ok(self.decrypted(stored))
    }

    async fn signing_keys_of(&self, tenants: &[TenantId]) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)> {
        let tenants = list(READ, tenants.iter())?;
        let stored: Vec<SigningKey> = self.query(READ, &SIGNING_KEYS_OF, [tenants.into()]).await?;
        Ok(self.decrypted(stored))
    }

    async fn chains_sum(&self) -> Result<(i64, i64)> {
        let found: Vec<(i64, i64)> = self.query(READ, &CHAINS, []).await?;
        Ok(found.first().copied().unwrap_or_default())
    }

    async fn chains(&self) -> Result<HashMap<TenantId, i64>> {
        self.chain_ends(None).await
    }

    async fn note_key_uses(&self, uses: &[KeyUse]) -> Result<()> {
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
                batch.iter().map(|used| (&used.id, used.owner.tenant_id, used.owner.app_id, used.at)).collect();
            self.execute(ACTION, &sql, [to_json(ACTION, &rows)?.into()]).await?;
        }
        Ok(())
    }
}

impl SqlStore {
    /// Whether the app has a token that is valid at `now` (cluster ms): executors of xxl-job may come.
    pub async fn has_token(&self, owner: Owner, now: i64) -> Result<bool> {
        let tokens = app_key::Entity::find().filter(of_app(owner)).filter(valid(now));
        self.at(LIST).any(tokens.filter(app_key::Column::Kind.eq(TOKEN))).await
    }

    fn decrypted(&self, stored: Vec<SigningKey>) -> (Vec<SigningKey>, Vec<(String, EncryptionError)>) {
        let (mut keys, mut unreadable) = (Vec::with_capacity(stored.len()), Vec::new());
        for mut key in stored {
            match self.encryption.decrypt(&place_of_key(&key.key.id), &key.key.secret) {
                Ok(secret) => {
                    key.key.secret = secret;
                    keys.push(key);
                }
                Err(error) => unreadable.push((key.key.id, error)),
            }
        }
        (keys, unreadable)
    }

    /// Keys of an app after a place: those that are valid at `now` (cluster ms), then the others, the
    /// newest first.
    pub async fn keys(&self, owner: Owner, now: i64, after: Option<&KeyCursor>, limit: u64) -> Result<Vec<KeyView>> {
        let (id, created_at) = (app_key::Column::Id, app_key::Column::CreatedAt);
        let mut found: Vec<KeyView> = Vec::new();
        if after.is_none_or(|cursor| cursor.is_valid) {
            // So few that they are put in order here: a database could go by the age of all keys.
            let keys = app_key::Entity::find().filter(of_app(owner)).filter(valid(now)).limit(VALID_LOOKED_AT_MAX);
            found = self.at(LIST).all(keys).await?;
            found.retain(|key| after.is_none_or(|after| key.cursor(now) < *after));
            found.sort_by_key(|key| Reverse(key.cursor(now)));
            found.truncate(limit as usize);
        }
        let rest = limit - found.len() as u64;
        if rest > 0 {
            let ended = app_key::Entity::find()
                .filter(of_app(owner))
                .filter(valid(now).not())
                .apply_if(after.filter(|cursor| !cursor.is_valid), |keys, cursor| {
                    // The first for the index: databases do not see it in what follows.
                    keys.filter(created_at.lte(cursor.created_at))
                        .filter(Condition::any().add(created_at.lt(cursor.created_at)).add(id.lt(cursor.id.as_str())))
                })
                .order_by_desc(created_at)
                .order_by_desc(id)
                .limit(rest);
            found.extend(self.at(LIST).all::<KeyView, _>(ended).await?);
        }
        Ok(found)
    }

    /// The key of that id, if its app lies within reach, with the app.
    pub async fn key(&self, access_scope: &AccessScope, id: &str) -> Result<(Owner, KeyView)> {
        const ACTION: &str = "find a key";
        let within = within(access_scope, app_key::Column::TenantId, Some(app_key::Column::AppId));
        let found = self.at(ACTION).one(app_key::Entity::find_by_id(id).filter(within)).await?;
        let KeyOfApp { tenant_id, app_id, key } = found.ok_or_else(|| not_found(ACTION, id))?;
        Ok((Owner { tenant_id, app_id }, key))
    }

    /// Adds a key to an app.
    pub async fn create_key(&self, owner: Owner, key: &Key, words: KeyWords<'_>, now: i64) -> Result<()> {
        retrying(|| async {
            let tx = self.begin("create a key").await?;
            make_room(&tx, owner, now).await?;
            insert_key(&tx, owner, key, words, now).await?;
            tx.commit().await
        })
        .await
    }

    /// Adds a key to an app; every key before it ends `overlap_ms` from now at the latest.
    pub async fn rotate_key(
        &self,
        owner: Owner,
        key: &Key,
        words: KeyWords<'_>,
        overlap_ms: i64,
        now: i64,
    ) -> Result<()> {
        let end = app_key::Entity::update_many()
            .col_expr(app_key::Column::ExpiresAt, (now + overlap_ms).into())
            .filter(of_app(owner))
            .filter(app_key::Column::Kind.eq(""))
            .filter(valid(now + overlap_ms));
        retrying(|| async {
            let tx = self.begin("rotate a key").await?;
            make_room(&tx, owner, now).await?;
            tx.run(&end).await?;
            insert_key(&tx, owner, key, words, now).await?;
            tx.commit().await
        })
        .await
    }

    /// Ends a key of an app at once; one that has been revoked before stays so.
    pub async fn revoke_key(&self, owner: Owner, id: &str, now: i64) -> Result<()> {
        const ACTION: &str = "revoke a key";
        let revoked = app_key::Column::RevokedAt;
        let revoke = app_key::Entity::update_many()
            .col_expr(revoked, Expr::case(revoked.eq(0), now).finally(Expr::col(revoked)).into())
            .filter(app_key::Column::Id.eq(id))
            .filter(of_app(owner));
        if self.at(ACTION).run(&revoke).await? == 0 {
            return Err(not_found(ACTION, id));
        }
        Ok(())
    }
}

/// Locks the app, so that keys are made one after another, and counts.
async fn make_room(tx: &Transaction<'_>, owner: Owner, now: i64) -> Result<()> {
    const ACTION: &str = "make a key";
    let lock = app::Entity::update_many()
        .col_expr(app::Column::SignMethod, Expr::col(app::Column::SignMethod))
        .filter(app::Column::Id.eq(owner.app_id))
        .filter(app::Column::TenantId.eq(owner.tenant_id));
    if tx.run(&lock).await? == 0 {
        return Err(StoreError::of(ACTION, Refusal::not_found("app", owner.app_id)));
    }
    if tx.count(app_key::Entity::find().filter(of_app(owner)).filter(valid(now))).await? >= KEYS_MAX {
        return Err(StoreError::of(ACTION, Refusal::TooManyKeys { most: KEYS_MAX }));
    }
    Ok(())
}

pub(super) async fn insert_key(
    tx: &Transaction<'_>,
    owner: Owner,
    key: &Key,
    words: KeyWords<'_>,
    now: i64,
) -> Result<()> {
    let secret = encrypt_secret(tx, &key.id, &key.secret).await?;
    let row = app_key::Model {
        id: key.id.clone(),
        tenant_id: owner.tenant_id,
        app_id: owner.app_id,
        secret,
        created_at: now,
        revoked_at: 0,
        note: clean(words.note),
        expires_at: 0,
        last_used_at: 0,
        created_by: clean(words.created_by),
        kind: if words.is_token { TOKEN.to_owned() } else { String::new() },
    };
    tx.insert(row).await
}

from_row!(SigningKey { key = key, owner = rows::owner, tenant, app, expires_at, demanded = demanded, is_token = is_token });

fn demanded(row: &QueryResult) -> Read<Option<SignMethod>> {
    Ok(SignMethod::parse(&column::<String, _>(row, "sign_method")?))
}

fn is_token(row: &QueryResult) -> Read<bool> {
    Ok(column::<String, _>(row, "kind")? == TOKEN)
}

fn key(row: &QueryResult) -> Read<Key> {
    Ok(Key { id: column(row, "id")?, secret: column(row, "secret")? })
}

fn not_found(action: &'static str, id: &str) -> StoreError {
    StoreError::of(action, Refusal::not_found("key", id))
}
