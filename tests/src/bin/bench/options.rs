//! The command line.

use clap::{Parser, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Measures one node and one executor on a database server of their own.
#[derive(Debug, Parser)]
#[command(name = "scripts/bench")]
pub struct Options {
    /// The database.
    #[arg(long)]
    pub database: Kind,
    /// Fires per second; `max` searches for the highest rate that is sustained.
    #[arg(long, value_parser = rate, required_unless_present = "idle_tasks", conflicts_with = "idle_tasks")]
    pub rate: Option<Rate>,
    /// Length of the measured window; a multiple of 5 holds whole rounds of the node's workers.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Instead of a rate: an idle node with so many enabled daily tasks.
    #[arg(long, value_name = "N")]
    pub idle_tasks: Option<u32>,
    /// Folder with the built programs `carillon` and `examples/bench`.
    #[arg(long, value_name = "FOLDER", default_value = "target/release")]
    pub programs: PathBuf,
    /// What is printed on standard output.
    #[arg(long, default_value = "table")]
    pub output: Output,
}

/// The databases that carillon runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `MariaDB`.
    Mariadb,
    /// `PostgreSQL`.
    Postgres,
    /// `SQLite`.
    Sqlite,
}

/// How many fires per second.
#[derive(Debug, Clone, Copy)]
pub enum Rate {
    /// As many as are sustained.
    Max,
    /// So many.
    Fixed(u32),
}

fn rate(text: &str) -> Result<Rate, String> {
    match text.parse() {
        _ if text == "max" => Ok(Rate::Max),
        Ok(rate @ 1..=1_000_000) => Ok(Rate::Fixed(rate)),
        _ => Err("a number from 1 to 1000000, or `max`".to_owned()),
    }
}

/// How the figures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One JSON object.
    Json,
    /// One figure per line.
    Table,
}
