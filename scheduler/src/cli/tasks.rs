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

pub use document::{Document, Format};
pub use run::RunArgs;

use super::client::Client;
use clap::{Args, Subcommand};
use std::path::PathBuf;
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
    /// Make the tasks of a file be as the file says: all of them, or, when one is refused, none.
    Apply(ApplyArgs),
    /// Write tasks as a file that `apply` reads.
    Export(ExportArgs),
}

/// The arguments of `carillon tasks apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The task file (.toml, .yaml, .yml or .json); - is standard input.
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// How the file is written, whatever its name; toml for standard input.
    #[arg(long)]
    pub format: Option<Format>,
    /// Only show what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Delete the tasks of the file's apps that the file does not name; --dry-run shows them.
    #[arg(long)]
    pub prune: bool,
    /// With --dry-run: exit with 3 when something would change.
    #[arg(long, requires = "dry_run")]
    pub exit_code: bool,
}

/// The arguments of `carillon tasks export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Only tasks of this tenant.
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only tasks of this app.
    #[arg(long)]
    pub app: Option<String>,
    /// How to write them; otherwise the name of the file to write says it, otherwise toml (--output json: json).
    #[arg(long)]
    pub format: Option<Format>,
    /// File to write; standard output if left out.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl Tasks {
    /// Does it.
    pub async fn run(self, client: &Client) -> anyhow::Result<ExitCode> {
        match self {
            Self::Apply(args) => return apply::run(client, &args).await,
            Self::Manage(command) => command.run(client).await?,
            Self::Create(args) => args.run(client).await?,
            Self::Run(args) => args.run(client).await?,
            Self::Export(args) => export::run(client, &args).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
