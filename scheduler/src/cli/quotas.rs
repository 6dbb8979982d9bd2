//! `carillon quotas`.

use super::client::Client;
use super::node::ApiRequest;
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::Value;

/// What can be done with quotas.
#[derive(Debug, Subcommand)]
pub enum Quotas {
    /// Show a tenant's quotas and their use.
    Show {
        /// The tenant's name.
        tenant: String,
    },
    /// Set a tenant's quotas; omitted fields keep their values. 0 means no limit.
    Set(SetArgs),
}

/// Quotas to set.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The tenant's name.
    tenant: String,
    /// Most tasks.
    #[arg(long, value_name = "COUNT")]
    max_tasks: Option<i32>,
    /// Most fires in any minute, in the whole cluster.
    #[arg(long, value_name = "COUNT")]
    max_fires_per_minute: Option<i32>,
    /// Most runs at once.
    #[arg(long, value_name = "COUNT")]
    max_concurrent: Option<i32>,
    /// Days that ended task logs are kept; 0 means the node's default.
    #[arg(long, value_name = "DAYS")]
    retain_days: Option<i32>,
}

impl Quotas {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::Show { tenant } => client.show(ApiRequest::get(["tenants", &tenant, "quotas"])).await,
            Self::Set(args) => args.run(client).await,
        }
    }
}

impl SetArgs {
    async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { tenant, max_tasks, max_fires_per_minute, max_concurrent, retain_days } = self;
        // Quotas that the request omits have no limit, so it sends the current ones. The revision is read first, so
        // that a change in between makes this fail.
        let revision = client.node.answer(ApiRequest::get(["tenants", &tenant])).await?["revision"].as_i64();
        let revision = revision.context("the node's answer cannot be understood")?;
        let now = client.node.answer(ApiRequest::get(["tenants", &tenant, "quotas"])).await?;
        let field = |name: &'static str, wanted: Option<i32>| {
            (name, Some(wanted.map_or_else(|| now[name].clone(), Value::from)))
        };
        let ask = ApiRequest::put(["tenants", &tenant, "quotas"]).if_match(Some(revision)).fields([
            field("max_tasks", max_tasks),
            field("max_fires_per_minute", max_fires_per_minute),
            field("max_concurrent", max_concurrent),
            field("retain_days", retain_days),
        ]);
        client.show(ask).await
    }
}
