//! `carillon roles`.

use super::client::{Client, IfMatch, ListLimit};
use super::find;
use super::node::ApiRequest;
use super::table::{Column, field, made};
use clap::Subcommand;

const COLUMNS: &[Column] = &[
    field("NAME", "name"),
    field("BUILT IN", "built_in"),
    made("PERMISSIONS", |role| role["permissions"].as_array().map_or(0, Vec::len).to_string()),
    field("DESCRIPTION", "description"),
    field("ID", "id"),
];

/// What can be done with roles.
#[derive(Debug, Subcommand)]
pub enum Roles {
    /// List roles.
    List {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show a role and what it allows.
    Show {
        /// Name or id.
        role: String,
    },
    /// Create a role, for one tenant or for all.
    Create {
        /// Its name.
        role: String,
        /// What it allows (`tasks.read`); can be repeated, or separated by commas.
        #[arg(long = "permission", value_name = "PERMISSION", value_delimiter = ',', required = true)]
        permissions: Vec<String>,
        /// Tenant where it can be granted; everywhere by default.
        #[arg(long)]
        tenant: Option<String>,
        /// Free text for people to read.
        #[arg(long)]
        description: Option<String>,
    },
    /// Edit a role; its users are affected at once. Omitted fields keep their values.
    Edit {
        /// Name or id.
        role: String,
        /// New name.
        #[arg(long)]
        name: Option<String>,
        /// What it allows from now on.
        #[arg(long = "permission", value_name = "PERMISSION", value_delimiter = ',')]
        permissions: Option<Vec<String>>,
        /// Free text for people to read.
        #[arg(long)]
        description: Option<String>,
        /// Precondition of the edit.
        #[command(flatten)]
        unless: IfMatch,
    },
    /// Delete a role that no user has.
    Delete {
        /// Name or id.
        role: String,
    },
}

impl Roles {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        match self {
            Self::List { most } => client.pages(ApiRequest::get(["roles"]), "after", &most, COLUMNS).await,
            Self::Show { role } => client.show(ApiRequest::get(["roles", &find::role(node, &role).await?])).await,
            Self::Create { role, permissions, tenant, description } => {
                let fields = [
                    ("name", Some(role.into())),
                    ("permissions", Some(permissions.into())),
                    ("tenant", tenant.map(Into::into)),
                    ("description", description.map(Into::into)),
                ];
                client.show(ApiRequest::post(["roles"]).fields(fields)).await
            }
            Self::Edit { role, name, permissions, description, unless } => {
                let fields = [
                    ("name", name.map(Into::into)),
                    ("permissions", permissions.map(Into::into)),
                    ("description", description.map(Into::into)),
                ];
                let ask = ApiRequest::patch(["roles", &find::role(node, &role).await?]).if_match(unless.revision);
                client.show(ask.fields(fields)).await
            }
            Self::Delete { role } => {
                let ask = ApiRequest::delete(["roles", &find::role(node, &role).await?]);
                client.done(ask, &format!("role `{role}` deleted")).await
            }
        }
    }
}
