//! Replaces `oidc` when carillon is built without it.

use super::sign_on::{Identity, Pending, SignOnSettings};
use anyhow::bail;

/// There is none.
pub enum Provider {}

impl Provider {
    /// Refuses.
    ///
    /// # Errors
    /// Always: this build cannot do it.
    pub fn new(_: SignOnSettings) -> anyhow::Result<Self> {
        bail!(
            "this carillon was built without the feature `oidc`: leave auth.oidc.issuer empty, or build it with the feature"
        )
    }

    /// Of none.
    pub fn settings(&self) -> &SignOnSettings {
        match *self {}
    }

    /// Of none.
    pub async fn begin(&self) -> anyhow::Result<(String, Pending)> {
        match *self {}
    }

    /// Of none.
    pub async fn finish(&self, _: String, _: Pending) -> anyhow::Result<Identity> {
        match *self {}
    }
}
