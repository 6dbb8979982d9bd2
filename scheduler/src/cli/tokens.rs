//! `carillon tokens`, `carillon sessions`: credentials of programs and browsers.

use super::client::{Client, ListLimit};
use super::node::ApiRequest;
use super::table::{Column, field};
use super::{find, instant};
use clap::Subcommand;

const COLUMNS: &[Column] = &[
    field("ID", "id"),
    field("NAME", "name"),
    field("OWNER", "user"),
    field("EXPIRES", "expires_at"),
    field("USED", "used_at"),
    field("PERMISSIONS", "permissions"),
];

const SESSIONS: &[Column] = &[
    field("ID", "id"),
    field("THIS ONE", "current"),
    field("BEGUN", "created_at"),
    field("USED", "used_at"),
    field("ADDRESS", "address"),
    field("WITH", "agent"),
];

/// What can be done with API tokens: your own, unless `--all` is given.
#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// List API tokens.
    List {
        /// List those of all users instead of your own.
        #[arg(long)]
        all: bool,
        /// List those of this user (name or id).
        #[arg(long)]
        user: Option<String>,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Create an API token of your own; it is shown only once.
    Create {
        /// What it is for.
        name: String,
        /// Permission of the token (`tasks.read`); can be repeated, or separated by commas.
        #[arg(long = "permission", value_name = "PERMISSION", value_delimiter = ',', required = true)]
        permissions: Vec<String>,
        /// Only in this tenant; wherever its owner has the permissions by default.
        #[arg(long)]
        tenant: Option<String>,
        /// When it expires: 2027-01-01T00:00:00Z, epoch ms, +90d.
        #[arg(long, value_name = "TIME", default_value = "+90d", value_parser = instant::parse)]
        expires: i64,
    },
    /// Revoke an API token.
    Revoke {
        /// Its id.
        token: String,
        /// Allow revoking another user's token.
        #[arg(long)]
        all: bool,
    },
}

impl Tokens {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { all: false, user: None, most } => {
                client.pages(ApiRequest::get(["account", "tokens"]), "after", &most, COLUMNS).await
            }
            Self::List { user, most, .. } => {
                let user = match user {
                    Some(user) => Some(find::user(&client.node, &user).await?),
                    None => None,
                };
                client.pages(ApiRequest::get(["tokens"]).with("user", user), "after", &most, COLUMNS).await
            }
            Self::Create { name, permissions, tenant, expires } => {
                let fields = [
                    ("name", Some(name.into())),
                    ("permissions", Some(permissions.into())),
                    ("tenant", tenant.map(Into::into)),
                    ("expires_at", Some(expires.into())),
                ];
                client.show(ApiRequest::post(["account", "tokens"]).fields(fields)).await
            }
            Self::Revoke { token, all } => {
                let ask = if all {
                    ApiRequest::delete(["tokens", &token])
                } else {
                    ApiRequest::delete(["account", "tokens", &token])
                };
                client.done(ask, &format!("token {token} revoked")).await
            }
        }
    }
}

/// What can be done with your sessions.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List your sessions, newest first.
    List {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// End a session.
    End {
        /// Its id.
        session: String,
    },
}

impl Sessions {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { most } => {
                client.pages(ApiRequest::get(["account", "sessions"]), "before", &most, SESSIONS).await
            }
            Self::End { session } => {
                let ask = ApiRequest::delete(["account", "sessions", &session]);
                client.done(ask, &format!("session {session} has ended")).await
            }
        }
    }
}
