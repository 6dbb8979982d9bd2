//! `carillon backfills`.

use super::client::{Client, ListLimit};
use super::node::ApiRequest;
use super::table::{Column, field};
use super::{find, instant};
use clap::Subcommand;

const COLUMNS: &[Column] = &[
    field("ID", "id"),
    field("STATUS", "status"),
    field("FROM", "from"),
    field("UNTIL", "until"),
    field("WRITTEN", "written"),
    field("EXISTING", "existing"),
    field("UP TO", "next_at"),
];

/// What can be done with backfills.
#[derive(Debug, Subcommand)]
pub enum Backfills {
    /// List a task's backfills, newest first.
    List {
        /// The task's id, or tenant/app/name.
        task: String,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Run a task for the fires of a past range.
    Create {
        /// The task's id, or tenant/app/name.
        task: String,
        /// First instant: 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, -2h.
        #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
        from: i64,
        /// First instant after the range.
        #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
        until: i64,
        /// Most runs of it at once; 1 by default.
        #[arg(long, value_name = "COUNT")]
        max_concurrent: Option<i32>,
        /// Parameters instead of the task's.
        #[arg(long)]
        params: Option<String>,
    },
    /// End a backfill; runs that it has already written still run.
    Cancel {
        /// The task's id, or tenant/app/name.
        task: String,
        /// The backfill's id.
        backfill: String,
    },
}

impl Backfills {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        match self {
            Self::List { task, most } => {
                let ask = ApiRequest::get(["tasks", &find::task(node, &task).await?, "backfills"]);
                client.pages(ask, "before", &most, COLUMNS).await
            }
            Self::Create { task, from, until, max_concurrent, params } => {
                let fields = [
                    ("from", Some(from.into())),
                    ("until", Some(until.into())),
                    ("max_concurrent", max_concurrent.map(Into::into)),
                    ("params", params.map(Into::into)),
                ];
                let ask = ApiRequest::post(["tasks", &find::task(node, &task).await?, "backfills"]);
                client.show(ask.fields(fields)).await
            }
            Self::Cancel { task, backfill } => {
                let ask = ApiRequest::delete(["tasks", &find::task(node, &task).await?, "backfills", &backfill]);
                client.done(ask, &format!("backfill {backfill} writes no more runs")).await
            }
        }
    }
}
