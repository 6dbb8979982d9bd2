//! `carillon tenants`.

use super::client::{Client, Most, Unless};
use super::node::Ask;
use super::table::{Column, field};
use clap::Subcommand;

const COLUMNS: &[Column] =
    &[field("NAME", "name"), field("DESCRIPTION", "description"), field("CREATED", "created_at"), field("ID", "id")];

/// What can be done with tenants.
#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// List tenants.
    List {
        /// How many.
        #[command(flatten)]
        most: Most,
    },
    /// Show a tenant.
    Show {
        /// Its name.
        tenant: String,
    },
    /// Create a tenant.
    Create {
        /// Its name, for good.
        tenant: String,
        /// For people.
        #[arg(long)]
        description: Option<String>,
    },
    /// Describe a tenant.
    Edit {
        /// Its name.
        tenant: String,
        /// For people.
        #[arg(long)]
        description: String,
        /// What the edit relies on.
        #[command(flatten)]
        unless: Unless,
    },
    /// Delete a tenant that has no app, user or role.
    Delete {
        /// Its name.
        tenant: String,
    },
}

impl Tenants {
    /// Does it.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { most } => client.pages(Ask::get(["tenants"]), "after", &most, COLUMNS).await,
            Self::Show { tenant } => client.show(Ask::get(["tenants", &tenant])).await,
            Self::Create { tenant, description } => {
                let fields = [("name", Some(tenant.into())), ("description", description.map(Into::into))];
                client.show(Ask::post(["tenants"]).fields(fields)).await
            }
            Self::Edit { tenant, description, unless } => {
                let ask = Ask::put(["tenants", &tenant]).if_match(unless.revision);
                client.show(ask.fields([("description", Some(description.into()))])).await
            }
            Self::Delete { tenant } => {
                client.done(Ask::delete(["tenants", &tenant]), &format!("tenant `{tenant}` is gone")).await
            }
        }
    }
}
