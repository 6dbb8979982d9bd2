//! Arguments that several commands share.

use super::source::SourceArgs;
use clap::Args;

/// `carillon import switch`, `carillon import undo`
#[derive(Debug, Args)]
pub struct SwitchArgs {
    /// Where the jobs are. The user of the database needs UPDATE on `xxl_job_info`, and SELECT with UPDATE on `xxl_job_lock`.
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Name of the source, as the import had it.
    #[arg(long = "source", value_name = "NAME", default_value = "xxl-job")]
    pub(super) name: String,
    /// The tenant of the tasks.
    #[arg(long)]
    pub(super) tenant: String,
    /// Only this group, by the app name of its executors; can be given several times.
    #[arg(long = "group", value_name = "APPNAME")]
    pub(super) groups: Vec<String>,
}

/// How an import is done.
#[derive(Debug, Args)]
pub struct How {
    /// Only show what would change; with --output json the whole document that was read.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Leave users out.
    #[arg(long)]
    pub(super) without_users: bool,
}
