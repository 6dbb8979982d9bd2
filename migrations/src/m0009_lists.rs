//! What lists are read by, page by page, and the revision of what people say of executors.

use crate::schema::Kind::Big;
use crate::schema::{add_columns, create_index};
use sea_orm_migration::prelude::*;

/// Ninth schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0009_lists"
    }
}

/// (name, table, columns).
type Indexes = &'static [(&'static str, &'static str, &'static [&'static str])];

const INDEXES: Indexes = &[
    // The few keys that are valid among all that were, and those by their age.
    ("app_key_valid", "app_key", &["app_id", "revoked_at", "expires_at"]),
    ("app_key_age", "app_key", &["app_id", "created_at", "id"]),
    ("backfill_of_task", "backfill", &["task_id", "id"]),
];

/// Those that these take the place of.
const REPLACED: Indexes = &[("app_key_app", "app_key", &["app_id"]), ("backfill_task", "backfill", &["task_id"])];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Rules from before have the revision 1; where there is no rule it is 0.
        add_columns(manager, "executor_rule", &[("revision", Big, Value::from(1i64))]).await?;
        replace(manager, REPLACED, INDEXES).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        replace(manager, INDEXES, REPLACED).await?;
        let mut change = Table::alter();
        let change = change.table(Alias::new("executor_rule")).drop_column(Alias::new("revision"));
        manager.alter_table(change.to_owned()).await
    }
}

async fn replace(manager: &SchemaManager<'_>, old: Indexes, new: Indexes) -> Result<(), DbErr> {
    for (name, on, columns) in new {
        create_index(manager, name, on, columns, false).await?;
    }
    for (name, on, _) in old {
        if manager.has_index(*on, *name).await? {
            manager.drop_index(Index::drop().name(*name).table(Alias::new(*on)).to_owned()).await?;
        }
    }
    Ok(())
}
