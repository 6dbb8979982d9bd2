//! Queries put together from the filters that are set.

use super::SqlStore;
use super::dialect::Sql;
use sea_orm::{Statement, Value};

/// A query put together from the filters that are set.
pub(super) struct Conditions {
    pub text: String,
    values: Vec<Value>,
}

impl Conditions {
    pub fn new(text: String, values: Vec<Value>) -> Self {
        Self { text, values }
    }

    pub fn push(&mut self, value: impl Into<Value>) -> usize {
        self.values.push(value.into());
        self.values.len()
    }

    pub fn and<V: Into<Value>>(&mut self, condition: &str, value: Option<V>) {
        if let Some(value) = value {
            let at = self.push(value);
            self.text = format!("{} AND {condition}{{{at}}}", self.text);
        }
    }

    pub fn finish(mut self, store: &SqlStore, order: &str, limit: u64) -> Statement {
        let at = self.push(limit);
        Sql::new(store.backend, &format!("{} {order} LIMIT {{{at}}}", self.text)).bind_all(self.values)
    }
}
