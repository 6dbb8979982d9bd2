//! What an edit changes, field by field.

use super::TaskSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// One field of a task that becomes another, in the words of the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Its name.
    pub field: String,
    /// As it is; null when there is none.
    pub before: Value,
    /// As it will be; null when there is none.
    pub after: Value,
}

impl FieldChange {
    /// `field` from `before` to `after`.
    pub fn new(field: &str, before: impl Into<Value>, after: impl Into<Value>) -> Self {
        Self { field: field.to_owned(), before: before.into(), after: after.into() }
    }
}

/// The fields in which two definitions differ, in the order of the definition.
#[must_use]
pub fn diff(before: &TaskSpec, after: &TaskSpec) -> Vec<FieldChange> {
    if before == after {
        return Vec::new();
    }
    let (before, after) = (fields(before), fields(after));
    let changes = TaskSpec::field_names().filter_map(|name| {
        let value = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
        let (before, after) = (value(&before), value(&after));
        (before != after).then(|| FieldChange::new(name, before, after))
    });
    changes.collect()
}

fn fields(spec: &TaskSpec) -> Map<String, Value> {
    match serde_json::to_value(spec) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task::{ParentLink, ParentOutcome, Routing};
    use serde_json::json;

    #[test]
    fn equal_definitions_do_not_differ() {
        assert_eq!(diff(&TaskSpec::default(), &TaskSpec::default()), []);
    }

    #[test]
    fn changes_come_in_the_order_of_the_definition() {
        let before = TaskSpec { cron: "0 0 * * * ?".to_owned(), ..TaskSpec::default() };
        let after = TaskSpec {
            cron: "0 5 * * * ?".to_owned(),
            routing: Routing::Sharding,
            max_retries: 2,
            parents: vec![ParentLink { task: "a".to_owned(), on: ParentOutcome::Failure }],
            handler: "h".to_owned(),
            ..TaskSpec::default()
        };
        let expected = [
            FieldChange::new("handler", "", "h"),
            FieldChange::new("cron", "0 0 * * * ?", "0 5 * * * ?"),
            FieldChange::new("routing", json!(before.routing), "sharding"),
            FieldChange::new("max_retries", 5, 2),
            FieldChange::new("parents", json!([]), json!([{ "task": "a", "on": "failure" }])),
        ];
        assert_eq!(diff(&before, &after), expected);
    }
}
