//! The schema, once, for SQLite, MariaDB/MySQL and PostgreSQL.
//!
//! Rules: times are BIGINT epoch milliseconds; ids are made by the nodes, never by the
//! database; no triggers, no foreign keys on the hot path; names compare exactly (binary
//! collation). A step that has been released is never changed; the next one is added. Every
//! step can be run again after a crash in its middle (MariaDB commits each DDL statement).

use sea_orm_migration::prelude::*;

pub use sea_orm_migration::MigratorTrait;

mod m0001_engine;
mod m0002_policies;
mod m0003_people;
mod m0004_keys;
mod m0005_quotas;
mod m0006_statistics;
mod m0007_log_lists;
mod m0008_left_out_handlers;
mod m0009_lists;
mod m0010_attempts;
mod schema;

/// Every step, oldest first.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_engine::Migration),
            Box::new(m0002_policies::Migration),
            Box::new(m0003_people::Migration),
            Box::new(m0004_keys::Migration),
            Box::new(m0005_quotas::Migration),
            Box::new(m0006_statistics::Migration),
            Box::new(m0007_log_lists::Migration),
            Box::new(m0008_left_out_handlers::Migration),
            Box::new(m0009_lists::Migration),
            Box::new(m0010_attempts::Migration),
        ]
    }
}
