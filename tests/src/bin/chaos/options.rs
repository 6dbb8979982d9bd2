//! The command line.

use carillon_tests::server::Kind;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Runs nodes and executors on a database, breaks what a seed says, mends it, and checks what came of it.
#[derive(Debug, Parser)]
#[command(name = "scripts/chaos")]
pub struct Options {
    /// The database.
    #[arg(long)]
    pub database: Engine,
    /// How long things break, s.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(20..=86_400))]
    pub seconds: u32,
    /// The plan of faults and edits follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only faults whose names begin so, separated by commas (`pause`, `trap`, `kill-node` …); `none`: no fault at all.
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    pub only: Vec<String>,
    /// Where everything goes that is needed to look into a failure, new or empty; one below target/chaos if not given.
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Keeps that folder also when nothing is broken.
    #[arg(long)]
    pub keep: bool,
    /// Prints the plan, and runs nothing.
    #[arg(long)]
    pub plan: bool,
    /// What is printed on standard output.
    #[arg(long, default_value = "line")]
    pub output: Output,
}

/// What the nodes keep their data in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// One `MariaDB`.
    Mariadb,
    /// One `PostgreSQL`.
    Postgres,
    /// Three members of `MariaDB`, one for each node.
    Galera,
}

impl Engine {
    /// As it is called in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mariadb => "mariadb",
            Self::Postgres => "postgres",
            Self::Galera => "galera",
        }
    }

    /// The server's kind.
    pub fn kind(self) -> Kind {
        match self {
            Self::Mariadb | Self::Galera => Kind::MariaDb,
            Self::Postgres => Kind::Postgres,
        }
    }

    /// How many servers it has.
    pub fn members(self) -> usize {
        if self == Self::Galera { carillon_tests::server::galera::MEMBERS } else { 1 }
    }
}

/// How the verdict is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One line.
    Line,
    /// One JSON object.
    Json,
}
