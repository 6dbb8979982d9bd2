//! `carillon tasks`: task files, compared with a cluster and applied to it, and written out of it.
//!
//! The node decides what a file means: the command only reads TOML, YAML or JSON, hands it over,
//! and shows the answer at the place in the file. So the file of a newer release is refused by an
//! older node and not half understood, and what `export` writes is what the node knows.

mod apply;
mod diff;
mod document;
mod export;
mod json;
mod node;

pub use document::{Document, Format};

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Work with task files.
#[derive(Debug, Args)]
pub struct TasksArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TasksCommand,
}

/// The subcommands of `carillon tasks`.
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// Make the tasks of a file be as the file says: all of them, or, when one is refused, none.
    Apply(ApplyArgs),
    /// Write tasks as a file that `apply` reads.
    Export(ExportArgs),
}

/// Where the node is, and how it knows us.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Address of a node.
    #[arg(long, value_name = "URL", env = "CARILLON_URL", default_value = "http://127.0.0.1:8526")]
    pub url: String,
    /// File that holds the API token. Without it the variable `CARILLON_TOKEN` is the token, and without that the file
    /// data/api-token that a node writes at its first start.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub token_file: Option<PathBuf>,
    /// Authorities that an https node's certificate may come from (PEM), instead of the machine's own.
    #[arg(long, value_name = "FILE", env = "CARILLON_CA_FILE")]
    pub ca_file: Option<PathBuf>,
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
    /// With --dry-run: exit with 3 when something would change.
    #[arg(long, requires = "dry_run")]
    pub exit_code: bool,
    /// text, for people; json, the node's answer.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// The node.
    #[command(flatten)]
    pub node: NodeArgs,
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
    /// How to write them; otherwise the name of the file to write says it, otherwise toml.
    #[arg(long)]
    pub format: Option<Format>,
    /// File to write; standard output if left out.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The node.
    #[command(flatten)]
    pub node: NodeArgs,
}

/// How `apply` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// The node's answer.
    Json,
}

/// Carries the command out.
///
/// # Errors
/// What went wrong, where, and how to mend it.
pub async fn run(args: &TasksArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        TasksCommand::Apply(args) => apply::run(args).await,
        TasksCommand::Export(args) => export::run(args).await.map(|()| ExitCode::SUCCESS),
    }
}
