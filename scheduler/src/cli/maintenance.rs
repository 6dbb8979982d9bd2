//! `carillon maintenance`.

use super::client::{Client, ListLimit};
use super::instant;
use super::node::ApiRequest;
use super::table::{Column, field};
use clap::Subcommand;

const COLUMNS: &[Column] = &[
    field("ID", "id"),
    field("STARTS", "starts_at"),
    field("ENDS", "ends_at"),
    field("ACTION", "action"),
    field("NOTE", "note"),
];

/// What can be done with maintenance windows.
#[derive(Debug, Subcommand)]
pub enum Maintenance {
    /// List a tenant's windows that have not ended, by their end.
    List {
        /// The tenant's name.
        tenant: String,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Create a window, from now on or in the future.
    Create {
        /// The tenant's name.
        tenant: String,
        /// When it ends: 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, +2h.
        #[arg(long, value_name = "TIME", value_parser = instant::parse)]
        ends: i64,
        /// When it starts; now by default.
        #[arg(long, value_name = "TIME", value_parser = instant::parse)]
        starts: Option<i64>,
        /// What it does to runs that are due in it: skip or postpone; skip by default.
        #[arg(long)]
        action: Option<String>,
        /// Free text for people to read.
        #[arg(long)]
        note: Option<String>,
    },
    /// End a window; postponed runs become due at once.
    Delete {
        /// The tenant's name.
        tenant: String,
        /// The window's id.
        window: String,
    },
}

impl Maintenance {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { tenant, most } => {
                client.pages(ApiRequest::get(["tenants", &tenant, "maintenance"]), "after", &most, COLUMNS).await
            }
            Self::Create { tenant, ends, starts, action, note } => {
                let fields = [
                    ("ends_at", Some(ends.into())),
                    ("starts_at", starts.map(Into::into)),
                    ("action", action.map(Into::into)),
                    ("note", note.map(Into::into)),
                ];
                client.show(ApiRequest::post(["tenants", &tenant, "maintenance"]).fields(fields)).await
            }
            Self::Delete { tenant, window } => {
                let ask = ApiRequest::delete(["tenants", &tenant, "maintenance", &window]);
                client.done(ask, &format!("window {window} deleted")).await
            }
        }
    }
}
