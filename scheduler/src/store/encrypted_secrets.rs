//! Which of the database's secrets are encrypted, and under which key.

use super::dialect::Kind;
use super::encryption::{EncryptionError, EncryptionKeys, SETTING};
use super::sql_store::{Transaction, retrying};
use super::values::to_json;
use super::{Result, SqlStore, StoreError, StoreErrorKind};
use std::sync::Arc;

const ACTION: &str = "encrypt secrets";

/// What [`SETTING`] says while secrets are stored in plain text.
const PLAIN: &str = "";

/// Where the secret of an app's key belongs.
pub(super) fn place_of_key(id: &str) -> String {
    format!("app_key:{id}")
}

/// What a rotation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionRotation {
    /// The key that everything is encrypted under now.
    pub key: String,
    /// Secrets that were not.
    pub encrypted: usize,
}

impl From<EncryptionError> for StoreError {
    fn from(error: EncryptionError) -> Self {
        Self::new(StoreErrorKind::Other, ACTION, error.to_string())
    }
}

impl SqlStore {
    /// The same store, which encrypts and decrypts with these keys.
    #[must_use]
    pub fn with_encryption(mut self, keys: EncryptionKeys) -> Self {
        self.encryption = Arc::new(keys);
        self
    }

    /// Whether the store has the key that the cluster encrypts under; its name. `None`: secrets are stored in plain text. A
    /// database that has no secret yet is encrypted from here on, under the first key.
    ///
    /// # Errors
    /// [`EncryptionError`] in words, when it has not.
    pub async fn check_encryption(&self) -> Result<Option<String>> {
        self.setting_or_insert(SETTING, PLAIN).await?;
        let tx = self.begin(ACTION).await?;
        let mut marker = hold_marker(&tx).await?;
        if marker == PLAIN
            && let Some(first) = self.encryption.first()
            && tx.query::<i64, 0>(&sql!("SELECT COUNT(*) FROM (SELECT id FROM app_key LIMIT 1) k"), []).await? == [0]
        {
            marker = self.encryption.marker(first)?;
            set_marker(&tx, &marker).await?;
        }
        tx.commit().await?;
        self.encrypts_under(&marker)
    }

    fn encrypts_under(&self, marker: &str) -> Result<Option<String>> {
        if marker == PLAIN { Ok(None) } else { Ok(Some(self.encryption.check_marker(marker)?)) }
    }

    /// Encrypts everything under the first key of the settings, and what comes after it. Every node must have that key.
    ///
    /// # Errors
    /// There is no key, or something is encrypted under one that the settings lack; nothing is changed then.
    pub async fn rotate_encryption(&self) -> Result<EncryptionRotation> {
        self.setting_or_insert(SETTING, PLAIN).await?;
        retrying(|| self.rotate_encryption_once()).await
    }

    async fn rotate_encryption_once(&self) -> Result<EncryptionRotation> {
        const ROW: &[(&str, Kind)] = &[("id", Kind::Text), ("secret", Kind::Text)];
        let Some(first) = self.encryption.first() else {
            return Err(StoreError::new(StoreErrorKind::Invalid, ACTION, "encryption.keys is empty; add a key"));
        };
        let tx = self.begin(ACTION).await?;
        // First: who makes a key meanwhile waits for this row, and encrypts under the new one.
        set_marker(&tx, &self.encryption.marker(first)?).await?;
        let stored: Vec<(String, String)> = tx.query(&sql!("SELECT id, secret FROM app_key ORDER BY id"), []).await?;
        let is_done = format!("enc:{first}:");
        let mut rows = Vec::new();
        for (id, secret) in stored {
            let place = place_of_key(&id);
            let text = self.encryption.decrypt(&place, &secret)?;
            if !secret.starts_with(&is_done) {
                rows.push((id, self.encryption.encrypt(first, &place, &text)?));
            }
        }
        for batch in rows.chunks(super::BATCH_MAX) {
            let sql = sql!(|d| d.update_from("app_key", "secret = v.n_secret", &d.rows(1, ROW), "l.id = v.n_id"));
            tx.execute(&sql, [to_json(ACTION, batch)?.into()]).await?;
        }
        tx.commit().await?;
        Ok(EncryptionRotation { key: first.to_owned(), encrypted: rows.len() })
    }
}

/// What is stored of the secret of a new key.
pub(super) async fn encrypt_secret(tx: &Transaction<'_>, id: &str, secret: &str) -> Result<String> {
    let marker = hold_marker(tx).await?;
    match tx.store.encrypts_under(&marker)? {
        Some(name) => Ok(tx.store.encryption.encrypt(&name, &place_of_key(id), secret)?),
        None => Ok(secret.to_owned()),
    }
}

/// What [`SETTING`] says, until the end of the transaction: a rotation comes before or after.
async fn hold_marker(tx: &Transaction<'_>) -> Result<String> {
    tx.execute(&sql!("UPDATE setting SET value = value WHERE name = {1}"), [SETTING.into()]).await?;
    let found: Vec<String> = tx.query(&sql!("SELECT value FROM setting WHERE name = {1}"), [SETTING.into()]).await?;
    Ok(found.into_iter().next().unwrap_or_else(|| PLAIN.to_owned()))
}

async fn set_marker(tx: &Transaction<'_>, marker: &str) -> Result<()> {
    let sql = sql!("UPDATE setting SET value = {2} WHERE name = {1}");
    tx.execute(&sql, [SETTING.into(), marker.into()]).await.map(drop)
}
