//! The key that simulated executors and nodes sign with.

use async_trait::async_trait;
use carillon::auth::KeyRing;
use carillon::domain::Owner;
use carillon::store::{EncryptionError, KeyStore, KeyUse, Result, SigningKey};
use carillon_protocol::sign::Key;
use std::sync::Arc;

/// The tenant's name.
pub const TENANT: &str = "tenant";

/// The app's name.
pub const APP: &str = "app";

/// The key's id.
pub const KEY: &str = "key";

/// The key's secret.
pub const SECRET: &str = "a secret that both sides know";

/// One app with one key that never ends.
#[derive(Debug, Clone)]
pub struct AppKey {
    /// The app.
    pub owner: Owner,
}

impl AppKey {
    /// A key ring that has it.
    pub async fn ring(&self) -> Arc<KeyRing> {
        let ring = KeyRing::default();
        ring.refresh(self).await.expect("it reads nothing");
        Arc::new(ring)
    }
}

#[async_trait]
impl KeyStore for AppKey {
    async fn signing_keys(&self) -> Result<(Vec<SigningKey>, Vec<(String, EncryptionError)>)> {
        let key = SigningKey {
            key: Key { id: KEY.to_owned(), secret: SECRET.to_owned() },
            owner: self.owner,
            tenant: TENANT.to_owned(),
            app: APP.to_owned(),
            expires_at: 0,
            demanded: None,
        };
        Ok((vec![key], Vec::new()))
    }

    async fn note_key_uses(&self, _: &[KeyUse]) -> Result<()> {
        Ok(())
    }
}
