//! The tenant that is watched beside another: tasks that fire every second.

use crate::database::Database;
use crate::records::Seen;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Tasks of the tenant whose fires are watched; each fires every second.
pub const STEADY_TASKS: u32 = 20;

/// Fires of the watched tenant that no handler saw.
pub fn lost(seen: &Seen, window: &Range<i64>) -> i64 {
    expected(STEADY_TASKS, window) - seen.handled as i64
}

/// Fires of so many tasks that fire on each whole second.
pub fn expected(tasks: u32, window: &Range<i64>) -> i64 {
    let seconds = (window.end - 1).div_euclid(1_000) - (window.start - 1).div_euclid(1_000);
    seconds * i64::from(tasks)
}

/// Of the watched tenant in one phase.
pub fn figures(seen: &Seen, window: &Range<i64>) -> Value {
    if window.is_empty() {
        return Value::Null;
    }
    json!({
        "lateness_ms": { "p50": seen.lateness_ms.p50, "p99": seen.lateness_ms.p99, "max": seen.lateness_ms.max },
        "fires": seen.handled,
        "lost": lost(seen, window),
        "duplicated": seen.duplicated,
        "early": seen.early,
    })
}

/// Rows of a tenant by status and reason.
pub async fn rows_by_reason(database: &Database, tenant: &str) -> Result<Value> {
    let sql = format!(
        "SELECT status, reason, COUNT(*) FROM task_log WHERE tenant_id = (SELECT id FROM tenant WHERE name = '{tenant}') \
         GROUP BY status, reason ORDER BY status, reason"
    );
    let mut rows = Map::new();
    for row in database.query(&sql).await? {
        let (status, reason): (i32, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        let name = if reason.is_empty() {
            status_word(status).to_owned()
        } else {
            format!("{} {reason}", status_word(status))
        };
        rows.insert(name, row.try_get_by_index::<i64>(2)?.into());
    }
    Ok(Value::Object(rows))
}

/// The word of a stored status.
pub fn status_word(status: i32) -> &'static str {
    let known = i16::try_from(status).ok().and_then(carillon::domain::Status::from_number);
    known.map_or("unknown", carillon::domain::Status::as_str)
}

/// How many missed fires without a row of their own a row's message names.
pub fn more_before(message: &str) -> Option<i64> {
    let (before, _) = message.split_once(" more before it were missed")?;
    before.rsplit(' ').next()?.parse().ok()
}
