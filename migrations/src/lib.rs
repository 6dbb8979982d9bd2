//! The schema, once, for SQLite, MariaDB/MySQL and PostgreSQL.
//!
//! Rules: times are BIGINT epoch milliseconds; ids are made by the nodes, never by the
//! database; no triggers, no foreign keys on the hot path; names compare exactly (binary
//! collation). A step that has been released is never changed; the next one is added. Every
//! step can be run again after a crash in its middle (MariaDB commits each DDL statement).

use schema::{Additions, Tables, TablesAndColumns};
use sea_orm_migration::prelude::*;
use std::sync::OnceLock;

pub use schema::Change;
pub use sea_orm_migration::{MigrationTrait, MigratorTrait, SchemaManager};

mod m0001_tenants;
mod m0002_tasks;
mod m0003_task_logs;
mod m0004_cluster;
mod m0005_people;
mod m0006_audit;
mod m0007_statistics;
mod m0008_releases;
mod m0009_silences;
mod m0010_addresses;
mod m0011_clock;
mod m0012_nodes;
mod m0013_calendars;
mod m0014_rule_changes;
mod m0015_phases;
mod m0016_plain_executors;
mod m0017_xxljob;
mod m0018_origins;
mod m0019_xxljob_admin;
mod m0020_discovery;
mod m0021_scripts;
mod schema;

/// Steps, oldest first.
pub type Steps = Vec<Box<dyn MigrationTrait>>;

static FURTHER: OnceLock<fn() -> Steps> = OnceLock::new();

/// Adds steps after those of this release, as a later one will have them: the tests of an upgrade run a node of one. Comes before
/// anything reads the schema.
///
/// # Panics
/// At the second call in a process.
pub fn add_steps(further: fn() -> Steps) {
    assert!(FURTHER.set(further).is_ok(), "further steps were added before");
}

/// Every step, oldest first.
pub struct Migrator;

impl Migrator {
    /// How many steps this release knows: the number of its schema.
    #[must_use]
    pub fn number() -> i32 {
        <i32 as TryFrom<usize>>::try_from(Self::migrations().len()).unwrap_or(i32::MAX)
    }
}

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Steps {
        let mut steps: Steps = vec![
            Box::new(Tables { name: "m0001_tenants", tables: m0001_tenants::TABLES }),
            Box::new(Tables { name: "m0002_tasks", tables: m0002_tasks::TABLES }),
            Box::new(Tables { name: "m0003_task_logs", tables: m0003_task_logs::TABLES }),
            Box::new(Tables { name: "m0004_cluster", tables: m0004_cluster::TABLES }),
            Box::new(Tables { name: "m0005_people", tables: m0005_people::TABLES }),
            Box::new(Tables { name: "m0006_audit", tables: m0006_audit::TABLES }),
            Box::new(Tables { name: "m0007_statistics", tables: m0007_statistics::TABLES }),
            Box::new(Tables { name: "m0008_releases", tables: m0008_releases::TABLES }),
            Box::new(Tables { name: "m0009_silences", tables: m0009_silences::TABLES }),
            Box::new(Additions { name: "m0010_addresses", tables: m0010_addresses::TABLES }),
            Box::new(Additions { name: "m0011_clock", tables: m0011_clock::TABLES }),
            Box::new(Change { name: "m0012_nodes", sql: m0012_nodes::END_EARLIER_NODES }),
            Box::new(Additions { name: "m0013_calendars", tables: m0013_calendars::TABLES }),
            Box::new(Tables { name: "m0014_rule_changes", tables: m0014_rule_changes::TABLES }),
            Box::new(m0015_phases::PHASES),
            Box::new(Additions { name: "m0016_plain_executors", tables: m0016_plain_executors::TABLES }),
            Box::new(Tables { name: "m0017_xxljob", tables: m0017_xxljob::TABLES }),
            Box::new(Tables { name: "m0018_origins", tables: m0018_origins::TABLES }),
            Box::new(Tables { name: "m0019_xxljob_admin", tables: m0019_xxljob_admin::TABLES }),
            Box::new(Tables { name: "m0020_discovery", tables: m0020_discovery::TABLES }),
            Box::new(TablesAndColumns {
                name: "m0021_scripts",
                number: 21,
                tables: m0021_scripts::TABLES,
                columns: m0021_scripts::COLUMNS,
            }),
        ];
        steps.extend(FURTHER.get().into_iter().flat_map(|further| further()));
        steps
    }
}
