//! What the demo executor writes down when a handler is entered: the truth about starts.

use serde::Deserialize;
use std::path::Path;

/// One start of a handler.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)] // the fields of the report's lines
pub struct Start {
    #[serde(deserialize_with = "number")]
    pub log: i64,
    pub attempt: i32,
    #[serde(deserialize_with = "number")]
    pub task: i64,
    pub handler: String,
    pub fire_time: i64,
    pub due_time: i64,
    pub shard_index: i32,
    pub shard_total: i32,
    /// Cluster time as the executor estimates it.
    pub started_at_us: i64,
    #[serde(default)]
    pub executor: String,
}

impl Start {
    /// How much later than due, ms (never negative in a right world).
    #[must_use]
    pub fn late_ms(&self) -> i64 {
        (self.started_at_us - self.due_time * 1_000).div_euclid(1_000)
    }
}

/// Ids are numbers or strings of them.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    crate::api::id_of(&value).ok_or_else(|| serde::de::Error::custom(format!("{value} is no id")))
}

/// Reads a report. The last line may be cut off when its writer was killed.
#[must_use]
pub fn read(path: &Path) -> Vec<Start> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut starts = Vec::new();
    for line in text.split_inclusive('\n') {
        match serde_json::from_str(line) {
            Ok(start) => starts.push(start),
            Err(error) => assert!(!line.ends_with('\n'), "{}: {error}: {line}", path.display()),
        }
    }
    starts
}
