//! What a tenant may have at most.

use super::{FieldError, FieldRefusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Largest bound on tasks, runs at once and fires in a minute.
pub const COUNT_MAX: i32 = 1_000_000;

/// Longest retention, days.
pub const RETAIN_DAYS_MAX: i32 = 3_650;

/// Bounds of a tenant. 0 is no bound; days of retention: the node's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Tasks; more are not created.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub max_tasks: i32,
    /// Fires in any minute of the whole cluster; more are delayed.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub max_fires_per_minute: i32,
    /// Runs at once; more wait.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub max_concurrent: i32,
    /// Days that ended task logs are kept.
    #[schema(minimum = 0, maximum = 3_650)]
    pub retain_days: i32,
}

impl Quotas {
    /// What is wrong with them.
    #[must_use]
    pub fn check(&self) -> Vec<FieldError> {
        let fields = [
            ("max_tasks", self.max_tasks, COUNT_MAX),
            ("max_fires_per_minute", self.max_fires_per_minute, COUNT_MAX),
            ("max_concurrent", self.max_concurrent, COUNT_MAX),
            ("retain_days", self.retain_days, RETAIN_DAYS_MAX),
        ];
        let wrong = fields.into_iter().filter(|(_, value, most)| !(0..=*most).contains(value));
        let refusal = |field: &str, most: i64| match field {
            "retain_days" => FieldRefusal::RetentionOutOfRange { most },
            _ => FieldRefusal::BoundOutOfRange { most },
        };
        wrong.map(|(field, _, most)| FieldError::new(field, refusal(field, most.into()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_range() {
        let most = Quotas {
            max_tasks: COUNT_MAX,
            max_fires_per_minute: COUNT_MAX,
            max_concurrent: COUNT_MAX,
            retain_days: RETAIN_DAYS_MAX,
        };
        assert!(most.check().is_empty() && Quotas::default().check().is_empty());
        let wrong = Quotas { max_tasks: -1, retain_days: RETAIN_DAYS_MAX + 1, ..most };
        let fields: Vec<String> = wrong.check().into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["max_tasks", "retain_days"]);
    }
}
