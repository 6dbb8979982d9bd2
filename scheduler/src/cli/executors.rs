//! `carillon executors`, `carillon nodes`.

use super::client::{Client, IfMatch, ListLimit};
use super::find;
use super::node::ApiRequest;
use super::table::{Column, field, made};
use clap::{Args, Subcommand};

const COLUMNS: &[Column] = &[
    field("TENANT", "tenant"),
    field("APP", "app"),
    field("ADDRESS", "address"),
    made("STATE", |executor| {
        let is = |name: &str| executor[name] == true;
        if is("disabled") {
            "disabled"
        } else if is("draining") {
            "draining"
        } else {
            "open"
        }
        .to_owned()
    }),
    field("WEIGHT", "weight"),
    made("BUSY", |executor| format!("{}/{}", executor["running"], executor["capacity"])),
    field("HOLDS", "held"),
    field("HANDLERS", "handlers"),
    field("TAGS", "tags"),
    field("HEARD", "heartbeat_at"),
    field("NOTE", "note"),
    field("ID", "id"),
];

const NODES: &[Column] = &[
    field("NAME", "name"),
    field("ADDRESS", "address"),
    field("ONLINE", "online"),
    field("VERSION", "version"),
    field("QUEUED", "queue_depth"),
    field("STARTED", "started_at"),
    field("HEARD", "heartbeat_at"),
    field("ID", "id"),
];

const SETTINGS: &[Column] = &[field("NAME", "name"), field("VALUE", "value")];

/// What can be done with executors.
#[derive(Debug, Subcommand)]
pub enum Executors {
    /// List executors that are online.
    List {
        /// Only in this tenant.
        #[arg(long)]
        tenant: Option<String>,
        /// Only in this app.
        #[arg(long)]
        app: Option<String>,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show an executor that is online.
    Show {
        /// Its id or address.
        executor: String,
    },
    /// Disable an executor or set its weight, for its address. Omitted fields keep their values.
    Edit(EditArgs),
}

/// Changes of an executor.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Its id or address.
    executor: String,
    /// Take no new runs.
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Take runs again.
    #[arg(long)]
    enable: bool,
    /// Share of the runs relative to the other executors; with 0 it takes none.
    #[arg(long)]
    weight: Option<i32>,
    /// Why.
    #[arg(long)]
    note: Option<String>,
    /// Precondition of the edit.
    #[command(flatten)]
    unless: IfMatch,
}

impl Executors {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        match self {
            Self::List { tenant, app, most } => {
                let ask = ApiRequest::get(["executors"]).with("tenant", tenant).with("app", app);
                client.pages(ask, "after", &most, COLUMNS).await
            }
            Self::Show { executor } => {
                client.show(ApiRequest::get(["executors", &find::executor(node, &executor).await?])).await
            }
            Self::Edit(EditArgs { executor, disable, enable, weight, note, unless }) => {
                let ask =
                    ApiRequest::patch(["executors", &find::executor(node, &executor).await?]).if_match(unless.revision);
                let disabled = (disable || enable).then(|| disable.into());
                let fields =
                    [("disabled", disabled), ("weight", weight.map(Into::into)), ("note", note.map(Into::into))];
                client.show(ask.fields(fields)).await
            }
        }
    }
}

/// What can be done with nodes.
#[derive(Debug, Subcommand)]
pub enum Nodes {
    /// List nodes.
    List {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show the settings in effect on the node that responds.
    Settings {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
}

impl Nodes {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { most } => client.whole(ApiRequest::get(["nodes"]), &most, NODES).await,
            Self::Settings { most } => client.pages(ApiRequest::get(["settings"]), "after", &most, SETTINGS).await,
        }
    }
}
