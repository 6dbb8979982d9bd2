//! The command `carillon` end to end: the built binary, against built nodes on SQLite.

#![allow(clippy::unwrap_used)] // a test may fail

#[path = "command/apply.rs"]
mod apply;
#[path = "command/audit.rs"]
mod audit;
#[path = "command/completions.rs"]
mod completions;
#[path = "command/contexts.rs"]
mod contexts;
#[path = "command/documents.rs"]
mod documents;
#[path = "command/errors.rs"]
mod errors;
#[path = "command/every_field.rs"]
mod every_field;
#[path = "command/installation.rs"]
mod installation;
#[path = "command/login.rs"]
mod login;
#[path = "command/people.rs"]
mod people;
#[path = "command/resources.rs"]
mod resources;
#[path = "command/revisions.rs"]
mod revisions;
#[path = "command/round_trip.rs"]
mod round_trip;
