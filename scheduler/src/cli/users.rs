//! `carillon users`.

use super::client::{Client, IfMatch, ListLimit};
use super::find;
use super::node::ApiRequest;
use super::table::{Column, field, made};
use clap::{Args, Subcommand};
use serde_json::Value;

const COLUMNS: &[Column] = &[
    field("NAME", "name"),
    field("FOR PEOPLE", "display_name"),
    made("STATE", |user| if user["disabled"] == true { "disabled" } else { "open" }.to_owned()),
    made("ROLES", |user| {
        let roles = user["grants"].as_array().into_iter().flatten().filter_map(|grant| grant["role"].as_str());
        roles.collect::<Vec<_>>().join(", ")
    }),
    field("SIGNED IN", "last_login_at"),
    field("ID", "id"),
];

/// What can be done with users.
#[derive(Debug, Subcommand)]
pub enum Users {
    /// List users.
    List {
        /// Only with this name.
        #[arg(long)]
        name: Option<String>,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show a user and their grants.
    Show {
        /// Name or id.
        user: String,
    },
    /// Create a user without any permissions; the initial password is generated and shown only once.
    Create {
        /// Name to sign in with; it cannot be changed.
        user: String,
        /// Display name.
        #[arg(long, value_name = "NAME")]
        display_name: Option<String>,
        /// Tenant whose admins manage the account; platform admins do by default.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Rename, disable or enable a user; omitted fields keep their values.
    Edit(EditArgs),
    /// Delete a user with their sessions and tokens.
    Delete {
        /// Name or id.
        user: String,
    },
    /// Reset a user's password; the new one is generated, shown only once, and must be changed.
    ResetPassword {
        /// Name or id.
        user: String,
    },
    /// End all sessions of a user.
    EndSessions {
        /// Name or id.
        user: String,
    },
    /// Grant a role to a user, in a tenant or on the whole platform.
    Grant(GrantArgs),
    /// Revoke a role from a user.
    Revoke {
        /// Name or id.
        user: String,
        /// The grant's id, as `users show` shows it.
        grant: String,
    },
}

/// Changes of a user.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Name or id.
    user: String,
    /// Display name.
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// Prevent the user from signing in, and end their sessions.
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Let the user sign in again.
    #[arg(long)]
    enable: bool,
    /// Precondition of the edit.
    #[command(flatten)]
    unless: IfMatch,
}

/// A role to grant.
#[derive(Debug, Args)]
pub struct GrantArgs {
    /// Name or id.
    user: String,
    /// Name or id of the role.
    role: String,
    /// Tenant to grant it in; the whole platform by default.
    #[arg(long)]
    tenant: Option<String>,
    /// Only in this app of the tenant; can be repeated.
    #[arg(long, requires = "tenant")]
    app: Vec<String>,
}

impl Users {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        match self {
            Self::List { name, most } => {
                client.pages(ApiRequest::get(["users"]).with("name", name), "after", &most, COLUMNS).await
            }
            Self::Show { user } => client.show(ApiRequest::get(["users", &find::user(node, &user).await?])).await,
            Self::Create { user, display_name, tenant } => {
                let fields = [
                    ("name", Some(user.into())),
                    ("display_name", display_name.map(Into::into)),
                    ("tenant", tenant.map(Into::into)),
                ];
                client.show(ApiRequest::post(["users"]).fields(fields)).await
            }
            Self::Edit(EditArgs { user, display_name, disable, enable, unless }) => {
                let ask = ApiRequest::patch(["users", &find::user(node, &user).await?]).if_match(unless.revision);
                let disabled = (disable || enable).then(|| disable.into());
                let fields = [("display_name", display_name.map(Into::into)), ("disabled", disabled)];
                client.show(ask.fields(fields)).await
            }
            Self::Delete { user } => {
                let ask = ApiRequest::delete(["users", &find::user(node, &user).await?]);
                client.done(ask, &format!("user `{user}` deleted")).await
            }
            Self::ResetPassword { user } => {
                client.show(ApiRequest::post(["users", &find::user(node, &user).await?, "password"])).await
            }
            Self::EndSessions { user } => {
                let ask = ApiRequest::delete(["users", &find::user(node, &user).await?, "sessions"]);
                client.done(ask, &format!("all sessions of `{user}` have ended")).await
            }
            Self::Grant(args) => grant(client, args).await,
            Self::Revoke { user, grant } => {
                let ask = ApiRequest::delete(["users", &find::user(node, &user).await?, "grants", &grant]);
                client.done(ask, &format!("`{user}` no longer has it")).await
            }
        }
    }
}

async fn grant(client: &Client, args: GrantArgs) -> anyhow::Result<()> {
    let GrantArgs { user, role, tenant, app } = args;
    let node = &client.node;
    let mut apps = Vec::new();
    for name in app {
        let tenant = tenant.as_deref().unwrap_or_default();
        apps.push(Value::from(find::app(node, &format!("{tenant}/{name}")).await?));
    }
    let fields = [
        ("role", Some(find::role(node, &role).await?.into())),
        ("tenant", tenant.map(Into::into)),
        ("apps", Some(apps.into())),
    ];
    client.show(ApiRequest::post(["users", &find::user(node, &user).await?, "grants"]).fields(fields)).await
}
