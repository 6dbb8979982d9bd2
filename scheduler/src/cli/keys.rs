//! `carillon keys`: what executors sign with.

use super::client::{Client, ListLimit};
use super::find;
use super::node::ApiRequest;
use super::table::{Column, field};
use anyhow::Context;
use clap::Subcommand;
use std::path::{Path, PathBuf};

const COLUMNS: &[Column] = &[
    field("ID", "id"),
    field("KIND", "kind"),
    field("STATE", "state"),
    field("NOTE", "note"),
    field("USED", "last_used_at"),
    field("EXPIRES", "expires_at"),
    field("CREATED", "created_at"),
    field("BY", "created_by"),
];

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// List an app's keys without their secrets: the valid ones, then the others, each newest first.
    List {
        /// The app's id, or tenant/name.
        app: String,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Create an additional key; its secret is shown only once.
    Create {
        /// The app's id, or tenant/name.
        app: String,
        /// What it is for.
        #[arg(long)]
        note: Option<String>,
        /// What executors do with it: they sign with it, or send it as the access token of xxl-job's protocol.
        #[arg(long, value_parser = ["signing", "token"])]
        kind: Option<String>,
        /// A file with the token that executors have already; without it one is made.
        #[arg(long, value_name = "FILE", requires = "kind")]
        secret_file: Option<PathBuf>,
    },
    /// Replace an app's keys with a new one; its secret is shown only once.
    Rotate {
        /// The app's id, or tenant/name.
        app: String,
        /// What it is for.
        #[arg(long)]
        note: Option<String>,
        /// How long the previous keys stay valid, ms; one day by default.
        #[arg(long, value_name = "MS")]
        overlap_ms: Option<i64>,
    },
    /// Revoke a key: requests of its executors are refused, and nothing is sent to them.
    Revoke {
        /// The key's id.
        key: String,
    },
}

impl Keys {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        match self {
            Self::List { app, most } => {
                let ask = ApiRequest::get(["apps", &find::app(node, &app).await?, "keys"]);
                client.pages(ask, "after", &most, COLUMNS).await
            }
            Self::Create { app, note, kind, secret_file } => {
                let secret = secret_file.map(|file| read_secret(&file)).transpose()?;
                let ask = ApiRequest::post(["apps", &find::app(node, &app).await?, "keys"]);
                let fields = [("note", note), ("kind", kind), ("secret", secret)];
                client.show(ask.fields(fields.map(|(name, value)| (name, value.map(Into::into))))).await
            }
            Self::Rotate { app, note, overlap_ms } => {
                let ask = ApiRequest::post(["apps", &find::app(node, &app).await?, "keys", "rotate"]);
                let fields = [("note", note.map(Into::into)), ("overlap_ms", overlap_ms.map(Into::into))];
                client.show(ask.fields(fields)).await
            }
            Self::Revoke { key } => {
                client.done(ApiRequest::delete(["keys", &key]), &format!("key {key} revoked")).await
            }
        }
    }
}

/// A secret is no argument: those are seen by everyone on the machine.
fn read_secret(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("the file {} cannot be read (--secret-file)", file.display()))?;
    Ok(text.trim().to_owned())
}
