//! How statements find their rows, as each database says itself.
//!
//! Every statement that a case of this suite sends is explained once over tables of realistic size, whatever the
//! case is about. A statement that reads a large table whole, or reads the batch once per row of a table, fails the
//! case that sent it first: what costs nothing over the few rows of a test stops an installation of some weeks.
//! When all cases of a database have passed, the last one checks that they have sent every hot statement of the store.

mod explain;
mod large;

use carillon::store::SqlStore;
use carillon_tests::Kind;
use sea_orm::{DatabaseBackend, Statement};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex};

/// Texts that some case has explained already, by kind of database.
static EXPLAINED: LazyLock<Mutex<HashSet<(Kind, String)>>> = LazyLock::new(Mutex::default);

/// What the cases of one kind of database have done so far.
#[derive(Default)]
struct Seen {
    sent: HashSet<String>,
    passed: usize,
    /// Name and text of every hot statement, once a case has shown its stores.
    hot: Arc<Vec<(&'static str, String)>>,
}

static SEEN: LazyLock<Mutex<HashMap<Kind, Seen>>> = LazyLock::new(Mutex::default);

/// Statements that may do what others must not: a part of the text, and the reason.
const ALLOWED: &[(&str, &str)] = &[
    (
        "THEN l.due_time END), COUNT(CASE WHEN l.id IS NULL",
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
    /// Name and text of every hot statement.
    hot: Arc<Vec<(&'static str, String)>>,
}

impl Plans {
    /// Of this store.
    pub fn new(kind: Kind, store: &SqlStore) -> Self {
        // Only SQLite has any. Cases have few rows: how larger batches go is explained without one.
        let of_cells = store.statements_of_cells().into_iter();
        let of_cells = of_cells.map(|sql| (sql.clone(), Statement::from_string(DatabaseBackend::Sqlite, sql)));
        Self { kind, sent: Arc::new(Mutex::new(of_cells.collect())), hot: Arc::new(store.statements()) }
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
        let seen: Vec<String> = sent.keys().cloned().collect();
        let is_new = |sql: &String| EXPLAINED.lock().unwrap().insert((self.kind, sql.clone()));
        let new =
            sent.into_values().filter(|statement| explain::is_explained(&statement.sql) && is_new(&statement.sql));
        let new: Vec<Statement> = new.collect();
        if !new.is_empty() {
            self.explain(home, &new).await;
        }
        passed(self.kind, |all| {
            all.sent.extend(seen);
            all.hot = Arc::clone(&self.hot);
        });
    }

    async fn explain(&self, home: [i64; 2], new: &[Statement]) {
        let large = large::Tables::of(self.kind).await;
        let mut faults = Vec::new();
        for statement in new {
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

/// A case has passed whose statements are not explained.
pub fn passed_unseen(kind: Kind) {
    passed(kind, |_| {});
}

/// One case more has passed, which adds this to what was seen. With the last one every hot statement must have been sent.
fn passed(kind: Kind, add: impl FnOnce(&mut Seen)) {
    let mut all = SEEN.lock().unwrap();
    let seen = all.entry(kind).or_default();
    add(seen);
    seen.passed += 1;
    if seen.passed == cases_of(kind) {
        let is_missing = |(_, text): &&(&str, String)| !seen.sent.contains(text);
        let missing: Vec<_> = seen.hot.iter().filter(is_missing).cloned().collect();
        // So that the other databases can still say what they miss.
        drop(all);
        assert!(missing.is_empty(), "no case sends these to {kind:?}, so none explains them: {missing:#?}");
    }
}

/// How many cases this binary has for a kind of database, as it says itself.
fn cases_of(kind: Kind) -> usize {
    static NAMES: LazyLock<String> = LazyLock::new(|| {
        let this = std::env::current_exe().expect("this program is a file");
        let listed = std::process::Command::new(this).args(["--list", "--format", "terse"]).output();
        String::from_utf8(listed.expect("the tests are listed").stdout).expect("names are text")
    });
    let end = format!("::{}: test", format!("{kind:?}").to_lowercase());
    NAMES.lines().filter(|line| line.ends_with(&end)).count()
}
