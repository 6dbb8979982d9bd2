//! Fail-over of the database's servers: to nodes the database is away for a while, and nothing else. Real replicas, under load.
//!
//! What is in `at_length` runs with `./scripts/test --long` only.

mod at_length;
mod galera;
mod load;
mod promotion;
mod read_only;
