//! Values of columns: words, JSON, text.

use super::error::{Result, StoreError, StoreErrorKind};
use sea_orm::{DbErr, QueryResult};
use serde::de::DeserializeOwned;

/// A `snake_case` enum stored as its word.
pub fn word<T: DeserializeOwned>(row: &QueryResult, at: usize) -> std::result::Result<T, DbErr> {
    let text: String = row.try_get_by_index(at)?;
    serde_json::from_value(serde_json::Value::String(text)).map_err(|error| DbErr::Type(error.to_string()))
}

/// A value stored as JSON text.
pub fn json<T: DeserializeOwned>(row: &QueryResult, at: usize) -> std::result::Result<T, DbErr> {
    let text: String = row.try_get_by_index(at)?;
    serde_json::from_str(&text).map_err(|error| DbErr::Type(error.to_string()))
}

/// A value as JSON text for a column or a batch.
pub fn to_json<T: serde::Serialize + ?Sized>(action: &'static str, value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::new(StoreErrorKind::Invalid, action, error.to_string()))
}

/// Ids, or other values, as a batch of one column.
pub fn list<T: serde::Serialize>(action: &'static str, values: &[T]) -> Result<String> {
    to_json(action, &values.iter().map(|value| [value]).collect::<Vec<_>>())
}

/// Text that every database stores: PostgreSQL refuses NUL.
pub fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The stored word of a `snake_case` enum.
pub fn to_word<T: serde::Serialize>(action: &'static str, value: &T) -> Result<String> {
    to_json(action, value).map(|json| json.trim_matches('"').to_owned())
}
