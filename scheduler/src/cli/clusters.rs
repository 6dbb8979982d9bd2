//! `carillon clusters`: other clusters, at a glance.

use super::client::{Client, ListLimit};
use super::node::ApiRequest;
use super::table::{Column, field, made, time};
use clap::Subcommand;
use serde_json::Value;

const COLUMNS: &[Column] = &[
    field("NAME", "name"),
    field("STATE", "state"),
    made("SINCE", |cluster| cluster["since"].as_i64().map_or_else(|| "-".to_owned(), time)),
    made("NODES", |cluster| match &cluster["figures"] {
        Value::Null => "-".to_owned(),
        figures => format!("{}/{}", figures["nodes_online"], figures["nodes"]),
    }),
    made("FIRES", |cluster| figure(cluster, "fires")),
    made("FAILED", |cluster| figure(cluster, "failed")),
    made("LATE P99 MS", |cluster| figure(cluster, "lateness_p99_ms")),
    field("HEARD", "read_at"),
    field("PROBLEM", "problem"),
    field("URL", "url"),
];

/// Of the last hour before it was heard.
fn figure(cluster: &Value, name: &str) -> String {
    match &cluster["figures"][name] {
        Value::Null => "-".to_owned(),
        figure => figure.to_string(),
    }
}

/// What can be done with other clusters.
#[derive(Debug, Subcommand)]
pub enum Clusters {
    /// List other clusters, as the node last heard them: health, and the figures of the hour before.
    List {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
}

impl Clusters {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self::List { most } = self;
        client.whole(ApiRequest::get(["clusters"]), &most, COLUMNS).await
    }
}
