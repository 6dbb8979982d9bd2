//! How statements find their rows, as each database says itself.
//!
//! Every statement that a case of this suite sends is explained once over tables of realistic size, whatever the
//! case is about. A statement that reads a large table whole, or reads the batch once per row of a table, fails the
//! case that sent it first: what costs nothing over the few rows of a test stops an installation of some weeks.

mod explain;
mod large;

use carillon_tests::Kind;
use sea_orm::Statement;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex};

/// Texts that some case has explained already, by kind of database.
static EXPLAINED: LazyLock<Mutex<HashSet<(Kind, String)>>> = LazyLock::new(Mutex::default);

/// Statements that may do what others must not: a part of the text, and the reason.
const ALLOWED: &[(&str, &str)] = &[
    (
        "FROM permit p JOIN task_log l ON l.id = p.id",
        "permits are as many as run at once, which here is much of the table",
    ),
    (" LIMIT 1 OFFSET ", "where such a page ends: as below"),
    (
        "l.id = s.id",
        "pages of at most 500 runs in the order of an index; the instants of a case lie outside of the large tables, \
         so that PostgreSQL takes sorting for cheaper",
    ),
];

/// What the stores of one case have sent, to be explained when it ends.
#[derive(Debug, Clone)]
pub struct Plans {
    kind: Kind,
    sent: Arc<Mutex<HashMap<String, Statement>>>,
}

impl Plans {
    /// Of a database of this kind.
    pub fn new(kind: Kind) -> Self {
        Self { kind, sent: Arc::default() }
    }

    /// Keeps the statement, unless its text is known.
    pub fn see(&self, statement: &Statement) {
        let mut sent = self.sent.lock().unwrap();
        if !sent.contains_key(&statement.sql) {
            sent.insert(statement.sql.clone(), statement.clone());
        }
    }

    /// Explains what is new; `home` are the case's tenant and app, which stand for those of the large tables.
    pub async fn check(&self, home: [i64; 2]) {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        let is_new = |sql: &String| EXPLAINED.lock().unwrap().insert((self.kind, sql.clone()));
        let new =
            sent.into_values().filter(|statement| explain::is_explained(&statement.sql) && is_new(&statement.sql));
        let new: Vec<Statement> = new.collect();
        if new.is_empty() {
            return;
        }
        let large = large::Tables::of(self.kind).await;
        let mut faults = Vec::new();
        for statement in &new {
            if ALLOWED.iter().any(|(part, _)| statement.sql.contains(part)) {
                continue;
            }
            let found = explain::faults(&large, &large.in_place_of(home, statement)).await;
            faults.extend(found.into_iter().map(|fault| {
                format!(
                    "{fault}
  {}",
                    statement.sql
                )
            }));
        }
        assert!(
            faults.is_empty(),
            "{} statements go the wrong way on {:?}:\n{}",
            faults.len(),
            self.kind,
            faults.join("\n")
        );
    }
}
