//! `carillon quotas`.

use super::client::Client;
use super::node::ApiRequest;
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
    /// Maximum number of fires in any minute, in the whole cluster.
    #[arg(long, value_name = "COUNT")]
    max_fires_per_minute: Option<i32>,
    /// Maximum number of runs at once.
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
        let ask = ApiRequest::patch(["tenants", &tenant, "quotas"]).fields([
            ("max_tasks", max_tasks.map(Value::from)),
            ("max_fires_per_minute", max_fires_per_minute.map(Value::from)),
            ("max_concurrent", max_concurrent.map(Value::from)),
            ("retain_days", retain_days.map(Value::from)),
        ]);
        client.show(ask).await
    }
}
