//! `carillon encryption …`: works on the database itself, as `migrate` does.

use super::config::ConfigArgs;
use crate::domain::audit::{Actor, AuditNote, Target};
use crate::domain::{Action, IdSource, NodeId, TenantId, UserId};
use crate::node::{encryption_keys, unusable};
use crate::settings::{Settings, host_name};
use crate::store::{ClusterStore as _, SqlStore};
use anyhow::Context;
use clap::Subcommand;

/// `carillon encryption …`
#[derive(Debug, clap::Args)]
pub struct EncryptionArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: EncryptionCommand,
}

/// `carillon encryption …`
#[derive(Debug, Subcommand)]
pub enum EncryptionCommand {
    /// Encrypt all secrets in the database under the first of encryption.keys, and new ones from now on. Every node must have
    /// that key before.
    Rotate(ConfigArgs),
}

/// Encrypts everything under the first key.
pub async fn rotate(settings: &Settings) -> anyhow::Result<()> {
    let store = SqlStore::connect(&settings.database).await.with_context(|| unusable(settings))?;
    let store = store.with_encryption(encryption_keys(settings)?);
    let at = store.now_us().await.with_context(|| unusable(settings))? / 1_000;
    let note = AuditNote {
        // No node has this number.
        id: IdSource::new(NodeId(0)).next(at),
        tenant_id: TenantId::NONE,
        at,
        actor: Actor { kind: "command", id: UserId::NONE, name: host_name(), address: String::new() },
        action: Action::RotateEncryption,
        target: Target { kind: "key", id: String::new(), name: "encryption.keys".to_owned() },
        before: None,
        after: None,
    };
    let done = store.noting(vec![note]).rotate_encryption().await.context("nothing was changed")?;
    store.close().await;
    println!("{} secret(s) encrypted; all of them are under the key `{}` now", done.encrypted, done.key);
    Ok(())
}
