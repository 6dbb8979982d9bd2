//! `carillon statistics`.

use super::client::{Client, Output};
use super::node::ApiRequest;
use super::table::{Column, field, made, text};
use super::{find, instant};
use anyhow::Context;
use clap::Args;
use serde_json::Value;

const COLUMNS: &[Column] = &[
    made("FROM", |point| if point["start"].is_null() { "all".to_owned() } else { text("start_at", &point["start"]) }),
    field("FIRES", "fires"),
    field("SUCCEEDED", "succeeded"),
    field("FAILED", "failed"),
    field("DISCARDED", "discarded"),
    field("EXPIRED", "expired"),
    field("CANCELLED", "cancelled"),
    field("OPEN", "open"),
    made("LATE 50/99 %", |point| quantiles(&point["lateness"])),
    made("TOOK 50/99 %", |point| quantiles(&point["duration"])),
];

/// Which figures.
#[derive(Debug, Args)]
pub struct StatisticsArgs {
    /// Only in this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only of this task: its id, or tenant/app/name.
    #[arg(long)]
    task: Option<String>,
    /// From this time on: 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, -2h.
    #[arg(long, value_name = "TIME", default_value = "-1d", value_parser = instant::parse, allow_hyphen_values = true)]
    from: i64,
    /// Up to this time; now by default.
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = instant::parse, allow_hyphen_values = true)]
    until: i64,
    /// Length of a step: 1m, 5m, 1h or 1d.
    #[arg(long, default_value = "1h")]
    step: String,
}

impl StatisticsArgs {
    /// Shows them: rows without fires are omitted; the last row is the total.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { tenant, task, from, until, step } = self;
        let task = match &task {
            Some(task) => Some(find::task(&client.node, task).await?),
            None => None,
        };
        let ask = ApiRequest::get(["statistics"]).with("tenant", tenant).with("task", task);
        let ask = ask.with("from", Some(from)).with("until", Some(until)).with("step", Some(step));
        let answer = client.node.answer(ask).await?;
        if client.output == Output::Json {
            return client.one(&answer);
        }
        let points = answer["items"].as_array().context("the node's answer cannot be understood")?;
        let rows: Vec<Value> = points.iter().chain([&answer["total"]]).cloned().collect();
        client.rows(&rows, COLUMNS)
    }
}

fn quantiles(times: &Value) -> String {
    match (times["p50_ms"].as_f64(), times["p99_ms"].as_f64()) {
        (Some(half), Some(most)) => format!("{half:.0}/{most:.0} ms"),
        _ => "-".to_owned(),
    }
}
