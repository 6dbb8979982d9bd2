//! `carillon audit`: searching who did what, and verifying that no one has tampered with the entries.

mod verify;

use super::client::{Client, ListLimit};
use super::node::ApiRequest;
use super::table::{Column, field, made, text};
use super::{find, instant};
use clap::{Args, Subcommand};
use serde_json::Value;

const COLUMNS: &[Column] = &[
    field("AT", "at"),
    field("WHO", "actor"),
    field("FROM", "address"),
    field("ACTION", "action"),
    made("OF", |entry| {
        let name = if entry["target"] == "" { &entry["target_id"] } else { &entry["target"] };
        format!("{} {}", text("", &entry["target_kind"]), text("", name))
    }),
    made("CHANGE", |entry| match (&entry["before"], &entry["after"]) {
        (Value::Null, Value::Null) => "-".to_owned(),
        (before, after) => format!("{} → {}", text("", before), text("", after)),
    }),
];

/// What can be done with the audit.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Search entries, newest first.
    Search(Box<SearchArgs>),
    /// Verify chains of entries: that no entry was changed, removed, inserted or cut off. Exits with 1 if one was.
    Verify(verify::VerifyArgs),
}

/// Which entries.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Only in this tenant; - is the platform.
    #[arg(long, allow_hyphen_values = true)]
    tenant: Option<String>,
    /// Only in the tenant with this id, which may have been deleted.
    #[arg(long, value_name = "ID", conflicts_with = "tenant")]
    tenant_id: Option<String>,
    /// Only what this user (name or id) did.
    #[arg(long, value_name = "USER")]
    actor: Option<String>,
    /// Only this operation: `edit_task` …
    #[arg(long)]
    action: Option<String>,
    /// Only about this kind of object: task, user …
    #[arg(long)]
    kind: Option<String>,
    /// Only about the object with this id.
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// From this time on: 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, -2h.
    #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
    from: Option<i64>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
    until: Option<i64>,
    /// How many to show.
    #[command(flatten)]
    most: ListLimit,
}

impl Audit {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::Search(args) => args.run(client).await,
            Self::Verify(args) => args.run(client).await,
        }
    }
}

impl SearchArgs {
    async fn run(self, client: &Client) -> anyhow::Result<()> {
        let actor = match &self.actor {
            Some(user) => Some(find::user(&client.node, user).await?),
            None => None,
        };
        let ask = ApiRequest::get(["audit"])
            .with("tenant", self.tenant)
            .with("tenant_id", self.tenant_id)
            .with("actor", actor)
            .with("action", self.action)
            .with("kind", self.kind)
            .with("target", self.target)
            .with("from", self.from)
            .with("until", self.until);
        client.pages(ask, "before", &self.most, COLUMNS).await
    }
}
