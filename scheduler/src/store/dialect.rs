//! The little that differs between the three databases, so that every statement is written once.
//!
//! A batch is ONE value, a JSON document: the statement's text stays constant (prepared once per connection), no bind limit
//! applies, and each database turns it into rows by itself: `JSON_TABLE` (MySQL 8, MariaDB 10.6), `json_each` (SQLite).
//! PostgreSQL gets it as an array for each column, which it reads in a third of the time, and SQLite, from some rows on, as the
//! cells themselves ([`Sql`](super::statement::Sql)).

use super::marker::{Marker, Part};
use sea_orm::{DatabaseBackend, IsolationLevel};

/// Values of one statement at most (`SQLITE_MAX_VARIABLE_NUMBER`).
const SQLITE_VALUES_MAX: usize = 32_766;

/// Type of a column in a batch.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// 64-bit integer.
    Big,
    /// 32-bit integer.
    Int,
    /// Text, may be null.
    Text,
}

/// A kind of database. Its methods own every branch on the kind: each `match` names all three, so that
/// the compiler shows what a fourth would need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite, embedded.
    Sqlite,
    /// MariaDB and MySQL.
    MariaDb,
    /// PostgreSQL.
    Postgres,
}

impl Dialect {
    /// The dialect of a connection; nothing for a kind that the drivers know and carillon does not.
    pub fn of(backend: DatabaseBackend) -> Option<Self> {
        match backend {
            DatabaseBackend::Sqlite => Some(Self::Sqlite),
            DatabaseBackend::MySql => Some(Self::MariaDb),
            DatabaseBackend::Postgres => Some(Self::Postgres),
            _ => None,
        }
    }

    /// The driver's word for it.
    pub fn backend(self) -> DatabaseBackend {
        match self {
            Self::Sqlite => DatabaseBackend::Sqlite,
            Self::MariaDb => DatabaseBackend::MySql,
            Self::Postgres => DatabaseBackend::Postgres,
        }
    }

    /// Whether one connection writes at a time, so that readers need a pool of their own.
    pub fn has_one_writer(self) -> bool {
        match self {
            Self::Sqlite => true,
            Self::MariaDb | Self::Postgres => false,
        }
    }

    /// The isolation of a transaction in which each statement sees what is committed before it.
    pub fn isolation(self) -> Option<IsolationLevel> {
        match self {
            Self::Sqlite => None,
            Self::MariaDb | Self::Postgres => Some(IsolationLevel::ReadCommitted),
        }
    }

    pub(super) fn now_us(self) -> &'static str {
        match self {
            Self::Sqlite => "(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000)",
            // Connections run in UTC, so that no local hour is ambiguous.
            Self::MariaDb => "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        }
    }

    pub(super) fn now_ms(self) -> String {
        let divided = match self {
            Self::Sqlite | Self::Postgres => "/",
            Self::MariaDb => "DIV",
        };
        format!("({} {divided} 1000)", self.now_us())
    }

    /// Appends what stands for a marker; `bound` are those that values are bound to, in their order.
    pub(super) fn push_marker(self, text: &mut String, marker: Marker, bound: &mut Vec<Marker>) {
        match (self, marker.part) {
            (Self::Sqlite, Part::Rows(width)) => {
                let cells = (0..width).map(|at| format!("value->>{at} AS column{}", at + 1)).collect::<Vec<_>>();
                text.extend(["(SELECT ", &cells.join(", "), " FROM json_each(?))"]);
                bound.push(marker);
            }
            (Self::Sqlite | Self::MariaDb, _) => {
                text.push('?');
                bound.push(marker);
            }
            (Self::Postgres, _) => {
                let known = bound.iter().position(|known| *known == marker);
                let place = known.unwrap_or_else(|| {
                    bound.push(marker);
                    bound.len() - 1
                });
                text.extend(["$", &(place + 1).to_string()]);
            }
        }
    }

    /// What stands for a batch of `rows` rows whose cells are bound one by one, where that is cheaper than a document. Rows beyond
    /// the batch's are null.
    pub(super) fn rows_of_cells(self, rows: usize, width: usize) -> Option<String> {
        match self {
            // A third of what a row costs it is to find its cells in a document.
            Self::Sqlite if rows * width <= SQLITE_VALUES_MAX => {
                let row = format!("({})", vec!["?"; width].join(","));
                Some(format!("(SELECT * FROM (VALUES {}) WHERE column1 IS NOT NULL)", vec![row; rows].join(",")))
            }
            Self::Sqlite | Self::MariaDb | Self::Postgres => None,
        }
    }

    /// A table expression `v` with columns `n_<name>` out of the batch bound at `{marker}`, a JSON document:
    /// an array of arrays in the order of `columns`.
    pub fn rows(self, marker: usize, columns: &[(&str, Kind)]) -> String {
        let each = |render: &dyn Fn(usize, &str, Kind) -> String| {
            columns.iter().enumerate().map(|(at, (name, kind))| render(at, name, *kind)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Sqlite => {
                let list = each(&|at, name, _| format!("column{} AS n_{name}", at + 1));
                format!("(SELECT {list} FROM {{{marker}*{}}}) v", columns.len())
            }
            Self::MariaDb => {
                let list = each(&|at, name, kind| {
                    let kind = match kind {
                        Kind::Big => "BIGINT",
                        Kind::Int => "INT",
                        Kind::Text => "MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                    };
                    format!("n_{name} {kind} PATH '$[{at}]'")
                });
                format!("JSON_TABLE({{{marker}}}, '$[*]' COLUMNS({list})) v")
            }
            Self::Postgres => {
                let arrays = each(&|at, _, kind| {
                    let kind = match kind {
                        Kind::Big => "bigint",
                        Kind::Int => "int",
                        Kind::Text => "text",
                    };
                    // Below a SELECT, so that its length is unknown to the planner: it would rather read a table of a hundred
                    // thousand rows than look up a thousand of them by their keys.
                    format!("(SELECT {{{marker}.{at}}}::text)::{kind}[]")
                });
                let names = each(&|_, name, _| format!("n_{name}"));
                format!("unnest({arrays}) v({names})")
            }
        }
    }

    /// `UPDATE table l SET … FROM rows v WHERE …` in each database's own words. MySQL is told to
    /// start from the batch: it cannot guess its size.
    pub fn update_from(self, table: &str, set: &str, rows: &str, on: &str) -> String {
        match self {
            Self::Sqlite | Self::Postgres => format!("UPDATE {table} AS l SET {set} FROM {rows} WHERE {on}"),
            Self::MariaDb => format!("UPDATE {rows} STRAIGHT_JOIN {table} l ON {on} SET {set}"),
        }
    }

    /// `DELETE FROM table l` where a row of the batch matches.
    pub fn delete_from(self, table: &str, rows: &str, on: &str) -> String {
        match self {
            // It joins nothing in a DELETE: by the rows' own places.
            Self::Sqlite => {
                format!("DELETE FROM {table} WHERE rowid IN (SELECT l.rowid FROM {rows} CROSS JOIN {table} l ON {on})")
            }
            Self::MariaDb => format!("DELETE l FROM {rows} STRAIGHT_JOIN {table} l ON {on}"),
            Self::Postgres => format!("DELETE FROM {table} AS l USING {rows} WHERE {on}"),
        }
    }

    /// The same with the rows of a batch bound at `{1}`.
    pub fn update_rows(self, table: &str, set: &str, columns: &[(&str, Kind)], on: &str) -> String {
        self.update_from(table, set, &self.rows(1, columns), on)
    }

    /// The ids of a batch bound at `{marker}`, after `IN`.
    pub fn ids(self, marker: usize) -> String {
        format!("(SELECT n_id FROM {})", self.rows(marker, &[("id", Kind::Big)]))
    }

    /// The join that reads its left side (a batch, what an index found) first, whatever the database
    /// makes of the tables' figures. PostgreSQL needs no telling.
    pub fn join_in_order(self) -> &'static str {
        match self {
            Self::Sqlite => "CROSS JOIN",
            Self::MariaDb => "STRAIGHT_JOIN",
            Self::Postgres => "JOIN",
        }
    }

    /// A batch as [`Dialect::rows`] has it, and the join that reads it before the table named next.
    pub fn batch(self, marker: usize, columns: &[(&str, Kind)]) -> String {
        format!("{} {}", self.rows(marker, columns), self.join_in_order())
    }

    /// Between a batch and another one: a join in that order with every row.
    pub fn each_with(self, rows: &str) -> String {
        let join = self.join_in_order();
        match self {
            Self::Sqlite | Self::MariaDb => format!("{join} {rows}"),
            Self::Postgres => format!("{join} {rows} ON TRUE"),
        }
    }

    /// At the end of a derived table: what is outside of it has no say in how its rows are found. PostgreSQL may believe that so
    /// few rows pass a filter that it reads the whole table for them.
    pub fn fence(self) -> &'static str {
        match self {
            Self::Sqlite | Self::MariaDb => "",
            Self::Postgres => " OFFSET 0",
        }
    }

    /// Ends a query whose rows of the table `l` nobody else changes until the transaction ends. `None` where one transaction
    /// writes at a time.
    pub fn for_update(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::MariaDb => Some("FOR UPDATE"),
            Self::Postgres => Some("FOR UPDATE OF l"),
        }
    }

    /// Stands after a table's name and makes MariaDB and MySQL read it by that index.
    pub fn by_index(self, index: &str) -> String {
        match self {
            Self::Sqlite | Self::Postgres => String::new(),
            Self::MariaDb => format!("FORCE INDEX ({index})"),
        }
    }

    /// Whether an index answers conditions other than ranges without a look at the rows.
    pub fn filters_in_index(self) -> bool {
        match self {
            Self::Sqlite | Self::MariaDb => true,
            Self::Postgres => false,
        }
    }

    /// What makes an insert into `table` leave alone an existing row of the same `key` columns, the first of which is a BIGINT
    /// of no less than 0. A row of another key with the id that was to be inserted is an error.
    pub fn or_ignore(self, table: &str, key: &str) -> String {
        match self {
            Self::Sqlite | Self::Postgres => format!("ON CONFLICT ({key}) DO NOTHING"),
            Self::MariaDb => {
                let columns: Vec<&str> = key.split(", ").collect();
                let (first, is_same) = (columns[0], columns.iter().map(|c| format!("{table}.{c} = VALUES({c})")));
                if columns.len() == 1 {
                    return format!("ON DUPLICATE KEY UPDATE {first} = {table}.{first}");
                }
                // MariaDB does not say which key is taken. Beyond the largest number: error 1690, in every mode.
                format!(
                    "ON DUPLICATE KEY UPDATE {first} = CASE WHEN {} THEN {table}.{first} ELSE {table}.{first} + {} + {} END",
                    is_same.collect::<Vec<_>>().join(" AND "),
                    i64::MAX,
                    i64::MAX
                )
            }
        }
    }

    /// What makes an insert change an existing row of the same `key` columns; assignments follow.
    pub fn or_update(self, key: &str) -> String {
        match self {
            Self::Sqlite | Self::Postgres => format!("ON CONFLICT ({key}) DO UPDATE SET"),
            Self::MariaDb => "ON DUPLICATE KEY UPDATE".to_owned(),
        }
    }

    /// In those assignments: the value that was to be inserted.
    pub fn incoming(self, column: &str) -> String {
        match self {
            Self::Sqlite | Self::Postgres => format!("excluded.{column}"),
            Self::MariaDb => format!("VALUES({column})"),
        }
    }

    /// What makes an insert into `table` replace `columns` of an existing row of the same `key`, where its
    /// first column is not larger than the new one.
    pub fn or_replace_smaller(self, table: &str, key: &str, columns: &[String]) -> String {
        let first = columns.first().map_or("", String::as_str);
        let set = |each: &dyn Fn(&String) -> String| columns.iter().rev().map(each).collect::<Vec<_>>().join(", ");
        let (update, new_first) = (self.or_update(key), self.incoming(first));
        match self {
            Self::Sqlite | Self::Postgres => {
                let list = set(&|name| format!("{name} = {}", self.incoming(name)));
                format!("{update} {list} WHERE {new_first} >= {table}.{first}")
            }
            // The first comes last: MySQL sees what it has just set.
            Self::MariaDb => {
                let one = |name: &String| {
                    format!("{name} = IF({new_first} >= {table}.{first}, {}, {table}.{name})", self.incoming(name))
                };
                format!("{update} {}", set(&one))
            }
        }
    }

    /// A sum as a 64-bit number; two of the three make it a decimal.
    pub fn big(self, sum: &str) -> String {
        let kind = match self {
            Self::Sqlite | Self::Postgres => "BIGINT",
            Self::MariaDb => "SIGNED",
        };
        format!("CAST({sum} AS {kind})")
    }

    /// The status of the log `l` when it ended, and not well, as the index of those has it.
    pub fn bad_status(self) -> &'static str {
        match self {
            Self::Sqlite => "(CASE WHEN l.status > 10 THEN l.status END)",
            Self::MariaDb | Self::Postgres => "l.bad_status",
        }
    }

    /// The phase of the log `l`, as its index has it: [`WAITING`](super::sql::WAITING), [`HELD`](super::sql::HELD), the status of
    /// one that ended without success, NULL of one that ended well.
    pub fn phase(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "(CASE WHEN l.status IN (0, 3) THEN 0 WHEN l.status IN (1, 2) THEN 1 WHEN l.status > 10 THEN l.status END)"
            }
            Self::MariaDb | Self::Postgres => "l.phase",
        }
    }
}
