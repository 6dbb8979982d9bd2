//! `carillon cluster`, `carillon restored`.

use super::client::{Client, ListLimit};
use super::node::ApiRequest;
use super::table::{Column, field};
use crate::store::{ClusterStore, SqlStore};
use clap::Subcommand;

const SILENCES: &[Column] = &[
    field("FROM", "from"),
    field("UNTIL", "until"),
    field("LIVED UNTIL", "lived_until"),
    field("FOUND BY", "found_by"),
    field("DECISION", "decision"),
    field("HELD", "held"),
];

/// What can be done with the cluster.
#[derive(Debug, Subcommand)]
pub enum Cluster {
    /// List times without any node, and what is held because the database was restored.
    Silences {
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// After the database was restored from a backup: decide about the runs that may have run.
    Resume(ResumeArgs),
}

/// What is to become of the past.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct ResumeArgs {
    /// Cancel the runs that are held, and backfills that were open.
    #[arg(long)]
    skip_past: bool,
    /// Run them as their tasks' policies for missed and lost runs say, some of them a second time.
    #[arg(long)]
    run_past: bool,
}

impl Cluster {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::Silences { most } => client.whole(ApiRequest::get(["cluster", "silences"]), &most, SILENCES).await,
            Self::Resume(ResumeArgs { skip_past, run_past: _ }) => {
                let (word, done) = if skip_past { ("skip", "is cancelled") } else { ("run", "runs") };
                let ask = ApiRequest::post(["cluster", "resume"]).fields([("past", Some(word.into()))]);
                client.done(ask, &format!("what was held {done}")).await
            }
        }
    }
}

/// Says that the database was restored: before the first node starts, where nobody lived through it.
///
/// # Errors
/// The database cannot be used.
pub async fn restored(store: &SqlStore) -> anyhow::Result<()> {
    let now = store.now_us().await? / 1_000;
    store.note_restored(now).await?;
    println!("what was due before now is held; start the nodes, then run `carillon cluster resume`");
    Ok(())
}
