//! What `auth/` asks of executors' keys.

use crate::domain::{Owner, TenantId};
use crate::store::{EncryptionError, Result};
use async_trait::async_trait;
use carillon_protocol::sign::{Key, SignMethod};
use std::collections::HashMap;

/// A key with whose it is, for checking and making signatures.
#[derive(Debug, Clone)]
pub struct SigningKey {
    /// Id and secret.
    pub key: Key,
    /// Owner.
    pub owner: Owner,
    /// Tenant's name, as it stands in the signature.
    pub tenant: String,
    /// App's name, as it stands in the signature.
    pub app: String,
    /// When it ends, cluster ms; 0 is never.
    pub expires_at: i64,
    /// How the app demands that everything is signed; `None` leaves it to the executor.
    pub demanded: Option<SignMethod>,
    /// It signs nothing: plain executors send the secret itself.
    pub is_token: bool,
}

impl SigningKey {
    /// Whether it has not ended at `now` (cluster ms).
    #[must_use]
    pub fn is_valid(&self, now: i64) -> bool {
        self.expires_at == 0 || self.expires_at > now
    }
}

/// That a key was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// The key.
    pub id: String,
    /// Its owner.
    pub owner: Owner,
    /// When, cluster ms.
    pub at: i64,
}

/// Asked by `auth/` for keys.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Every valid key of every app, and those whose secret cannot be decrypted.
    async fn signing_keys(&self) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)>;

    /// The same of the apps of these tenants.
    async fn signing_keys_of(&self, tenants: &[TenantId]) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)>;

    /// How many chains the audit has, and the sum of their lengths: while both are the same, no one has changed
    /// anything, and so no key.
    async fn chains_sum(&self) -> Result<(i64, i64)>;

    /// The length of each chain, by tenant.
    async fn chains(&self) -> Result<HashMap<TenantId, i64>>;

    /// Writes down when keys were last used; an older use changes nothing.
    async fn note_key_uses(&self, uses: &[KeyUse]) -> Result<()>;
}
