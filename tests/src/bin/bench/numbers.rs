//! Rows by the ten thousand: a table of numbers in each database's own words.

use crate::options::Kind;

/// The table `n` with the column `n`: the numbers from 1 to `count`.
pub fn numbers(kind: Kind, count: u32) -> String {
    match kind {
        Kind::Mariadb => format!("(SELECT seq AS n FROM seq_1_to_{count}) n"),
        Kind::Postgres => format!("(SELECT CAST(g AS BIGINT) AS n FROM generate_series(1, {count}) g) n"),
        Kind::Sqlite => format!(
            "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) SELECT n FROM c) n"
        ),
    }
}

/// The words of `prefix` and each number.
pub fn named(kind: Kind, prefix: &str) -> String {
    match kind {
        Kind::Mariadb => format!("CONCAT('{prefix}', n.n)"),
        Kind::Postgres | Kind::Sqlite => format!("'{prefix}' || n.n"),
    }
}
