//! Values of columns: words, JSON, text.

use super::error::{Result, StoreError, StoreErrorKind};

/// A value as JSON text for a column or a batch.
pub fn to_json<T: serde::Serialize + ?Sized>(action: &'static str, value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::new(StoreErrorKind::Invalid, action, error.to_string()))
}

/// Ids, or other values, as a batch of one column.
pub fn list<T: serde::Serialize>(action: &'static str, values: impl IntoIterator<Item = T>) -> Result<String> {
    to_json(action, &values.into_iter().map(|value| [value]).collect::<Vec<_>>())
}

/// Text that every database stores: PostgreSQL refuses NUL.
pub fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The stored word of a `snake_case` enum.
pub fn to_word<T: serde::Serialize>(action: &'static str, value: &T) -> Result<String> {
    to_json(action, value).map(|json| json.trim_matches('"').to_owned())
}
