//! The keys that simulated executors and nodes sign with: one for each app.

use async_trait::async_trait;
use carillon::auth::KeyRing;
use carillon::domain::{Owner, TenantId};
use carillon::store::{EncryptionError, KeyStore, KeyUse, Result, SigningKey};
use carillon_protocol::sign::Key;
use std::collections::HashMap;
use std::sync::Arc;

/// The key of an app, which never ends.
#[derive(Debug, Clone)]
pub struct AppKey {
    /// The app.
    pub owner: Owner,
    /// The tenant's name.
    pub tenant: String,
    /// The app's name.
    pub app: String,
    /// Whether it is the token of plain executors.
    pub is_token: bool,
}

impl AppKey {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}-of-{}-{}", if self.is_token { "token" } else { "key" }, self.tenant, self.app)
    }

    /// Its secret, which both sides know.
    #[must_use]
    pub fn secret(&self) -> String {
        format!("a-{}-of-{}-{}", if self.is_token { "token" } else { "secret" }, self.tenant, self.app)
    }

    fn to_signing_key(&self) -> SigningKey {
        SigningKey {
            key: Key { id: self.id(), secret: self.secret() },
            owner: self.owner,
            tenant: self.tenant.clone(),
            app: self.app.clone(),
            expires_at: 0,
            demanded: None,
            is_token: self.is_token,
        }
    }
}

/// All of them, as a store has them.
#[derive(Debug)]
pub struct AppKeys(pub Vec<AppKey>);

impl AppKeys {
    /// A key ring that has them.
    pub async fn ring(&self) -> Arc<KeyRing> {
        let ring = KeyRing::default();
        ring.refresh(self).await.expect("it reads nothing");
        Arc::new(ring)
    }
}

#[async_trait]
impl KeyStore for AppKeys {
    async fn signing_keys(&self) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)> {
        Ok((self.0.iter().map(AppKey::to_signing_key).collect(), Vec::new()))
    }

    async fn signing_keys_of(&self, tenants: &[TenantId]) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)> {
        let of = self.0.iter().filter(|key| tenants.contains(&key.owner.tenant_id));
        Ok((of.map(AppKey::to_signing_key).collect(), Vec::new()))
    }

    async fn chains_sum(&self) -> Result<(i64, i64)> {
        Ok((0, 0))
    }

    async fn chains(&self) -> Result<HashMap<TenantId, i64>> {
        Ok(HashMap::new())
    }

    async fn note_key_uses(&self, _: &[KeyUse]) -> Result<()> {
        Ok(())
    }
}
