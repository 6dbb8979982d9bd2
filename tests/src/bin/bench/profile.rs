//! What each statement costs the server (`--profile`).

use crate::options::Kind;
use crate::report::rounded;
use anyhow::Result;
use sea_orm::QueryResult;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Statements that are listed at most.
const LISTED: usize = 20;

/// So much of a statement's text is shown, characters.
const TEXT_CHARS: usize = 160;

/// What the driver's own questions name, and no other statement.
const OWN: [&str; 3] = ["performance_schema", "GLOBAL_STATUS", "pg_stat"];

/// What the server has counted so far, by statement.
#[derive(Debug, Default)]
pub struct Profile(BTreeMap<String, Cost>);

/// Of one statement.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    calls: f64,
    /// From its arrival to its answer, waiting included.
    us: f64,
    /// Changed or answered.
    rows: f64,
    /// `MariaDB`: rows read; `PostgreSQL`: pages touched.
    looked_at: f64,
    /// `PostgreSQL` only.
    log_bytes: f64,
}

impl Profile {
    /// From the answer to [`question`].
    pub fn of_rows(rows: &[QueryResult]) -> Result<Self> {
        let mut of = BTreeMap::new();
        for row in rows {
            let number = |at| row.try_get_by_index::<f64>(at);
            let cost = Cost {
                calls: number(1)?,
                us: number(2)?,
                rows: number(3)?,
                looked_at: number(4)?,
                log_bytes: number(5)?,
            };
            of.insert(row.try_get_by_index(0)?, cost);
        }
        Ok(Self(of))
    }

    /// The dearest since `start`, by fire.
    pub fn by_fire_since(&self, start: &Self, fires: f64) -> Value {
        // A statement of a session that has ended is gone from MariaDB's list, and then has less than before.
        let since = |(text, end): (&String, &Cost)| {
            let (before, end) = (start.0.get(text).copied().unwrap_or_default(), *end);
            let by_fire = move |of: fn(&Cost) -> f64| (of(&end) - of(&before)) / fires;
            (text.clone(), by_fire(|cost| cost.us), by_fire)
        };
        let mut all: Vec<_> =
            self.0.iter().filter(|(text, _)| !is_own(text)).map(since).filter(|(_, us, _)| *us > 0.0).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        let listed = all.into_iter().take(LISTED).map(|(text, us, by_fire)| {
            json!({
                "us": rounded(us, 2),
                "calls": rounded(by_fire(|cost| cost.calls), 5),
                "rows": rounded(by_fire(|cost| cost.rows), 2),
                "looked_at": rounded(by_fire(|cost| cost.looked_at), 2),
                "log_bytes": rounded(by_fire(|cost| cost.log_bytes), 0),
                "statement": shortened(&text),
            })
        });
        listed.collect()
    }
}

fn is_own(text: &str) -> bool {
    OWN.iter().any(|name| text.contains(name))
}

/// Its beginning, for `MariaDB` without the columns of a batch, which come before all that tells statements apart.
fn shortened(text: &str) -> String {
    let parts = text.split_once("COLUMNS(").and_then(|(head, rest)| Some((head, rest.split_once(")) v")?.1)));
    let text = parts.map_or_else(|| text.to_owned(), |(head, tail)| format!("{head}COLUMNS(…)) v{tail}"));
    text.chars().take(TEXT_CHARS).collect()
}

/// What tells what each statement has cost so far; of `PostgreSQL` those for this database.
pub fn question(kind: Kind, database: &str) -> String {
    match kind {
        Kind::Postgres => format!("{POSTGRES} WHERE d.datname = '{database}' GROUP BY query"),
        Kind::Mariadb | Kind::Sqlite => MARIADB.to_owned(),
    }
}

// Those that are prepared have no digest; of the others, the brackets of transactions cost something: a commit waits for the disk.
const MARIADB: &str = "SELECT CAST(SQL_TEXT AS CHAR), CAST(SUM(COUNT_EXECUTE) AS DOUBLE), \
     CAST(SUM(SUM_TIMER_EXECUTE) / 1000000 AS DOUBLE), CAST(SUM(SUM_ROWS_AFFECTED + SUM_ROWS_SENT) AS DOUBLE), \
     CAST(SUM(SUM_ROWS_EXAMINED) AS DOUBLE), CAST(0 AS DOUBLE) FROM performance_schema.prepared_statements_instances \
     GROUP BY SQL_TEXT UNION ALL SELECT CAST(DIGEST_TEXT AS CHAR), CAST(SUM(COUNT_STAR) AS DOUBLE), \
     CAST(SUM(SUM_TIMER_WAIT) / 1000000 AS DOUBLE), CAST(0 AS DOUBLE), CAST(0 AS DOUBLE), CAST(0 AS DOUBLE) \
     FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE 'BEGIN%' OR \
     DIGEST_TEXT LIKE 'COMMIT%' OR DIGEST_TEXT LIKE 'SET TRANSACTION%' OR DIGEST_TEXT LIKE 'ROLLBACK%' GROUP BY DIGEST_TEXT";

const POSTGRES: &str = "SELECT query, CAST(SUM(calls) AS DOUBLE PRECISION), SUM(total_exec_time + total_plan_time) * 1000, \
     CAST(SUM(rows) AS DOUBLE PRECISION), CAST(SUM(shared_blks_hit + shared_blks_read) AS DOUBLE PRECISION), \
     CAST(SUM(wal_bytes) AS DOUBLE PRECISION) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_shown_without_its_columns() {
        let text = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS(n_id BIGINT PATH '$[0]', n_a INT PATH '$[1]')) v STRAIGHT_JOIN task_log l";
        assert_eq!(shortened(text), "UPDATE JSON_TABLE(?, '$[*]' COLUMNS(…)) v STRAIGHT_JOIN task_log l");
        assert_eq!(shortened("COMMIT "), "COMMIT ");
        assert_eq!(shortened(&"x".repeat(TEXT_CHARS + 1)).len(), TEXT_CHARS);
    }
}
