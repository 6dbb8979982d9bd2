//! `carillon tenants`.

use super::client::{Client, IfMatch, ListLimit};
use super::node::ApiRequest;
use super::table::{Column, field};
use clap::Subcommand;

const COLUMNS: &[Column] =
    &[field("NAME", "name"), field("DESCRIPTION", "description"), field("CREATED", "created_at"), field("ID", "id")];

/// What can be done with tenants.
#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// List tenants.
    List {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show a tenant.
    Show {
        /// Its name.
        tenant: String,
    },
    /// Create a tenant.
    Create {
        /// Its name; it cannot be changed.
        tenant: String,
        /// Free text for people to read.
        #[arg(long)]
        description: Option<String>,
    },
    /// Set a tenant's description.
    Edit {
        /// Its name.
        tenant: String,
        /// Free text for people to read.
        #[arg(long)]
        description: String,
        /// Precondition of the edit.
        #[command(flatten)]
        unless: IfMatch,
    },
    /// Delete a tenant that has no app, user or role.
    Delete {
        /// Its name.
        tenant: String,
    },
}

impl Tenants {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { most } => client.pages(ApiRequest::get(["tenants"]), "after", &most, COLUMNS).await,
            Self::Show { tenant } => client.show(ApiRequest::get(["tenants", &tenant])).await,
            Self::Create { tenant, description } => {
                let fields = [("name", Some(tenant.into())), ("description", description.map(Into::into))];
                client.show(ApiRequest::post(["tenants"]).fields(fields)).await
            }
            Self::Edit { tenant, description, unless } => {
                let ask = ApiRequest::patch(["tenants", &tenant]).if_match(unless.revision);
                client.show(ask.fields([("description", Some(description.into()))])).await
            }
            Self::Delete { tenant } => {
                client.done(ApiRequest::delete(["tenants", &tenant]), &format!("tenant `{tenant}` deleted")).await
            }
        }
    }
}
