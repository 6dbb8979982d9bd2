//! `carillon apps`.

use super::client::{Client, IfMatch, ListLimit};
use super::find;
use super::node::ApiRequest;
use super::table::{Column, field};
use anyhow::Context;
use clap::Subcommand;

const COLUMNS: &[Column] = &[
    field("TENANT", "tenant"),
    field("NAME", "name"),
    field("AT ONCE", "max_concurrent"),
    field("DESCRIPTION", "description"),
    field("ID", "id"),
];

/// What can be done with apps.
#[derive(Debug, Subcommand)]
pub enum Apps {
    /// List apps.
    List {
        /// Only in this tenant.
        #[arg(long)]
        tenant: Option<String>,
        /// Only with this name.
        #[arg(long)]
        name: Option<String>,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show an app.
    Show {
        /// Its id, or tenant/name.
        app: String,
    },
    /// Create an app; the secret of its key is shown only once.
    Create {
        /// Its tenant and name: tenant/name.
        app: String,
        /// Free text for people to read.
        #[arg(long)]
        description: Option<String>,
    },
    /// Set an app's description, concurrency limit or signature method; omitted fields keep their values.
    Edit {
        /// Its id, or tenant/name.
        app: String,
        /// Free text for people to read.
        #[arg(long)]
        description: Option<String>,
        /// Maximum number of runs at once over all its executors; 0 means no limit.
        #[arg(long, value_name = "COUNT")]
        max_concurrent: Option<i32>,
        /// How executors and nodes must sign: HMAC-SHA256 or MD5; empty lets each executor choose.
        #[arg(long, value_name = "METHOD")]
        sign_method: Option<String>,
        /// Precondition of the edit.
        #[command(flatten)]
        unless: IfMatch,
    },
    /// Delete an app that has no task, with its keys.
    Delete {
        /// Its id, or tenant/name.
        app: String,
    },
}

impl Apps {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        match self {
            Self::List { tenant, name, most } => {
                let ask = ApiRequest::get(["apps"]).with("tenant", tenant).with("name", name);
                client.pages(ask, "after", &most, COLUMNS).await
            }
            Self::Show { app } => client.show(ApiRequest::get(["apps", &find::app(node, &app).await?])).await,
            Self::Create { app, description } => {
                let [tenant, name] =
                    find::parts(&app).with_context(|| format!("`{app}` is not an app's name; write tenant/name"))?;
                let description = description.map(Into::into);
                let fields =
                    [("tenant", Some(tenant.into())), ("name", Some(name.into())), ("description", description)];
                client.show(ApiRequest::post(["apps"]).fields(fields)).await
            }
            Self::Edit { app, description, max_concurrent, sign_method, unless } => {
                let ask = ApiRequest::patch(["apps", &find::app(node, &app).await?]).if_match(unless.revision);
                let description = description.map(Into::into);
                let fields = [
                    ("description", description),
                    ("max_concurrent", max_concurrent.map(Into::into)),
                    ("sign_method", sign_method.map(Into::into)),
                ];
                client.show(ask.fields(fields)).await
            }
            Self::Delete { app } => {
                let ask = ApiRequest::delete(["apps", &find::app(node, &app).await?]);
                client.done(ask, &format!("app `{app}` deleted")).await
            }
        }
    }
}
