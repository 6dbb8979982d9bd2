//! The little that differs between the three databases, so that every statement is written once.
//!
//! A batch travels as ONE bound JSON document: the statement's text stays constant (prepared once
//! per connection), no bind limit applies, and each database turns it into rows by itself:
//! `JSON_TABLE` (MySQL 8, MariaDB 10.6), `json_array_elements` (PostgreSQL), `json_each` (SQLite).

use sea_orm::{DatabaseBackend, Statement, Value};
use std::fmt::Write as _;

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

/// A statement whose text is fixed, with `{1}`, `{2}` … where its values go.
#[derive(Debug)]
pub struct Sql {
    backend: DatabaseBackend,
    text: String,
    /// For MySQL, whose markers have no numbers: which value each marker takes.
    order: Vec<usize>,
}

impl Sql {
    /// Renders `template`: `{1}` are values, `{now_us}` and `{now}` the database's clock.
    pub fn new(backend: DatabaseBackend, template: &str) -> Self {
        let template = template
            .replace("{now_us}", now_us(backend))
            .replace("{now}", &format!("({} / 1000)", now_us(backend)).replace(" / ", integer_division(backend)));
        let mut text = String::with_capacity(template.len());
        let mut order = Vec::new();
        let mut rest = template.as_str();
        while let Some((before, marker, after)) = next_marker(rest) {
            text.push_str(before);
            match backend {
                DatabaseBackend::MySql => text.push('?'),
                DatabaseBackend::Postgres => drop(write!(text, "${marker}")),
                _ => drop(write!(text, "?{marker}")),
            }
            order.push(marker - 1);
            rest = after;
        }
        text.push_str(rest);
        Self { backend, text, order }
    }

    /// The statement with its values.
    pub fn bind<const N: usize>(&self, values: [Value; N]) -> Statement {
        self.bind_all(values.into())
    }

    /// The statement with as many values as its text names.
    pub fn bind_all(&self, values: Vec<Value>) -> Statement {
        let values = if self.backend == DatabaseBackend::MySql {
            self.order.iter().filter_map(|index| values.get(*index).cloned()).collect()
        } else {
            values
        };
        Statement::from_sql_and_values(self.backend, self.text.as_str(), values)
    }
}

fn next_marker(text: &str) -> Option<(&str, usize, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| at + from) {
        let close = text[open..].find('}').map(|at| at + open)?;
        if let Ok(number) = text[open + 1..close].parse() {
            return Some((&text[..open], number, &text[close + 1..]));
        }
        from = close;
    }
    None
}

fn now_us(backend: DatabaseBackend) -> &'static str {
    match backend {
        // Connections run in UTC, so that no local hour is ambiguous.
        DatabaseBackend::MySql => "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
        DatabaseBackend::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        _ => "(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000)",
    }
}

fn integer_division(backend: DatabaseBackend) -> &'static str {
    if backend == DatabaseBackend::MySql { " DIV " } else { " / " }
}

/// A table expression `v` with columns `n_<name>` out of the JSON document bound at `{marker}`:
/// an array of arrays in the order of `columns`.
pub fn rows(backend: DatabaseBackend, marker: usize, columns: &[(&str, Kind)]) -> String {
    let each = |render: &dyn Fn(usize, &str, Kind) -> String| {
        columns.iter().enumerate().map(|(at, (name, kind))| render(at, name, *kind)).collect::<Vec<_>>().join(", ")
    };
    match backend {
        DatabaseBackend::MySql => {
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
        DatabaseBackend::Postgres => {
            let list = each(&|at, name, kind| {
                let cast = match kind {
                    Kind::Big => "::bigint",
                    Kind::Int => "::int",
                    Kind::Text => "",
                };
                format!("(e->>{at}){cast} AS n_{name}")
            });
            format!("(SELECT {list} FROM json_array_elements({{{marker}}}::json) e) v")
        }
        _ => {
            let list = each(&|at, name, _| format!("value->>{at} AS n_{name}"));
            format!("(SELECT {list} FROM json_each({{{marker}}})) v")
        }
    }
}

/// `UPDATE table l SET … FROM rows v WHERE …` in each database's own words. MySQL is told to
/// start from the batch: it cannot guess its size.
pub fn update_from(backend: DatabaseBackend, table: &str, set: &str, rows: &str, on: &str) -> String {
    if backend == DatabaseBackend::MySql {
        format!("UPDATE {rows} STRAIGHT_JOIN {table} l ON {on} SET {set}")
    } else {
        format!("UPDATE {table} AS l SET {set} FROM {rows} WHERE {on}")
    }
}

/// The join after `FROM rows` that reads the batch first, whatever the database makes of the table's figures.
pub fn batch_first(backend: DatabaseBackend) -> &'static str {
    match backend {
        DatabaseBackend::MySql => "STRAIGHT_JOIN",
        DatabaseBackend::Postgres => "JOIN",
        _ => "CROSS JOIN",
    }
}

/// `DELETE FROM table l` where a row of the batch matches.
pub fn delete_from(backend: DatabaseBackend, table: &str, rows: &str, on: &str) -> String {
    match backend {
        DatabaseBackend::MySql => format!("DELETE l FROM {rows} STRAIGHT_JOIN {table} l ON {on}"),
        DatabaseBackend::Postgres => format!("DELETE FROM {table} AS l USING {rows} WHERE {on}"),
        // SQLite joins nothing in a DELETE; `on` starts with the key.
        _ => {
            let rest = on.replace("l.id = v.n_id", "l.id IN (SELECT n_id FROM batch)");
            format!("WITH batch AS (SELECT n_id FROM {rows}) DELETE FROM {table} AS l WHERE {rest}")
        }
    }
}

/// The insert that leaves an existing row alone.
pub fn or_ignore(backend: DatabaseBackend, target: &str) -> String {
    if backend == DatabaseBackend::MySql {
        let first = target.split(',').next().unwrap_or(target);
        format!("ON DUPLICATE KEY UPDATE {first} = {first}")
    } else {
        format!("ON CONFLICT ({target}) DO NOTHING")
    }
}
