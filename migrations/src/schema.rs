//! How tables are declared, and created on three databases. This is the only file here that distinguishes
//! databases.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{ConnectionTrait, DatabaseBackend};

/// A column: never null unless it says so.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// 64-bit integer.
    Big,
    /// 64-bit integer with this default.
    BigOr(i64),
    /// Nullable 64-bit integer.
    BigNull,
    /// 32-bit integer.
    Int,
    /// 32-bit integer with this default.
    IntOr(i32),
    /// Nullable 32-bit integer.
    IntNull,
    /// Text of at most 191 characters, which an index can hold.
    Name,
    /// The same, with this default.
    NameOr(&'static str),
    /// Text.
    Text,
    /// Nullable text.
    TextNull,
    /// Nullable 32-bit integer, computed by this expression, for an index. MariaDB and MySQL index a column
    /// that takes no room, the others the expression.
    Computed(&'static str),
    /// The same, kept in the row: MariaDB maintains an index on what it computes at a greater cost than the column's, and
    /// PostgreSQL changes a row without its indexes only if no expression in them names what has changed.
    Stored(&'static str),
}

/// A value of a row that is there from the beginning.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A text.
    Word(&'static str),
}

/// An index beside the primary key.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    name: &'static str,
    columns: &'static [&'static str],
    unique: bool,
    /// Without rows whose computed column is null, where the database can leave rows out.
    of_some: bool,
}

impl Index {
    /// An index for lookups.
    pub const fn new(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self { name, columns, unique: false, of_some: false }
    }

    /// A unique index.
    pub const fn unique(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self { name, columns, unique: true, of_some: false }
    }

    /// For lookups of rows whose computed column is not null.
    pub const fn of_some(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self { name, columns, unique: false, of_some: true }
    }
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// How many of its first columns are the primary key.
    pub keys: usize,
    /// (name, kind).
    pub columns: &'static [(&'static str, Kind)],
    /// Beside the primary key.
    pub indexes: &'static [Index],
    /// Rows that must be there.
    pub rows: &'static [&'static [Value]],
}

/// A step that makes tables.
#[derive(Debug)]
pub struct Tables {
    /// Under which the database notes that it is done.
    pub name: &'static str,
    /// What it makes.
    pub tables: &'static [Table],
}

impl MigrationName for Tables {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Tables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in self.tables {
            table.create(manager).await?;
        }
        Ok(())
    }
}

/// A step that adds columns with defaults, and indexes, to tables that are there: nodes of earlier releases go on meanwhile.
#[derive(Debug)]
pub struct Additions {
    /// Under which the database notes that it is done.
    pub name: &'static str,
    /// What it adds: of each table only that.
    pub tables: &'static [Table],
}

impl MigrationName for Additions {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Additions {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in self.tables {
            table.extend(manager).await?;
        }
        Ok(())
    }
}

/// A step that makes tables, and adds columns to others: earlier releases can't go on beside it.
#[derive(Debug)]
pub struct TablesAndColumns {
    /// Under which the database notes that it is done.
    pub name: &'static str,
    /// Its own number, counted from 1, before which no release can work with the database.
    pub number: i32,
    /// What it makes.
    pub tables: &'static [Table],
    /// What it adds: of each table only that.
    pub columns: &'static [Table],
}

impl MigrationName for TablesAndColumns {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for TablesAndColumns {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        begin_with(manager, self.number).await?;
        for table in self.tables {
            table.create(manager).await?;
        }
        for table in self.columns {
            table.extend(manager).await?;
        }
        Ok(())
    }
}

/// From this step on, no node of an earlier release works with the database.
async fn begin_with(manager: &SchemaManager<'_>, number: i32) -> Result<(), DbErr> {
    let oldest = format!("UPDATE schema_support SET oldest = {number} WHERE oldest < {number}");
    manager.get_connection().execute_unprepared(&oldest).await.map(drop)
}

/// A step that adds to tables and drops indexes: earlier releases can't go on beside it.
#[derive(Debug, Clone, Copy)]
pub struct Rework {
    /// Under which the database notes that it is done.
    pub name: &'static str,
    /// Its own number, counted from 1, before which no release can work with the database.
    pub number: i32,
    /// Table and index that are dropped. First: a table is written anew faster without them.
    pub no_longer: &'static [(&'static str, &'static str)],
    /// How full new rows make a page of a table, percent (PostgreSQL).
    pub fill: &'static [(&'static str, u8)],
    /// What it adds: of each table only that.
    pub tables: &'static [Table],
}

impl MigrationName for Rework {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Rework {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        begin_with(manager, self.number).await?;
        for (table, index) in self.no_longer {
            if manager.has_index(table, index).await? {
                let drop = sea_orm_migration::prelude::Index::drop().table(Alias::new(*table)).name(*index).to_owned();
                manager.drop_index(drop).await?;
            }
        }
        if Database::of(manager.get_database_backend()).pages_have_room() {
            for (table, percent) in self.fill {
                let sql = format!("ALTER TABLE {table} SET (fillfactor = {percent})");
                manager.get_connection().execute_unprepared(&sql).await?;
            }
        }
        for table in self.tables {
            table.extend(manager).await?;
        }
        Ok(())
    }
}

/// A step of one statement, which does no harm when it is carried out twice.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Under which the database notes that it is done.
    pub name: &'static str,
    /// The statement, for every database.
    pub sql: &'static str,
}

impl MigrationName for Change {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Change {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(self.sql).await.map(drop)
    }
}

impl Table {
    /// Adds what is not there yet of these columns and indexes to the table.
    async fn extend(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        for (name, kind) in self.columns {
            let Some(mut column) = column(name, *kind, backend) else { continue };
            if !manager.has_column(self.name, name).await? {
                let mut table = sea_orm_migration::prelude::Table::alter();
                table.table(Alias::new(self.name)).add_column(&mut column);
                manager.alter_table(table).await?;
            }
        }
        self.create_indexes(manager).await
    }

    async fn create_indexes(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        for index in self.indexes {
            if !manager.has_index(self.name, index.name).await? {
                manager.get_connection().execute_unprepared(&self.index_statement(index, backend)).await?;
            }
        }
        Ok(())
    }

    /// Makes what is not there yet of the table, its indexes and its rows.
    async fn create(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        manager.create_table(self.statement(manager.get_database_backend())).await?;
        self.create_indexes(manager).await?;
        for row in self.rows {
            manager.execute(self.insert(row)).await?;
        }
        Ok(())
    }

    fn statement(&self, backend: DatabaseBackend) -> TableCreateStatement {
        let mut table = sea_orm_migration::prelude::Table::create();
        table.table(Alias::new(self.name)).if_not_exists();
        let mut key = sea_orm_migration::prelude::Index::create();
        for (position, (name, kind)) in self.columns.iter().enumerate() {
            let Some(mut column) = column(name, *kind, backend) else { continue };
            if position < self.keys {
                key.col(Alias::new(*name));
                if self.keys == 1 {
                    // In the column's own words: so it is SQLite's place of the row.
                    column.primary_key();
                }
            }
            table.col(&mut column);
        }
        if self.keys > 1 {
            table.primary_key(&mut key);
        }
        if Database::of(backend).has_collations() {
            // Names and tags compare exactly, as on the other two.
            table.engine("InnoDB").character_set("utf8mb4").collate("utf8mb4_bin");
        }
        table
    }

    fn index_statement(&self, index: &Index, backend: DatabaseBackend) -> String {
        let database = Database::of(backend);
        let computed = |name: &str| match self.columns.iter().find(|(column, _)| *column == name) {
            Some((_, Kind::Computed(expression))) if database.indexes_expressions() => Some(format!("({expression})")),
            Some((_, Kind::Stored(expression))) if !database.adds_stored() => Some(format!("({expression})")),
            Some((name, Kind::Computed(_) | Kind::Stored(_))) => Some((*name).to_owned()),
            _ => None,
        };
        let unique = if index.unique { "UNIQUE " } else { "" };
        let columns: Vec<String> =
            index.columns.iter().map(|name| computed(name).unwrap_or_else(|| (*name).to_owned())).collect();
        let first = index.columns.iter().find_map(|name| computed(name));
        let some = match first.filter(|_| index.of_some && database.indexes_expressions()) {
            Some(column) => format!(" WHERE {column} IS NOT NULL"),
            None => String::new(),
        };
        format!("CREATE {unique}INDEX {} ON {} ({}){some}", index.name, self.name, columns.join(", "))
    }

    /// Inserts the row unless it is there.
    fn insert(&self, row: &[Value]) -> InsertStatement {
        let key = Alias::new(self.columns[0].0);
        let value = |value: &Value| match value {
            Value::Number(number) => Expr::from(*number),
            Value::Word(word) => Expr::from(*word),
        };
        let mut insert = Query::insert();
        insert
            .into_table(Alias::new(self.name))
            .columns(self.columns.iter().map(|(name, _)| Alias::new(*name)))
            .values_panic(row.iter().map(value))
            .on_conflict(OnConflict::column(key.clone()).do_nothing_on([key]).to_owned());
        insert
    }
}

/// What sets the databases apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Database {
    /// MariaDB and MySQL.
    MariaDb,
    Postgres,
    Sqlite,
}

impl Database {
    fn of(backend: DatabaseBackend) -> Self {
        match backend {
            DatabaseBackend::MySql => Self::MariaDb,
            DatabaseBackend::Postgres => Self::Postgres,
            DatabaseBackend::Sqlite => Self::Sqlite,
            // Not built in: Cargo.toml names the drivers.
            other => unreachable!("no driver for {other:?}"),
        }
    }

    /// An index may be on an expression, and leave rows out; otherwise it needs a computed column, and has every row.
    fn indexes_expressions(self) -> bool {
        self != Self::MariaDb
    }

    /// A computed column that is kept in the row can be added to a table.
    fn adds_stored(self) -> bool {
        self != Self::Sqlite
    }

    /// Pages of a table can be left with room for later versions of their rows.
    fn pages_have_room(self) -> bool {
        self == Self::Postgres
    }

    /// `INTEGER` has 64 bits, and as a primary key it is the row's own place.
    fn integers_are_wide(self) -> bool {
        self == Self::Sqlite
    }

    /// A table names its engine and how its texts compare.
    fn has_collations(self) -> bool {
        self == Self::MariaDb
    }
}

/// The column, unless this database has it in its index alone.
fn column(name: &str, kind: Kind, backend: DatabaseBackend) -> Option<ColumnDef> {
    let mut column = ColumnDef::new(Alias::new(name));
    match kind {
        // SQLite's 64-bit INTEGER PRIMARY KEY is the row's own place; a BIGINT one would be an
        // index beside it.
        Kind::Big | Kind::BigOr(_) if Database::of(backend).integers_are_wide() => column.integer().not_null(),
        Kind::Big | Kind::BigOr(_) => column.big_integer().not_null(),
        Kind::BigNull => column.big_integer().null(),
        Kind::Int | Kind::IntOr(_) => column.integer().not_null(),
        Kind::IntNull => column.integer().null(),
        Kind::Name | Kind::NameOr(_) => column.string_len(191).not_null(),
        Kind::Text => column.text().not_null(),
        Kind::TextNull => column.text().null(),
        Kind::Computed(_) if Database::of(backend).indexes_expressions() => return None,
        Kind::Stored(_) if !Database::of(backend).adds_stored() => return None,
        // Null where it says nothing: NULL before an expression is no SQL of MariaDB's.
        Kind::Computed(expression) => column.integer().generated(Expr::cust(expression), false),
        Kind::Stored(expression) => column.integer().generated(Expr::cust(expression), true),
    };
    match kind {
        Kind::BigOr(value) => drop(column.default(value)),
        Kind::IntOr(value) => drop(column.default(value)),
        Kind::NameOr(value) => drop(column.default(value)),
        _ => {}
    }
    Some(column)
}
