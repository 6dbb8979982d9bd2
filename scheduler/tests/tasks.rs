//! `carillon tasks` end to end: the built binary, against built nodes on SQLite.

#![allow(clippy::unwrap_used)] // a test may fail

#[path = "tasks/apply.rs"]
mod apply;
#[path = "tasks/documents.rs"]
mod documents;
#[path = "tasks/errors.rs"]
mod errors;
#[path = "tasks/every_field.rs"]
mod every_field;
#[path = "tasks/installation.rs"]
mod installation;
#[path = "tasks/revisions.rs"]
mod revisions;
#[path = "tasks/round_trip.rs"]
mod round_trip;
