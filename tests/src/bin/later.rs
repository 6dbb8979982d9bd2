//! `carillon` as later releases may be: with steps of the schema that are made up. The tests of an upgrade run it beside nodes of
//! this release.

use carillon_migrations::{Change, Steps, add_steps};
use clap::Parser;
use std::process::ExitCode;

/// How many of the steps it knows.
const STEPS: &str = "LATER_STEPS";

/// One that nodes of this release can work with, and one that they cannot.
const MADE_UP: [Change; 2] = [
    Change {
        name: "m9998_a_column",
        sql: "ALTER TABLE task_log ADD COLUMN IF NOT EXISTS of_a_later_release INTEGER NOT NULL DEFAULT 0",
    },
    Change {
        name: "m9999_no_earlier_nodes",
        sql: "UPDATE schema_support SET oldest = (SELECT COUNT(*) FROM seaql_migrations WHERE version <= 'm9998_a_column')",
    },
];

fn known() -> Steps {
    let count = std::env::var(STEPS).ok().and_then(|count| count.parse().ok()).unwrap_or(MADE_UP.len());
    MADE_UP.into_iter().take(count).map(|step| Box::new(step) as _).collect()
}

fn main() -> ExitCode {
    add_steps(known);
    carillon::tls::install_provider();
    carillon::cli::run(carillon::cli::Cli::parse()).unwrap_or_else(|error| carillon::cli::exit::code_of(&error))
}
