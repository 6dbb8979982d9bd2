//! Where a command that works on the node or the database finds the settings.

use std::path::PathBuf;

/// Where the settings are.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file; without it conf/application.toml is read if it exists. The environment
    /// (`CARILLON__SECTION__KEY`) overrides it.
    #[arg(long, value_name = "FILE", env = "CARILLON_CONFIG")]
    pub config: Option<PathBuf>,
}
