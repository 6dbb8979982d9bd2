//! The command line.

use clap::{Args, Parser, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Measures nodes and executors on a database server of their own.
#[derive(Debug, Parser)]
#[command(name = "scripts/bench")]
pub struct Options {
    /// The database.
    #[arg(long)]
    pub database: Kind,
    /// Fires per second; `max` searches for the highest rate that is sustained.
    #[arg(long, value_parser = rate, required_unless_present_any = ["idle_tasks", "burst", "lists", "growth", "overload", "recovery", "life"])]
    pub rate: Option<Rate>,
    /// Length of the measured window; a multiple of 5 holds whole rounds of the node's workers.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Instead of a rate: an idle node with so many enabled daily tasks.
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub idle_tasks: Option<u32>,
    /// Instead of a rate: a tenant with so many runs due at one instant, beside one that fires every second.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks"])]
    pub burst: Option<u32>,
    /// Instead of a rate: lists of task logs among so many.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst"])]
    pub lists: Option<u32>,
    /// Instead of a rate: so many fires per second, more than the node carries, beside another tenant; half as many before it.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst", "lists"])]
    pub overload: Option<u32>,
    /// Instead of a rate: the start of a node after ten minutes in which so many fires per second were missed.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst", "lists", "overload"])]
    pub recovery: Option<u32>,
    /// Asks for no list, but keeps the node with its logs until standard input ends: to look at them with the console.
    /// Its address and its API token are printed as JSON.
    #[arg(long, requires = "lists")]
    pub hold: bool,
    /// What grows with what.
    #[command(flatten)]
    pub growth: Growth,
    /// Instead of a rate: what the life of a run costs the database, step by step, by the database's own counts.
    #[arg(long, conflicts_with_all = ["rate", "idle_tasks", "burst", "lists", "overload", "recovery", "growth", "profile"])]
    pub life: bool,
    /// Prints no counts, but what has changed against this file; fails if a count has grown by more than a tenth.
    #[arg(long, value_name = "FILE", requires = "life", conflicts_with = "accept")]
    pub compare: Option<PathBuf>,
    /// Prints no counts, but writes them into this file, beside those of other databases.
    #[arg(long, value_name = "FILE", requires = "life")]
    pub accept: Option<PathBuf>,
    /// Where the burst comes from.
    #[arg(long, default_value = "overdue", requires = "burst")]
    pub variant: Variant,
    /// Nodes that share the work.
    #[arg(long, default_value_t = 1, requires = "burst", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub nodes: u32,
    /// Also what each statement costs the server (`MariaDB`, `PostgreSQL`); counting costs `MariaDB` itself.
    #[arg(long, requires = "rate")]
    pub profile: bool,
    /// Folder with the built programs `carillon` and `examples/bench`.
    #[arg(long, value_name = "FOLDER", default_value = "target/release")]
    pub programs: PathBuf,
    /// What is printed on standard output.
    #[arg(long, default_value = "table")]
    pub output: Output,
}

/// How much there is, of which little changes.
#[derive(Debug, Args)]
pub struct Growth {
    /// Instead of a rate: what a node's rounds of work cost the database among so many executors, tenants and runs.
    #[arg(id = "growth", long = "growth", conflicts_with_all = ["rate", "idle_tasks", "burst", "lists"])]
    pub is_wanted: bool,
    /// Executors of one app.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(3..=100_000))]
    pub executors: u32,
    /// Tenants with an app and a key each.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub tenants: u32,
    /// Runs that executors have had for an hour, and as many that are written ahead and have consequences.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub runs: u32,
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

/// Where the runs of a burst come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Written ahead: each is the fire of a task of its own.
    Ahead,
    /// Suddenly there and overdue, as after an outage or by the API.
    Overdue,
    /// The same, and the executor accepts connections and answers nothing.
    Hanging,
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
