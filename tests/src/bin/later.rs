//! `carillon` as later releases may be: with steps of the schema that are made up. The tests of an upgrade run it beside nodes of
//! this release.

use carillon_migrations::{Change, Steps, add_steps};
use carillon_tests::command::LATER_STEPS;
use clap::Parser;
use std::process::ExitCode;

/// One that nodes of this release can work with, and one that they cannot; as MariaDB and PostgreSQL understand them.
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
    let count = std::env::var(LATER_STEPS).map(|count| count.parse());
    let Ok(Ok(count)) = count else { panic!("the environment says how many steps it knows ({LATER_STEPS})") };
    MADE_UP.into_iter().take(count).map(|step| Box::new(step) as _).collect()
}

fn main() -> ExitCode {
    add_steps(known);
    carillon::tls::install_provider();
    carillon::cli::run(carillon::cli::Cli::parse()).unwrap_or_else(|error| carillon::cli::exit::code_of(&error))
}
