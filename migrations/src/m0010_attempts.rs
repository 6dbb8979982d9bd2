//! Attempts that did not end their run, and what nodes and executors say of themselves.

use crate::schema::Kind::{self, Big, BigNull, Int, Name, Text};
use crate::schema::{Columns, add_columns, table_with_key};
use sea_orm_migration::prelude::*;

/// Tenth schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0010_attempts"
    }
}

/// The last attempt of a run is the log itself.
const TASK_LOG_ATTEMPT: Columns = &[
    ("log_id", Big),
    ("attempt", Int),
    ("executor_id", Big),
    ("address", Name),
    ("node_id", Big),
    ("due_time", Big),
    ("dispatched_at", Big),
    ("started_at", Big),
    ("finished_at", Big),
    ("status", Int),
    ("reason", Name),
    ("message", Text),
];

/// (table, column, kind). Nodes of an earlier version measure nothing, and do not
/// say whom executors talk to.
const COLUMNS: &[(&str, &str, Kind)] =
    &[("node", "clock_offset_ms", BigNull), ("node", "clock_uncertainty_us", BigNull), ("executor", "node_id", Big)];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        manager.create_table(table_with_key("task_log_attempt", TASK_LOG_ATTEMPT, 2, backend)).await?;
        for (table, column, kind) in COLUMNS {
            let default = if matches!(kind, BigNull) { Value::BigInt(None) } else { Value::from(0i64) };
            add_columns(manager, table, &[(column, *kind, default)]).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column, _) in COLUMNS.iter().rev() {
            let mut change = Table::alter();
            let change = change.table(Alias::new(*table)).drop_column(Alias::new(*column));
            manager.alter_table(change.to_owned()).await?;
        }
        manager.drop_table(Table::drop().table(Alias::new("task_log_attempt")).if_exists().to_owned()).await
    }
}
