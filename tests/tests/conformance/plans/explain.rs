//! What each database says of a statement's way, and what is wrong with it.

use super::large::{TABLES, Tables};
use carillon_tests::Kind;
use sea_orm::{DbErr, QueryResult, Statement};
use serde_json::Value;

/// A way that costs PostgreSQL more than this is no way in: a page of 500 runs by their keys costs 3,600, a batch of a
/// hundred 900, the runs of an hour of a hundred tasks 6,300, a look at all of the log 10,000.
const COST_MAX: f64 = 8_000.0;

/// A table that PostgreSQL reads whole for less is small.
const SCAN_COST_MAX: f64 = 2_000.0;

/// PostgreSQL keeps what a function answered: reading it again for so many rows is cheap.
const OUTER_ROWS_MAX: f64 = 20_000.0;

/// Rows that MariaDB thinks a way reads; a batch is forty to it.
const ROWS_MAX: f64 = 20_000.0;

/// Whether databases explain this.
pub fn is_explained(sql: &str) -> bool {
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|verb| sql.trim_start_matches('(').starts_with(verb))
}

/// What is wrong with the statement's way, as sentences.
pub async fn faults(large: &Tables, statement: &Statement) -> Vec<String> {
    match large.database.kind {
        Kind::Sqlite => sqlite(large, statement).await,
        Kind::MariaDb => mariadb(large, statement).await,
        Kind::Postgres => postgres(large, statement).await,
    }
}

/// Whether `alias` names a large table in this statement.
fn is_large(statement: &str, alias: &str) -> bool {
    TABLES.iter().any(|table| {
        alias == *table
            || statement.contains(&format!(" {table} {alias} "))
            || statement.contains(&format!(" {table} AS {alias} "))
            || statement.ends_with(&format!(" {table} {alias}"))
    })
}

/// A step of a plan: its parent step, and what is read in which way.
struct Step {
    parent: i64,
    text: String,
}

async fn sqlite(large: &Tables, statement: &Statement) -> Vec<String> {
    let read = |row: &QueryResult| Ok(Step { parent: row.try_get_by_index(1)?, text: row.try_get_by_index(3)? });
    let steps = large.explain("EXPLAIN QUERY PLAN ", statement, read).await;
    // In the order of the table or of an index, a limit ends the reading.
    let is_cut = statement.sql.contains(" LIMIT ") && !steps.iter().any(|step| step.text.contains("FOR ORDER BY"));
    let mut faults = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let words: Vec<&str> = step.text.split(' ').collect();
        let (verb, name) = (words[0], words.get(1).copied().unwrap_or_default());
        if verb == "SCAN" && !is_cut && is_large(&statement.sql, name) {
            faults.push(format!("reads all of {name}: {}", step.text));
        }
        // Steps of one parent are loops within each other, the first outermost.
        // As a document, or cell by cell.
        let is_batch = verb == "SCAN" && (name == "json_each" || step.text.ends_with(" VALUES CLAUSE"));
        let around = steps[..at].iter().filter(|outer| outer.parent == step.parent);
        let mut large_around =
            around.filter(|outer| outer.text.split(' ').nth(1).is_some_and(|name| is_large(&statement.sql, name)));
        if let Some(outer) = large_around.rfind(|outer| !outer.text.contains("LIST")).filter(|_| is_batch) {
            faults.push(format!("reads the batch once for each row of: {}", outer.text));
        }
    }
    faults
}

async fn mariadb(large: &Tables, statement: &Statement) -> Vec<String> {
    struct Row {
        id: Option<u64>,
        table: String,
        way: String,
        key: Option<String>,
        rows: f64,
        extra: String,
    }
    let read = |row: &QueryResult| {
        Ok(Row {
            id: row.try_get::<Option<u64>>("", "id")?,
            table: row.try_get::<Option<String>>("", "table")?.unwrap_or_default(),
            way: row.try_get::<Option<String>>("", "type")?.unwrap_or_default(),
            key: row.try_get("", "key")?,
            rows: rows_of(row)?,
            extra: row.try_get::<Option<String>>("", "Extra")?.unwrap_or_default(),
        })
    };
    let steps = large.explain("EXPLAIN ", statement, read).await;
    // In the order of a key, a limit ends the reading.
    let is_cut = statement.sql.contains(" LIMIT ") && !steps.iter().any(|step| step.extra.contains("filesort"));
    // The table that rows of values go into stands first in the plan, and is not read.
    let gets_values = |table: &str| {
        statement.sql.starts_with(&format!("INSERT INTO {table} ")) && statement.sql.contains(" VALUES (")
    };
    let mut faults = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let is_whole =
            |table: &str| is_large(&statement.sql, table) && !gets_values(table) && !(is_cut && step.key.is_some());
        let is_table = is_whole(&step.table);
        if is_table && (step.way == "ALL" || step.way == "index") {
            faults.push(format!("reads all of {} ({} {:?}, {})", step.table, step.way, step.key, step.extra));
        }
        let outer = steps[..at].iter().rfind(|outer| outer.id == step.id && is_large(&statement.sql, &outer.table));
        if let Some(outer) = outer.filter(|_| step.extra.contains("json_table")) {
            faults.push(format!("reads the batch once for each row of {}", outer.table));
        }
        let of_loop = steps[..=at].iter().filter(|other| other.id == step.id && other.id.is_some());
        let rows: f64 = of_loop.map(|other| other.rows.max(1.0)).product();
        if is_table && rows > ROWS_MAX {
            faults.push(format!("reads {rows} rows of {} ({} {:?})", step.table, step.way, step.key));
        }
    }
    faults
}

/// A number or a text, by the kind of statement.
fn rows_of(row: &QueryResult) -> Result<f64, DbErr> {
    if let Ok(rows) = row.try_get::<Option<u64>>("", "rows") {
        return Ok(rows.unwrap_or(1) as f64);
    }
    let rows = row.try_get::<Option<String>>("", "rows")?;
    Ok(rows.and_then(|rows| rows.parse().ok()).unwrap_or(1.0))
}

async fn postgres(large: &Tables, statement: &Statement) -> Vec<String> {
    let mut plans = large.explain("EXPLAIN (FORMAT JSON) ", statement, |row| row.try_get_by_index::<Value>(0)).await;
    let plan = plans.remove(0)[0]["Plan"].take();
    let mut faults = Vec::new();
    look(&plan, &Value::Null, &mut faults);
    let cost = plan["Total Cost"].as_f64().unwrap_or_default();
    if cost > COST_MAX {
        faults.push(format!("costs {cost}"));
    }
    if !faults.is_empty() {
        faults.push(format!("{plan:#}"));
    }
    faults
}

fn look(node: &Value, above: &Value, faults: &mut Vec<String>) {
    let table = node["Relation Name"].as_str().unwrap_or_default();
    let is_cut = above["Node Type"] == "Limit" && node["Filter"].is_null();
    let is_costly = node["Total Cost"].as_f64().unwrap_or_default() > SCAN_COST_MAX;
    if node["Node Type"] == "Seq Scan" && is_costly && TABLES.contains(&table) && !is_cut {
        faults.push(format!("reads all of {table}"));
    }
    let is_inner = above["Node Type"] == "Nested Loop" && node["Parent Relationship"] == "Inner";
    let outer = above["Plans"].as_array().into_iter().flatten().find(|plan| plan["Parent Relationship"] == "Outer");
    let outer_rows = outer.and_then(|outer| outer["Plan Rows"].as_f64()).unwrap_or_default();
    // A batch has a function for each column: no single name.
    if is_inner && node["Node Type"] == "Function Scan" && outer_rows > OUTER_ROWS_MAX {
        faults.push(format!("reads the batch once for each of {outer_rows} rows"));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        look(child, node, faults);
    }
}
