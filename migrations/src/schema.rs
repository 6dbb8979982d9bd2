//! The few kinds of columns that the schema needs, on three databases.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

/// A column: never null unless it says so.
#[derive(Clone, Copy)]
pub enum Kind {
    /// 64-bit integer.
    Big,
    /// 64-bit integer or nothing.
    BigNull,
    /// 32-bit integer.
    Int,
    /// 32-bit integer or nothing.
    IntNull,
    /// Text of at most 191 characters, which an index can hold.
    Name,
    /// Text.
    Text,
    /// Text or nothing.
    TextNull,
}

/// (name, kind); the first column is the primary key.
pub type Columns = &'static [(&'static str, Kind)];

/// A new table.
pub fn table(name: &str, columns: Columns, backend: DatabaseBackend) -> TableCreateStatement {
    table_with_key(name, columns, 1, backend)
}

/// A new table whose primary key is its first `keys` columns.
pub fn table_with_key(
    name: &str,
    columns: &[(&str, Kind)],
    keys: usize,
    backend: DatabaseBackend,
) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(Alias::new(name)).if_not_exists();
    let mut key = Index::create();
    for (position, (name, kind)) in columns.iter().enumerate() {
        let mut column = column(name, *kind, backend);
        if keys == 1 && position == 0 {
            // In the column's own words: so it is SQLite's place of the row.
            column.primary_key();
        }
        if position < keys {
            key.col(Alias::new(*name));
        }
        table.col(&mut column);
    }
    if keys > 1 {
        table.primary_key(&mut key);
    }
    if backend == DatabaseBackend::MySql {
        // Names and tags compare exactly, as on the other two.
        table.engine("InnoDB").character_set("utf8mb4").collate("utf8mb4_bin");
    }
    table
}

fn column(name: &str, kind: Kind, backend: DatabaseBackend) -> ColumnDef {
    let mut column = ColumnDef::new(Alias::new(name));
    match kind {
        // SQLite's 64-bit INTEGER PRIMARY KEY is the row's own place; a BIGINT one would be an
        // index beside it.
        Kind::Big if backend == DatabaseBackend::Sqlite => column.integer().not_null(),
        Kind::Big => column.big_integer().not_null(),
        Kind::BigNull => column.big_integer().null(),
        Kind::Int => column.integer().not_null(),
        Kind::IntNull => column.integer().null(),
        Kind::Name => column.string_len(191).not_null(),
        Kind::Text => column.text().not_null(),
        Kind::TextNull => column.text().null(),
    };
    column
}

/// Adds the columns that are not there yet; old rows get the value beside each.
pub async fn add_columns(
    manager: &SchemaManager<'_>,
    table: &str,
    columns: &[(&str, Kind, Value)],
) -> Result<(), DbErr> {
    let backend = manager.get_database_backend();
    let mut missing = Vec::new();
    for (name, kind, default) in columns {
        if manager.has_column(table, *name).await? {
            continue;
        }
        let mut column = column(name, *kind, backend);
        if !matches!(kind, Kind::TextNull | Kind::Text) {
            column.default(default.clone());
        }
        missing.push(column);
    }
    // SQLite adds one column at a time; for the others each statement is a look at the whole table.
    let at_once = if backend == DatabaseBackend::Sqlite { 1 } else { missing.len().max(1) };
    for columns in missing.chunks(at_once) {
        let mut change = Table::alter();
        change.table(Alias::new(table));
        for column in columns {
            change.add_column(column.clone());
        }
        manager.alter_table(change).await?;
    }
    Ok(())
}

/// A new index; one that is there already is left alone.
pub async fn create_index(
    manager: &SchemaManager<'_>,
    name: &str,
    on: &str,
    columns: &[&str],
    unique: bool,
) -> Result<(), DbErr> {
    if manager.has_index(on, name).await? {
        return Ok(());
    }
    let mut index = Index::create();
    index.name(name).table(Alias::new(on));
    for column in columns {
        index.col(Alias::new(*column));
    }
    if unique {
        index.unique();
    }
    manager.create_index(index).await
}
