//! Handlers for which no task was made, because the tenant's quota was used up.

use crate::schema::{Kind, add_columns};
use sea_orm_migration::prelude::*;

/// Eighth schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0008_left_out_handlers"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add_columns(manager, "handler", &[("left_out", Kind::Int, Value::from(0i32))]).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut change = Table::alter();
        let change = change.table(Alias::new("handler")).drop_column(Alias::new("left_out"));
        manager.alter_table(change.to_owned()).await
    }
}
