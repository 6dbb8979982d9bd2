//! `carillon tasks`: what can be done with tasks, and task files.
//!
//! Of a task file the node decides what it means: the command only reads TOML, YAML or JSON, hands it over, and shows
//! the answer at the place in the file. So the file of a newer release is refused by an older node and not half
//! understood, and what `export` writes is what the node knows.

mod apply;
mod create;
mod diff;
mod document;
mod export;
mod json;
mod manage;
mod orphans;
mod run;
mod why;

pub use document::{Document, Format};
pub use run::RunArgs;
pub use why::WhyArgs;

use super::client::Client;
use clap::Subcommand;
use std::process::ExitCode;

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub enum Tasks {
    /// List, show, start, stop, pause, delete, preview.
    #[command(flatten)]
    Manage(manage::Manage),
    /// Create a task.
    Create(create::CreateArgs),
    /// Run a task manually, now or later.
    Run(RunArgs),
    /// Say why a task ran around a time, or why it did not, and who caused it.
    Why(WhyArgs),
    /// Make the tasks of a file be as the file says: all of them, or, when one is refused, none.
    Apply(apply::ApplyArgs),
    /// Write tasks as a file that `apply` reads.
    Export(export::ExportArgs),
}

impl Tasks {
    /// Does it.
    pub async fn run(self, client: &Client) -> anyhow::Result<ExitCode> {
        match self {
            Self::Apply(args) => return apply::run(client, &args).await,
            Self::Manage(command) => command.run(client).await?,
            Self::Create(args) => args.run(client).await?,
            Self::Run(args) => args.run(client).await?,
            Self::Why(args) => args.run(client).await?,
            Self::Export(args) => export::run(client, &args).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
