//! Keys of executors that are rotated and revoked, and what an app demands of them.

use crate::schema::Kind::{self, Big, Name};
use crate::schema::add_columns;
use sea_orm_migration::prelude::*;

/// Fourth schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0004_keys"
    }
}

/// (table, column, kind); old rows get 0 or the empty word.
const ADDED: &[(&str, &str, Kind)] = &[
    ("app_key", "note", Name),
    // The end of its overlap with the key after it; 0 is never.
    ("app_key", "expires_at", Big),
    ("app_key", "last_used_at", Big),
    ("app_key", "created_by", Name),
    // The signature method that the app demands; empty is any.
    ("app", "sign_method", Name),
    // When the newest registration and heartbeat that counted were signed, by the executor's clock:
    // an older message is a repetition.
    ("executor", "register_signed_at", Big),
    ("executor", "beat_signed_at", Big),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["app_key", "app", "executor"] {
            let of_table = ADDED.iter().filter(|(of, ..)| *of == table);
            let columns: Vec<_> = of_table.map(|(_, name, kind)| (*name, *kind, nothing(*kind))).collect();
            add_columns(manager, table, &columns).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column, _) in ADDED.iter().rev() {
            let mut change = Table::alter();
            manager.alter_table(change.table(Alias::new(*table)).drop_column(Alias::new(*column)).to_owned()).await?;
        }
        Ok(())
    }
}

fn nothing(kind: Kind) -> Value {
    match kind {
        Kind::Big => Value::from(0i64),
        _ => Value::from(""),
    }
}
