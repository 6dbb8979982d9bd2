//! What an admin enters for a task, made of the list in `table.rs`. The same value is the body of the API, the entry of
//! a task file, and the defaults that an executor registers.

use super::field::{Allowed, Field, Unit};
use super::policy::{
    BlockScope, BlockStrategy, Delivery, ExpiredStrategy, FailureClass, FailureStrategy, Maintenance, MisfireStrategy,
    ParentOutcome, ParentRule, RetryBackoff, ScheduleKind,
};
use super::table::task_fields;
use crate::domain::calendar::CalendarRule;
use crate::domain::cron::{Gap, Overlap};
use crate::domain::field_error::FieldError;
use crate::domain::refusal::unreadable;
use crate::domain::routing::Routing;
use crate::domain::task_log::PRIORITY_DEFAULT;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Every kind of failure: what `retry_on` holds unless it says otherwise.
pub const EVERY_FAILURE: [FailureClass; 4] =
    [FailureClass::Failed, FailureClass::TimedOut, FailureClass::Lost, FailureClass::NotSent];

/// Longest interval, time-out or expiry, ms: thirty days.
pub const SPAN_MS_MAX: i64 = 30 * 86_400_000;

/// Longest interval of a fixed rate or delay, ms: a year.
pub(super) const INTERVAL_MS_MAX: i64 = 366 * 86_400_000;

/// Longest spread or jitter, ms: a day.
const WINDOW_MS_MAX: i64 = 86_400_000;

/// Bound of runs at once, and of failures in a row.
const COUNT_MAX: i64 = 1_000_000;

/// A parent whose end makes the task run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentLink {
    /// Name of the parent: `task` of the same app, or `app/task` of another app of the tenant.
    pub task: String,
    /// Which end counts.
    #[serde(default)]
    pub on: ParentOutcome,
}

/// Makes the definition of the list.
macro_rules! definition {
    ($($place:ident { $($group:literal: $(
        $(#[$attr:meta])* $field:ident: $type:ty = $default:expr,
        $says:literal, $allowed:expr, $example:literal, $use_when:literal;
    )*)* })*) => {
        /// A task as it is defined. Times are epoch ms; 0 stands for "none" where it says so.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct TaskSpec {
            $($($(#[doc = $says] $(#[$attr])* pub $field: $type,)*)*)*
        }

        impl Default for TaskSpec {
            fn default() -> Self {
                Self { $($($($field: $default,)*)*)* }
            }
        }

        impl TaskSpec {
            /// Every field, in the order of the definition.
            pub const FIELDS: &[Field] = &[$($($(Field {
                name: stringify!($field),
                group: $group,
                says: $says,
                allowed: $allowed,
                example: $example,
                use_when: $use_when,
            },)*)*)*];
        }
    };
}

task_fields!(definition);

impl TaskSpec {
    /// This definition with the fields of `patch` in place of its own. A `cron` that comes
    /// without a `schedule` makes (or, when empty, ends) a cron schedule.
    ///
    /// # Errors
    /// The first field that is unknown or of the wrong kind; ranges are [`TaskSpec::check`]'s.
    pub fn patched(&self, patch: Map<String, Value>) -> Result<Self, FieldError> {
        let wrong = |error: serde_path_to_error::Error<serde_json::Error>| match error.path().to_string().as_str() {
            "." => FieldError::new(unknown_field(error.inner()), unreadable(&error.inner().to_string())),
            field => FieldError::new(field, unreadable(&error.inner().to_string())),
        };
        let Ok(Value::Object(mut whole)) = serde_json::to_value(self) else {
            return Err(FieldError::new("task", unreadable("cannot be written as JSON")));
        };
        if let Some(Value::String(cron)) = patch.get("cron")
            && !patch.contains_key("schedule")
            && (!cron.trim().is_empty() || self.schedule == ScheduleKind::Cron)
        {
            let kind = if cron.trim().is_empty() { "none" } else { "cron" };
            whole.insert("schedule".to_owned(), Value::from(kind));
        }
        whole.extend(patch);
        let mut spec: Self = serde_path_to_error::deserialize(Value::Object(whole)).map_err(wrong)?;
        spec.cron = spec.cron.trim().to_owned();
        spec.retry_on.sort_by_key(|class| *class as u8);
        spec.retry_on.dedup();
        Ok(spec)
    }

    /// The fields that differ from the defaults, for files: what a default says need not be said.
    #[must_use]
    pub fn sparse(&self) -> Map<String, Value> {
        let fields = |spec: &Self| match serde_json::to_value(spec) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let defaults = fields(&Self::default());
        fields(self).into_iter().filter(|(name, value)| defaults.get(name) != Some(value)).collect()
    }
}

/// `unknown field `x`, expected …` names the field that the path does not.
fn unknown_field(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let named = text.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    named.unwrap_or("task").to_owned()
}

fn text_or_json<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(params_text(Value::deserialize(from)?))
}

/// Parameters are text; any other JSON value is kept as its JSON.
#[must_use]
pub fn params_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Epoch ms, or a time as RFC 3339 has it; nothing is 0.
fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    use serde::de::Error;
    match Value::deserialize(from)? {
        Value::Null => Ok(0),
        Value::String(text) if text.is_empty() => Ok(0),
        Value::String(text) => {
            chrono::DateTime::parse_from_rfc3339(&text).map(|time| time.timestamp_millis()).map_err(|_| {
                D::Error::custom(format!("`{text}` is not a time; use 2026-12-24T18:00:00Z or epoch milliseconds"))
            })
        }
        Value::Number(number) if number.is_i64() => Ok(number.as_i64().unwrap_or(0)),
        other => {
            Err(D::Error::custom(format!("{other} is not a time; use 2026-12-24T18:00:00Z or epoch milliseconds")))
        }
    }
}
