//! `carillon quotas`.

use super::client::Client;
use super::node::ApiRequest;
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::Value;

/// What can be done with quotas.
#[derive(Debug, Subcommand)]
pub enum Quotas {
    /// Show a tenant's quotas, and what it uses of them.
    Show {
        /// The tenant's name.
        tenant: String,
    },
    /// Set a tenant's quotas; what is not named stays. 0 is no bound.
    Set(SetArgs),
}

/// Quotas to set.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The tenant's name.
    tenant: String,
    /// Tasks at most.
    #[arg(long, value_name = "COUNT")]
    max_tasks: Option<i32>,
    /// Fires in any minute of the whole cluster at most.
    #[arg(long, value_name = "COUNT")]
    max_fires_per_minute: Option<i32>,
    /// Runs at once at most.
    #[arg(long, value_name = "COUNT")]
    max_concurrent: Option<i32>,
    /// Days that ended task logs are kept; 0 is the node's default.
    #[arg(long, value_name = "DAYS")]
    retain_days: Option<i32>,
}

impl Quotas {
    /// Does it.
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
        // What the API is not told has no bound: so it is told what is. The revision comes first, so that whoever
        // changes something in between makes this fail.
        let revision = client.node.answer(ApiRequest::get(["tenants", &tenant])).await?["revision"].as_i64();
        let revision = revision.context("the node's answer is not understood")?;
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
