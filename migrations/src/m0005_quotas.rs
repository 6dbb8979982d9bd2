//! Quotas of tenants, and the places that their runs have in their rates.

use crate::schema::Kind::{self, Big, Int, Text};
use crate::schema::{Columns, add_columns, table};
use sea_orm_migration::prelude::*;

/// Fifth schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0005_quotas"
    }
}

/// 0 is no bound, or the node's default. `task_turn` grows with every creation of tasks under a
/// quota: those come one transaction at a time.
const OF_TENANT: &[(&str, Kind)] =
    &[("max_tasks", Int), ("max_fires_per_minute", Int), ("retain_days", Int), ("task_turn", Big)];

/// The runs of a tenant by the minute; `turn` grows with every batch that takes places.
const TENANT_RATE: Columns = &[("id", Big), ("turn", Big), ("places", Text)];

/// How far retention has looked for tenants that keep their logs for `id` days: the log `seen`.
const PURGE_CURSOR: Columns = &[("id", Big), ("seen", Big)];

const TABLES: &[(&str, Columns)] = &[("tenant_rate", TENANT_RATE), ("purge_cursor", PURGE_CURSOR)];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let columns: Vec<_> = OF_TENANT.iter().map(|(name, kind)| (*name, *kind, Value::from(0))).collect();
        add_columns(manager, "tenant", &columns).await?;
        for (name, columns) in TABLES {
            manager.create_table(table(name, columns, backend)).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in TABLES.iter().rev() {
            manager.drop_table(Table::drop().table(Alias::new(*name)).if_exists().to_owned()).await?;
        }
        for (column, _) in OF_TENANT.iter().rev() {
            let mut change = Table::alter();
            manager.alter_table(change.table(Alias::new("tenant")).drop_column(Alias::new(*column)).to_owned()).await?;
        }
        Ok(())
    }
}
