//! `carillon tasks`: what can be done with tasks, and task files.
//!
//! The node decides what a task file means: the command only reads TOML, YAML or JSON, sends it, and shows the
//! response with the position in the file. So an older node refuses the file of a newer release instead of half
//! understanding it, and `export` writes what the node knows.

mod apply;
mod create;
mod diff;
mod document;
mod export;
mod handlers;
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
    /// Change fields of a task; the others stay as they are.
    Edit(create::EditArgs),
    /// Run a task manually, now or later.
    Run(RunArgs),
    /// Explain why a task ran around a time, or did not, and who caused it.
    Why(WhyArgs),
    /// Create and change tasks to match a file: all of them or, if one is refused, none.
    Apply(apply::ApplyArgs),
    /// Write tasks as a file that `apply` reads.
    Export(export::ExportArgs),
}

impl Tasks {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<ExitCode> {
        match self {
            Self::Apply(args) => return apply::run(client, &args).await,
            Self::Manage(command) => command.run(client).await?,
            Self::Create(args) => args.run(client).await?,
            Self::Edit(args) => args.run(client).await?,
            Self::Run(args) => args.run(client).await?,
            Self::Why(args) => args.run(client).await?,
            Self::Export(args) => export::run(client, &args).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
