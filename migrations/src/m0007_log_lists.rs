//! Indexes by which people look at task logs. Inserts append to them; of the steps of a run only an
//! end that is no success touches one.

use crate::schema::create_index;
use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{ConnectionTrait, DatabaseBackend};

/// Seventh schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0007_log_lists"
    }
}

/// (name, columns).
const INDEXES: &[(&str, &[&str])] = &[
    ("task_log_tenant_fire", &["tenant_id", "fire_time", "id"]),
    // The newest of all, and what statistics count by.
    ("task_log_fire_time", &["fire_time", "task_id"]),
];

/// The index of what ended, and not well.
const BAD: &str = "task_log_bad";

/// Its columns; MariaDB and MySQL index a column that is computed, the others the expression.
const BAD_STATUS: &str = "CASE WHEN status > 10 THEN status END";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, columns) in INDEXES {
            create_index(manager, name, "task_log", columns, false).await?;
        }
        let is_mysql = manager.get_database_backend() == DatabaseBackend::MySql;
        let connection = manager.get_connection();
        if is_mysql && !manager.has_column("task_log", "bad_status").await? {
            let column = format!("ALTER TABLE task_log ADD COLUMN bad_status INT AS ({BAD_STATUS}) VIRTUAL");
            connection.execute_unprepared(&column).await?;
        }
        if !manager.has_index("task_log", BAD).await? {
            let bad = if is_mysql { "bad_status".to_owned() } else { format!("({BAD_STATUS})") };
            let index = format!("CREATE INDEX {BAD} ON task_log (tenant_id, {bad}, due_time, id)");
            connection.execute_unprepared(&index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in INDEXES.iter().map(|(name, _)| *name).chain([BAD]) {
            let mut index = Index::drop();
            manager.drop_index(index.name(name).table(Alias::new("task_log")).to_owned()).await?;
        }
        if manager.get_database_backend() == DatabaseBackend::MySql {
            let mut change = Table::alter();
            let change = change.table(Alias::new("task_log")).drop_column(Alias::new("bad_status"));
            manager.alter_table(change.to_owned()).await?;
        }
        Ok(())
    }
}
