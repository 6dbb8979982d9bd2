//! `carillon logs`, `carillon kill`: runs.

mod follow;
mod output;
mod row;
mod wait;

pub use follow::follow_run;
pub use wait::{WAIT_MS, wait_for_run};

use super::client::{Client, Output, hint};
use super::node::ApiRequest;
use super::table::{Column, field, made};
use super::{find, instant};
use clap::{Args, Subcommand};
use row::{Names, between, late};

const COLUMNS: &[Column] = &[
    field("FIRE TIME", "fire_time"),
    field("TASK", "task_name"),
    field("STATUS", "status"),
    field("REASON", "reason"),
    made("LATE", late),
    made("TOOK", |log| between(log, "started_at", "finished_at")),
    field("TRY", "attempt"),
    field("ID", "id"),
    field("MESSAGE", "message"),
];

/// What can be done with runs.
#[derive(Debug, Subcommand)]
pub enum Logs {
    /// List runs, latest fire time first, or earliest.
    List(ListArgs),
    /// Show a run.
    Show {
        /// Its id.
        log: String,
        /// Show its state and output until it ends; exit with 1 unless it succeeds.
        #[arg(long, short)]
        follow: bool,
    },
    /// Print the log output of a run.
    Output(output::OutputArgs),
    /// Cancel a run, or kill it if it is running.
    Cancel(CancelArgs),
}

/// Which runs.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only in this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only of this app: its id, or tenant/name.
    #[arg(long)]
    app: Option<String>,
    /// Only of this task: its id, or tenant/app/name.
    #[arg(long)]
    task: Option<String>,
    /// Only runs that this executor (id or address) has or had.
    #[arg(long)]
    executor: Option<String>,
    /// Only shards of this run.
    #[arg(long, value_name = "LOG")]
    parent: Option<String>,
    /// Only in this state: init, queued, dispatched, retry, succeeded, failed, discarded, expired, cancelled.
    #[arg(long)]
    status: Option<String>,
    /// Only for this reason: `no_executor` …
    #[arg(long)]
    reason: Option<String>,
    /// Only with this trigger: schedule, misfire, manual, parent or backfill.
    #[arg(long)]
    trigger: Option<String>,
    /// From this fire time on: 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, -2h.
    #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true, conflicts_with = "follow")]
    from: Option<i64>,
    /// Before this fire time; `now` omits the runs that are already written for the next three minutes.
    #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true, conflicts_with = "follow")]
    until: Option<i64>,
    /// Sort order: newest or oldest first.
    #[arg(long, value_name = "ORDER", conflicts_with = "follow")]
    order: Option<String>,
    /// Show at most this many.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Follow: print runs as they are dispatched, and again as they end (with --output json: one document per line).
    #[arg(long, short, conflicts_with = "limit")]
    follow: bool,
}

/// Which run.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Its id.
    log: String,
}

impl Logs {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List(args) => args.run(client).await,
            Self::Show { log, follow: true } => follow_run(client, &log).await,
            Self::Show { log, follow: false } => client.show(ApiRequest::get(["task-logs", &log])).await,
            Self::Output(args) => args.run(client).await,
            Self::Cancel(args) => args.run(client).await,
        }
    }
}

impl CancelArgs {
    /// Cancels it.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let log = client.node.answer(ApiRequest::post(["task-logs", &self.log, "cancel"])).await?;
        let says = match log["status"].as_str() {
            Some("stopping") => "is being stopped; its executor has not confirmed yet",
            _ => "is cancelled",
        };
        client.says(&log, &format!("run {} {says}", self.log))
    }
}

impl ListArgs {
    async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        let ask = ApiRequest::get(["task-logs"])
            .with("tenant", self.tenant)
            .with("app", found(self.app.as_deref(), |app| find::app(node, app)).await?)
            .with("task", found(self.task.as_deref(), |task| find::task(node, task)).await?)
            .with("executor", found(self.executor.as_deref(), |executor| find::executor(node, executor)).await?)
            .with("parent", self.parent)
            .with("status", self.status)
            .with("reason", self.reason)
            .with("trigger", self.trigger)
            .with("from", self.from)
            .with("until", self.until)
            .with("order", self.order);
        if self.follow {
            return follow::follow_list(client, &ask).await;
        }
        let (mut logs, is_more) = client.node.list(&ask, Some("before"), self.limit as usize).await?;
        if client.output == Output::Table {
            Names::default().put(&client.node, &mut logs).await?;
        }
        client.rows(&logs, COLUMNS)?;
        hint(&logs, is_more);
        Ok(())
    }
}

/// The id of the named object, if one is named.
async fn found<'a, F>(name: Option<&'a str>, find: impl FnOnce(&'a str) -> F) -> anyhow::Result<Option<String>>
where
    F: Future<Output = anyhow::Result<String>>,
{
    match name {
        Some(name) => find(name).await.map(Some),
        None => Ok(None),
    }
}
